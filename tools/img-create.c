/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img create, resize, measure, check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/img.h"
#include "util/checked.h"
#include "util/error.h"
#include "util/log.h"

#define SECTOR            512 /* a new image has whole ones, as qemu-img's */
#define CHECK_UNSUPPORTED 63  /* qemu-img's exit status */

/* "Formatting 'x', fmt=raw size=1048576 …" */
static void say_formatting(const Target *target)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "Formatting '%s', fmt=%s size=%" G_GUINT64_FORMAT, target->name, target->format,
                    target->size);
    g_auto(GStrv) keys = options_keys(target->options);
    for (char **key = keys; *key; key++) {
        if (strcmp(*key, "size")) {
            g_string_append_printf(text, " %s=%s", *key, options_get(target->options, *key));
        }
    }
    printf("%s\n", text->str);
}

static bool get_size(const ToolArgs *args, Options *options, const char *name, uint64_t *ret)
{
    const char *text = tool_operand(args, 1);
    if (text && options_has(options, "size")) {
        log_error("%s: The image size must be specified only once", name);
        return false;
    }
    if (text) {
        return tool_parse_size(text, "image size", 0, INT64_MAX, ret);
    }
    GError *error = NULL;
    if (!options_has(options, "size")) {
        log_error("%s: Image creation needs a size parameter", name);
        return false;
    }
    if (!options_get_size(options, "size", 0, ret, &error)) {
        log_gerror(error, "%s: ", name);
        return false;
    }
    return true;
}

static bool refuse_backing(const ToolArgs *args)
{
    if (tool_has(args, "backing") || tool_has(args, "backing-format")) {
        log_error("Backing files are not supported; qemu-img makes qcow2 images with them");
        return false;
    }
    return true;
}

static int create_run(const ToolArgs *args)
{
    const char *name = tool_operand(args, 0), *format = tool_get(args, "format");
    g_autoptr(Options) options = target_options(args);
    Target target = {.name = name, .format = format ? format : "raw", .options = options};
    if (!options || !refuse_backing(args)) {
        return EXIT_FAILURE;
    }
    if (options_has(options, "help") && image_format_known(target.format)) {
        target_print_options(target.format);
        return EXIT_SUCCESS;
    }
    if (!name) {
        return tool_wrong(args, "Expecting image file name");
    }
    if (tool_count(args) > 2) {
        return tool_wrong(args, "Unexpected argument: %s", tool_operand(args, 2));
    }
    GError *error = NULL;
    bool known = image_format_known(target.format), made = false;
    if (known && !get_size(args, options, name, &target.size)) {
        return EXIT_FAILURE;
    }
    if (!target_check(&target, &error)) {
        log_gerror(error, "%s: ", name);
        return EXIT_FAILURE;
    }
    if (!tool_has(args, "quiet")) {
        say_formatting(&target);
        fflush(stdout);
    }
    target.size = align_up(target.size, SECTOR);
    BlockNode *node = target_create(&target, &made, &error);
    if (!node) {
        log_gerror(error, "%s: ", name);
        g_autofree char *path = made ? target_path(name) : NULL;
        if (path) {
            unlink(path);
        }
        return EXIT_FAILURE;
    }
    block_unref(node);
    return EXIT_SUCCESS;
}

