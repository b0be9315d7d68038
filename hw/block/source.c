/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "hw/block/source.h"
#include "util/iov.h"
#include "util/trace.h"

#define SPANS         2 /* buffers held for read-ahead, at most */
#define WINDOW_MIN    (128 * 1024)
#define STREAK_MIN    2     /* reads in a row before anything is read ahead */
#define IDLE_SECONDS  2     /* then memory goes back to the system */
#define SPAN_SHORT_US 60000 /* spans that took less are followed by longer ones… */
#define SPAN_LONG_US                                                                                         \
    250000 /* … and by shorter ones if they took more: who waits for one waits for all of it */
#define SLOW_START_US 400 /* per WINDOW_MIN bytes: slower sources are read ahead, … */
#define SLOW_STOP_US  200 /* … until they turn out faster than this */

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
    SourceSpan *spans[SPANS]; /* in order of offset; NULL behind the last */
    /* the reader, as seen so far */
    const BlockNode *node;
    uint64_t next; /* where it would go on */
    unsigned streak;
    size_t window; /* bytes of the next span */
    /* what the source is like */
    bool slow;
    int64_t cost_us; /* for WINDOW_MIN bytes, moving average */
    int64_t last_used;
    guint idle_timer;
    SourceStats stats;
};

Source *source_new(bool read_ahead)
{
    Source *source = g_new0(Source, 1);
    source->read_ahead = read_ahead;
    source->pool = buffer_pool_new(BUFFER_MAX, BUFFER_ALIGN, 2);
    source->window = WINDOW_MIN;
    return source;
}

const SourceStats *source_stats(const Source *source)
{
    return &source->stats;
}

Buffer *source_buffer(Source *source)
{
    return buffer_pool_get(source->pool);
}

/* The block layer is asked to forget a request that nobody waits for; its `done` comes all the same. */
static void forget_request(BlockRequest *request)
{
    if (!block_cancel(request)) {
        block_abandon(request);
    }
}

static void span_free(SourceSpan *span)
{
    buffer_unref(span->buffer);
    g_free(span);
}

/* Takes the span out of its source: no read will find it any more. */
static void span_detach(SourceSpan *span)
{
    Source *source = span->source;
    unsigned kept = 0;
    for (unsigned i = 0; i < SPANS; i++) {
        if (source->spans[i] != span) {
            source->spans[kept++] = source->spans[i];
        }
    }
    source->spans[SPANS - 1] = NULL;
    span->source = NULL;
    if (span->reading) {
        if (g_queue_is_empty(&span->waiters)) {
            forget_request(&span->request);
        }
    } else if (!span->delivering) {
        span_free(span);
    }
}

void source_drop(Source *source)
{
    while (source->spans[0]) {
        source->stats.dropped++;
        span_detach(source->spans[0]);
    }
    source->node = NULL;
    source->streak = 0;
    source->window = WINDOW_MIN;
    source->slow = false;
    source->cost_us = 0;
}

void source_free(Source *source)
{
    if (!source) {
        return;
    }
    source_drop(source);
    if (source->idle_timer) {
        g_source_remove(source->idle_timer);
    }
    buffer_pool_free(source->pool);
    g_free(source);
}

static gboolean idle_check(gpointer opaque)
{
    Source *source = opaque;
    if (g_get_monotonic_time() - source->last_used < IDLE_SECONDS * G_USEC_PER_SEC) {
        return G_SOURCE_CONTINUE;
    }
    for (unsigned i = 0; i < SPANS; i++) {
        if (source->spans[i] && source->spans[i]->reading) {
            return G_SOURCE_CONTINUE; /* a source so slow is not idle */
        }
    }
    while (source->spans[0]) {
        source->stats.dropped++;
        span_detach(source->spans[0]);
    }
    source->window = WINDOW_MIN;
    buffer_pool_trim(source->pool);
    source->idle_timer = 0;
    return G_SOURCE_REMOVE;
}

static void mark_used(Source *source)
{
    source->last_used = g_get_monotonic_time();
    if (!source->idle_timer) {
        source->idle_timer = g_timeout_add_seconds(IDLE_SECONDS, idle_check, source);
    }
}

static void note_cost(Source *source, int64_t started, size_t bytes)
{
    const int64_t us = g_get_monotonic_time() - started;
    const int64_t windows = MAX(1, bytes / WINDOW_MIN);
    source->cost_us = (source->cost_us * 3 + us / windows) / 4;
    source->slow = source->cost_us > (source->slow ? SLOW_STOP_US : SLOW_START_US);
}

/* Bytes of [offset, offset + bytes) that the node has, and how many zeroes complete the last sector. False
 * when `offset` is not inside. */
static bool clip_to_node(const BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                         size_t *ret_bytes, size_t *ret_padding)
{
    const uint64_t size = block_info(node)->size;
    if (offset >= size) {
        return false;
    }
    const uint64_t have = MIN(size - offset, bytes);
    *ret_bytes = (have + unit - 1) / unit * unit;
    *ret_padding = *ret_bytes - have;
    return true;
}

