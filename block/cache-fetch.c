/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Jobs, and the threads that do them: they start when there is work and end after some idle seconds.
 */
#include <errno.h>
#include <string.h>

#include "block/cache-int.h"
#include "util/checked.h"
#include "util/log.h"
#include "util/trace.h"

#define IDLE_S         5
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 2000
#define WISH_MAX_MS    60000 /* a server's Retry-After counts up to here */
#define RATE_US        (4 * G_USEC_PER_SEC)
#define TELL_US        500000
#define FILL_BYTES     (1024 * 1024)
#define FILL_IDLE_US   200000       /* no reader for so long: time to fetch the rest */
#define STACK_BYTES    (512 * 1024) /* TLS handshakes, name services */

CacheJob *cache_job_covering(BlockCache *cache, uint64_t pos)
{
    pos = align_down(pos, CACHE_GRANULE);
    for (GList *l = cache->jobs.head; l; l = l->next) {
        CacheJob *job = l->data;
        if (pos >= align_down(job->pos, CACHE_GRANULE) && pos < job->end) {
            return job;
        }
    }
    return NULL;
}

/* Readers' jobs go before those for later. */
static void queue_in_order(BlockCache *cache, CacheJob *job)
{
    GList *l = cache->jobs.head;
    while (l && (((CacheJob *)l->data)->running || ((CacheJob *)l->data)->kind <= job->kind)) {
        l = l->next;
    }
    g_queue_insert_before_link(&cache->jobs, l, &job->link);
}

CacheJob *cache_job_new(BlockCache *cache, CacheJobKind kind, uint64_t pos, uint64_t end)
{
    CacheJob *job = g_new0(CacheJob, 1);
    job->cache = cache;
    job->kind = kind;
    job->pos = align_down(pos, CACHE_GRANULE);
    job->end = MIN(align_up(end, CACHE_GRANULE), cache->size);
    job->running = kind == JOB_LOAD;
    job->link.data = job;
    queue_in_order(cache, job);
    trace(cache_job, cache->name, (int)kind, job->pos, job->end - job->pos);
    return job;
}

void cache_job_raise(CacheJob *job)
{
    g_queue_unlink(&job->cache->jobs, &job->link);
    job->kind = JOB_READER;
    queue_in_order(job->cache, job);
}

/* The chunk is full, or the job is at its end: what came goes into the file. The lock is open meanwhile. */
static void leave_chunk(CacheJob *job)
{
    BlockCache *cache = job->cache;
    CacheChunk *chunk = job->chunk;
    if (!chunk) {
        return;
    }
    if (cache->file && job->done) {
        pthread_mutex_unlock(&cache->lock);
        int ret = cache_file_store(cache->file, chunk->index * CACHE_CHUNK, job->done, chunk->buffer->data);
        pthread_mutex_lock(&cache->lock);
        if (ret < 0) {
            log_warn("%s: the cache file takes no more: %s", cache->name, g_strerror(-ret));
        }
    }
    chunk->pins--;
    job->chunk = NULL;
    job->done = 0;
}

void cache_job_free(CacheJob *job)
{
    if (job->chunk) {
        job->chunk->pins--;
    }
    g_queue_unlink(&job->cache->jobs, &job->link);
    g_free(job);
}

uint64_t cache_missing_end(BlockCache *cache, uint64_t pos, uint64_t end)
{
    if (cache->sequential) { /* all the rest, up to where another one is at work */
        uint64_t nearest = cache->size;
        for (GList *l = cache->jobs.head; l; l = l->next) {
            const uint64_t start = align_down(((CacheJob *)l->data)->pos, CACHE_GRANULE);
            nearest = start > pos ? MIN(nearest, start) : nearest;
        }
        return nearest;
    }
    end = MIN(align_up(end, CACHE_GRANULE), cache->size);
    do {
        pos = cache_granule_end(cache, pos);
    } while (pos < end && cache_is_missing(cache, pos));
    return pos;
}

bool cache_is_missing(BlockCache *cache, uint64_t pos)
{
    if (cache_has(cache, pos) || cache_job_covering(cache, pos)) {
        return false;
    }
    const uint64_t chunk = align_down(pos, CACHE_CHUNK);
    return !cache->file || !(cache_file_look(cache->file, chunk) & 1u << (pos - chunk) / CACHE_GRANULE);
}

/* The granules that became whole between two places of one chunk. */
static void note_progress(CacheJob *job, uint64_t from, uint64_t to)
{
    BlockCache *cache = job->cache;
    const uint64_t whole_from = align_down(from, CACHE_GRANULE);
    const uint64_t whole_to = to == cache->size ? to : align_down(to, CACHE_GRANULE);
    if (whole_to > whole_from) {
        const uint16_t before = job->chunk->valid;
        cache_set_valid(cache, job->chunk, whole_from, whole_to);
        job->done |= job->chunk->valid & ~before;
        cache_wake(cache, whole_from, whole_to, 0);
    }
}

