/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/luks-header.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/buffer.h"
#include "util/bytes.h"
#include "util/checked.h"
#include "util/cleanup.h"
#include "util/error.h"

#define COPY_STEP   (64 * 1024) /* bytes read at a time */
#define COPY_BLOCK  4096        /* bytes compared and left out when zero */
#define LUKS1_FIXED 4096        /* the LUKS1 header (592 bytes), rounded up; key material begins no earlier */
#define LUKS2_LEAST 0x4000      /* least and most bytes of one LUKS2 header with its JSON area */
#define LUKS2_MOST  0x400000    /* (LUKS2 specification 1.1, section 2.2) */

static const uint8_t magic_first[6] = {'L', 'U', 'K', 'S', 0xba, 0xbe};
static const uint8_t magic_second[6] = {'S', 'K', 'U', 'L', 0xba, 0xbe};

int luks_memfd(uint64_t size, GError **error)
{
    auto_fd fd = memfd_create("luks-header", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, size) < 0) {
        error_set_errno(error, errno, "Could not make a copy of the volume header");
        return -1;
    }
    return steal_fd(&fd);
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
    return bytes == 0 || (data[0] == 0 && !memcmp(data, data + 1, bytes - 1));
}

/* Writes the blocks that are not zero: the rest of the memfd stays without memory. */
static bool store_blocks(int fd, uint64_t offset, const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += COPY_BLOCK) {
        size_t n = MIN(COPY_BLOCK, bytes - at);
        if (!is_zero(data + at, n) && pwrite(fd, data + at, n, offset + at) != (ssize_t)n) {
            return false;
        }
    }
    return true;
}

/* From the node into the copy; the part beyond the node's end is left out. */
static bool copy_in(BlockNode *node, int fd, uint64_t offset, uint64_t bytes, GError **error)
{
    uint64_t size = block_info(node)->size;
    if (offset >= size) {
        return true;
    }
    uint64_t end = offset + MIN(bytes, size - offset);
    g_autoptr(Buffer) buffer = buffer_new(COPY_STEP, 0);
    while (offset < end) {
        size_t n = MIN(COPY_STEP, end - offset);
        int r = block_pread(node, offset, buffer->data, n);
        if (r < 0) {
            return error_set_errno(error, r, "Unable to read encryption header");
        }
        if (!store_blocks(fd, offset, buffer->data, n)) {
            return error_set_errno(error, errno, "Could not make a copy of the volume header");
        }
        offset += n;
    }
    return true;
}

/* Where LUKS2's second header says it is, if the first one is gone: a power of two from 16 KiB to 4 MiB. */
static uint64_t find_second(BlockNode *node)
{
    for (uint64_t at = LUKS2_LEAST; at <= LUKS2_MOST; at *= 2) {
        uint8_t head[8];
        if (range_inside(at, sizeof head, block_info(node)->size) &&
            !block_pread(node, at, head, sizeof head) && !memcmp(head, magic_second, sizeof magic_second) &&
            load_be16(head + 6) == 2) {
            return at;
        }
    }
    return 0;
}

/* How many bytes the parts without key material may take; 0: no LUKS header here. */
static uint64_t fixed_bytes(BlockNode *node, const uint8_t *head)
{
    if (memcmp(head, magic_first, sizeof magic_first)) {
        return 2 * find_second(node);
    }
    if (load_be16(head + 6) != 2) {
        return LUKS1_FIXED; /* of another version: the module says so */
    }
    uint64_t one = load_be64(head + 8);
    return 2 * (is_power_of_2(one) && one >= LUKS2_LEAST && one <= LUKS2_MOST ? one : LUKS2_MOST);
}

static bool copy_fixed(LuksCopy *copy, GError **error)
{
    uint8_t head[16];
    if (block_info(copy->node)->size < sizeof head) {
        return error_set(error, "Volume is not in LUKS format");
    }
    int r = block_pread(copy->node, 0, head, sizeof head);
    if (r < 0) {
        return error_set_errno(error, r, "Unable to read encryption header");
    }
    uint64_t bytes = fixed_bytes(copy->node, head);
    if (!bytes) {
        return error_set(error, "Volume is not in LUKS format");
    }
    return copy_in(copy->node, copy->fd, 0, bytes, error);
}

