/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img: its commands, and what they share.
 */
#ifndef SPINDLE_TOOLS_IMG_H
#define SPINDLE_TOOLS_IMG_H

#include "block/luks.h"
#include "tools/image.h"
#include "tools/tool.h"

extern const ToolCommand img_amend, img_bench, img_check, img_compare, img_convert, img_create, img_dd,
    img_info, img_map, img_measure, img_resize, img_trace_plot;

#define IMG_FORMAT                                                                                           \
    {                                                                                                        \
        'f', "format", "FMT", "the image's format (raw, luks); probed if not given"                          \
    }
#define IMG_IMAGE_OPTS                                                                                       \
    {                                                                                                        \
        0, "image-opts", NULL, "FILE is an option string (driver=…,file.filename=…)"                     \
    }
#define IMG_PROGRESS                                                                                         \
    {                                                                                                        \
        'p', "progress", NULL, "show progress: a bar on a terminal, lines elsewhere"                         \
    }
#define IMG_OUTPUT                                                                                           \
    {                                                                                                        \
        0, "output", "human|json", "how to print (human)"                                                    \
    }

/* An open image by the common options -f, --image-opts, -U and a cache option of that name. False after
 * saying what is wrong. */
bool img_open(const ToolArgs *args, const char *name, const char *cache_option, bool writable, Image *ret);

/* True unless both -f and --image-opts are given, which is said. */
bool img_check_format_options(const ToolArgs *args);

/* A new image. */
typedef struct Target {
    const char *name;      /* a file name; what exists there is overwritten */
    const char *format;    /* raw, luks */
    Options *options;      /* of `-o`; `size` does not count */
    uint64_t size;         /* bytes of content */
    bool direct, no_flush; /* how to open it */
} Target;

/* Prints the options of a format, as `-o help`. */
void target_print_options(const char *format);

/* False when the format is unknown or an option is no option of it, before anything is touched. */
bool target_check(const Target *target, GError **error);

/* Makes it and gives the open file or device, locked for writing, with a reference; NULL on failure.
 * *ret_made: there is a regular file of that name with none of its old content (also on failure), which the
 * caller may want to remove. */
BlockNode *target_create(const Target *target, bool *ret_made, GError **error);

/* Where the file of that name really is (`file:` taken off, links followed), to remove it. NULL if nowhere;
 * free with g_free(). */
char *target_path(const char *name);

/* The node to write content to: `file` itself, or a format upon it. A new reference. */
BlockNode *target_open(const Target *target, BlockNode *file, GError **error);

/* The bytes that the image takes as a file. */
bool target_measure(const Target *target, uint64_t *ret, GError **error);

/* All `-o` of the command in one; an empty one when there is none. NULL after saying what is wrong. */
Options *target_options(const ToolArgs *args);

/* Prints a JSON tree as QEMU does, without a line end; `indent` spaces are already on the line. */
void img_print_json(JsonNode *node, unsigned indent);

#endif