static void read_finish(SourceRead *read, int result)
{
    read->ready = true;
    read->result = result;
    if (read->done) {
        read->done(read, read->opaque);
    }
}

static void foreground_done(BlockRequest *request)
{
    SourceRead *read = request->opaque;
    if (!read->source) { /* its owner is gone */
        buffer_unref(read->buffer);
        g_free(read);
        return;
    }
    if (read->read_now != block_stats(request->node)->read_now) {
        read->started = g_get_monotonic_time(); /* answered at once, however long the loop took */
    }
    note_cost(read->source, read->started, read->bytes);
    memset(read->buffer->data + read->bytes - read->padding, 0, read->padding);
    read->submitted = false;
    read_finish(read, request->result);
}

static void start_foreground(SourceRead *read, BlockNode *node, uint64_t offset, uint32_t unit)
{
    Source *source = read->source;
    if (!clip_to_node(node, offset, read->bytes, unit, &read->bytes, &read->padding)) {
        read->ready = true;
        read->result = -EIO;
        return;
    }
    source->stats.misses++;
    read->buffer = buffer_pool_get(source->pool);
    read->at = 0;
    read->started = g_get_monotonic_time();
    read->read_now = block_stats(node)->read_now;
    read->submitted = true;
    read->iov = (struct iovec){read->buffer->data, read->bytes - read->padding};
    read->request = (BlockRequest){
        .node = node,
        .op = BLOCK_READ,
        .offset = offset,
        .bytes = read->iov.iov_len,
        .iov = &read->iov,
        .niov = 1,
        .done = foreground_done,
        .opaque = read,
    };
    block_submit(&read->request);
}

static void read_from_span(SourceRead *read, const SourceSpan *span)
{
    read->buffer = buffer_ref(span->buffer);
    read->at = read->offset - span->offset;
}

/* The reader has had all of it. */
static bool span_is_passed(const SourceSpan *span)
{
    const Source *source = span->source;
    return source->node == span->node && source->next >= span->offset + span->bytes;
}

/* The next span is twice as long, or half of this one. The two limits are far apart: a short span behind a
 * long one leaves the source idle while the reader is still busy with the long one. */
static void note_span(const SourceSpan *span)
{
    Source *source = span->source;
    const int64_t us = g_get_monotonic_time() - span->started;
    if (us > SPAN_LONG_US) {
        source->window = MAX(MIN(source->window, span->bytes) / 2, WINDOW_MIN);
    } else if (us < SPAN_SHORT_US && span->bytes >= source->window) {
        source->window = MIN(source->window * 2, BUFFER_MAX);
    }
}

/* Every reader that waited gets its part, or reads for itself if the span failed. */
static void span_done(BlockRequest *request)
{
    SourceSpan *span = request->opaque;
    GList *link;
    span->reading = false;
    span->delivering = true;
    span->result = request->result;
    memset(span->buffer->data + span->bytes - span->padding, 0, span->padding);
    if (span->source) {
        note_cost(span->source, span->started, span->bytes);
        note_span(span);
        if (span->result < 0 || span_is_passed(span)) {
            span_detach(span);
        }
    }
    while ((link = g_queue_pop_head_link(&span->waiters))) {
        SourceRead *read = link->data;
        read->waits_for = NULL;
        if (span->result == 0) {
            read_from_span(read, span);
            read_finish(read, 0);
            continue;
        }
        start_foreground(read, request->node, read->offset, span->unit);
        if (read->ready) {
            read_finish(read, read->result);
        }
    }
    span->delivering = false;
    if (!span->source) {
        span_free(span);
    }
}

static SourceSpan *find_span(const Source *source, const BlockNode *node, uint64_t offset, uint32_t unit)
{
    for (unsigned i = 0; i < SPANS && source->spans[i]; i++) {
        SourceSpan *span = source->spans[i];
        if (span->node == node && span->unit == unit && offset >= span->offset &&
            offset - span->offset < span->bytes && (offset - span->offset) % unit == 0) {
            return span;
        }
    }
    return NULL;
}

/* Ends the read where a span begins, so that nothing is read twice. */
static size_t clip_to_spans(const Source *source, const BlockNode *node, uint64_t offset, size_t bytes,
                            uint32_t unit)
{
    for (unsigned i = 0; i < SPANS && source->spans[i]; i++) {
        const SourceSpan *span = source->spans[i];
        if (span->node == node && span->unit == unit && span->offset > offset &&
            span->offset - offset < bytes && (span->offset - offset) % unit == 0) {
            bytes = span->offset - offset;
        }
    }
    return bytes;
}

