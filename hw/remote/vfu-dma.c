/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The PciHost of the vfio-user server: guest memory and interrupts.
 *
 * Writes go by mmap, at once, or by DMA_WRITE messages. Messages are posted (NO_REPLY); only the last one
 * before a fence asks for a reply, and the client handles them in order, so that reply says that all have
 * landed:
 *
 *   write_seq    the last write queued      >=
 *   write_sent   the last one on the wire   >=
 *   write_acked  the last one known to have landed
 *
 * A client answers even a posted write if it fails; such a reply marks a fault.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <string.h>
#include "util/bytes.h"
#include "util/trace.h"

#define MSI_WINDOW      0xfee00000u /* where x86 takes interrupt messages */
#define MSI_WINDOW_SIZE 0x00100000u
#define MSI_REMAPPABLE                                                                                       \
    0x10u /* address format of an IOMMU's interrupt remapping, which wants the true requester */
#define SYNC_BYTES 4

static VfuServer *host_server(PciHost *host)
{
    return (VfuServer *)host; /* its first member */
}

/* May the function touch [address, address + bytes) at all? Its own BARs are no memory, whatever the client
 * maps. */
static bool dma_allowed(VfuServer *server, uint64_t address, uint64_t bytes)
{
    if (!server->conn || server->conn->broken || !bytes || !pci_bus_master(server->device) ||
        address > UINT64_MAX - (bytes - 1)) {
        return false;
    }
    for (unsigned bar = 0; bar < PCI_BARS; bar++) {
        uint64_t base = server->device->bars[bar].io ? UINT64_MAX : pci_bar_address(server->device, bar);
        if (base != UINT64_MAX && address <= base + (server->device->bars[bar].size - 1) &&
            base <= address + (bytes - 1)) {
            return false;
        }
    }
    return true;
}

/* Reading */

static void dma_read_message(VfuConn *conn, PciDmaRead *read, uint64_t address, uint32_t offset,
                             uint32_t bytes)
{
    VfuOut *out = vfu_out_new(conn, VFU_OUT_DMA_READ);
    VfuDmaAccessMsg access = {.address = address, .count = bytes};

    memcpy(vfu_out_reserve(out, sizeof access), &access, sizeof access);
    vfu_out_set_header(out, conn->out.next_id++, VFU_DMA_READ, VFU_TYPE_COMMAND, 0);
    out->read = read;
    out->read_offset = offset;
    vfu_out_queue(conn, out);
    read->seq++; /* replies due */
}

/* PciDmaRead.seq counts the replies due; the top bit: one of them was an error. */
#define READ_FAILED (UINT64_C(1) << 63)

static int host_dma_read(PciHost *host, PciDmaRead *read)
{
    VfuServer *server = host_server(host);
    VfuConn *conn = server->conn;

    read->pending = false;
    read->seq = 0;
    if (!dma_allowed(server, read->addr, read->len) ||
        !vfu_map_covers(conn, read->addr, read->len, VFU_DMA_READABLE)) {
        return -EFAULT;
    }
    for (uint32_t done = 0; done < read->len;) {
        uint64_t part, address = read->addr + done;
        const VfuMap *map = vfu_map_find(conn, address, read->len - done, VFU_DMA_READABLE, &part);
        if (!map->memory) {
            part = MIN(part, conn->max_xfer);
            dma_read_message(conn, read, address, done, part);
        } else if (vfu_map_read(map, address, (uint8_t *)read->buf + done, part) < 0) {
            vfu_out_forget_read(conn, read);
            return -EFAULT;
        }
        done += part;
    }
    read->pending = read->seq > 0;
    return read->pending ? -EINPROGRESS : 0;
}

static void host_dma_read_cancel(PciHost *host, PciDmaRead *read)
{
    VfuServer *server = host_server(host);

    if (read->pending && server->conn) {
        vfu_out_forget_read(server->conn, read);
    }
    read->pending = false;
}

/* Writing */

static void dma_fault(VfuServer *server)
{
    trace(vfu_dma_fault, server->path ? server->path : "");
    server->dma_fault = true;
}

static void dma_write_message(VfuConn *conn, uint64_t address, Buffer *buffer, const uint8_t *data,
                              uint32_t bytes)
{
    VfuOut *out = vfu_out_new(conn, VFU_OUT_DMA_WRITE);
    VfuDmaAccessMsg access = {.address = address, .count = bytes};

    if (buffer) {
        memcpy(vfu_out_reserve(out, sizeof access), &access, sizeof access);
        out->buffer = buffer_ref(buffer);
        out->body = data;
        out->body_size = bytes;
    } else {
        uint8_t *p = vfu_out_reserve(out, sizeof access + bytes);
        memcpy(p, &access, sizeof access);
        memcpy(p + sizeof access, data, bytes);
    }
    out->seq = ++conn->write_seq;
    conn->last_address = address;
    vfu_out_set_header(out, conn->out.next_id++, VFU_DMA_WRITE, VFU_TYPE_COMMAND | VFU_NO_REPLY, 0);
    vfu_out_queue(conn, out);
    conn->server->stats.dma_writes++;
}

