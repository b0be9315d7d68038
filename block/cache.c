/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chunks in memory, and readers.
 */
#include <errno.h>
#include <string.h>

#include "block/cache-int.h"
#include "util/checked.h"
#include "util/error.h"
#include "util/iov.h"
#include "util/trace.h"

#define STALL_US   G_USEC_PER_SEC
#define MEMORY_MIN ((uint64_t)1024 * 1024) /* what is on its way needs a place */

int64_t cache_now_us(void)
{
    return g_get_monotonic_time();
}

uint64_t cache_granule_end(const BlockCache *cache, uint64_t pos)
{
    return MIN(align_down(pos, CACHE_GRANULE) + CACHE_GRANULE, cache->size);
}

static unsigned granule_in_chunk(uint64_t pos)
{
    return pos % CACHE_CHUNK / CACHE_GRANULE;
}

CacheChunk *cache_chunk_find(BlockCache *cache, uint64_t pos)
{
    const uint64_t index = pos / CACHE_CHUNK;
    return g_hash_table_lookup(cache->chunks, &index);
}

static void chunk_free(CacheChunk *chunk)
{
    buffer_unref(chunk->buffer);
    g_free(chunk);
}

/* Frees the least recently used ones that nobody is using, down to the limit. */
static void evict(BlockCache *cache)
{
    const uint64_t limit = (MAX(cache->config.cache_size, MEMORY_MIN) + CACHE_CHUNK - 1) / CACHE_CHUNK;
    GList *before;
    for (GList *l = cache->lru.tail; l && cache->lru.length > limit; l = before) {
        CacheChunk *chunk = l->data;
        before = l->prev;
        if (!chunk->pins) {
            g_queue_unlink(&cache->lru, l);
            g_hash_table_remove(cache->chunks, &chunk->index);
        }
    }
}

static void chunk_touch(BlockCache *cache, CacheChunk *chunk)
{
    if (cache->lru.head != &chunk->lru) {
        g_queue_unlink(&cache->lru, &chunk->lru);
        g_queue_push_head_link(&cache->lru, &chunk->lru);
    }
}

CacheChunk *cache_chunk_get(BlockCache *cache, uint64_t pos)
{
    CacheChunk *chunk = cache_chunk_find(cache, pos);
    if (chunk) {
        chunk->pins++;
        chunk_touch(cache, chunk);
        return chunk;
    }
    chunk = g_new0(CacheChunk, 1);
    chunk->index = pos / CACHE_CHUNK;
    chunk->lru.data = chunk;
    chunk->pins = 1;
    chunk->buffer = buffer_pool_get(cache->pool);
    g_hash_table_insert(cache->chunks, &chunk->index, chunk);
    g_queue_push_head_link(&cache->lru, &chunk->lru);
    evict(cache);
    return chunk;
}

bool cache_has(BlockCache *cache, uint64_t pos)
{
    const CacheChunk *chunk = cache_chunk_find(cache, pos);
    return chunk && (chunk->valid & 1u << granule_in_chunk(pos));
}

void cache_set_valid(BlockCache *cache, CacheChunk *chunk, uint64_t from, uint64_t to)
{
    for (uint64_t pos = from; pos < to; pos = cache_granule_end(cache, pos)) {
        chunk->valid |= 1u << granule_in_chunk(pos);
    }
}

void cache_wake(BlockCache *cache, uint64_t from, uint64_t to, int result)
{
    for (GList *l = cache->waiters.head; l; l = l->next) {
        CacheWaiter *waiter = l->data;
        if (!waiter->woken && waiter->pos >= from && waiter->pos < to) {
            waiter->woken = true;
            waiter->result = result;
            pthread_cond_signal(&waiter->wake);
        }
    }
}

void block_cache_interrupt(BlockCache *cache)
{
    pthread_mutex_lock(&cache->lock);
    cache_wake(cache, 0, UINT64_MAX, -ECANCELED);
    pthread_mutex_unlock(&cache->lock);
}

