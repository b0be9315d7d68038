/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img convert.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/copy.h"
#include "tools/img-copy.h"
#include "tools/img.h"
#include "tools/interrupt.h"
#include "tools/plot.h"
#include "util/buffer.h"
#include "util/checked.h"
#include "util/log.h"

#define DEFAULT_THREADS 8
#define DEFAULT_SPARSE  4096
#define SECTOR          512

typedef struct Convert {
    const ToolArgs *args;
    Image *sources; /* n of them */
    CopySource *parts;
    unsigned n;
    Target target;
    uint64_t bytes; /* of all sources */
    Copy copy;
    Image out;
    bool made; /* there is a file of the target's name that we made */
} Convert;

static bool refuse_unsupported(const ToolArgs *args)
{
    static const struct {
        const char *option, *why;
    } table[] = {
        {"snapshot", "Snapshots are not supported: no format here has them"},
        {"bitmaps", "Bitmaps are not supported: no format here has them"},
        {"skip-broken-bitmaps", "Bitmaps are not supported: no format here has them"},
        {"compress", "Compression not supported for this file format"},
        {"backing", "Backing files are not supported; qemu-img makes qcow2 images with them"},
        {"backing-format", "Backing files are not supported; qemu-img makes qcow2 images with them"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        if (tool_has(args, table[i].option)) {
            log_error("%s", table[i].why);
            return false;
        }
    }
    return true;
}

static bool check_options(const ToolArgs *args)
{
    bool ignored;
    const char *fault = NULL;
    if (tool_has(args, "image-opts") && tool_has(args, "source-format")) {
        fault = "--image-opts and --format are mutually exclusive";
    } else if (tool_has(args, "target-image-opts") && tool_has(args, "target-format")) {
        fault = "-O and --target-image-opts are mutually exclusive";
    } else if (tool_has(args, "target-image-opts") && !tool_has(args, "no-create")) {
        fault = "--target-image-opts requires use of -n flag";
    } else if (tool_has(args, "target-is-zero") && !tool_has(args, "no-create")) {
        fault = "--target-is-zero requires use of -n flag";
    } else if (tool_has(args, "no-create") && tool_has(args, "target-format-options")) {
        fault = "-o has no effect when skipping image creation";
    } else if (tool_has(args, "copy-range-offloading") && tool_has(args, "sparse-size")) {
        fault = "Cannot enable copy offloading when -S is used";
    } else if (tool_count(args) < 1) {
        fault = "Must specify image file name";
    } else if (tool_count(args) < 2) {
        fault = "Must specify image file name";
    }
    if (fault) {
        log_error("%s", fault);
        return false;
    }
    if (!image_parse_cache(tool_get(args, "target-cache"), &ignored, &ignored, &ignored)) {
        log_error("Invalid cache option: %s", tool_get(args, "target-cache"));
        return false;
    }
    if (!image_parse_cache(tool_get(args, "source-cache"), &ignored, &ignored, &ignored)) {
        log_error("Invalid source cache option: %s", tool_get(args, "source-cache"));
        return false;
    }
    return refuse_unsupported(args);
}

static bool take_numbers(Convert *c)
{
    uint64_t threads = DEFAULT_THREADS, sparse = DEFAULT_SPARSE, rate = 0;
    const ToolArgs *args = c->args;
    const char *text = tool_get(args, "parallel");
    if (text && (options_parse_uint(text, &threads) < 0 || threads < 1 || threads > COPY_THREADS_MAX)) {
        log_error("Invalid number of coroutines specified. Must be between 1 and %d.", COPY_THREADS_MAX);
        return false;
    }
    if (!tool_get_size(args, "sparse-size", "buffer size for sparse output", 0, INT64_MAX, &sparse) ||
        !tool_get_size(args, "rate-limit", "rate limit", 0, INT64_MAX, &rate)) {
        return false;
    }
    if (sparse && sparse < SECTOR) {
        log_error(
            "Invalid buffer size for sparse output specified. Valid sizes are multiples of 512. Select 0 "
            "to disable sparse detection (fully allocates output).");
        return false;
    }
    c->copy.threads = threads;
    c->copy.sparse = MIN(align_down(sparse, SECTOR), BUFFER_MAX);
    c->copy.rate = rate;
    c->copy.in_order = !tool_has(args, "oob-writes");
    c->copy.salvage = tool_has(args, "salvage");
    return true;
}

/* The whole image; of a disc image the user data of its first data track. */
static bool choose_part(const Image *image, CopySource *ret)
{
    bool no_data;
    const BlockTrack *track = copy_find_track(image->node, &no_data);
    if (no_data) {
        log_error("'%s' has no data track", image->name);
        return false;
    }
    *ret =
        (CopySource){image->node, 0, track ? track->sectors * 2048ULL : block_info(image->node)->size, track};
    return true;
}

static bool open_sources(Convert *c)
{
    const ToolArgs *args = c->args;
    c->n = tool_count(args) - 1;
    c->sources = g_new0(Image, c->n);
    c->parts = g_new0(CopySource, c->n);
    for (unsigned i = 0; i < c->n; i++) {
        ImageSpec spec = {
            .name = tool_operand(args, i),
            .format = tool_get(args, "source-format"),
            .cache = tool_get(args, "source-cache"),
            .image_opts = tool_has(args, "image-opts"),
            .force_share = tool_has(args, "force-share"),
        };
        if (!image_open_or_say(&spec, &c->sources[i])) {
            return false;
        }
        if (!choose_part(&c->sources[i], &c->parts[i])) {
            return false;
        }
        if (c->parts[i].bytes > INT64_MAX - c->bytes) {
            log_error("The sources together are too large");
            return false;
        }
        c->bytes += c->parts[i].bytes;
    }
    c->copy.sources = c->parts;
    c->copy.n_sources = c->n;
    return true;
}

/* -n: what is there is written over. */
static bool open_existing(Convert *c)
{
    const ToolArgs *args = c->args;
    bool as_options = tool_has(args, "target-image-opts");
    const char *cache = tool_get(args, "target-cache");
    ImageSpec spec = {
        .name = c->target.name,
        .format = as_options ? NULL : c->target.format,
        .cache = cache ? cache : "unsafe",
        .image_opts = as_options,
        .writable = true,
    };
    GError *error = NULL;
    if (!image_open_or_say(&spec, &c->out)) {
        return false;
    }
    if (!block_claim_write(c->out.node, &error)) {
        log_gerror(error, "Could not open '%s': ", c->target.name);
        return false;
    }
    if (block_info(c->out.node)->size < c->bytes) {
        log_error("output file is smaller than input file");
        return false;
    }
    c->copy.target_is_zero = tool_has(args, "target-is-zero");
    return true;
}

/* LUKS takes whole encryption sectors. */
static uint64_t target_size(Convert *c)
{
    uint64_t sector = 1;
    if (!strcmp(c->target.format, "luks")) {
        sector = SECTOR;
        options_get_uint(c->target.options, "sector-size", SECTOR, 4096, SECTOR, &sector, NULL);
        sector = is_power_of_2(sector) ? sector : SECTOR;
    }
    return align_up(c->bytes, sector);
}

static bool make_target(Convert *c)
{
    GError *error = NULL;
    const char *cache = tool_get(c->args, "target-cache");
    image_parse_cache(cache ? cache : "unsafe", &c->target.direct, &c->target.no_flush, &c->out.writethrough);
    c->target.size = target_size(c);
    if (!target_check(&c->target, &error)) {
        log_gerror(error, NULL);
        return false;
    }
    BlockNode *file = target_create(&c->target, &c->made, &error);
    c->out.node = file ? target_open(&c->target, file, &error) : NULL;
    block_unref(file);
    if (!c->out.node) {
        log_gerror(error, "%s: error while converting %s: ", c->target.name, c->target.format);
        return false;
    }
    c->out.name = c->target.name;
    c->out.format = c->target.format;
    c->copy.target_is_zero = c->made && !strcmp(c->target.format, "raw");
    return true;
}

/* Zeros from the end of the content to the end of the last encryption sector, and everything to the disk. */
static bool finish(Convert *c)
{
    uint64_t size = block_info(c->out.node)->size;
    int r = 0;
    if (c->target.size > c->bytes && !tool_has(c->args, "no-create")) {
        r = block_write_zeroes(c->out.node, c->bytes, size - c->bytes, 0);
    }
    r = r < 0 ? r : block_flush(c->out.node);
    if (r < 0) {
        log_error("error while writing at byte %" G_GUINT64_FORMAT ": %s", c->bytes, g_strerror(-r));
    }
    return r == 0;
}

static bool convert(Convert *c, Interrupt *interrupt)
{
    const ToolArgs *args = c->args;
    c->copy.target = c->out.node;
    c->copy.target_keeps_zeros = strcmp(block_info(c->out.node)->driver, "luks") != 0;
    c->copy.write_flags = c->out.writethrough ? BLOCK_FUA : BLOCK_WRITE_BEHIND;
    return img_copy(&c->copy, c->bytes, args, interrupt) && finish(c);
}

static int convert_all(Convert *c)
{
    bool existing = tool_has(c->args, "no-create");
    bool ok = open_sources(c);
    Interrupt *interrupt = NULL;
    if (ok) {
        ok = existing ? open_existing(c) : make_target(c);
        g_autofree char *path = c->made ? target_path(c->target.name) : NULL;
        interrupt = interrupt_new(path);
        ok = ok && convert(c, interrupt);
        if (!ok) {
            interrupt_discard(interrupt);
        }
    }
    image_close(&c->out);
    for (unsigned i = 0; i < c->n; i++) {
        image_close(&c->sources[i]);
    }
    g_free(c->sources);
    g_free(c->parts);
    interrupt_free(interrupt);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int convert_run(const ToolArgs *args)
{
    const char *format = tool_get(args, "target-format");
    g_autoptr(Options) options = target_options(args);
    Convert c = {.args = args};
    c.target.format = format ? format : "raw";
    c.target.options = options;
    if (options && options_has(options, "help") && image_format_known(c.target.format)) {
        target_print_options(c.target.format);
        return EXIT_SUCCESS;
    }
    if (!options || !check_options(args) || !take_numbers(&c)) {
        return EXIT_FAILURE;
    }
    c.target.name = tool_operand(args, tool_count(args) - 1);
    if (!image_format_known(c.target.format)) {
        log_error("Unknown file format '%s'", c.target.format);
        return EXIT_FAILURE;
    }
    return convert_all(&c);
}

static const ToolOption convert_options[] = {
    {'f', "source-format", "FMT", "the format of all SRCs (raw, luks); probed if not given"},
    {0, "image-opts", NULL, "each SRC is an option string (driver=…,file.filename=…)"},
    {'T', "source-cache", "CACHE", "how to read: writeback (default), none, …"},
    {'l', "snapshot", "SNAPSHOT", "not supported"},
    {0, "bitmaps", NULL, "not supported"},
    {0, "skip-broken-bitmaps", NULL, "not supported"},
    {0, "salvage", NULL, "unreadable parts become zeros, with a warning, instead of ending the copy"},
    {'O', "target-format", "FMT", "the format of DST: raw (default) or luks"},
    {0, "target-image-opts", NULL, "DST is an option string; needs -n"},
    {'o', "target-format-options", "OPTIONS", "options of DST's format, key=value,…; '-o help' lists them"},
    {'t', "target-cache", "CACHE",
     "how to write: unsafe (default), none, writeback, writethrough, directsync"},
    {'b', "backing", "FILE", "not supported"},
    {'F', "backing-format", "FMT", "not supported"},
    {'S', "sparse-size", "SIZE",
     "zeros of at least this length become holes (4k); 0: none, DST is fully allocated"},
    {'n', "no-create", NULL, "DST exists; write over it"},
    {0, "target-is-zero", NULL, "DST reads as zeros already; needs -n"},
    {'c', "compress", NULL, "not supported"},
    {'r', "rate-limit", "RATE", "bytes a second at most"},
    {'m', "parallel", "N", "requests at the same time: 1 to 16 (8)"},
    {'C', "copy-range-offloading", NULL, "accepted; data passes through this program all the same"},
    {'W', "oob-writes", NULL, "write in any order: faster with several requests"},
    IMG_PLOT,
    IMG_PROGRESS,
    TOOL_QUIET,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_convert = {
    .name = "convert",
    .summary = "Copies images, from one format to another too",
    .usage = "[-f FMT | --image-opts] [-T CACHE] [--salvage]\n"
             "        [-O FMT | --target-image-opts] [-o OPTIONS] [-t CACHE] [-S SIZE] [-n]\n"
             "        [--target-is-zero] [-U] [-r RATE] [-m N] [-W] [-p] [-q] [--plot FILE.png]\n"
             "        [--object OBJDEF] SRC [SRC…] DST",
    .options = convert_options,
    .operands =
        "  SRC\n     what to copy; several are put one after the other. Of a disc image (.cue) the user data "
        "of its\n"
        "     first data track is copied: an ISO\n"
        "  DST\n     the copy; what is there is overwritten. When the copy does not come to its end, DST\n"
        "     is removed (not with -n)\n\n"
        "SIGUSR1 prints how far the copy is.\n",
    .examples = "  spindle-img convert -p disc.iso copy.iso\n"
                "  spindle-img convert -p -W -m 16 -t none --object secret,id=s0,file=pass.txt \\\n"
                "     -O luks -o key-secret=s0 disk.img disk.luks\n"
                "  spindle-img convert --object secret,id=s0,file=pass.txt --image-opts \\\n"
                "     driver=luks,key-secret=s0,file.filename=disk.luks disk.img\n"
                "  spindle-img convert disc.cue disc.iso\n"
                "  spindle-img convert --salvage /dev/sr0 disc.iso\n",
    .run = convert_run,
};
