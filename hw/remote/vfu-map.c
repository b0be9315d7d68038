/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of guest memory that the client has shown: DMA_MAP, DMA_UNMAP, look-up, copying.
 *
 * The client can truncate the file behind a mapping, and touching a page beyond its end would kill the
 * process by SIGBUS. Where the file is sealed against shrinking (QEMU's memory-backend-memfd is) plain copies
 * are safe. Elsewhere the kernel copies, by process_vm_readv and process_vm_writev on ourselves, which end in
 * EFAULT instead.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "util/checked.h"
#include "util/trace.h"

#define MAP_ALIGN 4096 /* the pgsizes capability */

/* Index of the first map that ends behind `address`. */
static guint map_lower_bound(const GArray *maps, uint64_t address)
{
    guint low = 0, high = maps->len;

    while (low < high) {
        guint middle = low + (high - low) / 2;
        const VfuMap *map = &g_array_index(maps, VfuMap, middle);
        if (map->address + (map->size - 1) < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const VfuMap *vfu_map_find(VfuConn *conn, uint64_t address, uint64_t bytes, uint32_t flags,
                           uint64_t *ret_bytes)
{
    guint i = map_lower_bound(conn->maps, address);
    if (i == conn->maps->len) {
        return NULL;
    }
    const VfuMap *map = &g_array_index(conn->maps, VfuMap, i);
    if (map->address > address || (map->flags & flags) != flags) {
        return NULL;
    }
    uint64_t room = map->size - (address - map->address);
    *ret_bytes = MIN(bytes, room);
    return map;
}

bool vfu_map_covers(VfuConn *conn, uint64_t address, uint64_t bytes, uint32_t flags)
{
    if (bytes && address > UINT64_MAX - (bytes - 1)) {
        return false;
    }
    while (bytes) {
        uint64_t part;
        if (!vfu_map_find(conn, address, bytes, flags, &part)) {
            return false;
        }
        address += part;
        bytes -= part;
    }
    return true;
}

static int map_copy_guarded(void *local, void *memory, size_t bytes, bool write)
{
    struct iovec own = {local, bytes}, other = {memory, bytes};
    ssize_t copied = write ? process_vm_writev(getpid(), &own, 1, &other, 1, 0)
                           : process_vm_readv(getpid(), &own, 1, &other, 1, 0);
    return copied == (ssize_t)bytes ? 0 : -EFAULT;
}

int vfu_map_read(const VfuMap *map, uint64_t address, void *buf, size_t bytes)
{
    uint8_t *memory = map->memory + (address - map->address);

    if (!map->sealed) {
        return map_copy_guarded(buf, memory, bytes, false);
    }
    memcpy(buf, memory, bytes);
    return 0;
}

int vfu_map_write(const VfuMap *map, uint64_t address, const void *buf, size_t bytes)
{
    uint8_t *memory = map->memory + (address - map->address);

    if (!map->sealed) {
        return map_copy_guarded((void *)buf, memory, bytes, true);
    }
    memcpy(memory, buf, bytes);
    return 0;
}

static void map_release(VfuMap *map)
{
    if (map->memory) {
        munmap(map->memory, map->size);
        map->memory = NULL;
    }
}

/* Maps [offset, offset + map->size) of the file. Where guarded copies do not work (a sandbox, an old kernel)
 * and plain ones are not safe, the map stays without memory and is reached by messages. */
static int map_open(VfuConn *conn, VfuMap *map, int fd, uint64_t offset)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode) || !range_inside(offset, map->size, st.st_size)) {
        return -EINVAL;
    }
    int prot = map->flags & VFU_DMA_READABLE ? PROT_READ : 0;
    if (conn->mmap_writes && (map->flags & VFU_DMA_WRITABLE)) {
        prot |= PROT_WRITE;
    }
    void *memory = mmap(NULL, map->size, prot, MAP_SHARED | MAP_NORESERVE, fd, offset);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    int seals = fcntl(fd, F_GET_SEALS);
    map->sealed = seals >= 0 && (seals & F_SEAL_SHRINK);
    map->memory = memory;

    uint8_t probe;
    if (!map->sealed && (prot & PROT_READ) && map_copy_guarded(&probe, memory, 1, false) < 0) {
        map_release(map);
    }
    return 0;
}

static int map_check(VfuConn *conn, const VfuDmaMapMsg *request, unsigned n_fds)
{
    uint32_t known = VFU_DMA_READABLE | VFU_DMA_WRITABLE | VFU_DMA_BY_MMAP | VFU_DMA_BY_FILE;

    if (request->argsz < sizeof *request || (request->flags & ~known) ||
        !(request->flags & (VFU_DMA_READABLE | VFU_DMA_WRITABLE))) {
        return -EINVAL;
    }
    if ((request->flags & (VFU_DMA_BY_MMAP | VFU_DMA_BY_FILE)) && n_fds == 0) {
        return -EINVAL;
    }
    if (request->size == 0 || request->size % MAP_ALIGN || request->address % MAP_ALIGN ||
        request->offset % MAP_ALIGN || request->address > UINT64_MAX - (request->size - 1)) {
        return -EINVAL;
    }
    guint i = map_lower_bound(conn->maps, request->address);
    if (i < conn->maps->len &&
        g_array_index(conn->maps, VfuMap, i).address <= request->address + (request->size - 1)) {
        return -EEXIST;
    }
    return conn->maps->len < VFU_MAX_MAPS ? 0 : -ENOSPC;
}

int vfu_handle_dma_map(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuDmaMapMsg request;
    memcpy(&request, message->payload, sizeof request);

    int ret = map_check(conn, &request, message->n_fds);
    trace(vfu_dma_map, request.address, request.size, request.flags, message->n_fds, ret);
    if (ret < 0) {
        return ret;
    }
    VfuMap map = {
        .address = request.address,
        .size = request.size,
        .flags = request.flags & (VFU_DMA_READABLE | VFU_DMA_WRITABLE),
    };
    if (message->n_fds) {
        ret = map_open(conn, &map, message->fds[0], request.offset);
        if (ret < 0) {
            return ret;
        }
    }
    g_array_insert_val(conn->maps, map_lower_bound(conn->maps, map.address), map);
    return 0;
}

static void map_remove(VfuConn *conn, guint i)
{
    map_release(&g_array_index(conn->maps, VfuMap, i));
    g_array_remove_index(conn->maps, i);
}

int vfu_handle_dma_unmap(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuDmaUnmapMsg request;
    memcpy(&request, message->payload, sizeof request);

    trace(vfu_dma_unmap, request.address, request.size, request.flags);
    if (request.argsz < sizeof request || (request.flags & ~VFU_DMA_UNMAP_ALL)) {
        return -EINVAL;
    }
    if (request.flags & VFU_DMA_UNMAP_ALL) {
        if (request.address || request.size) {
            return -EINVAL;
        }
        vfu_map_clear(conn);
    } else {
        guint i = map_lower_bound(conn->maps, request.address);
        if (i == conn->maps->len || g_array_index(conn->maps, VfuMap, i).address != request.address ||
            g_array_index(conn->maps, VfuMap, i).size != request.size) {
            return -ENOENT;
        }
        map_remove(conn, i);
    }
    request.argsz = sizeof request;
    memcpy(vfu_out_reserve(reply, sizeof request), &request, sizeof request);
    return 0;
}

void vfu_map_clear(VfuConn *conn)
{
    while (conn->maps->len) {
        map_remove(conn, conn->maps->len - 1);
    }
}