static bool copy_slots(LuksCopy *copy, GError **error)
{
    uint64_t size = block_info(copy->node)->size;
    for (int slot = 0; slot < copy->module->header_slots(copy->header); slot++) {
        uint64_t offset, bytes;
        if (!copy->module->header_slot_area(copy->header, slot, &offset, &bytes)) {
            continue;
        }
        if (bytes > LUKS_HEADER_MAX || !range_inside(offset, bytes, LUKS_HEADER_MAX) ||
            !range_inside(offset, bytes, size)) {
            return error_set(error, "Volume header is damaged: key slot %d lies outside the image", slot);
        }
        if (!copy_in(copy->node, copy->fd, offset, bytes, error)) {
            return false;
        }
    }
    return true;
}

bool luks_copy_load(LuksCopy *copy, BlockNode *node, GError **error)
{
    *copy = (LuksCopy){.node = node, .fd = -1};
    copy->module = luks_module_get(error);
    if (!copy->module) {
        return false;
    }
    copy->fd = luks_memfd(block_info(node)->size, error);
    if (copy->fd < 0 || !copy_fixed(copy, error)) {
        return false;
    }
    copy->header = copy->module->header_load(copy->fd, error);
    return copy->header && copy_slots(copy, error);
}

void luks_copy_clear(LuksCopy *copy)
{
    if (copy->header) {
        copy->module->header_free(copy->header);
    }
    if (copy->fd >= 0) {
        close(copy->fd);
    }
    *copy = (LuksCopy){.fd = -1};
}

/* One block's worth at a time, so that a write never covers more than what changed. */
static bool write_differences(BlockNode *node, uint64_t offset, const uint8_t *want, uint8_t *have,
                              size_t bytes, GError **error)
{
    int r = block_pread(node, offset, have, bytes);
    if (r < 0) {
        return error_set_errno(error, r, "Unable to read encryption header");
    }
    for (size_t at = 0; at < bytes; at += COPY_BLOCK) {
        size_t n = MIN(COPY_BLOCK, bytes - at);
        if (memcmp(want + at, have + at, n)) {
            r = block_pwrite(node, offset + at, want + at, n, 0);
        }
        if (r < 0) {
            return error_set_errno(error, r, "Unable to write encryption header");
        }
    }
    return true;
}

bool luks_write_changes(int fd, BlockNode *node, uint64_t offset, uint64_t bytes, GError **error)
{
    uint64_t size = block_info(node)->size, end = MIN(offset + bytes, size);
    g_autoptr(Buffer) want = buffer_new(COPY_STEP, 0);
    g_autoptr(Buffer) have = buffer_new(COPY_STEP, 0);
    while (offset < end) {
        off_t data = lseek(fd, offset, SEEK_DATA); /* holes are what was never copied nor changed */
        if (data < 0) {
            break;
        }
        offset = align_down(MAX(offset, (uint64_t)data), COPY_BLOCK);
        if (offset >= end) {
            break;
        }
        off_t hole = lseek(fd, offset, SEEK_HOLE);
        size_t n = MIN(COPY_STEP, MIN(end, hole < 0 ? end : (uint64_t)hole) - offset);
        if (pread(fd, want->data, n, offset) != (ssize_t)n) {
            return error_set_errno(error, errno, "Could not read the copy of the volume header");
        }
        if (!write_differences(node, offset, want->data, have->data, n, error)) {
            return false;
        }
        offset += n;
    }
    int r = block_flush(node);
    return r >= 0 || error_set_errno(error, r, "Unable to write encryption header");
}

bool luks_copy_write_back(LuksCopy *copy, GError **error)
{
    uint64_t fixed, total;
    copy->module->header_extent(copy->header, &fixed, &total);
    return luks_write_changes(copy->fd, copy->node, fixed, total - fixed, error) &&
           luks_write_changes(copy->fd, copy->node, 0, fixed / 2, error) &&
           luks_write_changes(copy->fd, copy->node, fixed / 2, fixed - fixed / 2, error);
}
