/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the source: source.c (reads for the guest) and source-ahead.c (spans read for later). Loop thread
 * only.
 */
#ifndef SPINDLE_HW_BLOCK_SOURCE_INT_H
#define SPINDLE_HW_BLOCK_SOURCE_INT_H

#include "hw/block/source.h"

#define SOURCE_SPANS      8            /* buffers held for read-ahead, at most */
#define SOURCE_SPANS_FAR  2            /* … of a source that is not a drive of the host */
#define SOURCE_WINDOW_MIN (128 * 1024) /* bytes of the shortest span, and the unit that costs are told in */

/* Bytes read, or being read, in the background. In source->spans, or detached: then only its waiters, if any,
 * still want it, and it frees itself when the block layer is through with it. */
typedef struct SourceSpan {
    Source *source; /* NULL when detached */
    BlockNode *node;
    uint64_t offset;
    size_t bytes, padding;
    uint32_t unit;
    bool reading;
    bool delivering; /* its waiters are being told: not to be freed */
    int result;
    int64_t started;
    Buffer *buffer;
    BlockRequest request;
    struct iovec iov;
    GQueue waiters; /* SourceRead by its link */
} SourceSpan;

struct Source {
    bool read_ahead;
    BufferPool *pool;
    SourceSpan *spans[SOURCE_SPANS]; /* in order of offset; NULL behind the last */
    /* the reader, as seen so far */
    BlockNode *node;
    uint64_t next;       /* where it would go on */
    uint64_t more;       /* bytes behind that which its command will read itself */
    uint32_t unit;       /* bytes of a sector */
    unsigned foreground; /* its reads that the block layer has */
    unsigned streak;
    size_t window;      /* bytes of the next span */
    int64_t span_ended; /* when the last one had come */
    /* what the source is like */
    bool slow;
    int64_t cost_us; /* for SOURCE_WINDOW_MIN bytes, moving average */
    int64_t last_used;
    guint idle_timer;
    SourceStats stats;
};

/* The block layer is asked to forget a request that nobody waits for; its `done` comes all the same. */
void source_forget_request(BlockRequest *request);

/* Bytes of [offset, offset + bytes) that the node has, rounded up to sectors, and how many zeroes complete
 * the last one. False when `offset` is not inside. */
bool source_clip_to_node(const BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                         size_t *ret_bytes, size_t *ret_padding);

/* A request of `bytes` that was made at `started` is done: is the source slow? */
void source_note_cost(Source *source, int64_t started, size_t bytes);

void source_start_foreground(SourceRead *read, BlockNode *node, uint64_t offset, uint32_t unit);
void source_read_finish(SourceRead *read, int result);

/* The span that holds, or will hold, the byte; NULL: none. */
SourceSpan *source_find_span(const Source *source, const BlockNode *node, uint64_t offset, uint32_t unit);
void source_read_from_span(SourceRead *read, const SourceSpan *span);
bool source_span_is_passed(const SourceSpan *span);
void source_span_detach(SourceSpan *span);

/* Ends the read where a span begins, so that nothing is read twice. */
size_t source_clip_to_spans(const Source *source, const BlockNode *node, uint64_t offset, size_t bytes,
                            uint32_t unit);

/* The reader asked for these bytes, and its command will ask for `more` behind them. */
void source_note_reader(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                        uint64_t more);

/* Asks for what will be wanted next, if that is worth it. */
void source_plan_ahead(Source *source);

#endif