static void start_span(Source *source, BlockNode *node, uint64_t offset, uint32_t unit)
{
    SourceSpan *span = g_new0(SourceSpan, 1);
    span->source = source;
    span->node = node;
    span->offset = offset;
    span->unit = unit;
    if (!clip_to_node(node, offset, source->window / unit * unit, unit, &span->bytes, &span->padding)) {
        g_free(span);
        return;
    }
    span->buffer = buffer_pool_get(source->pool);
    span->reading = true;
    span->started = g_get_monotonic_time();
    span->iov = (struct iovec){span->buffer->data, span->bytes - span->padding};
    span->request = (BlockRequest){
        .node = node,
        .op = BLOCK_READ,
        .flags = BLOCK_BACKGROUND,
        .offset = offset,
        .bytes = span->iov.iov_len,
        .iov = &span->iov,
        .niov = 1,
        .done = span_done,
        .opaque = span,
    };
    source->spans[source->spans[0] ? 1 : 0] = span;
    source->stats.ahead++;
    trace(mmc_read_ahead, block_name(node), offset, span->bytes);
    block_submit(&span->request);
}

/* Gives up spans that lie behind the reader or far before it. */
static void prune_spans(Source *source, uint64_t front)
{
    for (unsigned i = 0; i < SPANS && source->spans[i];) {
        SourceSpan *span = source->spans[i];
        const bool useful = span->node == source->node && span->offset + span->bytes > source->next &&
                            span->offset <= front + BUFFER_MAX;
        if (useful || (span->reading && !g_queue_is_empty(&span->waiters))) {
            i++;
            continue;
        }
        source->stats.dropped += span->offset + span->bytes > source->next;
        span_detach(span);
    }
}

/* After a read was started: what will be wanted next? */
static void plan_ahead(Source *source, BlockNode *node, uint32_t unit, uint64_t more)
{
    if (!source->read_ahead || source->streak < STREAK_MIN || !(source->slow || block_info(node)->slow)) {
        return;
    }
    uint64_t front = source->next + more;
    prune_spans(source, front);
    for (unsigned i = 0; i < SPANS; i++) {
        const SourceSpan *span = source->spans[i];
        if (span) {
            front = MAX(front, span->offset + span->bytes);
        } else {
            start_span(source, node, front, unit);
            front += source->spans[i] ? source->spans[i]->bytes : 0;
        }
    }
}

static void note_reader(Source *source, const BlockNode *node, uint64_t offset, size_t bytes)
{
    if (source->node == node && source->next == offset) {
        source->streak++;
    } else {
        source->node = node;
        source->streak = 1;
        source->window = WINDOW_MIN;
    }
    source->next = offset + bytes;
}

SourceRead *source_read(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                        uint64_t more, SourceDone done, void *opaque)
{
    SourceRead *read = g_new0(SourceRead, 1);
    SourceSpan *span = find_span(source, node, offset, unit);
    mark_used(source);
    read->source = source;
    read->offset = offset;
    read->done = done;
    read->opaque = opaque;
    read->link.data = read;
    if (span) {
        read->bytes = MIN(bytes, span->offset + span->bytes - offset);
        if (span->reading) {
            source->stats.waits++;
            read->waits_for = span;
            g_queue_push_tail_link(&span->waiters, &read->link);
        } else {
            source->stats.hits++;
            read_from_span(read, span);
            read->ready = true;
        }
    } else {
        read->bytes = clip_to_spans(source, node, offset, bytes, unit);
        start_foreground(read, node, offset, unit);
    }
    if (!read->ready || read->result == 0) {
        more += bytes - read->bytes;
        note_reader(source, node, offset, read->bytes);
        if (span && !span->reading && span_is_passed(span)) {
            span_detach(span);
        }
        plan_ahead(source, node, unit, more);
    }
    return read;
}

int source_read_into(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                     const struct iovec *iov, int niov)
{
    struct iovec inside[SOURCE_IOV_MAX];
    size_t have, padding;
    if (source->slow || find_span(source, node, offset, unit) ||
        !clip_to_node(node, offset, bytes, unit, &have, &padding) || have != bytes) {
        return -EAGAIN;
    }
    const int n = padding ? iov_slice(iov, niov, 0, bytes - padding, inside, SOURCE_IOV_MAX) : niov;
    if (n < 0 || block_read_now(node, offset, bytes - padding, padding ? inside : iov, n) < 0) {
        return -EAGAIN;
    }
    iov_fill(iov, niov, bytes - padding, 0, padding);
    mark_used(source);
    note_reader(source, node, offset, bytes);
    source->stats.direct++;
    return 0;
}

SourceRead *source_zeroes(Source *source, size_t bytes)
{
    SourceRead *read = g_new0(SourceRead, 1);
    read->source = source;
    read->buffer = source_buffer(source);
    read->bytes = bytes;
    read->ready = true;
    memset(read->buffer->data, 0, bytes);
    return read;
}

void source_read_free(SourceRead *read)
{
    if (!read) {
        return;
    }
    if (read->waits_for) {
        g_queue_unlink(&read->waits_for->waiters, &read->link);
    }
    if (read->submitted) {
        read->source = NULL; /* foreground_done() frees it */
        read->done = NULL;
        forget_request(&read->request);
        return;
    }
    buffer_unref(read->buffer);
    g_free(read);
}
