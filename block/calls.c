/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every call into a driver goes through here, on the caller's thread: range and permission checks, one at a
 * time for drivers that are not parallel, bounce buffers and read-modify-write for those that want alignment,
 * zero detection, counting.
 */
#include "block/core.h"
#include "util/checked.h"
#include "util/error.h"
#include "util/iov.h"
#include "util/trace.h"
#include <errno.h>
#include <string.h>

#define ZEROS_SIZE 16384
#define ZEROS_IOV  (BUFFER_MAX / ZEROS_SIZE)

static const uint8_t zeros[ZEROS_SIZE] __attribute__((aligned(BUFFER_ALIGN)));

/* A part of a node: bytes at an offset, and the memory for them if there is any. */
typedef struct Extent {
    uint64_t offset, bytes;
    const struct iovec *iov;
    int niov;
    BlockFlags flags;
} Extent;

static void count(BlockNode *node, BlockOp op, uint64_t bytes, int result)
{
    BlockStats *counts = &node->priv->counts;
    if (result < 0) {
        __atomic_fetch_add(&counts->failed[op], 1, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add(&counts->ops[op], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counts->bytes[op], bytes, __ATOMIC_RELAXED);
    }
}

/* How far the node was written, and whether that is too far. */
static void note_written(BlockNode *node, uint64_t end)
{
    uint64_t *highest = &node->priv->counts.highest;
    uint64_t before = __atomic_load_n(highest, __ATOMIC_RELAXED);
    uint64_t threshold = __atomic_load_n(&node->priv->threshold, __ATOMIC_RELAXED);
    while (end > before &&
           !__atomic_compare_exchange_n(highest, &before, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (threshold && end > threshold) {
        node_pass_threshold(node, threshold, end);
    }
}

const BlockStats *block_stats(const BlockNode *node)
{
    BlockStats *from = &node->priv->counts;
    BlockStats *to = &node->priv->stats;
    for (int op = 0; op < BLOCK_OPS; op++) {
        to->ops[op] = __atomic_load_n(&from->ops[op], __ATOMIC_RELAXED);
        to->bytes[op] = __atomic_load_n(&from->bytes[op], __ATOMIC_RELAXED);
        to->failed[op] = __atomic_load_n(&from->failed[op], __ATOMIC_RELAXED);
        to->ns[op] = from->ns[op];
    }
    to->highest = __atomic_load_n(&from->highest, __ATOMIC_RELAXED);
    to->read_now = __atomic_load_n(&from->read_now, __ATOMIC_RELAXED);
    to->write_now = __atomic_load_n(&from->write_now, __ATOMIC_RELAXED);
    return to;
}

bool block_remote_stats(BlockNode *node, BlockRemoteStats *ret)
{
    if (!node->driver->remote_stats) {
        return false;
    }
    node->driver->remote_stats(node, ret);
    return true;
}

int node_check(const BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes)
{
    if (op != BLOCK_READ && op != BLOCK_FLUSH && node->info.read_only) {
        return -EROFS;
    }
    if (op == BLOCK_FLUSH) {
        return 0;
    }
    if (!block_medium_present(node)) {
        return -ENOMEDIUM;
    }
    return range_inside(offset, bytes, node_size(node)) ? 0 : -EINVAL;
}

/* Whether the driver can take the extent as it is; the last piece of the node may be short. */
static bool extent_is_aligned(const BlockNode *node, const Extent *x)
{
    uint32_t mask = node->info.align - 1;
    if (!mask) {
        return true;
    }
    bool to_end = x->offset + x->bytes == node_size(node);
    if ((x->offset & mask) || ((x->bytes & mask) && !to_end)) {
        return false;
    }
    for (int i = 0; i < x->niov; i++) {
        bool last = i == x->niov - 1;
        if (((uintptr_t)x->iov[i].iov_base & mask) || ((x->iov[i].iov_len & mask) && !(last && to_end))) {
            return false;
        }
    }
    return true;
}

static int driver_read(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    if (!node->driver->preadv) {
        return -ENOTSUP;
    }
    node_call_begin(node);
    int ret = node->driver->preadv(node, offset, bytes, iov, niov);
    node_call_end(node);
    return ret;
}

static int driver_write(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                        BlockFlags flags)
{
    if (!node->driver->pwritev) {
        return -EROFS;
    }
    node_call_begin(node);
    int ret = node->driver->pwritev(node, offset, bytes, iov, niov, flags);
    node_call_end(node);
    return ret;
}

/* The aligned chunk of the node at *pos that holds the next part of the extent. */
typedef struct Chunk {
    uint64_t offset, bytes; /* aligned, or short at the end of the node */
    uint64_t from, to;      /* the extent's part of it, as offsets in the node */
} Chunk;

static bool next_chunk(const BlockNode *node, const Extent *x, uint64_t *pos, Chunk *ret)
{
    uint64_t end = MIN(align_up(x->offset + x->bytes, node->info.align), node_size(node));
    if (*pos >= end) {
        return false;
    }
    ret->offset = *pos;
    ret->bytes = MIN(align_down(node->priv->bounce_size, node->info.align), end - *pos);
    ret->from = MAX(ret->offset, x->offset);
    ret->to = MIN(ret->offset + ret->bytes, x->offset + x->bytes);
    *pos += ret->bytes;
    return true;
}

static int bounce_read(BlockNode *node, const Extent *x)
{
    g_autoptr(Buffer) buffer = buffer_pool_get(node->priv->bounce);
    uint64_t pos = align_down(x->offset, node->info.align);
    Chunk c;
    int ret = 0;
    pthread_rwlock_rdlock(&node->priv->edges); /* a neighbour may be rewriting our first or last block */
    while (ret == 0 && next_chunk(node, x, &pos, &c)) {
        struct iovec iov = {buffer->data, c.bytes};
        ret = driver_read(node, c.offset, c.bytes, &iov, 1);
        if (ret == 0) {
            iov_from_buf(x->iov, x->niov, c.from - x->offset, buffer->data + (c.from - c.offset),
                         c.to - c.from);
        }
    }
    pthread_rwlock_unlock(&node->priv->edges);
    return ret;
}

/* Reads those blocks of the chunk that the write covers only in part. */
static int read_edges(BlockNode *node, const Chunk *c, uint8_t *data)
{
    uint32_t align = node->info.align;
    uint64_t tail = align_down(c->bytes - 1, align);
    bool head_partial = c->from > c->offset;
    bool tail_partial = c->to < c->offset + c->bytes;
    if (head_partial || (tail_partial && tail == 0)) {
        struct iovec iov = {data, MIN(align, c->bytes)};
        int ret = driver_read(node, c->offset, iov.iov_len, &iov, 1);
        if (ret < 0) {
            return ret;
        }
    }
    if (tail_partial && tail > 0) {
        struct iovec iov = {data + tail, c->bytes - tail};
        return driver_read(node, c->offset + tail, iov.iov_len, &iov, 1);
    }
    return 0;
}

static int bounce_write(BlockNode *node, const Extent *x)
{
    g_autoptr(Buffer) buffer = buffer_pool_get(node->priv->bounce);
    uint64_t pos = align_down(x->offset, node->info.align);
    Chunk c;
    int ret = 0;
    pthread_rwlock_wrlock(&node->priv->edges);
    while (ret == 0 && next_chunk(node, x, &pos, &c)) {
        ret = read_edges(node, &c, buffer->data);
        if (ret == 0) {
            struct iovec iov = {buffer->data, c.bytes};
            iov_to_buf(x->iov, x->niov, c.from - x->offset, buffer->data + (c.from - c.offset),
                       c.to - c.from);
            ret = driver_write(node, c.offset, c.bytes, &iov, 1, x->flags);
        }
    }
    pthread_rwlock_unlock(&node->priv->edges);
    return ret;
}

static int write_extent(BlockNode *node, const Extent *x)
{
    if (!extent_is_aligned(node, x)) {
        return bounce_write(node, x);
    }
    if (node->info.align == 1) {
        return driver_write(node, x->offset, x->bytes, x->iov, x->niov, x->flags);
    }
    pthread_rwlock_rdlock(&node->priv->edges);
    int ret = driver_write(node, x->offset, x->bytes, x->iov, x->niov, x->flags);
    pthread_rwlock_unlock(&node->priv->edges);
    return ret;
}

static int write_zero_buffer(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    struct iovec iov[ZEROS_IOV];
    while (bytes > 0) {
        uint64_t chunk = MIN(bytes, BUFFER_MAX), left = chunk;
        int n = 0;
        for (; left > 0; n++) {
            iov[n] = (struct iovec){(void *)zeros, MIN(left, ZEROS_SIZE)};
            left -= iov[n].iov_len;
        }
        Extent x = {offset, chunk, iov, n, flags};
        int ret = write_extent(node, &x);
        if (ret < 0) {
            return ret;
        }
        offset += chunk;
        bytes -= chunk;
    }
    return 0;
}

/* Aligned extents only. */
static int driver_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    if (bytes == 0) {
        return 0;
    }
    int ret = -ENOTSUP;
    if (node->driver->write_zeroes) {
        node_call_begin(node);
        ret = node->driver->write_zeroes(node, offset, bytes, flags);
        node_call_end(node);
    }
    return ret == -ENOTSUP ? write_zero_buffer(node, offset, bytes, flags & BLOCK_FUA) : ret;
}

/* The ends that fill no block are written, the middle is the driver's. */
static int write_zeroes_extent(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    uint32_t align = node->info.align;
    uint64_t end = offset + bytes;
    uint64_t from = MIN(align_up(offset, align), end);
    uint64_t to = end == node_size(node) ? end : MAX(align_down(end, align), from);
    if (!node->priv->generic.discard) {
        flags &= ~(unsigned)BLOCK_MAY_UNMAP;
    }
    int ret = write_zero_buffer(node, offset, from - offset, flags & BLOCK_FUA);
    if (ret == 0) {
        ret = driver_write_zeroes(node, from, to - from, flags);
    }
    return ret < 0 ? ret : write_zero_buffer(node, to, end - to, flags & BLOCK_FUA);
}

static int discard_extent(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    if (!node->driver->discard || !node->priv->generic.discard) {
        return 0;
    }
    uint64_t end = offset + bytes;
    uint64_t from = align_up(offset, node->info.align);
    uint64_t to = end == node_size(node) ? end : align_down(end, node->info.align);
    if (from >= to) {
        return 0;
    }
    node_call_begin(node);
    int ret = node->driver->discard(node, from, to - from);
    node_call_end(node);
    return ret == -ENOTSUP ? 0 : ret;
}

static bool iov_is_zero(const struct iovec *iov, int niov)
{
    for (int i = 0; i < niov; i++) {
        const uint8_t *p = iov[i].iov_base;
        size_t n = iov[i].iov_len;
        if (n > 0 && (p[0] != 0 || p[n - 1] != 0 || memcmp(p, p + 1, n - 1) != 0)) {
            return false;
        }
    }
    return true;
}

/* The driver's own flush, where something was written since the last one. The lock: a flush that finds the
 * node clean because another is under way must not be over before that one. */
static int flush_driver(BlockNode *node)
{
    pthread_mutex_lock(&node->priv->flushing);
    int ret = 0;
    bool dirty = __atomic_exchange_n(&node->priv->dirty, 0, __ATOMIC_ACQ_REL);
    if (dirty && node->child) {
        block_node_debug_event(node->child, BLOCK_DEBUG_FLUSH_TO_DISK);
    }
    if (dirty && node->driver->flush) {
        node_call_begin(node);
        ret = node->driver->flush(node);
        node_call_end(node);
    } else if (node->child) {
        ret = block_node_flush(node->child);
    }
    if (ret < 0 && dirty) {
        g_atomic_int_set(&node->priv->dirty, 1);
    }
    pthread_mutex_unlock(&node->priv->flushing);
    return ret;
}

static int flush_node(BlockNode *node)
{
    if (node->child) {
        block_node_debug_event(node->child, BLOCK_DEBUG_FLUSH_TO_OS);
    }
    if (node->priv->generic.no_flush) {
        return node->child ? block_node_flush(node->child) : 0;
    }
    return flush_driver(node);
}

static int write_call(BlockNode *node, const Extent *x)
{
    if (!node->priv->generic.detect_zeroes || !iov_is_zero(x->iov, x->niov)) {
        block_node_debug_event(node, BLOCK_DEBUG_PWRITEV);
        return write_extent(node, x);
    }
    BlockFlags unmap = node->priv->generic.detect_zeroes == DETECT_ZEROES_UNMAP ? BLOCK_MAY_UNMAP : 0;
    block_node_debug_event(node, BLOCK_DEBUG_PWRITEV_ZERO);
    return write_zeroes_extent(node, x->offset, x->bytes, x->flags | unmap);
}

/* Data or space changes. */
static int change_call(BlockNode *node, BlockOp op, const Extent *x)
{
    int ret;
    switch (op) {
    case BLOCK_WRITE:
        ret = write_call(node, x);
        break;
    case BLOCK_DISCARD:
        ret = discard_extent(node, x->offset, x->bytes);
        break;
    default:
        block_node_debug_event(node, BLOCK_DEBUG_PWRITEV_ZERO);
        ret = write_zeroes_extent(node, x->offset, x->bytes, x->flags);
        break;
    }
    /* After it: a flush meanwhile did not cover it. Even if it failed, a part may have been written. */
    g_atomic_int_set(&node->priv->dirty, 1);
    block_node_debug_event(node, BLOCK_DEBUG_PWRITEV_DONE);
    return ret;
}

int node_call(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
              BlockFlags flags)
{
    int ret = node_check(node, op, offset, bytes);
    if (ret < 0 || (bytes == 0 && op != BLOCK_FLUSH)) {
        return ret;
    }
    if (node->priv->generic.no_flush) {
        flags &= ~(unsigned)(BLOCK_FUA | BLOCK_WRITE_BEHIND);
    }
    Extent x = {offset, bytes, iov, niov, flags};
    switch (op) {
    case BLOCK_READ:
        ret =
            extent_is_aligned(node, &x) ? driver_read(node, offset, bytes, iov, niov) : bounce_read(node, &x);
        break;
    case BLOCK_FLUSH:
        ret = flush_node(node);
        break;
    case BLOCK_WRITE:
    case BLOCK_DISCARD:
    case BLOCK_WRITE_ZEROES:
        if (op != BLOCK_DISCARD) {
            note_written(node, offset + bytes);
        }
        ret = change_call(node, op, &x);
        break;
    default:
        return -EINVAL;
    }
    count(node, op, op == BLOCK_FLUSH ? 0 : bytes, ret);
    return ret;
}

int block_node_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return node_call(node, BLOCK_READ, offset, bytes, iov, niov, 0);
}

int block_node_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                       BlockFlags flags)
{
    return node_call(node, BLOCK_WRITE, offset, bytes, iov, niov, flags);
}