/* `buffer` NULL: small data, to be copied. */
static void dma_write(VfuServer *server, uint64_t address, Buffer *buffer, const uint8_t *data, size_t bytes)
{
    VfuConn *conn = server->conn;

    if (bytes == 0) {
        return;
    }
    if (!dma_allowed(server, address, bytes) || !vfu_map_covers(conn, address, bytes, VFU_DMA_WRITABLE)) {
        dma_fault(server);
        return;
    }
    server->stats.dma_bytes += bytes;
    size_t chunk = MIN(server->tuning.dma_chunk, conn->max_xfer);
    while (bytes) {
        uint64_t part = MIN(bytes, chunk);
        if (conn->mmap_writes) {
            const VfuMap *map = vfu_map_find(conn, address, bytes, VFU_DMA_WRITABLE, &part);
            if (!map->memory) {
                part = MIN(part, chunk);
                dma_write_message(conn, address, buffer, data, part);
            } else if (vfu_map_write(map, address, data, part) < 0) {
                dma_fault(server);
            }
        } else {
            dma_write_message(conn, address, buffer, data, part);
        }
        address += part;
        data += part;
        bytes -= part;
    }
}

static void host_dma_write(PciHost *host, uint64_t addr, Buffer *buffer, size_t offset, size_t len)
{
    dma_write(host_server(host), addr, buffer, buffer->data + offset, len);
}

static void host_dma_write_small(PciHost *host, uint64_t addr, const void *data, size_t len)
{
    g_assert(len <= VFU_SMALL_WRITE);
    dma_write(host_server(host), addr, NULL, data, len);
}

static void *host_dma_map_write(PciHost *host, uint64_t addr, size_t len)
{
    VfuServer *server = host_server(host);
    uint64_t part;

    if (!dma_allowed(server, addr, len) || !server->conn->mmap_writes) {
        return NULL;
    }
    const VfuMap *map = vfu_map_find(server->conn, addr, len, VFU_DMA_WRITABLE, &part);
    if (!map || part != len || !map->memory || !map->sealed) {
        return NULL;
    }
    return map->memory + (addr - map->address);
}

/* Fences */

static bool writes_landed(const VfuConn *conn)
{
    return !conn || conn->write_acked == conn->write_seq;
}

static void fence_finish(VfuServer *server, PciFence *fence)
{
    fence->pending = false;
    fence->fault |= server->dma_fault;
    server->dma_fault = false;
    fence->done(fence);
}

/* A read whose reply tells that every write before it has landed. */
static void sync_queue(VfuConn *conn)
{
    VfuOut *out = vfu_out_new(conn, VFU_OUT_SYNC);
    VfuDmaAccessMsg access = {.address = conn->last_address, .count = SYNC_BYTES};

    memcpy(vfu_out_reserve(out, sizeof access), &access, sizeof access);
    vfu_out_set_header(out, conn->out.next_id++, VFU_DMA_READ, VFU_TYPE_COMMAND, 0);
    out->seq = conn->write_seq;
    vfu_out_queue(conn, out);
    conn->write_asked = conn->write_seq;
}

/* Makes sure that a reply will tell when write_seq has landed. */
static void fence_ask(VfuConn *conn)
{
    if (conn->write_asked == conn->write_seq) {
        return;
    }
    if (vfu_out_ask_reply(conn, conn->write_seq)) {
        conn->write_asked = conn->write_seq;
    } else {
        sync_queue(conn);
    }
}

static void host_fence(PciHost *host, PciFence *fence)
{
    VfuServer *server = host_server(host);
    VfuConn *conn = server->conn;

    fence->fault = server->dma_fault;
    server->dma_fault = false;
    if (writes_landed(conn)) {
        fence_finish(server, fence);
        return;
    }
    fence_ask(conn);
    fence->seq = conn->write_seq;
    fence->pending = true;
    fence->link = (GList){.data = fence};
    g_queue_push_tail_link(&server->fences, &fence->link);
}

static void host_fence_cancel(PciHost *host, PciFence *fence)
{
    if (fence->pending) {
        g_queue_unlink(&host_server(host)->fences, &fence->link);
        fence->pending = false;
    }
}

void vfu_dma_run_fences(VfuServer *server)
{
    GList *link;

    while ((link = server->fences.head)) {
        PciFence *fence = link->data;
        if (server->conn && fence->seq > server->conn->write_acked) {
            return;
        }
        g_queue_unlink(&server->fences, link);
        fence_finish(server, fence);
    }
}

/* What was dropped counts as landed as soon as everything that is on the wire has; sequence numbers only
 * grow. Fences that have nothing left to wait for run before the loop sleeps. */
static void host_dma_drop(PciHost *host)
{
    VfuServer *server = host_server(host);
    VfuConn *conn = server->conn;

    if (!conn || !vfu_out_drop_writes(conn)) {
        return;
    }
    for (GList *link = server->fences.head; link; link = link->next) {
        PciFence *fence = link->data;
        fence->fault |= fence->seq > conn->write_sent;
    }
    if (conn->write_sent <= conn->write_acked) {
        conn->write_acked = conn->write_seq;
    } else {
        sync_queue(conn);
    }
}

