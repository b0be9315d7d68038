/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=raw`, as QEMU's: the child as it is, or the part of it from `offset` on of `size` bytes.
 *
 * `probed=on` (Spindle's own): the image was taken for raw by its content, not by its owner's word. Then
 * nothing is written into its first sector that would make it another format, or a guest could make the next
 * start open it as such, with backing files of the guest's choice.
 */
#include "block/block-int.h"
#include "block/probe.h"
#include "util/error.h"
#include "util/iov.h"
#include <errno.h>
#include <string.h>

typedef struct RawState {
    uint64_t offset;
    uint64_t size; /* as given; 0: to the end of the child */
    bool has_size;
    bool probed;
} RawState;

static uint64_t raw_size(const RawState *s, uint64_t child_size)
{
    uint64_t room = child_size > s->offset ? child_size - s->offset : 0;
    return s->has_size ? MIN(s->size, room) : room;
}

static bool raw_check(const RawState *s, uint64_t child_size, GError **error)
{
    if (s->offset > child_size) {
        return error_set(error,
                         "Offset (%" G_GUINT64_FORMAT
                         ") cannot be greater than size of the containing file (%" G_GUINT64_FORMAT ")",
                         s->offset, child_size);
    }
    if (s->has_size && s->size > child_size - s->offset) {
        return error_set(
            error,
            "The sum of offset (%" G_GUINT64_FORMAT ") and size (%" G_GUINT64_FORMAT
            ") has to be smaller or equal to the actual size of the containing file (%" G_GUINT64_FORMAT ")",
            s->offset, s->size, child_size);
    }
    if (s->has_size && s->size % 512) {
        return error_set(error, "Specified size is not multiple of 512");
    }
    return true;
}

static bool raw_open(BlockNode *node, Options *options, GError **error)
{
    RawState *s = node->state;
    s->has_size = options_has(options, "size");
    if (!options_get_size(options, "offset", 0, &s->offset, error) ||
        !options_get_size(options, "size", 0, &s->size, error) ||
        !options_get_bool(options, "probed", false, &s->probed, error) ||
        !block_node_open_child(node, options, "file", error)) {
        return false;
    }
    const BlockInfo *child = block_info(node->child);
    if (!raw_check(s, child->size, error)) {
        return false;
    }
    node->info.size = raw_size(s, child->size);
    node->info.align =
        s->offset % child->align ? 1 : child->align; /* else the child's bounce buffers serve */
    node->info.opt_transfer = child->opt_transfer;
    return true;
}

static void raw_refresh(BlockNode *node)
{
    block_node_set_size(node, raw_size(node->state, block_info(node->child)->size));
}

static uint64_t raw_at(BlockNode *node, uint64_t offset)
{
    return ((RawState *)node->state)->offset + offset;
}

static int raw_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    block_node_debug_event(node->child, BLOCK_DEBUG_READ_AIO);
    return block_node_preadv(node->child, raw_at(node, offset), bytes, iov, niov);
}

static int raw_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return block_node_read_now(node->child, raw_at(node, offset), bytes, iov, niov);
}

/* 0, or -EPERM for what would change the image's format. */
static int check_first_sector(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                              int niov)
{
    uint8_t head[BLOCK_PROBE_SIZE] = {0};
    size_t size = MIN(sizeof head, node->info.size), at = offset;

    if (offset > 0 || bytes < size) {
        struct iovec all = {.iov_base = head, .iov_len = size};
        int ret = block_node_preadv(node->child, raw_at(node, 0), size, &all, 1);
        if (ret < 0) {
            return ret;
        }
    }
    iov_to_buf(iov, niov, 0, head + at, MIN(bytes, size - at));
    return strcmp(block_probe_format(head, size), "raw") ? -EPERM : 0;
}

static int raw_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    RawState *s = node->state;
    if (s->probed && offset < BLOCK_PROBE_SIZE) {
        return -EAGAIN; /* to be looked at */
    }
    return block_node_write_now(node->child, raw_at(node, offset), bytes, iov, niov);
}

static int raw_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                       BlockFlags flags)
{
    RawState *s = node->state;
    if (s->probed && offset < BLOCK_PROBE_SIZE) {
        int ret = check_first_sector(node, offset, bytes, iov, niov);
        if (ret < 0) {
            return ret;
        }
    }
    block_node_debug_event(node->child, BLOCK_DEBUG_WRITE_AIO);
    return block_node_pwritev(node->child, raw_at(node, offset), bytes, iov, niov, flags);
}

static int raw_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    return block_discard(node->child, raw_at(node, offset), bytes);
}

static int raw_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    return block_write_zeroes(node->child, raw_at(node, offset), bytes, flags);
}

static int raw_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                      unsigned *ret_status)
{
    return block_status(node->child, raw_at(node, offset), bytes, ret_bytes, ret_status);
}

static int raw_resize(BlockNode *node, uint64_t size, GError **error)
{
    RawState *s = node->state;
    if (s->has_size) {
        error_set(error, "Cannot resize fixed-size raw disks");
        return -ENOTSUP;
    }
    if (size > INT64_MAX - s->offset) {
        error_set(error, "Disk size too large for the chosen offset");
        return -EINVAL;
    }
    return block_resize(node->child, size + s->offset, error);
}

const BlockDriver block_driver_raw = {
    .name = "raw",
    .parallel = true,
    .state_size = sizeof(RawState),
    .open = raw_open,
    .preadv = raw_preadv,
    .pwritev = raw_pwritev,
    .discard = raw_discard,
    .write_zeroes = raw_write_zeroes,
    .read_now = raw_read_now,
    .write_now = raw_write_now,
    .status = raw_status,
    .resize = raw_resize,
    .refresh = raw_refresh,
};