int block_node_flush(BlockNode *node)
{
    return node_call(node, BLOCK_FLUSH, 0, 0, NULL, 0, 0);
}

int block_node_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    int ret = node_check(node, BLOCK_READ, offset, bytes);
    if (ret < 0 || bytes == 0) {
        return ret;
    }
    Extent x = {offset, bytes, iov, niov, 0};
    if (!node->driver->read_now || !extent_is_aligned(node, &x)) {
        return -EAGAIN;
    }
    bool serial = !node->driver->parallel;
    if (serial && pthread_mutex_trylock(&node->priv->serial) != 0) {
        return -EAGAIN;
    }
    ret = node->driver->read_now(node, offset, bytes, iov, niov);
    if (serial) {
        pthread_mutex_unlock(&node->priv->serial);
    }
    if (ret != -EAGAIN) {
        count(node, BLOCK_READ, bytes, ret);
        if (ret == 0) {
            __atomic_fetch_add(&node->priv->counts.read_now, 1, __ATOMIC_RELAXED);
        }
    }
    return ret;
}

/* Only what needs nothing of this layer: no edges to keep, no zeros to look for. */
int block_node_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    int ret = node_check(node, BLOCK_WRITE, offset, bytes);
    if (ret < 0 || bytes == 0) {
        return ret;
    }
    if (!node->driver->write_now || !node->driver->parallel || node->info.align > 1 ||
        node->priv->generic.detect_zeroes) {
        return -EAGAIN;
    }
    note_written(node, offset + bytes);
    ret = node->driver->write_now(node, offset, bytes, iov, niov);
    /* As after any write: a part may have been written where the whole was not. */
    g_atomic_int_set(&node->priv->dirty, 1);
    if (ret == 0) {
        count(node, BLOCK_WRITE, bytes, ret);
        __atomic_fetch_add(&node->priv->counts.write_now, 1, __ATOMIC_RELAXED);
    }
    return ret;
}

int block_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    const int64_t start = trace_enabled[TRACE_block_read] ? g_get_monotonic_time() : 0;
    const int ret = block_node_read_now(node, offset, bytes, iov, niov);
    if (ret != -EAGAIN) {
        trace(block_read, node->name, "now", start, g_get_monotonic_time() - start, offset, bytes, ret);
    }
    return ret;
}