/* With the lock held, as the next. */
static void note_failure(BlockCache *cache, const CacheFailure *failure, bool again, bool last)
{
    const BlockRemoteStats stats = cache_stats_now(cache);
    const int64_t since = cache->outage.since;
    const bool tell = again && since && cache_now_us() - since > TELL_US;
    cache->counts.failures++;
    outage_note_failure(&cache->outage, cache->name, &stats, failure->text, tell, last);
}

static void note_success(BlockCache *cache)
{
    if (cache->outage.trouble) {
        const BlockRemoteStats stats = cache_stats_now(cache);
        outage_note_answer(&cache->outage, cache->name, &stats);
        pthread_cond_broadcast(&cache->pause);
    }
}

/* CachePut of a job. */
static bool job_put(void *sink, const void *data, size_t bytes)
{
    CacheJob *job = sink;
    BlockCache *cache = job->cache;
    const uint8_t *from = data;
    while (bytes > 0) {
        const uint64_t pos = job->pos;
        const size_t room = MIN(CACHE_CHUNK - pos % CACHE_CHUNK, job->end - pos);
        const size_t n =
            MIN(MIN(bytes, room), cache->sequential ? CACHE_GRANULE - pos % CACHE_GRANULE : room);
        if (n == 0) {
            return false;
        }
        pthread_mutex_lock(&cache->lock);
        if (!job->chunk) {
            job->chunk = cache_chunk_get(cache, pos);
        }
        const bool there = cache_has(cache, pos); /* only where all is sent again */
        pthread_mutex_unlock(&cache->lock);
        if (!there) {
            memcpy(job->chunk->buffer->data + pos % CACHE_CHUNK, from, n);
        }
        pthread_mutex_lock(&cache->lock);
        note_progress(job, pos, pos + n);
        job->pos = pos + n;
        cache->counts.fetched += n;
        cache->busy_bytes += n;
        cache->arrived = cache_now_us();
        note_success(cache);
        if (n == room) {
            leave_chunk(job);
        }
        const bool stopping = cache->stopping;
        pthread_mutex_unlock(&cache->lock);
        if (stopping) {
            return false;
        }
        from += n;
        bytes -= n;
    }
    return true;
}

/* Waits before the next try, or until another job finds that the source works again. With the lock held. */
static void back_off(BlockCache *cache, unsigned tries, unsigned wish_ms)
{
    unsigned ms = MIN(BACKOFF_MIN_MS << MIN(tries, 10), BACKOFF_MAX_MS);
    ms = MAX(ms, MIN(wish_ms, WISH_MAX_MS));
    const int64_t until = cache_now_us() + (int64_t)ms * 1000;
    const struct timespec end = {until / 1000000, until % 1000000 * 1000};
    if (!cache->stopping) {
        pthread_cond_timedwait(&cache->pause, &cache->lock, &end);
    }
}

/* Nobody waits for it, and it was only a guess: not worth insisting. With the lock held. */
static bool is_unwanted(BlockCache *cache, const CacheJob *job)
{
    for (GList *l = cache->waiters.head; l; l = l->next) {
        const CacheWaiter *waiter = l->data;
        if (waiter->pos >= align_down(job->pos, CACHE_GRANULE) && waiter->pos < job->end) {
            return false;
        }
    }
    return job->kind >= JOB_AHEAD && !cache->sequential;
}

/* Does the job, with the lock held but while it waits. */
static void job_run(CacheJob *job)
{
    BlockCache *cache = job->cache;
    unsigned tries = 0;
    int ret = 0;
    while (job->pos < job->end && !cache->stopping) {
        CacheFailure failure = {0};
        const uint64_t before = job->pos;
        pthread_mutex_unlock(&cache->lock);
        ret =
            cache->source.fetch(cache->source.opaque, job->pos, job->end - job->pos, job_put, job, &failure);
        pthread_mutex_lock(&cache->lock);
        if (job->pos > before) {
            tries = 0;
        }
        if (job->pos >= job->end || cache->stopping) {
            break;
        }
        ret = ret < 0 ? ret : -EIO;
        trace(cache_retry, cache->name, job->pos, ret, tries, failure.text);
        const bool last = failure.final || tries >= cache->config.retries;
        note_failure(cache, &failure, tries > 0, last);
        if (last || (tries > 0 && is_unwanted(cache, job))) {
            break;
        }
        back_off(cache, tries++, failure.delay_ms);
    }
    leave_chunk(job);
    if (job->pos < job->end) {
        cache_wake(cache, align_down(job->pos, CACHE_GRANULE), job->end, cache->stopping ? -ECANCELED : ret);
    }
    cache_job_free(job);
}