static const ToolOption create_options[] = {
    {'f', "format", "FMT", "the format of the new image: raw (default) or luks"},
    {'o', "options", "OPTIONS", "options of the format, key=value,…; '-o help' lists them"},
    {'b', "backing", "FILE", "not supported"},
    {'B', "backing-format", "FMT", "not supported"},
    {'u', "backing-unsafe", NULL, "accepted; there are no backing files"},
    TOOL_QUIET,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_create = {
    .name = "create",
    .summary = "Creates a new image",
    .usage = "[-f FMT] [-o OPTIONS] [-q] [--object OBJDEF] FILE [SIZE]",
    .options = create_options,
    .operands = "  FILE\n     the image; what is there is overwritten\n"
                "  SIZE\n     bytes of content, or with a suffix: k M G T P E\n",
    .examples =
        "  spindle-img create disk.img 10G\n"
        "  spindle-img create --object secret,id=s0,file=pass.txt -f luks -o key-secret=s0 d.luks 1G\n"
        "  spindle-img create --object secret,id=s0,file=pass.txt -f luks \\\n"
        "     -o key-secret=s0,version=2,sector-size=4096 d.luks 1G\n",
    .run = create_run,
};

/* SIZE, +SIZE or -SIZE against the present size. */
static bool new_size(const char *text, uint64_t now, uint64_t *ret)
{
    char sign = *text == '+' || *text == '-' ? *text : '\0';
    g_autoptr(Options) options = options_new();
    options_set(options, "size", text + (sign != '\0'));
    GError *error = NULL;
    uint64_t value;
    if (!options_get_size(options, "size", 0, &value, &error)) {
        log_gerror(error, NULL);
        return false;
    }
    if (sign == '+' ? value > INT64_MAX - now : sign == '-' ? value >= now : !value || value > INT64_MAX) {
        log_error("New image size must be positive%s", sign == '-' || !value ? "" : " and below 2^63");
        return false;
    }
    *ret = sign == '+' ? now + value : sign == '-' ? now - value : value;
    return true;
}

static int resize_image(const ToolArgs *args, Image *image, const char *text)
{
    uint64_t now = block_info(image->node)->size, size;
    const char *mode = tool_get(args, "preallocation");
    if (!new_size(text, now, &size)) {
        return EXIT_FAILURE;
    }
    if (size <= now && mode && strcmp(mode, "off")) {
        log_error("Preallocation can only be used for growing images");
        return EXIT_FAILURE;
    }
    if (size < now && !tool_has(args, "shrink")) {
        log_error("Use the --shrink option to perform a shrink operation.");
        log_warn("Shrinking an image will delete all data beyond the shrunken image's end. Before performing "
                 "such an operation, make sure there is no important data there.");
        return EXIT_FAILURE;
    }
    GError *error = NULL;
    if (!block_claim_write(image->node, &error) || block_resize(image->node, size, &error) < 0) {
        log_gerror(error, NULL);
        return EXIT_FAILURE;
    }
    if (mode &&
        strcmp(mode, "off") != 0) { /* zeroes that are not unmapped take their room, however they are made */
        int r = block_write_zeroes(image->node, now, size - now, 0);
        if (r < 0) {
            log_error("Could not write zeros for preallocation: %s", g_strerror(-r));
            return EXIT_FAILURE;
        }
    }
    if (!tool_has(args, "quiet")) {
        printf("Image resized.\n");
    }
    return EXIT_SUCCESS;
}

static int resize_run(const ToolArgs *args)
{
    const char *mode = tool_get(args, "preallocation");
    if (tool_count(args) != 2) {
        return tool_wrong(args, tool_count(args) > 2 ? "Extra argument(s) in command line"
                                                     : "Expecting image file name and size");
    }
    static const char *const modes[] = {"off", "falloc", "full", NULL};
    if (mode && !g_strv_contains(modes, mode)) {
        log_error("Invalid preallocation mode '%s'; off, falloc and full are supported", mode);
        return EXIT_FAILURE;
    }
    g_auto(Image) image = {0};
    return img_open(args, tool_operand(args, 0), NULL, true, &image)
               ? resize_image(args, &image, tool_operand(args, 1))
               : EXIT_FAILURE;
}

static const ToolOption resize_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {0, "shrink", NULL, "allow the image to become smaller"},
    {0, "preallocation", "off|falloc|full", "what to do with the new part"},
    TOOL_QUIET,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_resize = {
    .name = "resize",
    .summary = "Makes an image larger or smaller",
    .usage = "[-f FMT | --image-opts] [--preallocation off|falloc|full] [--shrink]\n"
             "        [-q] [--object OBJDEF] FILE [+-]SIZE",
    .options = resize_options,
    .operands =
        "  FILE\n     the image\n  SIZE\n     its new size, or by how much to grow (+) or shrink (-)\n",
    .examples = "  spindle-img resize -f raw disk.img +1G\n"
                "  spindle-img resize -f raw --shrink disk.img -512M\n",
    .signed_last = true,
    .run = resize_run,
};

static bool print_measure(const Target *target, bool json)
{
    GError *error = NULL;
    uint64_t bytes;
    if (!target_measure(target, &bytes, &error)) {
        log_gerror(error, NULL);
        return false;
    }
    printf(json ? "{\n    \"required\": %" G_GUINT64_FORMAT ",\n    \"fully-allocated\": %" G_GUINT64_FORMAT
                  "\n}\n"
                : "required size: %" G_GUINT64_FORMAT "\nfully allocated size: %" G_GUINT64_FORMAT "\n",
           bytes, bytes);
    return true;
}

static int measure_run(const ToolArgs *args)
{
    bool json;
    int status;
    if (!tool_get_output(args, &json, &status)) {
        return status;
    }
    const char *format = tool_get(args, "target-format");
    if (tool_has(args, "size") == (tool_count(args) == 1) || tool_count(args) > 1) {
        log_error(tool_has(args, "size") && tool_count(args) == 1
                      ? "--size N cannot be used together with a filename."
                      : "Either --size N or one filename must be specified.");
        return EXIT_FAILURE;
    }
    g_autoptr(Options) options = target_options(args);
    Target target = {.name = "", .format = format ? format : "raw", .options = options};
    g_auto(Image) image = {0};
    if (!options || !tool_get_size(args, "size", "image size", 0, INT64_MAX, &target.size)) {
        return EXIT_FAILURE;
    }
    if (tool_count(args) == 1) {
        if (!img_open(args, tool_operand(args, 0), NULL, false, &image)) {
            return EXIT_FAILURE;
        }
        target.size = block_info(image.node)->size;
    }
    return print_measure(&target, json) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const ToolOption measure_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {'O', "target-format", "FMT", "the format of the new image (raw)"},
    {'o', NULL, "OPTIONS", "options of the new image's format"},
    {'s', "size", "SIZE", "bytes of content"},
    IMG_OUTPUT,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_measure = {
    .name = "measure",
    .summary = "Calculates how large a new image's file becomes",
    .usage = "[-f FMT | --image-opts] [-O FMT] [-o OPTIONS] [--output human|json]\n"
             "        [--object OBJDEF] (--size SIZE | FILE)",
    .options = measure_options,
    .operands = "  FILE\n     measure for a copy of this image\n",
    .examples = "  spindle-img measure -O raw --size 10G\n  spindle-img measure -O luks disc.iso\n",
    .run = measure_run,
};

static int check_run(const ToolArgs *args)
{
    bool json;
    int status;
    if (!tool_get_output(args, &json, &status)) {
        return status;
    }
    if (tool_count(args) != 1) {
        return tool_wrong(args, "Expecting one image file name");
    }
    const char *repair = tool_get(args, "repair");
    if (repair && strcmp(repair, "leaks") && strcmp(repair, "all")) {
        return tool_wrong(args, "--repair (-r) expects 'leaks' or 'all', not '%s'", repair);
    }
    g_auto(Image) image = {0};
    if (!img_open(args, tool_operand(args, 0), "cache", false, &image)) {
        return EXIT_FAILURE;
    }
    log_error("This image format does not support checks");
    return CHECK_UNSUPPORTED;
}

static const ToolOption check_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {'T', "cache", "CACHE", "cache mode (writeback)"},
    {'r', "repair", "leaks|all", "accepted; there is nothing to repair"},
    IMG_OUTPUT,
    TOOL_QUIET,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_check = {
    .name = "check",
    .summary = "Checks an image's own structures",
    .usage = "[-f FMT | --image-opts] [-T CACHE] [-U] [--output human|json] [-q]\n"
             "        [--object OBJDEF] FILE",
    .options = check_options,
    .operands =
        "  FILE\n     the image\n\n"
        "raw and luks have no structures that could be checked: the exit status is 63, as qemu-img's,\n"
        "if the image can be opened, else 1.\n",
    .examples = "  spindle-img check disk.img\n",
    .run = check_run,
};
