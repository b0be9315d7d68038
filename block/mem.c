/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=mem`: a node in RAM for tests and tools. Options: `size` (default 1M), `pattern` (a byte that fills
 * it, or `offset`: each aligned 8 bytes hold their own offset, little-endian), `align` (a power of two,
 * default 1: what BlockInfo says, and the node then refuses with -EINVAL what is not so aligned, for the
 * tests of those who must see to it).
 */
#include "block/block-int.h"
#include "util/buffer.h"
#include "util/bytes.h"
#include "util/error.h"
#include "util/iov.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

typedef struct MemState {
    uint8_t *data;
    size_t bytes; /* mapped */
} MemState;

static bool mem_fill(MemState *s, uint64_t size, const char *pattern, GError **error)
{
    if (!strcmp(pattern, "offset")) {
        for (uint64_t at = 0; at + 8 <= size; at += 8) {
            store_le64(s->data + at, at);
        }
        return true;
    }
    guint64 value;
    if (!g_ascii_string_to_unsigned(pattern, 10, 0, 255, &value, NULL)) {
        return error_set(error, "Parameter 'pattern' expects a byte (0 to 255) or 'offset'");
    }
    memset(s->data, (int)value, size);
    return true;
}

static bool mem_open(BlockNode *node, Options *options, GError **error)
{
    MemState *s = node->state;
    uint64_t size, align;
    if (!options_get_size(options, "size", 1024 * 1024, &size, error)) {
        return false;
    }
    if (!options_get_uint(options, "align", 1, BUFFER_MAX, 1, &align, error)) {
        return false;
    }
    const char *pattern = options_get(options, "pattern");
    /* Mapped, so that a node of many gigabytes costs only the pages that are written. */
    s->bytes = MAX(size, 1);
    s->data =
        mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->data == MAP_FAILED) {
        return error_set(error, "Could not allocate %" G_GUINT64_FORMAT " bytes for driver 'mem'", size);
    }
    if (pattern && !mem_fill(s, size, pattern, error)) {
        munmap(s->data, s->bytes);
        return false;
    }
    node->info.size = size;
    node->info.align = align;
    return true;
}

static void mem_close(BlockNode *node)
{
    MemState *s = node->state;
    munmap(s->data, s->bytes);
}

static int mem_check(const BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                     int niov)
{
    uint32_t align = node->info.align;
    bool to_end = offset + bytes == node->info.size;
    bool good = offset % align == 0 && (bytes % align == 0 || to_end);
    for (int i = 0; i < niov; i++) {
        good &= (uintptr_t)iov[i].iov_base % align == 0;
        good &= iov[i].iov_len % align == 0 || (to_end && i == niov - 1);
    }
    return good ? 0 : -EINVAL;
}

static int mem_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    MemState *s = node->state;
    int ret = mem_check(node, offset, bytes, iov, niov);
    if (ret == 0) {
        iov_from_buf(iov, niov, 0, s->data + offset, bytes);
    }
    return ret;
}

static int mem_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                       BlockFlags flags)
{
    MemState *s = node->state;
    int ret = mem_check(node, offset, bytes, iov, niov);
    if (ret == 0) {
        iov_to_buf(iov, niov, 0, s->data + offset, bytes);
    }
    return ret;
}

static int mem_flush(BlockNode *node)
{
    return 0;
}

static int mem_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    MemState *s = node->state;
    int ret = mem_check(node, offset, bytes, NULL, 0);
    if (ret == 0) {
        memset(s->data + offset, 0, bytes);
    }
    return ret;
}

static int mem_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    return mem_write_zeroes(node, offset, bytes, 0);
}

const BlockDriver block_driver_mem = {
    .name = "mem",
    .parallel = true,
    .state_size = sizeof(MemState),
    .open = mem_open,
    .close = mem_close,
    .preadv = mem_preadv,
    .pwritev = mem_pwritev,
    .flush = mem_flush,
    .discard = mem_discard,
    .write_zeroes = mem_write_zeroes,
    .read_now = mem_preadv,
};
