/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The blocking forms of block.h, and what is not I/O: size, status, locks, breakpoints.
 */
#include "block/core.h"
#include "block/host-cdrom-device.h"
#include "block/host-cdrom-guard.h"
#include "block/packet.h"
#include "util/error.h"
#include <errno.h>
#include <string.h>

int block_pread(BlockNode *node, uint64_t offset, void *buf, uint64_t bytes)
{
    struct iovec iov = {buf, bytes};
    return node_call(node, BLOCK_READ, offset, bytes, &iov, 1, 0);
}

int block_pwrite(BlockNode *node, uint64_t offset, const void *buf, uint64_t bytes, BlockFlags flags)
{
    struct iovec iov = {(void *)buf, bytes};
    return node_call(node, BLOCK_WRITE, offset, bytes, &iov, 1, flags);
}

int block_flush(BlockNode *node)
{
    return block_node_flush(node);
}

int block_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    return node_call(node, BLOCK_DISCARD, offset, bytes, NULL, 0, 0);
}

int block_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    return node_call(node, BLOCK_WRITE_ZEROES, offset, bytes, NULL, 0, flags);
}

bool block_claim_write(BlockNode *node, GError **error)
{
    if (node->info.read_only) {
        return error_set(error, "Block node '%s' is read-only", node->name);
    }
    if (node->driver->claim_write) {
        return node->driver->claim_write(node, error);
    }
    return !node->child || block_claim_write(node->child, error);
}

void block_release_images(void)
{
    g_autoptr(GList) nodes = block_list();

    for (GList *l = nodes; l; l = l->next) {
        BlockNode *node = l->data;
        if (node->driver->hold) {
            node->driver->hold(node, false, NULL);
        }
    }
}

bool block_hold_images(GError **error)
{
    g_autoptr(GList) nodes = block_list();

    for (GList *l = nodes; l; l = l->next) {
        BlockNode *node = l->data;
        if (node->driver->hold && !node->driver->hold(node, true, error)) {
            block_release_images();
            return false;
        }
    }
    return true;
}

unsigned block_active(const BlockNode *node)
{
    return node->priv->active;
}

int block_resize(BlockNode *node, uint64_t size, GError **error)
{
    if (node->info.read_only) {
        error_set(error, "Block node '%s' is read-only", node->name);
        return -EROFS;
    }
    if (!node->driver->resize) {
        error_set(error, "Image format driver does not support resize");
        return -ENOTSUP;
    }
    if (size > BLOCK_SIZE_MAX) {
        error_set(error, "Required too big image size, it must be not greater than %" G_GUINT64_FORMAT,
                  (uint64_t)BLOCK_SIZE_MAX);
        return -EFBIG;
    }
    g_atomic_int_set(&node->priv->dirty, 1);
    node_call_begin(node);
    int ret = node->driver->resize(node, size, error);
    node_call_end(node);
    if (ret == 0) {
        block_node_set_size(node, size);
        if (!node->child) { /* else the child's event comes up here */
            block_node_post_event(node, BLOCK_EVENT_RESIZE, NULL, NULL, NULL);
        }
    }
    return ret;
}

int block_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status)
{
    int ret = node_check(node, BLOCK_READ, offset, bytes);
    if (ret < 0 || bytes == 0) {
        return ret < 0 ? ret : -EINVAL;
    }
    uint64_t run = bytes;
    unsigned status = BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED;
    if (node->driver->status) {
        node_call_begin(node);
        ret = node->driver->status(node, offset, bytes, &run, &status);
        node_call_end(node);
    }
    if (ret == 0) {
        *ret_bytes = CLAMP(run, 1, bytes);
        *ret_status = status;
    }
    return ret;
}

/* The node at or below that has breakpoints, or NULL. */
static BlockNode *find_debug_node(BlockNode *node)
{
    while (node && !node->driver->debug) {
        node = node->child;
    }
    return node;
}

int block_debug_breakpoint(BlockNode *node, const char *event, const char *tag)
{
    node = find_debug_node(node);
    return node ? node->driver->debug->breakpoint(node, event, tag) : -ENOTSUP;
}

int block_debug_remove_breakpoint(BlockNode *node, const char *tag)
{
    node = find_debug_node(node);
    return node ? node->driver->debug->remove_breakpoint(node, tag) : -ENOTSUP;
}

int block_debug_resume(BlockNode *node, const char *tag)
{
    node = find_debug_node(node);
    return node ? node->driver->debug->resume(node, tag) : -ENOTSUP;
}

bool block_debug_is_awaited(BlockNode *node, const char *tag)
{
    node = find_debug_node(node);
    return node && node->priv->active > 0 && node->driver->debug->has_breakpoint(node, tag);
}

bool block_debug_is_suspended(BlockNode *node, const char *tag)
{
    node = find_debug_node(node);
    return node && node->driver->debug->is_suspended(node, tag);
}

/* The node at or below that has a tray, or NULL. */
static const BlockNode *find_tray_node(const BlockNode *node)
{
    while (node && !node->driver->tray) {
        node = node->child;
    }
    return node;
}

BlockTray block_tray(const BlockNode *node)
{
    node = find_tray_node(node);
    return node ? node->driver->tray->state(node) : BLOCK_TRAY_NONE;
}

void block_move_tray(BlockNode *node, bool open)
{
    node = (BlockNode *)find_tray_node(node);
    if (node) {
        node->driver->tray->move(node, open);
    }
}

void block_lock_tray(BlockNode *node, bool locked)
{
    node = (BlockNode *)find_tray_node(node);
    if (node) {
        node->driver->tray->lock(node, locked);
    }
}

void block_check_tray(BlockNode *node)
{
    node = (BlockNode *)find_tray_node(node);
    if (node) {
        node->driver->tray->check(node);
    }
}

/* The node at or below that takes packets, or NULL. */
static BlockNode *find_packet_node(const BlockNode *node)
{
    while (node && !node->driver->packet) {
        node = node->child;
    }
    return (BlockNode *)node;
}

uint32_t block_packet_max(const BlockNode *node)
{
    node = find_packet_node(node);
    return node ? node->driver->packet->max(node) : 0;
}

void block_packet_submit(BlockNode *node, BlockPacket *packet)
{
    node = find_packet_node(node);
    node->driver->packet->submit(node, packet);
}

void block_packet_abandon(BlockPacket *packet)
{
    packet->abandon(packet);
}

bool block_packet_check_write(const BlockNode *node, GError **error)
{
    node = find_packet_node(node);
    return !node || node->driver->packet->check_write(node, error);
}

static bool has_host_drive(void)
{
    g_autoptr(GList) nodes = block_list();
    for (GList *l = nodes; l; l = l->next) {
        if (!strcmp(((const BlockNode *)l->data)->driver->name, "host_cdrom")) {
            return true;
        }
    }
    return false;
}

void block_before_sandbox(bool may_open_more)
{
    if (has_host_drive() || (may_open_more && cdrom_device_exists())) {
        (void)cdrom_guard_start();
    }
}
