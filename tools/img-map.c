/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img map, compare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/img-copy.h"
#include "tools/img.h"
#include "util/log.h"

#define COMPARE_THREADS 4

/* Exit statuses of compare, as qemu-img's. */
enum { COMPARE_SAME, COMPARE_DIFFERENT, COMPARE_CANNOT_OPEN, COMPARE_CANNOT_SEEK, COMPARE_CANNOT_READ };

typedef struct Extent {
    uint64_t start, bytes;
    bool data, zero;
} Extent;

/* The extent at `start`, neighbours of the same kind taken together. */
static int next_extent(BlockNode *node, uint64_t start, uint64_t end, Extent *ret)
{
    *ret = (Extent){.start = start};
    while (start < end) {
        uint64_t run;
        unsigned status;
        int r = block_status(node, start, end - start, &run, &status);
        if (r < 0) {
            return r;
        }
        bool data = status & BLOCK_STATUS_DATA, zero = status & BLOCK_STATUS_ZERO;
        if (ret->bytes && (data != ret->data || zero != ret->zero)) {
            break;
        }
        ret->data = data;
        ret->zero = zero;
        ret->bytes += run;
        start += run;
    }
    return 0;
}

static void print_extent(const Extent *e, const char *file, bool mapped, bool json, bool first)
{
    if (json) {
        printf("%s{ \"start\": %" G_GUINT64_FORMAT ", \"length\": %" G_GUINT64_FORMAT
               ", \"depth\": 0, \"present\": true, \"zero\": %s, \"data\": %s, \"compressed\": false",
               first ? "" : ",\n", e->start, e->bytes, e->zero ? "true" : "false",
               e->data ? "true" : "false");
        if (mapped) {
            printf(", \"offset\": %" G_GUINT64_FORMAT, e->start);
        }
        printf("}");
    } else if (e->data && !e->zero) {
        printf("%#-16" G_GINT64_MODIFIER "x%#-16" G_GINT64_MODIFIER "x%#-16" G_GINT64_MODIFIER "x%s\n",
               e->start, e->bytes, e->start, file);
    }
}

static int map_image(const Image *image, uint64_t start, uint64_t length, bool json)
{
    const BlockInfo *info = block_info(image->node);
    BlockNode *child = block_child(image->node, "file");
    uint64_t end = length < info->size - MIN(start, info->size) ? start + length : info->size;
    /* The same offset in the file below, unless something lies between. */
    bool mapped = !child || (!strcmp(info->driver, "raw") && block_info(child)->size == info->size);
    printf(json ? "[" : "Offset          Length          Mapped to       File\n");
    for (uint64_t at = start; at < end;) {
        Extent e;
        int r = next_extent(image->node, at, end, &e);
        if (r < 0) {
            log_error("Failed to read image metadata: %s", g_strerror(-r));
            return EXIT_FAILURE;
        }
        if (!json && e.data && !e.zero && !mapped) {
            log_error("File contains external, encrypted or compressed clusters.");
            return EXIT_FAILURE;
        }
        print_extent(&e, info->filename, mapped, json, at == start);
        at += e.bytes;
    }
    printf("%s", json ? "]\n" : "");
    return EXIT_SUCCESS;
}

static int map_run(const ToolArgs *args)
{
    bool json;
    int status;
    uint64_t start = 0, length = INT64_MAX;
    if (!tool_get_output(args, &json, &status)) {
        return status;
    }
    if (tool_count(args) != 1) {
        return tool_wrong(args, "Expecting one image file name");
    }
    if (!tool_get_size(args, "start-offset", "start offset", 0, INT64_MAX, &start) ||
        !tool_get_size(args, "max-length", "max length", 0, INT64_MAX, &length)) {
        return EXIT_FAILURE;
    }
    g_auto(Image) image = {0};
    return img_open(args, tool_operand(args, 0), NULL, false, &image) ? map_image(&image, start, length, json)
                                                                      : EXIT_FAILURE;
}

static const ToolOption map_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {'s', "start-offset", "OFFSET", "begin here (0)"},
    {'l', "max-length", "LENGTH", "at most so many bytes"},
    IMG_OUTPUT,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_map = {
    .name = "map",
    .summary = "Shows where an image has data and where holes",
    .usage = "[-f FMT | --image-opts] [-s OFFSET] [-l LENGTH] [--output human|json]\n"
             "        [-U] [--object OBJDEF] FILE",
    .options = map_options,
    .operands = "  FILE\n     the image\n",
    .examples = "  spindle-img map disk.img\n  spindle-img map --output=json -s 1G -l 1G disk.img\n",
    .run = map_run,
};