/* Bytes from `pos` on that the chunk has, at most up to `end`. */
static size_t chunk_run(const BlockCache *cache, const CacheChunk *chunk, uint64_t pos, uint64_t end)
{
    const uint64_t limit = MIN(end, (chunk->index + 1) * CACHE_CHUNK);
    uint64_t at = pos;
    while (at < limit && (chunk->valid & 1u << granule_in_chunk(at))) {
        at = cache_granule_end(cache, at);
    }
    return MIN(at, limit) - pos;
}

/* us that the oldest reader has waited without anything coming. */
static int64_t quiet_time(const BlockCache *cache)
{
    const CacheWaiter *waiter = cache->waiters.head ? cache->waiters.head->data : NULL;
    return waiter ? cache_now_us() - MAX(waiter->since, cache->arrived) : 0;
}

BlockRemoteStats cache_stats_now(const BlockCache *cache)
{
    const int64_t now = cache_now_us(), quiet = quiet_time(cache);
    BlockRemoteStats stats = cache->counts;
    stats.state = cache->outage.since ? BLOCK_REMOTE_RETRYING
                  : quiet > STALL_US  ? BLOCK_REMOTE_STALLED
                                      : BLOCK_REMOTE_CONNECTED;
    stats.since_us = stats.state == BLOCK_REMOTE_RETRYING  ? now - cache->outage.since
                     : stats.state == BLOCK_REMOTE_STALLED ? quiet
                                                           : 0;
    const int64_t us = cache->busy_us + (cache->busy_since ? now - cache->busy_since : 0);
    stats.rate = us > 0 ? cache->busy_bytes * G_USEC_PER_SEC / us : 0;
    return stats;
}

/* Waits for the waiter to be woken, at most until `end` (us). */
static void wait_until(BlockCache *cache, CacheWaiter *waiter, int64_t end)
{
    const struct timespec until = {end / 1000000, end % 1000000 * 1000};
    int late = 0;
    while (!waiter->woken && !late) {
        late = pthread_cond_timedwait(&waiter->wake, &cache->lock, &until);
    }
}

/* Waits until the place may be there. 0: look again. */
static int wait_for(BlockCache *cache, uint64_t pos, int64_t deadline)
{
    CacheWaiter waiter = {.pos = pos, .since = cache_now_us()};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter.wake, &attr);
    pthread_condattr_destroy(&attr);
    waiter.link.data = &waiter;
    g_queue_push_tail_link(&cache->waiters, &waiter.link);
    wait_until(cache, &waiter, MIN(deadline, waiter.since + OUTAGE_STALL_US));
    const int64_t quiet = quiet_time(cache);
    if (!waiter.woken && quiet >= OUTAGE_STALL_US) {
        const BlockRemoteStats stats = cache_stats_now(cache);
        outage_note_stall(&cache->outage, cache->name, &stats, quiet);
    }
    wait_until(cache, &waiter, deadline);
    g_queue_unlink(&cache->waiters, &waiter.link);
    pthread_cond_destroy(&waiter.wake);
    return waiter.woken ? waiter.result : -ETIMEDOUT;
}

/* Gets from the file what it has of the chunk. True: something came. */
static bool load(BlockCache *cache, uint64_t pos, uint64_t end)
{
    const uint64_t start = align_down(pos, CACHE_CHUNK);
    uint16_t look = cache->file ? cache_file_look(cache->file, start) : 0;
    uint16_t mask = 0;
    uint64_t to = pos;
    end = MIN(MIN(align_up(end, CACHE_GRANULE), start + CACHE_CHUNK), cache->size);
    while (to < end && (look & 1u << granule_in_chunk(to)) && !cache_has(cache, to) &&
           !cache_job_covering(cache, to)) {
        mask |= 1u << granule_in_chunk(to);
        to = cache_granule_end(cache, to);
    }
    if (!mask) {
        return false;
    }
    CacheJob *job = cache_job_new(cache, JOB_LOAD, pos, to);
    CacheChunk *chunk = cache_chunk_get(cache, pos);
    pthread_mutex_unlock(&cache->lock);
    uint16_t good = cache_file_load(cache->file, start, mask, chunk->buffer->data);
    pthread_mutex_lock(&cache->lock);
    chunk->valid |= good;
    chunk->pins--;
    cache_wake(cache, job->pos, job->end, 0);
    cache_job_free(job);
    cache->counts.from_file += (uint64_t)__builtin_popcount(good) * CACHE_GRANULE;
    return good & 1u << granule_in_chunk(pos);
}

