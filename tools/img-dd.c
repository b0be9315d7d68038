/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img dd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/img-copy.h"
#include "tools/img.h"
#include "util/log.h"

#define THREADS 8

typedef struct Operands {
    const char *input, *output;
    uint64_t block, count, skip;
    bool has_count;
} Operands;

/* KEY=VALUE; false after saying what is wrong. */
static bool take_operand(Operands *o, const char *text)
{
    const char *equals = strchr(text, '=');
    g_autofree char *key = g_strndup(text, equals ? (size_t)(equals - text) : strlen(text));
    const char *value = equals ? equals + 1 : "";
    if (equals && !strcmp(key, "if")) {
        o->input = value;
        return true;
    }
    if (equals && !strcmp(key, "of")) {
        o->output = value;
        return true;
    }
    if (equals && !strcmp(key, "bs")) {
        return tool_parse_size(value, "bs", 1, INT32_MAX, &o->block);
    }
    if (equals && !strcmp(key, "count")) {
        o->has_count = true;
        return tool_parse_size(value, "count", 0, INT64_MAX, &o->count);
    }
    if (equals && !strcmp(key, "skip")) {
        return tool_parse_size(value, "skip", 0, INT64_MAX, &o->skip);
    }
    log_error("unrecognized operand %s", key);
    return false;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The part of the input that is asked for. */
static CopySource choose_part(const Operands *o, const Image *image)
{
    uint64_t size = block_info(image->node)->size;
    uint64_t start = multiply(o->skip, o->block), bytes = size;
    if (start > size) {
        log_error("%s: cannot skip to specified offset", o->input);
        start = size;
    }
    bytes = size - start;
    if (o->has_count) {
        bytes = MIN(bytes, multiply(o->count, o->block));
    }
    return (CopySource){image->node, start, bytes, NULL};
}

static bool copy_part(const ToolArgs *args, const Operands *o, const Image *image, const char *format)
{
    CopySource part = choose_part(o, image);
    g_autoptr(Options) options = options_new();
    Target target = {
        .name = o->output, .format = format, .options = options, .size = part.bytes, .no_flush = true};
    GError *error = NULL;
    bool made;
    BlockNode *node = target_create(&target, &made, &error);
    g_autofree char *path = made ? target_path(o->output) : NULL;
    Interrupt *interrupt = interrupt_new(path);
    bool ok = false;
    if (!node) {
        log_gerror(error, "%s: error while creating output image of format '%s': ", o->output, format);
    } else {
        Copy copy = {.sources = &part,
                     .n_sources = 1,
                     .target = node,
                     .threads = THREADS,
                     .target_is_zero = made,
                     .target_keeps_zeros = true,
                     .sparse = 4096};
        ok = img_copy(&copy, part.bytes, args, interrupt);
    }
    if (!ok) {
        interrupt_discard(interrupt);
    }
    block_unref(node);
    interrupt_free(interrupt);
    return ok;
}

static int dd_run(const ToolArgs *args)
{
    const char *format = tool_get(args, "output-format");
    Operands o = {.block = 512};
    for (int i = 0; i < tool_count(args); i++) {
        if (!take_operand(&o, tool_operand(args, i))) {
            return EXIT_FAILURE;
        }
    }
    if (!o.input || !o.output) {
        log_error("Must specify both input and output files");
        return EXIT_FAILURE;
    }
    if (format && strcmp(format, "raw")) {
        log_error(image_format_known(format) ? "Output format '%s' is not supported by dd; use convert"
                                             : "Unknown file format '%s'",
                  format);
        return EXIT_FAILURE;
    }
    g_auto(Image) image = {0};
    return img_open(args, o.input, NULL, false, &image) && copy_part(args, &o, &image, "raw") ? EXIT_SUCCESS
                                                                                              : EXIT_FAILURE;
}

static const ToolOption dd_options[] = {
    IMG_FORMAT,
    {0, "image-opts", NULL, "INPUT is an option string (driver=…,file.filename=…)"},
    {'O', "output-format", "FMT", "the format of OUTPUT: raw"},
    IMG_PROGRESS,
    TOOL_QUIET,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_dd = {
    .name = "dd",
    .summary = "Copies a part of an image",
    .usage = "[-f FMT | --image-opts] [-O FMT] [-U] [--object OBJDEF]\n"
             "        [bs=SIZE] [count=BLOCKS] [skip=BLOCKS] if=INPUT of=OUTPUT",
    .options = dd_options,
    .operands =
        "  bs=SIZE\n     the unit of count and skip (512)\n  count=BLOCKS\n     how much to copy (all)\n"
        "  skip=BLOCKS\n     where to begin (0)\n  if=INPUT, of=OUTPUT\n     the images\n",
    .examples = "  spindle-img dd if=disk.img of=boot.img bs=1M count=16\n",
    .run = dd_run,
};
