/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What to fetch before it is asked for. A reader that goes forward gets a window that grows with what it has
 * read in a row, so that a small file costs little and a long read fills the link: the window is many jobs
 * long, and several are under way at once, of which one is waiting for the server while others use the link.
 * A reader that jumps by equal steps gets the next few of them. Anything else gets nothing.
 */
#include <stdlib.h>

#include "block/cache-int.h"
#include "util/checked.h"

#define SLACK        (128 * 1024)        /* a reader may skip, or come out of order, so far */
#define SMALL        (128 * 1024)        /* up to here a run may be a small file */
#define BRISK        ((uint64_t)1 << 20) /* up to here a window is twice its run */
#define AHEAD_JOB    ((uint64_t)1 << 20) /* bytes of the longest job */
#define STRIDE_MAX   (64 * 1024 * 1024)
#define STRIDES_MIN  3
#define STRIDES_NEXT 8

static CacheStream *stream_find(BlockCache *cache, uint64_t offset)
{
    CacheStream *oldest = &cache->streams[0];
    for (unsigned i = 0; i < CACHE_STREAMS; i++) {
        CacheStream *s = &cache->streams[i];
        const uint64_t back = MIN(s->consumed, SLACK);
        if (s->used && offset + back >= s->next && offset <= s->next + (s->consumed > SMALL ? SLACK : 0)) {
            return s;
        }
        if (s->used < oldest->used) {
            oldest = s;
        }
    }
    *oldest = (CacheStream){.next = offset};
    return oldest;
}

static uint64_t stream_window(const BlockCache *cache, const CacheStream *s)
{
    /* What is wasted at the end of a run is no more than what the run had. */
    const uint64_t window = MAX(MIN(s->consumed * 2, BRISK), s->consumed);
    return MIN(window, cache->config.readahead);
}

/* Queues jobs for what is missing before the stream, up to its window. */
static void stream_extend(BlockCache *cache, CacheStream *s)
{
    const uint64_t window = stream_window(cache, s);
    const uint64_t limit = MIN(s->next + window, cache->size);
    const uint64_t piece = MIN(MAX(window / 4, CACHE_CHUNK), AHEAD_JOB);
    s->front = align_down(MAX(s->front, s->next), CACHE_GRANULE);
    while (s->front < limit && (limit - s->front >= piece || limit == cache->size)) {
        if (!cache_is_missing(cache, s->front)) {
            s->front = cache_granule_end(cache, s->front);
            continue;
        }
        const uint64_t end = cache_missing_end(cache, s->front, MIN(s->front + piece, limit));
        cache_job_new(cache, JOB_AHEAD, s->front, end);
        s->front = end;
    }
}

/* The next few places of a reader that jumps. */
static void stride_extend(BlockCache *cache, uint64_t offset, uint64_t bytes)
{
    const unsigned count = MIN(cache->strides, STRIDES_NEXT);
    for (unsigned i = 1; i <= count; i++) {
        const int64_t at = (int64_t)offset + cache->stride * i;
        if (at < 0 || (uint64_t)at >= cache->size) {
            return;
        }
        if (cache_is_missing(cache, at)) {
            cache_job_new(cache, JOB_AHEAD, at, cache_missing_end(cache, at, at + bytes));
        }
    }
}

static bool note_stride(BlockCache *cache, uint64_t offset)
{
    const int64_t step = (int64_t)(offset - cache->last_offset);
    cache->strides = step == cache->stride ? cache->strides + 1 : 0;
    cache->stride = step;
    cache->last_offset = offset;
    return cache->strides >= STRIDES_MIN && llabs(step) <= STRIDE_MAX && step != 0;
}

/* Guesses that nobody began to fetch, and that no stream wants any more. */
static void drop_stale(BlockCache *cache)
{
    GList *next;
    for (GList *l = cache->jobs.head; l; l = next) {
        CacheJob *job = l->data;
        bool wanted = job->running || job->kind != JOB_AHEAD;
        next = l->next;
        for (unsigned i = 0; i < CACHE_STREAMS && !wanted; i++) {
            const CacheStream *s = &cache->streams[i];
            wanted = s->used + CACHE_STREAMS * 2 > cache->clock && job->pos < s->front && job->end > s->next;
        }
        if (!wanted && cache->strides < STRIDES_MIN) {
            cache_wake(cache, job->pos, job->end, 0);
            cache_job_free(job);
        }
    }
}

uint64_t cache_generous_end(BlockCache *cache, uint64_t end)
{
    const BlockRemoteStats *c = &cache->counts;
    if (!cache->config.readahead || c->fetched + CACHE_CHUNK > 2 * c->served + 2 * CACHE_CHUNK) {
        return end;
    }
    return MIN(align_up(end + CACHE_CHUNK / 2, CACHE_CHUNK), cache->size);
}

void cache_plan(BlockCache *cache)
{
    CacheStream *s = cache->plan;
    cache->plan = NULL;
    if (s) {
        stream_extend(cache, s);
    }
}

void cache_note_read(BlockCache *cache, uint64_t offset, uint64_t bytes, bool now)
{
    cache->last_read = cache_now_us();
    if (!cache->config.readahead || cache->sequential) {
        return;
    }
    CacheStream *s = stream_find(cache, offset);
    const uint64_t before = s->next;
    s->used = ++cache->clock;
    s->next = MAX(s->next, offset + bytes);
    s->consumed += s->next - before;
    const bool strided = note_stride(cache, offset);
    if (now && cache->file) {
        cache->plan = s->consumed > bytes ? s : NULL;
    } else if (s->consumed > bytes) {
        stream_extend(cache, s);
    } else {
        drop_stale(cache);
        if (strided) {
            stride_extend(cache, offset, bytes);
        }
    }
}
