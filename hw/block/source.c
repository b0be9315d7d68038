/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "hw/block/source-int.h"
#include "util/iov.h"

#define IDLE_SECONDS  2   /* then memory goes back to the system */
#define SLOW_START_US 400 /* per SOURCE_WINDOW_MIN bytes: slower sources are read ahead, … */
#define SLOW_STOP_US  200 /* … until they turn out faster than this */

Source *source_new(bool read_ahead)
{
    Source *source = g_new0(Source, 1);
    source->read_ahead = read_ahead;
    source->pool = buffer_pool_new(BUFFER_MAX, BUFFER_ALIGN, 4);
    source->window = SOURCE_WINDOW_MIN;
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

void source_forget_request(BlockRequest *request)
{
    if (!block_cancel(request)) {
        block_abandon(request);
    }
}

void source_drop(Source *source)
{
    while (source->spans[0]) {
        source->stats.dropped++;
        source_span_detach(source->spans[0]);
    }
    source->node = NULL;
    source->streak = 0;
    source->window = SOURCE_WINDOW_MIN;
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
    for (unsigned i = 0; i < SOURCE_SPANS; i++) {
        if (source->spans[i] && source->spans[i]->reading) {
            return G_SOURCE_CONTINUE; /* a source so slow is not idle */
        }
    }
    while (source->spans[0]) {
        source->stats.dropped++;
        source_span_detach(source->spans[0]);
    }
    source->window = SOURCE_WINDOW_MIN;
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

void source_note_cost(Source *source, int64_t started, size_t bytes)
{
    const int64_t us = g_get_monotonic_time() - started;
    const int64_t windows = MAX(1, bytes / SOURCE_WINDOW_MIN);
    source->cost_us = (source->cost_us * 3 + us / windows) / 4;
    source->slow = source->cost_us > (source->slow ? SLOW_STOP_US : SLOW_START_US);
}

bool source_clip_to_node(const BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
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

void source_read_finish(SourceRead *read, int result)
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
    source_note_cost(read->source, read->started, read->bytes);
    read->source->foreground--;
    source_plan_ahead(read->source);
    memset(read->buffer->data + read->bytes - read->padding, 0, read->padding);
    read->submitted = false;
    source_read_finish(read, request->result);
}

void source_start_foreground(SourceRead *read, BlockNode *node, uint64_t offset, uint32_t unit)
{
    Source *source = read->source;
    if (!source_clip_to_node(node, offset, read->bytes, unit, &read->bytes, &read->padding)) {
        read->ready = true;
        read->result = -EIO;
        return;
    }
    source->stats.misses++;
    source->foreground++;
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

SourceRead *source_read(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                        uint64_t more, SourceDone done, void *opaque)
{
    SourceRead *read = g_new0(SourceRead, 1);
    SourceSpan *span = source_find_span(source, node, offset, unit);
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
            source_read_from_span(read, span);
            read->ready = true;
        }
    } else {
        read->bytes = source_clip_to_spans(source, node, offset, bytes, unit);
        source_start_foreground(read, node, offset, unit);
    }
    if (!read->ready || read->result == 0) {
        source_note_reader(source, node, offset, read->bytes, unit, more + (bytes - read->bytes));
        if (span && !span->reading && source_span_is_passed(span)) {
            source_span_detach(span);
        }
        source_plan_ahead(source);
    }
    return read;
}

int source_read_into(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                     const struct iovec *iov, int niov)
{
    struct iovec inside[SOURCE_IOV_MAX];
    size_t have, padding;
    if (source->slow || source_find_span(source, node, offset, unit) ||
        !source_clip_to_node(node, offset, bytes, unit, &have, &padding) || have != bytes) {
        return -EAGAIN;
    }
    const int n = padding ? iov_slice(iov, niov, 0, bytes - padding, inside, SOURCE_IOV_MAX) : niov;
    if (n < 0 || block_read_now(node, offset, bytes - padding, padding ? inside : iov, n) < 0) {
        return -EAGAIN;
    }
    iov_fill(iov, niov, bytes - padding, 0, padding);
    mark_used(source);
    source_note_reader(source, node, offset, bytes, unit, 0);
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
        read->source->foreground--;
        read->source = NULL; /* foreground_done() frees it */
        read->done = NULL;
        source_forget_request(&read->request);
        return;
    }
    buffer_unref(read->buffer);
    g_free(read);
}