static void copy_out(BlockCache *cache, CacheChunk *chunk, uint64_t pos, size_t bytes,
                     const struct iovec *iov, int niov, size_t at)
{
    chunk->pins++;
    chunk_touch(cache, chunk);
    pthread_mutex_unlock(&cache->lock);
    iov_from_buf(iov, niov, at, chunk->buffer->data + pos % CACHE_CHUNK, bytes);
    pthread_mutex_lock(&cache->lock);
    chunk->pins--;
}

/* The place is not in memory: from the file, by a job that is under way, or by a new one. */
static int get(BlockCache *cache, uint64_t pos, uint64_t end, int64_t deadline)
{
    CacheJob *job = cache_job_covering(cache, pos);
    if (!job && load(cache, pos, end)) {
        return 0;
    }
    job = cache_job_covering(cache, pos); /* the lock was open */
    if (!job && cache_has(cache, pos)) {
        return 0;
    }
    if (!job) {
        job = cache_job_new(cache, JOB_READER, pos, cache_missing_end(cache, pos, end));
        cache_kick(cache);
    } else if (!job->running) {
        cache_job_raise(job);
    }
    cache->counts.misses++;
    return wait_for(cache, pos, deadline);
}

int block_cache_preadv(BlockCache *cache, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    const int64_t deadline = cache_now_us() + (int64_t)cache->config.deadline_s * G_USEC_PER_SEC;
    const uint64_t end = offset + bytes;
    uint64_t pos = offset;
    int ret = 0;
    pthread_mutex_lock(&cache->lock);
    /* The reader's own bytes come before those that it may want later. */
    if (!cache_has(cache, pos) && cache_is_missing(cache, pos)) {
        cache_job_new(cache, JOB_READER, pos, cache_missing_end(cache, pos, cache_generous_end(cache, end)));
    }
    cache_note_read(cache, offset, bytes, false);
    cache_kick(cache);
    while (ret == 0 && pos < end) {
        CacheChunk *chunk = cache_chunk_find(cache, pos);
        size_t run = chunk ? chunk_run(cache, chunk, pos, end) : 0;
        if (run == 0) {
            ret = cache->stopping ? -ECANCELED : get(cache, pos, end, deadline);
            continue;
        }
        copy_out(cache, chunk, pos, run, iov, niov, pos - offset);
        cache->counts.hits++;
        pos += run;
    }
    cache->counts.served += pos - offset;
    pthread_mutex_unlock(&cache->lock);
    return ret;
}

int block_cache_read_now(BlockCache *cache, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                         int niov)
{
    const uint64_t end = offset + bytes;
    uint64_t pos = offset;
    if (pthread_mutex_trylock(&cache->lock) != 0) {
        return -EAGAIN;
    }
    while (pos < end) {
        CacheChunk *chunk = cache_chunk_find(cache, pos);
        size_t run = chunk ? chunk_run(cache, chunk, pos, end) : 0;
        if (run == 0) {
            break;
        }
        pos += run;
    }
    const bool all = pos == end;
    for (pos = offset; all && pos < end;) {
        CacheChunk *chunk = cache_chunk_find(cache, pos);
        size_t run = chunk_run(cache, chunk, pos, end);
        chunk_touch(cache, chunk);
        iov_from_buf(iov, niov, pos - offset, chunk->buffer->data + pos % CACHE_CHUNK, run);
        pos += run;
    }
    if (all) {
        cache->counts.hits++;
        cache->counts.served += bytes;
        cache_note_read(cache, offset, bytes, true);
        cache_kick(cache);
    }
    pthread_mutex_unlock(&cache->lock);
    return all ? 0 : -EAGAIN;
}