/* Interrupts */

/* The message an MSI is, on the same stream as the data: it needs no fence before it. */
static bool msi_by_message(VfuConn *conn)
{
    const PciDevice *device = conn->server->device;
    uint64_t address = pci_msi_address(device);

    if (conn->mmap_writes || !pci_msi_enabled(device) || !pci_bus_master(device) || address < MSI_WINDOW ||
        address - MSI_WINDOW >= MSI_WINDOW_SIZE || (address & MSI_REMAPPABLE)) {
        return false;
    }
    VfuOut *out = vfu_out_new(conn, VFU_OUT_MSI);
    VfuDmaAccessMsg access = {.address = address, .count = 4};
    uint8_t *p = vfu_out_reserve(out, sizeof access + 4);
    memcpy(p, &access, sizeof access);
    store_le32(p + sizeof access, pci_msi_data(device));
    vfu_out_set_header(out, conn->out.next_id++, VFU_DMA_WRITE, VFU_TYPE_COMMAND | VFU_NO_REPLY, 0);
    vfu_out_queue(conn, out);
    return true;
}

static bool host_msi(PciHost *host, unsigned vector, bool ordered)
{
    VfuConn *conn = host_server(host)->conn;

    if (!conn || conn->broken || vector != 0) {
        return true; /* nobody to interrupt */
    }
    if (ordered && !writes_landed(conn)) {
        return msi_by_message(conn);
    }
    if (!vfu_irq_signal(conn, VFU_IRQ_MSI)) {
        (void)msi_by_message(conn);
    }
    return true;
}

static void host_intx(PciHost *host, bool level)
{
    VfuServer *server = host_server(host);

    server->intx_level = level;
    if (server->conn) {
        vfu_irq_update_intx(server->conn);
    }
}

const PciHostOps vfu_host_ops = {
    .dma_read = host_dma_read,
    .dma_read_cancel = host_dma_read_cancel,
    .dma_write = host_dma_write,
    .dma_write_small = host_dma_write_small,
    .dma_map_write = host_dma_map_write,
    .fence = host_fence,
    .fence_cancel = host_fence_cancel,
    .dma_drop = host_dma_drop,
    .msi = host_msi,
    .intx = host_intx,
};

/* Replies */

static void read_finish_part(VfuOut *out, const VfuMessage *message)
{
    PciDmaRead *read = out->read;
    VfuDmaAccessMsg asked, got;
    memcpy(&asked, out->head + sizeof(VfuHeader), sizeof asked);
    bool ok = !(message->header.flags & VFU_ERROR) && message->size == sizeof got + asked.count;

    if (ok) {
        memcpy(&got, message->payload, sizeof got);
        ok = got.count == asked.count;
    }
    if (ok) {
        memcpy((uint8_t *)read->buf + out->read_offset, message->payload + sizeof got, asked.count);
    } else {
        read->seq |= READ_FAILED;
    }
    read->seq--;
    if ((read->seq & ~READ_FAILED) == 0) {
        read->pending = false;
        read->done(read, read->seq & READ_FAILED ? -EFAULT : 0);
    }
}

void vfu_dma_handle_reply(VfuConn *conn, const VfuMessage *message)
{
    const VfuHeader *header = &message->header;
    VfuOut *out = vfu_out_take_awaited(conn, header->id, header->command);

    if (!out) {
        /* Only the refusal of a posted write comes unasked. */
        if (header->command == VFU_DMA_WRITE && (header->flags & VFU_ERROR)) {
            dma_fault(conn->server);
        } else {
            conn->broken = true;
        }
        return;
    }
    if (out->kind == VFU_OUT_DMA_READ) {
        if (out->read) {
            read_finish_part(out, message);
        }
    } else {
        conn->write_acked = MAX(conn->write_acked, out->seq);
        if (out->kind == VFU_OUT_DMA_WRITE && (header->flags & VFU_ERROR)) {
            dma_fault(conn->server);
        }
    }
    vfu_out_free(conn, out);
    vfu_dma_run_fences(conn->server);
}

bool vfu_dma_fences_ready(const VfuServer *server)
{
    const PciFence *first = server->fences.head ? server->fences.head->data : NULL;
    return first && (!server->conn || first->seq <= server->conn->write_acked);
}

static PciDmaRead *take_pending_read(VfuConn *conn)
{
    VfuOutQueue *queues[] = {&conn->out.queue, &conn->out.awaiting};

    for (unsigned i = 0; i < G_N_ELEMENTS(queues); i++) {
        for (VfuOut *out = queues[i]->head; out; out = out->next) {
            if (out->read) {
                PciDmaRead *read = out->read;
                vfu_out_forget_read(conn, read);
                return read;
            }
        }
    }
    return NULL;
}

void vfu_dma_abort_reads(VfuConn *conn)
{
    PciDmaRead *read;

    while ((read = take_pending_read(conn))) {
        read->pending = false;
        read->done(read, -EFAULT);
    }
}
