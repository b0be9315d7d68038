/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the cache: cache.c (chunks and readers), cache-fetch.c (jobs and the threads that do them),
 * cache-ahead.c (what to fetch before it is asked for), cache-file.c. Everything in BlockCache is under its
 * lock, but what is marked constant.
 */
#ifndef SPINDLE_BLOCK_CACHE_INT_H
#define SPINDLE_BLOCK_CACHE_INT_H

#include <pthread.h>

#include "block/cache-file.h"
#include "block/cache.h"
#include "block/outage.h"
#include "util/buffer.h"

#define CHUNK_GRANULES      (CACHE_CHUNK / CACHE_GRANULE)
#define CACHE_THREADS       5 /* fetches at once… */
#define CACHE_AHEAD_THREADS 4 /* … of which for later */
#define CACHE_STREAMS       8

typedef struct CacheChunk {
    uint64_t index; /* offset / CACHE_CHUNK */
    uint16_t valid; /* granules, a bit each; one that is set is never written again */
    unsigned pins;  /* somebody is using `buffer` without the lock */
    GList lru;
    Buffer *buffer;
} CacheChunk;

typedef enum { JOB_LOAD, JOB_READER, JOB_AHEAD, JOB_FILL } CacheJobKind;

typedef struct CacheJob {
    BlockCache *cache;
    CacheJobKind kind;
    bool running;
    uint64_t pos, end; /* what is not here yet; `pos` moves */
    CacheChunk *chunk; /* the one that is being filled, pinned; the doer's */
    uint16_t done;     /* granules of `chunk` that came by this job */
    GList link;
} CacheJob;

typedef struct CacheWaiter {
    uint64_t pos;  /* wants the granule that holds this byte */
    int64_t since; /* us */
    bool woken;
    int result; /* 0: look again */
    pthread_cond_t wake;
    GList link;
} CacheWaiter;

/* A reader that goes forward. */
typedef struct CacheStream {
    uint64_t next;     /* where it would go on */
    uint64_t consumed; /* bytes in a row */
    uint64_t front;    /* asked for up to here */
    uint64_t used;     /* clock of the last use */
} CacheStream;

struct BlockCache {
    /* constant */
    CacheSource source;
    CacheConfig config; /* `file` is not used after opening */
    char *name;
    uint64_t size;
    bool sequential;
    CacheFile *file; /* or NULL */
    BufferPool *pool;

    pthread_mutex_t lock;
    GHashTable *chunks; /* by index */
    GQueue lru;         /* most recently used first */
    GQueue jobs;        /* in order of doing; running ones too */
    GQueue waiters;
    BlockRemoteStats counts; /* its state, since_us and rate are made up when asked for */
    int64_t busy_since;      /* us: … of the fetches now under way; 0: none */
    int64_t busy_us;         /* time spent fetching, and what came, in the last while */
    uint64_t busy_bytes;
    unsigned fetching;

    /* fetch threads */
    bool stopping;
    unsigned threads, idle, fetching_ahead;
    pthread_cond_t work;  /* idle threads; monotonic clock, as the next */
    pthread_cond_t pause; /* threads between two tries */
    pthread_cond_t gone;
    Outage outage;
    int64_t arrived; /* us: when something last came */
    uint64_t fill_pos;
    int64_t last_read; /* us */

    /* cache-ahead.c */
    CacheStream streams[CACHE_STREAMS];
    CacheStream *plan; /* to be extended by a thread that may block, or NULL */
    uint64_t clock;
    uint64_t last_offset;
    int64_t stride;
    unsigned strides;
};

int64_t cache_now_us(void);

/* All below: with the lock held. */

uint64_t cache_granule_end(const BlockCache *cache, uint64_t pos); /* of the granule that holds `pos` */
CacheChunk *cache_chunk_find(BlockCache *cache, uint64_t pos);
CacheChunk *cache_chunk_get(BlockCache *cache, uint64_t pos); /* makes it; a pin for the caller */
bool cache_has(BlockCache *cache, uint64_t pos);              /* in memory */
void cache_set_valid(BlockCache *cache, CacheChunk *chunk, uint64_t from, uint64_t to);

/* The figures as of now. */
BlockRemoteStats cache_stats_now(const BlockCache *cache);

/* Tells those who wait for something in [from, to). */
void cache_wake(BlockCache *cache, uint64_t from, uint64_t to, int result);

CacheJob *cache_job_covering(BlockCache *cache, uint64_t pos);
/* [pos, end), rounded out to granules. Queued, but for a load, which the caller does. */
CacheJob *cache_job_new(BlockCache *cache, CacheJobKind kind, uint64_t pos, uint64_t end);
void cache_job_free(CacheJob *job);
/* A reader waits for it: it goes before others. */
void cache_job_raise(CacheJob *job);
/* Where what is missing ends: the next place that is there or in a job, at most `end`. May look at the file.
 */
uint64_t cache_missing_end(BlockCache *cache, uint64_t pos, uint64_t end);
/* Neither in memory, nor in the file, nor in a job. */
bool cache_is_missing(BlockCache *cache, uint64_t pos);
/* Starts threads for queued jobs. */
void cache_kick(BlockCache *cache);

/* How far a read up to `end` may be fetched at once. A round trip costs more than the rest of the chunk, in
 * which the next small read often lies (directories); but all in all no more than twice of what was read. */
uint64_t cache_generous_end(BlockCache *cache, uint64_t end);

/* A reader wants this; asks for what may come next. `now`: the caller must not block on the file. */
void cache_note_read(BlockCache *cache, uint64_t offset, uint64_t bytes, bool now);
/* Does what a caller that must not block left undone. */
void cache_plan(BlockCache *cache);

#endif