void block_cache_insert(BlockCache *cache, uint64_t offset, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    pthread_mutex_lock(&cache->lock);
    while (bytes > 0) {
        CacheChunk *chunk = cache_chunk_get(cache, offset);
        const size_t n = MIN(bytes, CACHE_CHUNK - offset % CACHE_CHUNK);
        if (!(chunk->valid & 1u << granule_in_chunk(offset))) {
            memcpy(chunk->buffer->data + offset % CACHE_CHUNK, from, n);
            cache_set_valid(cache, chunk, offset, offset + n);
        }
        if (cache->file) {
            cache_file_store(cache->file, chunk->index * CACHE_CHUNK, chunk->valid, chunk->buffer->data);
        }
        chunk->pins--;
        from += n;
        offset += n;
        bytes -= n;
        cache->counts.fetched += n;
    }
    pthread_mutex_unlock(&cache->lock);
}

void block_cache_stats(BlockCache *cache, BlockRemoteStats *ret)
{
    pthread_mutex_lock(&cache->lock);
    *ret = cache_stats_now(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* What the options ask for must be possible with this source. */
static bool check_config(const CacheConfig *config, const char *name, const char *identity, uint64_t size,
                         bool sequential, GError **error)
{
    if (config->file && !identity) {
        return error_set(error,
                         "'%s' has nothing (ETag, Last-Modified) to know its content by, so 'cache-file' "
                         "cannot be used with it",
                         name);
    }
    if (config->prefetch && !config->file && config->cache_size < size) {
        return error_set(
            error,
            "Parameter 'prefetch' needs 'cache-file', or a 'cache-size' of at least %" G_GUINT64_FORMAT
            " bytes",
            size);
    }
    if (sequential && !config->file && config->cache_size < size) {
        return error_set(error,
                         "Server does not support 'range' (byte ranges), so all of '%s' has to be kept: give "
                         "'cache-file', or a 'cache-size' of at least %" G_GUINT64_FORMAT " bytes",
                         name, size);
    }
    return true;
}

BlockCache *block_cache_new(const CacheConfig *config, const CacheSource *source, const char *name,
                            const char *identity, uint64_t size, bool sequential, GError **error)
{
    CacheFile *file = NULL;
    if (!check_config(config, name, identity, size, sequential, error) ||
        (config->file && !(file = cache_file_open(config->file, identity, size, error)))) {
        return NULL;
    }
    BlockCache *cache = g_new0(BlockCache, 1);
    cache->source = *source;
    cache->config = *config;
    cache->config.file = NULL;
    cache->config.readahead = MIN(config->readahead, config->cache_size / 4);
    cache->name = g_strdup(name);
    cache->size = size;
    cache->sequential = sequential;
    cache->file = file;
    cache->pool = buffer_pool_new(CACHE_CHUNK, BUFFER_ALIGN, 16);
    cache->chunks =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, (GDestroyNotify)(void *)chunk_free);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->work, &attr);
    pthread_cond_init(&cache->gone, &attr);
    pthread_cond_init(&cache->pause, &attr);
    pthread_condattr_destroy(&attr);
    if (config->prefetch) {
        pthread_mutex_lock(&cache->lock);
        cache_kick(cache);
        pthread_mutex_unlock(&cache->lock);
    }
    return cache;
}

void block_cache_free(BlockCache *cache)
{
    if (!cache) {
        return;
    }
    BlockRemoteStats stats;
    block_cache_stats(cache, &stats);
    trace(cache_end, cache->name, stats.served, stats.fetched, stats.from_file, stats.hits, stats.misses,
          stats.failures, stats.rate);
    pthread_mutex_lock(&cache->lock);
    cache->stopping = true;
    cache->source.stop(cache->source.opaque);
    pthread_cond_broadcast(&cache->work);
    pthread_cond_broadcast(&cache->pause);
    while (cache->threads > 0) {
        pthread_cond_wait(&cache->gone, &cache->lock);
    }
    while (cache->jobs.head) {
        cache_job_free(cache->jobs.head->data);
    }
    pthread_mutex_unlock(&cache->lock);
    pthread_cond_destroy(&cache->pause);
    pthread_cond_destroy(&cache->gone);
    pthread_cond_destroy(&cache->work);
    pthread_mutex_destroy(&cache->lock);
    g_hash_table_unref(cache->chunks);
    buffer_pool_free(cache->pool);
    cache_file_close(cache->file);
    g_free(cache->name);
    g_free(cache);
}
