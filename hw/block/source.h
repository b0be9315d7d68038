/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The bytes of a medium, read in chunks for commands: pooled buffers, zero padding behind the end of the
 * node, and read-ahead for a sequential reader of a slow source.
 *
 * A SourceRead is one chunk under way or done. Its owner frees it in any state; a read that is still with the
 * block layer then goes on by itself and frees itself later. Loop thread only.
 *
 * Read-ahead: up to two spans (eight, of a host's drive) behind the reader are asked for in the background
 * and kept until the reader has passed, went elsewhere, or did nothing for some seconds. A read of bytes that
 * are on their way waits for them instead of reading them twice.
 */
#ifndef SPINDLE_HW_BLOCK_SOURCE_H
#define SPINDLE_HW_BLOCK_SOURCE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "block/block.h"
#include "util/buffer.h"

#define SOURCE_IOV_MAX 256 /* pieces of memory in source_read_into() */

typedef struct Source Source;
typedef struct SourceRead SourceRead;
typedef void (*SourceDone)(SourceRead *read, void *opaque);

struct SourceRead {
    bool ready;     /* the following are valid */
    int result;     /* 0 or a negative errno */
    Buffer *buffer; /* the read's reference */
    size_t at;      /* where in the buffer the data is */
    size_t bytes;   /* as asked for, or fewer: a positive multiple of the unit */
    /* private to source.c */
    Source *source;
    SourceDone done;
    void *opaque;
    uint64_t offset;
    struct SourceSpan *waits_for;
    BlockRequest request;
    struct iovec iov;
    size_t padding;
    int64_t started;
    uint64_t read_now; /* the node's count of reads without a worker, at the start */
    bool submitted;
    GList link;
};

typedef struct SourceStats {
    uint64_t hits;    /* chunks that were there already */
    uint64_t waits;   /* chunks that were on their way */
    uint64_t misses;  /* chunks read for the guest */
    uint64_t ahead;   /* spans asked for in the background */
    uint64_t direct;  /* chunks read to where the guest wants them */
    uint64_t dropped; /* spans given up unread or in part */
} SourceStats;

Source *source_new(bool read_ahead);
void source_free(Source *source); /* every SourceRead must have been freed */

/* Starts reading node bytes [offset, offset + bytes), in sectors of `unit` bytes; bytes (> 0, at most
 * BUFFER_MAX) is a multiple of unit. What lies beyond the end of the node reads as zeroes if it is the rest
 * of a sector that begins inside, else the result is -EIO. `done` runs later unless the read comes back
 * `ready`. `more`: bytes right behind these that the same command will ask for, not to be read ahead. */
SourceRead *source_read(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                        uint64_t more, SourceDone done, void *opaque);

/* The same at once into `iov`, whose memory need not outlive the call: 0, or -EAGAIN where source_read() is
 * the way (not at hand, read ahead already, an error to be looked into), and then nothing has happened but
 * that the memory may have been written to. */
int source_read_into(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                     const struct iovec *iov, int niov);

/* A read of `bytes` zeroes that is ready: what is not stored anywhere. */
SourceRead *source_zeroes(Source *source, size_t bytes);

/* NULL is allowed. `done` will not run. */
void source_read_free(SourceRead *read);

/* A buffer of BUFFER_MAX bytes from the same pool. */
Buffer *source_buffer(Source *source);

/* Forgets what was read ahead: medium change, reset. */
void source_drop(Source *source);

const SourceStats *source_stats(const Source *source);

#endif
