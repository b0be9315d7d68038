/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Read-ahead: the spans behind a sequential reader.
 */
#include <string.h>
#include "hw/block/source-int.h"
#include "util/trace.h"

#define STREAK_MIN 2 /* reads in a row before anything is read ahead */

/* Spans that took less than the first are followed by longer ones, by shorter ones if they took more than the
 * second. A drive of the host has no delays to be hidden, but a reader that stops waits for the whole of the
 * span in which it stops. */
static const struct {
    int64_t short_us, long_us;
} span_limits[] = {[false] = {60000, 250000}, [true] = {6000, 50000}};

/* The source is a drive of the host. */
static bool is_drive(const BlockNode *node)
{
    return block_info(node)->removable;
}

static unsigned most_spans(const BlockNode *node)
{
    return is_drive(node) ? SOURCE_SPANS : SOURCE_SPANS_FAR;
}

static void span_free(SourceSpan *span)
{
    buffer_unref(span->buffer);
    g_free(span);
}

/* Takes the span out of its source: no read will find it any more. */
void source_span_detach(SourceSpan *span)
{
    Source *source = span->source;
    unsigned kept = 0;
    for (unsigned i = 0; i < SOURCE_SPANS; i++) {
        if (source->spans[i] != span) {
            source->spans[kept++] = source->spans[i];
        }
    }
    source->spans[SOURCE_SPANS - 1] = NULL;
    span->source = NULL;
    if (span->reading) {
        if (g_queue_is_empty(&span->waiters)) {
            source_forget_request(&span->request);
        }
    } else if (!span->delivering) {
        span_free(span);
    }
}

void source_read_from_span(SourceRead *read, const SourceSpan *span)
{
    read->buffer = buffer_ref(span->buffer);
    read->at = read->offset - span->offset;
}

/* The reader has had all of it. */
bool source_span_is_passed(const SourceSpan *span)
{
    const Source *source = span->source;
    return source->node == span->node && source->next >= span->offset + span->bytes;
}

/* The next span is twice as long, or half of this one. The two limits are far apart: a short span behind a
 * long one leaves the source idle while the reader is still busy with the long one. */
static void note_span(const SourceSpan *span)
{
    Source *source = span->source;
    const bool drive = is_drive(span->node);
    const int64_t now = g_get_monotonic_time();
    /* a drive reads one after the other, others all at once */
    const int64_t us = now - (drive ? MAX(span->started, source->span_ended) : span->started);
    source->span_ended = now;
    if (us > span_limits[drive].long_us) {
        source->window = MAX(MIN(source->window, span->bytes) / 2, SOURCE_WINDOW_MIN);
    } else if (us < span_limits[drive].short_us && span->bytes >= source->window) {
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
        source_note_cost(span->source, span->started, span->bytes);
        note_span(span);
        if (span->result < 0 || source_span_is_passed(span)) {
            source_span_detach(span);
        }
    }
    while ((link = g_queue_pop_head_link(&span->waiters))) {
        SourceRead *read = link->data;
        read->waits_for = NULL;
        if (span->result == 0) {
            source_read_from_span(read, span);
            source_read_finish(read, 0);
            continue;
        }
        source_start_foreground(read, request->node, read->offset, span->unit);
        if (read->ready) {
            source_read_finish(read, read->result);
        }
    }
    span->delivering = false;
    if (!span->source) {
        span_free(span);
    }
}

SourceSpan *source_find_span(const Source *source, const BlockNode *node, uint64_t offset, uint32_t unit)
{
    for (unsigned i = 0; i < SOURCE_SPANS && source->spans[i]; i++) {
        SourceSpan *span = source->spans[i];
        if (span->node == node && span->unit == unit && offset >= span->offset &&
            offset - span->offset < span->bytes && (offset - span->offset) % unit == 0) {
            return span;
        }
    }
    return NULL;
}

size_t source_clip_to_spans(const Source *source, const BlockNode *node, uint64_t offset, size_t bytes,
                            uint32_t unit)
{
    for (unsigned i = 0; i < SOURCE_SPANS && source->spans[i]; i++) {
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
    if (!source_clip_to_node(node, offset, source->window / unit * unit, unit, &span->bytes,
                             &span->padding)) {
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
    for (unsigned i = 0; i < SOURCE_SPANS; i++) {
        if (!source->spans[i]) {
            source->spans[i] = span;
            break;
        }
    }
    source->stats.ahead++;
    trace(mmc_read_ahead, block_name(node), offset, span->bytes);
    block_submit(&span->request);
}

/* Gives up spans that lie behind the reader or far before it. */
static void prune_spans(Source *source, uint64_t front)
{
    for (unsigned i = 0; i < SOURCE_SPANS && source->spans[i];) {
        SourceSpan *span = source->spans[i];
        const bool useful = span->node == source->node && span->offset + span->bytes > source->next &&
                            span->offset <= front + SOURCE_SPANS * BUFFER_MAX;
        if (useful || (span->reading && !g_queue_is_empty(&span->waiters))) {
            i++;
            continue;
        }
        source->stats.dropped += span->offset + span->bytes > source->next;
        source_span_detach(span);
    }
}

/* What will be wanted next? Asked when the reader has all that it is waiting for: in a source that does one
 * thing at a time, a span must not get in before its reads. */
void source_plan_ahead(Source *source)
{
    if (!source->read_ahead || source->streak < STREAK_MIN || source->foreground > 0 ||
        !(source->slow || block_info(source->node)->slow)) {
        return;
    }
    uint64_t front = source->next + source->more;
    prune_spans(source, front);
    for (unsigned i = 0; i < most_spans(source->node); i++) {
        const SourceSpan *span = source->spans[i];
        if (span) {
            front = MAX(front, span->offset + span->bytes);
        } else {
            start_span(source, source->node, front, source->unit);
            front += source->spans[i] ? source->spans[i]->bytes : 0;
        }
    }
}

void source_note_reader(Source *source, BlockNode *node, uint64_t offset, size_t bytes, uint32_t unit,
                        uint64_t more)
{
    if (source->node == node && source->next == offset) {
        source->streak++;
    } else {
        source->node = node;
        source->streak = 1;
        source->window = SOURCE_WINDOW_MIN;
    }
    source->next = offset + bytes;
    source->more = more;
    source->unit = unit;
}
