/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Opening what a tool's user names as an image: a file name, `json:{…}`, a URL, or with `--image-opts` an
 * option string; with a format, or probed. Main thread.
 */
#ifndef SPINDLE_TOOLS_IMAGE_H
#define SPINDLE_TOOLS_IMAGE_H

#include "block/block.h"

typedef struct ImageSpec {
    const char *name;    /* file name or option string */
    const char *format;  /* NULL: probe */
    const char *cache;   /* QEMU's cache modes; NULL: writeback */
    const char *discard; /* NULL: unmap */
    const char *aio;     /* NULL: the driver's default */
    bool image_opts;     /* `name` is an option string */
    bool writable;
    bool force_share;
    bool header_only; /* where an encrypted image would need a key, give the file below instead */
} ImageSpec;

typedef struct Image {
    BlockNode *node;    /* reference */
    const char *name;   /* as the user wrote it */
    const char *format; /* the format found or asked for: "raw", "luks" or a driver's name */
    bool writethrough;  /* every write is to be on stable storage */
} Image;

/* False for a mode that QEMU does not know. Outputs may be NULL. */
bool image_parse_cache(const char *mode, bool *ret_direct, bool *ret_no_flush, bool *ret_writethrough);

/* Opens it into *ret. Errors as the block layer's, without the image's name. */
bool image_open(const ImageSpec *spec, Image *ret, GError **error);

/* As image_open(), but says what is wrong ("Could not open 'x': …"). */
bool image_open_or_say(const ImageSpec *spec, Image *ret);

/* Drops the node. A closed or zeroed image is allowed. */
void image_close(Image *image);

/* True for formats that the tools can make: raw, luks. */
bool image_format_known(const char *format);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Image, image_close)

#endif