/* The next stretch of the image that nobody has asked for, or NULL. */
static CacheJob *next_fill(BlockCache *cache)
{
    if (!cache->config.prefetch || cache->sequential) {
        return NULL;
    }
    while (cache->fill_pos < cache->size && !cache_is_missing(cache, cache->fill_pos)) {
        cache->fill_pos = cache_granule_end(cache, cache->fill_pos);
    }
    if (cache->fill_pos >= cache->size) {
        return NULL;
    }
    return cache_job_new(cache, JOB_FILL, cache->fill_pos,
                         cache_missing_end(cache, cache->fill_pos, cache->fill_pos + FILL_BYTES));
}

static bool is_ahead(const CacheJob *job)
{
    return job->kind >= JOB_AHEAD;
}

/* The first queued job that may start. */
static CacheJob *next_queued(BlockCache *cache)
{
    for (GList *l = cache->jobs.head; l; l = l->next) {
        CacheJob *job = l->data;
        if (!job->running && (!is_ahead(job) || cache->fetching_ahead < CACHE_AHEAD_THREADS)) {
            return job;
        }
    }
    return NULL;
}

static CacheJob *next_job(BlockCache *cache)
{
    cache_plan(cache);
    CacheJob *job = next_queued(cache);
    if (!job && cache->fetching_ahead == 0 && cache_now_us() - cache->last_read > FILL_IDLE_US) {
        job = next_fill(cache);
    }
    return job;
}

/* The rate is of the time that something was under way; the past counts less and less. */
static void note_busy(BlockCache *cache, int change)
{
    const int64_t now = cache_now_us();
    if (cache->fetching == 0) {
        cache->busy_since = now;
    }
    cache->fetching += change;
    if (cache->fetching == 0) {
        cache->busy_us += now - cache->busy_since;
        cache->busy_since = 0;
        if (cache->busy_us > RATE_US) {
            cache->busy_us /= 2;
            cache->busy_bytes /= 2;
        }
    }
}

static void thread_do(CacheJob *job)
{
    BlockCache *cache = job->cache;
    const bool ahead = is_ahead(job);
    job->running = true;
    cache->fetching_ahead += ahead;
    note_busy(cache, 1);
    job_run(job);
    note_busy(cache, -1);
    cache->fetching_ahead -= ahead;
    cache_kick(cache);
}

/* Until there is something to do, or nothing for long: then false. */
static bool thread_wait(BlockCache *cache)
{
    const bool fill = cache->config.prefetch && cache->fill_pos < cache->size;
    const int64_t until = cache_now_us() + (fill ? FILL_IDLE_US : IDLE_S * G_USEC_PER_SEC);
    const struct timespec end = {until / 1000000, until % 1000000 * 1000};
    cache->idle++;
    int late = pthread_cond_timedwait(&cache->work, &cache->lock, &end);
    cache->idle--;
    return late != ETIMEDOUT || fill || next_queued(cache);
}

static void *thread_main(void *opaque)
{
    BlockCache *cache = opaque;
    pthread_mutex_lock(&cache->lock);
    do {
        CacheJob *job;
        while (!cache->stopping && (job = next_job(cache))) {
            thread_do(job);
        }
    } while (!cache->stopping && thread_wait(cache));
    cache->threads--;
    pthread_cond_signal(&cache->gone);
    pthread_mutex_unlock(&cache->lock);
    return NULL;
}

static bool thread_start(BlockCache *cache)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    const bool started = pthread_create(&thread, &attr, thread_main, cache) == 0;
    pthread_attr_destroy(&attr);
    cache->threads += started;
    return started;
}

/* Where no thread can be had at all, readers must not wait for one. */
static void fail_all(BlockCache *cache)
{
    while (cache->jobs.head && !((CacheJob *)cache->jobs.head->data)->running) {
        CacheJob *job = cache->jobs.head->data;
        cache_wake(cache, job->pos, job->end, -ENOMEM);
        cache_job_free(job);
    }
}

void cache_kick(BlockCache *cache)
{
    unsigned queued = 0;
    for (GList *l = cache->jobs.head; l; l = l->next) {
        queued += !((CacheJob *)l->data)->running;
    }
    if (cache->plan || (cache->config.prefetch && cache->threads == 0)) {
        queued++;
    }
    for (unsigned i = 0; i < MIN(queued, cache->idle); i++) {
        pthread_cond_signal(&cache->work);
    }
    while (queued > cache->idle && cache->threads < CACHE_THREADS && !cache->stopping) {
        if (!thread_start(cache)) {
            if (cache->threads == 0) {
                fail_all(cache);
            }
            break;
        }
        queued--;
    }
}
