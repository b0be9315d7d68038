/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=cache`: the cache above any node. Read-only.
 */
#include <errno.h>

#include "block/block-int.h"
#include "block/cache.h"
#include "util/error.h"

#define PIECE ((uint64_t)256 * 1024)

typedef struct CacheNode {
    BlockCache *cache;
    gint stopped; /* atomic */
} CacheNode;

static int child_fetch(void *opaque, uint64_t offset, uint64_t bytes, CachePut put, void *sink,
                       CacheFailure *ret_failure)
{
    BlockNode *node = opaque;
    CacheNode *s = node->state;
    g_autofree uint8_t *buf = g_malloc(MIN(bytes, PIECE));
    int ret = 0;
    while (ret == 0 && bytes > 0) {
        const uint64_t n = MIN(bytes, PIECE);
        ret = g_atomic_int_get(&s->stopped) ? -ECANCELED : block_pread(node->child, offset, buf, n);
        if (ret == 0 && !put(sink, buf, n)) {
            ret = -ECANCELED;
        }
        offset += n;
        bytes -= n;
    }
    if (ret < 0) {
        ret_failure->final = true; /* whether it may pass is for the node below to know */
        g_snprintf(ret_failure->text, sizeof ret_failure->text, "%s", g_strerror(-ret));
    }
    return ret;
}

static void child_stop(void *opaque)
{
    BlockNode *node = opaque;
    CacheNode *s = node->state;
    g_atomic_int_set(&s->stopped, 1);
    for (BlockNode *below = node->child; below; below = below->child) {
        if (below->driver->interrupt) {
            below->driver->interrupt(below);
        }
    }
}

static bool cache_node_open(BlockNode *node, Options *options, GError **error)
{
    CacheNode *s = node->state;
    const CacheSource source = {.opaque = node, .fetch = child_fetch, .stop = child_stop};
    g_auto(CacheConfig) config = {0};
    if (!cache_config_read(&config, options, error)) {
        return false;
    }
    if (block_node_wants_write(node) && !block_node_auto_read_only(node)) {
        return error_set(error, "Block driver 'cache' does not support writes: use read-only=on");
    }
    if (!block_node_open_child(node, options, "file", error)) {
        return false;
    }
    const BlockInfo *child = block_info(node->child);
    s->cache = block_cache_new(&config, &source, child->filename, NULL, child->size, false, error);
    node->info.size = child->size;
    node->info.slow = false; /* this one reads ahead */
    return s->cache != NULL;
}

static void cache_node_close(BlockNode *node)
{
    block_cache_free(((CacheNode *)node->state)->cache);
}

static int cache_node_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                             int niov)
{
    return block_cache_preadv(((CacheNode *)node->state)->cache, offset, bytes, iov, niov);
}

static int cache_node_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                               int niov)
{
    return block_cache_read_now(((CacheNode *)node->state)->cache, offset, bytes, iov, niov);
}

static void cache_node_interrupt(BlockNode *node)
{
    block_cache_interrupt(((CacheNode *)node->state)->cache);
}

static void cache_node_remote_stats(BlockNode *node, BlockRemoteStats *ret)
{
    CacheNode *s = node->state;
    *ret = (BlockRemoteStats){0};
    block_cache_stats(s->cache, ret);
}

const BlockDriver block_driver_cache = {
    .name = "cache",
    .parallel = true,
    .state_size = sizeof(CacheNode),
    .open = cache_node_open,
    .close = cache_node_close,
    .preadv = cache_node_preadv,
    .read_now = cache_node_read_now,
    .interrupt = cache_node_interrupt,
    .remote_stats = cache_node_remote_stats,
};
