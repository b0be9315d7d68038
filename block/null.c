/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=null-co` and `null-aio`, as QEMU's, and here the same: reads and writes go nowhere. Options: `size`
 * (default 1G), `latency-ns` (each request takes this long), `read-zeroes` (default on; off leaves the
 * reader's memory as it was).
 */
#include "block/block-int.h"
#include "util/error.h"
#include "util/iov.h"
#include <errno.h>
#include <time.h>

typedef struct NullState {
    uint64_t latency_ns;
    bool read_zeroes;
} NullState;

static bool null_open(BlockNode *node, Options *options, GError **error)
{
    NullState *s = node->state;
    options_get(options, "filename"); /* null-co:// */
    if (!options_get_size(options, "size", 1ull << 30, &node->info.size, error) ||
        !options_get_uint(options, "latency-ns", 0, INT64_MAX, 0, &s->latency_ns, error) ||
        !options_get_bool(options, "read-zeroes", true, &s->read_zeroes, error)) {
        return false;
    }
    g_autofree char *filename = g_strconcat(node->driver->name, "://", NULL);
    block_node_set_filename(node, filename);
    return true;
}

static void null_wait(const NullState *s)
{
    if (s->latency_ns > 0) {
        struct timespec left = {s->latency_ns / 1000000000, s->latency_ns % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
        }
    }
}

static int null_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    NullState *s = node->state;
    if (s->read_zeroes) {
        iov_fill(iov, niov, 0, 0, bytes);
    }
    null_wait(s);
    return 0;
}

static int null_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    NullState *s = node->state;
    return s->latency_ns > 0 ? -EAGAIN : null_preadv(node, offset, bytes, iov, niov);
}

static int null_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                        BlockFlags flags)
{
    null_wait(node->state);
    return 0;
}

static int null_flush(BlockNode *node)
{
    null_wait(node->state);
    return 0;
}

static int null_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    return null_flush(node);
}

static int null_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                       unsigned *ret_status)
{
    NullState *s = node->state;
    *ret_bytes = bytes;
    *ret_status = s->read_zeroes ? BLOCK_STATUS_ZERO : BLOCK_STATUS_DATA;
    return 0;
}

#define NULL_DRIVER(driver, names)                                                                           \
    {                                                                                                        \
        .name = driver, .parallel = true, .state_size = sizeof(NullState), .protocols = names,               \
        .open = null_open, .preadv = null_preadv, .pwritev = null_pwritev, .flush = null_flush,              \
        .write_zeroes = null_write_zeroes, .read_now = null_read_now, .status = null_status,                 \
    }

static const char *const null_co_protocols[] = {"null-co", NULL};
static const char *const null_aio_protocols[] = {"null-aio", NULL};

const BlockDriver block_driver_null_co = NULL_DRIVER("null-co", null_co_protocols);
const BlockDriver block_driver_null_aio = NULL_DRIVER("null-aio", null_aio_protocols);
