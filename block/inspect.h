/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What monitors tell and ask of a block node beside its data: how it was opened, what its image takes, a mark
 * that writes must not pass unnoticed. Loop thread, unless a comment says otherwise.
 */
#ifndef SPINDLE_BLOCK_INSPECT_H
#define SPINDLE_BLOCK_INSPECT_H

#include <json-glib/json-glib.h>
#include "block/block.h"

/* What `driver=` may be, in order; free with g_strfreev(). Any thread. */
char **block_driver_names(void);

/* The generic options that the node was opened with. */
typedef struct BlockSettings {
    bool direct, no_flush;     /* cache.direct, cache.no-flush */
    const char *detect_zeroes; /* "off", "on", "unmap" */
} BlockSettings;
BlockSettings block_settings(const BlockNode *node);

/* Bytes of storage that the node's file takes, the child's where the driver has no own; -ENOTSUP where nobody
 * knows. May block; any thread. */
int64_t block_allocated_size(BlockNode *node);

/* What an image's format says of itself as QEMU's `format-specific` ({"type": …, "data": …}), or NULL. The
 * caller's. Reads the image: may block; any thread. */
JsonObject *block_format_specific(BlockNode *node);

/* The two above for many nodes, on a worker. */
typedef struct BlockMeasure {
    BlockNode *node;      /* reference held */
    int64_t allocated;    /* as block_allocated_size() */
    JsonObject *specific; /* as block_format_specific(), the measure's */
} BlockMeasure;

/* `done` gets an array of BlockMeasure, one for each node of the list and those below them, which is the
 * callee's to unref, on the loop thread, not inside the call. The list stays the caller's. */
typedef void (*BlockMeasured)(GArray *measures, void *opaque);
void block_measure_async(GList *nodes, BlockMeasured done, void *opaque);

/* NULL: it is not in the array. */
const BlockMeasure *block_measure_find(const GArray *measures, const BlockNode *node);

/* A write that ends behind byte `threshold` posts BLOCK_EVENT_THRESHOLD, once; then, and with 0, there is
 * none. */
void block_set_write_threshold(BlockNode *node, uint64_t threshold);
uint64_t block_write_threshold(const BlockNode *node);

/* For listeners of BLOCK_EVENT_THRESHOLD: the mark, and how many bytes behind it the write ended. False: it
 * was told already, or it is not this node's. */
bool block_take_exceeded(BlockNode *node, uint64_t *ret_threshold, uint64_t *ret_amount);

#endif