/* Opens both; a status of compare's. */
static int compare_open(const ToolArgs *args, Image *images)
{
    bool ignored;
    const char *cache = tool_get(args, "cache");
    if (tool_has(args, "image-opts") && (tool_has(args, "a-format") || tool_has(args, "b-format"))) {
        log_error("--image-opts and --format are mutually exclusive");
        return COMPARE_CANNOT_OPEN;
    }
    if (!image_parse_cache(cache, &ignored, &ignored, &ignored)) {
        log_error("Invalid source cache option: %s", cache);
        return COMPARE_CANNOT_OPEN;
    }
    for (int i = 0; i < 2; i++) {
        ImageSpec spec = {
            .name = tool_operand(args, i),
            .format = tool_get(args, i ? "b-format" : "a-format"),
            .cache = cache,
            .image_opts = tool_has(args, "image-opts"),
            .force_share = tool_has(args, "force-share"),
        };
        if (!image_open_or_say(&spec, &images[i])) {
            return COMPARE_CANNOT_OPEN;
        }
    }
    return COMPARE_SAME;
}

/* Compares the part that both have, then says that the sizes differ, then the rest with zeros. */
static int compare_parts(const ToolArgs *args, BlockNode *a, BlockNode *b, Progress *progress,
                         bool *ret_equal, uint64_t *ret_offset, char **ret_message)
{
    uint64_t shorter = MIN(block_info(a)->size, block_info(b)->size);
    uint64_t longer = MAX(block_info(a)->size, block_info(b)->size);
    int r = compare_run(a, b, 0, shorter, COMPARE_THREADS, progress, ret_equal, ret_offset, ret_message);
    if (r < 0 || !*ret_equal || shorter == longer) {
        return r;
    }
    if (!tool_has(args, "quiet")) {
        printf("Warning: Image size mismatch!\n");
    }
    return compare_run(a, b, shorter, longer, COMPARE_THREADS, progress, ret_equal, ret_offset, ret_message);
}

static int compare_images(const ToolArgs *args, Image *images)
{
    BlockNode *a = images[0].node, *b = images[1].node;
    bool quiet = tool_has(args, "quiet"), equal;
    uint64_t offset;
    if (tool_has(args, "strict") && block_info(a)->size != block_info(b)->size) {
        if (!quiet) {
            printf("Strict mode: Image size mismatch!\n");
        }
        return COMPARE_DIFFERENT;
    }
    g_autofree char *message = NULL;
    Progress *progress = img_progress(args, MAX(block_info(a)->size, block_info(b)->size));
    int r = compare_parts(args, a, b, progress, &equal, &offset, &message);
    progress_finish(progress);
    progress_free(progress);
    if (r < 0) {
        log_error("%s", message);
        return COMPARE_CANNOT_READ;
    }
    if (!quiet && equal) {
        printf("Images are identical.\n");
    } else if (!quiet) {
        printf("Content mismatch at offset %" G_GUINT64_FORMAT "!\n", offset);
    }
    return equal ? COMPARE_SAME : COMPARE_DIFFERENT;
}

static int compare_command(const ToolArgs *args)
{
    if (tool_count(args) != 2) {
        return tool_wrong(args, "Expecting two image file names");
    }
    Image images[2] = {{0}, {0}};
    int status = compare_open(args, images);
    if (status == COMPARE_SAME) {
        status = compare_images(args, images);
    }
    image_close(&images[0]);
    image_close(&images[1]);
    return status;
}

static const ToolOption compare_options[] = {
    {'f', "a-format", "FMT", "the first image's format; probed if not given"},
    {'F', "b-format", "FMT", "the second one's"},
    {0, "image-opts", NULL, "the images are option strings"},
    {'s', "strict", NULL, "different sizes are a difference, even if the rest is zeros"},
    {'T', "cache", "CACHE", "cache mode (writeback)"},
    IMG_PROGRESS,
    TOOL_QUIET,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_compare = {
    .name = "compare",
    .summary = "Compares the content of two images",
    .usage = "[[-f FMT] [-F FMT] | --image-opts] [-s] [-T CACHE] [-U] [-p] [-q]\n"
             "        [--object OBJDEF] FILE1 FILE2",
    .options = compare_options,
    .operands =
        "  FILE1, FILE2\n     the images\n\n"
        "Exit status: 0 the same content, 1 different (or a wrong command line), 2 an image cannot be\n"
        "opened, 4 it cannot be read.\n",
    .examples = "  spindle-img compare disc.iso copy.iso\n"
                "  spindle-img compare --object secret,id=s0,file=pass.txt --image-opts \\\n"
                "     driver=raw,file.filename=disk.img driver=luks,key-secret=s0,file.filename=disk.luks\n",
    .run = compare_command,
};
