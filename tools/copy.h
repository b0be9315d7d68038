/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Copying and comparing whole images: worker threads that each carry one chunk of up to 1 MiB at a time from
 * the source to the target, in pooled aligned buffers. Memory is bounded by the number of threads. The
 * caller's thread iterates the default main context meanwhile, so that timers and signals work.
 */
#ifndef SPINDLE_TOOLS_COPY_H
#define SPINDLE_TOOLS_COPY_H

#include "block/block.h"
#include "block/toc.h"
#include "tools/progress.h"

#define COPY_THREADS_MAX 16

typedef struct CopySource {
    BlockNode *node;
    uint64_t start; /* first byte to copy */
    uint64_t bytes;
    /* A data track of a disc image, for its user data: `start` and `bytes` count 2048 a sector. NULL: the
     * node's own bytes. */
    const BlockTrack *track;
} CopySource;

typedef struct Copy {
    const CopySource *sources; /* one after the other */
    unsigned n_sources;
    BlockNode *target;
    unsigned threads;
    bool in_order;           /* writes in the order of their offsets (no -W) */
    bool target_is_zero;     /* what is not written reads as zeros already */
    bool target_keeps_zeros; /* zeros there are cheap: holes, or a command */
    uint64_t sparse;         /* zeros of this length (a multiple of 512, at most 1 MiB) become holes; 0: write
                         them */
    bool salvage;            /* unreadable parts become zeros */
    uint64_t rate;           /* bytes a second; 0: no limit */
    BlockFlags write_flags;
    Progress *progress;
    const int *stop; /* set by a signal handler: give up */
} Copy;

/* The first data track when the node is a disc image whose sectors are not plain 2048 bytes, or NULL. */
const BlockTrack *copy_find_track(const BlockNode *node, bool *ret_no_data);

/* Copies everything. 0; -ECANCELED after *stop; or another negative errno, *ret_message saying what and where
 * ("error while reading at byte 4096: …"; the caller's). */
int copy_run(const Copy *copy, char **ret_message);

/* Compares [start, end) of two nodes; what lies beyond the end of one of them counts as zeros. *ret_equal; or
 * else *ret_offset of the first sector (512 bytes) that differs. Errors as copy_run(). */
int compare_run(BlockNode *a, BlockNode *b, uint64_t start, uint64_t end, unsigned threads,
                Progress *progress, bool *ret_equal, uint64_t *ret_offset, char **ret_message);

#endif
