/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The cache over a slow source (http, nbd, any node by `driver=cache`): fetches what readers want and will
 * want soon, each byte once, and keeps it in memory (bounded) and, if asked, in a file.
 *
 *   GRANULE  4 KiB, the unit of what is there: a random read costs at most two of them
 *   chunk    64 KiB, the unit of memory; the least recently used goes first
 *   job      a range that is being fetched, or will be; jobs never overlap, and nothing in one is there yet
 *
 * A reader takes what is in memory, then what the file has, then waits for a job, making one if none covers
 * the place. A granule shows itself only when whole. Errors that may pass are tried again here, so a reader
 * sees only: its data, -ETIMEDOUT when `deadline_ms` passed (the job goes on meanwhile), or what the source
 * said in the end.
 *
 * The owner is a driver's node. All functions: any thread, several at once, unless they say otherwise.
 */
#ifndef SPINDLE_BLOCK_CACHE_H
#define SPINDLE_BLOCK_CACHE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "block/block.h"

typedef struct BlockCache BlockCache;

#define CACHE_GRANULE      4096
#define CACHE_CHUNK        (64 * 1024)
#define CACHE_SIZE_DEFAULT (64 * 1024 * 1024)
#define CACHE_AHEAD        (8 * 1024 * 1024) /* default of `readahead` */

/* Takes the next bytes of a fetch. False: more than was asked for, or nobody wants them now. */
typedef bool (*CachePut)(void *sink, const void *data, size_t bytes);

/* Why a fetch ended early. */
typedef struct CacheFailure {
    bool final;        /* trying again is of no use */
    unsigned delay_ms; /* the server's wish; 0: none */
    char text[200];    /* for people */
} CacheFailure;

typedef struct CacheSource {
    void *opaque;
    /* Gets [offset, offset + bytes) and puts it in order. What was put stays good whatever comes after. 0
     * when all was put, else -errno and *ret. Several fetch threads at once. */
    int (*fetch)(void *opaque, uint64_t offset, uint64_t bytes, CachePut put, void *sink, CacheFailure *ret);
    /* From now on every fetch, also those under way, ends soon. */
    void (*stop)(void *opaque);
} CacheSource;

/* What the user can say: `cache-size`, `cache-file`, `readahead`, `prefetch`, `retries`, `deadline`. */
typedef struct CacheConfig {
    uint64_t cache_size; /* bytes of memory; 0: keep nothing */
    uint64_t readahead;  /* bytes, at most; 0: none */
    char *file;          /* path or NULL */
    bool prefetch;       /* fetch the rest when idle */
    uint64_t retries;    /* in a row and without a byte between */
    uint64_t deadline_s; /* a reader waits no longer */
} CacheConfig;

bool cache_config_read(CacheConfig *config, Options *options, GError **error);
void cache_config_clear(CacheConfig *config);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CacheConfig, cache_config_clear)

/* `name` is for messages. `identity` tells this content from every other, in words (URL, size, validators),
 * or is NULL when nothing does: then a cache file is of no use and refused. `sequential`: the source can only
 * give all from the start on. NULL and an error. */
BlockCache *block_cache_new(const CacheConfig *config, const CacheSource *source, const char *name,
                            const char *identity, uint64_t size, bool sequential, GError **error);

/* Stops fetching and frees. No reader may be inside. NULL is allowed. */
void block_cache_free(BlockCache *cache);

/* Takes bytes that are known already; `bytes` ends on a granule or at the end. Before the first read. */
void block_cache_insert(BlockCache *cache, uint64_t offset, const void *data, size_t bytes);

/* As the driver's functions. */
int block_cache_preadv(BlockCache *cache, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int block_cache_read_now(BlockCache *cache, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                         int niov);

/* Every reader inside gives up with -ECANCELED. */
void block_cache_interrupt(BlockCache *cache);

void block_cache_stats(BlockCache *cache, BlockRemoteStats *ret);

#endif
