/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/fake-host.h"

#include <errno.h>
#include <string.h>

#include "util/bytes.h"
#include "util/checked.h"

typedef enum { FAKE_WRITE, FAKE_FENCE, FAKE_MSI } FakeKind;

typedef struct FakeOp {
    FakeKind kind;
    bool sent;
    uint64_t addr;
    Buffer *buffer; /* NULL: `copy` */
    size_t offset, len;
    uint8_t copy[256];
    guint checksum;
    PciFence *fence;
} FakeOp;

static FakeHost *fake_of(PciHost *host)
{
    return (FakeHost *)host;
}

static bool memory_ok(FakeHost *host, uint64_t addr, uint64_t len)
{
    return pci_bus_master(host->device) && range_inside(addr, len, FAKE_RAM_SIZE);
}

static guint checksum(const uint8_t *data, size_t len)
{
    guint sum = 5381;

    for (size_t i = 0; i < len; i += 61) {
        sum = sum * 33 + data[i];
    }
    return sum;
}

static const uint8_t *op_data(const FakeOp *op)
{
    return op->buffer ? op->buffer->data + op->offset : op->copy;
}

static void op_free(FakeOp *op)
{
    buffer_unref(op->buffer);
    g_free(op);
}

static void apply_write(FakeHost *host, uint64_t addr, const uint8_t *data, size_t len)
{
    g_assert_false(host->forbid_dma);
    if (memory_ok(host, addr, len)) {
        memcpy(host->ram + addr, data, len);
    } else {
        host->fault = true;
    }
}

static void finish_fence(FakeHost *host, PciFence *fence)
{
    fence->pending = false;
    fence->fault = host->fault;
    host->fault = false;
    fence->done(fence);
}

static int host_read(PciHost *pci_host, PciDmaRead *read)
{
    FakeHost *host = fake_of(pci_host);

    g_assert_false(host->forbid_dma);
    g_assert_cmpuint(read->len, >, 0);
    g_assert_cmpuint(read->len, <=, 1024 * 1024);
    host->reads++;
    if (!memory_ok(host, read->addr, read->len)) {
        return -EFAULT;
    }
    if (host->delayed) {
        read->pending = true;
        g_queue_push_tail(&host->waiting_reads, read);
        return -EINPROGRESS;
    }
    memcpy(read->buf, host->ram + read->addr, read->len);
    return 0;
}

static void host_read_cancel(PciHost *pci_host, PciDmaRead *read)
{
    g_assert_true(g_queue_remove(&fake_of(pci_host)->waiting_reads, read));
    read->pending = false;
}

static void push_write(FakeHost *host, uint64_t addr, Buffer *buffer, size_t offset, const void *data,
                       size_t len)
{
    FakeOp *op = g_new0(FakeOp, 1);

    op->kind = FAKE_WRITE;
    op->addr = addr;
    op->len = len;
    if (buffer) {
        op->buffer = buffer_ref(buffer);
        op->offset = offset;
    } else {
        memcpy(op->copy, data, len);
    }
    op->checksum = checksum(op_data(op), len);
    g_queue_push_tail(&host->stream, op);
}

static void host_write(PciHost *pci_host, uint64_t addr, Buffer *buffer, size_t offset, size_t len)
{
    FakeHost *host = fake_of(pci_host);

    g_assert_false(host->forbid_dma);
    g_assert_true(range_inside(offset, len, buffer->size));
    g_assert_cmpuint(len, >, 0);
    host->writes++;
    if (host->delayed) {
        push_write(host, addr, buffer, offset, NULL, len);
    } else {
        apply_write(host, addr, buffer->data + offset, len);
    }
}

static void host_write_small(PciHost *pci_host, uint64_t addr, const void *data, size_t len)
{
    FakeHost *host = fake_of(pci_host);

    g_assert_false(host->forbid_dma);
    g_assert_cmpuint(len, <=, 256);
    host->small_writes++;
    if (host->delayed) {
        push_write(host, addr, NULL, 0, data, len);
    } else {
        apply_write(host, addr, data, len);
    }
}

static void *host_map(PciHost *pci_host, uint64_t addr, size_t len)
{
    FakeHost *host = fake_of(pci_host);

    if (!host->map_ok || !memory_ok(host, addr, len)) {
        return NULL;
    }
    host->maps++;
    return host->ram + addr;
}

static void host_fence(PciHost *pci_host, PciFence *fence)
{
    FakeHost *host = fake_of(pci_host);

    host->fences++;
    if (g_queue_is_empty(&host->stream)) {
        finish_fence(host, fence);
        return;
    }
    FakeOp *op = g_new0(FakeOp, 1);
    op->kind = FAKE_FENCE;
    op->fence = fence;
    fence->pending = true;
    g_queue_push_tail(&host->stream, op);
}

static void host_fence_cancel(PciHost *pci_host, PciFence *fence)
{
    FakeHost *host = fake_of(pci_host);

    for (GList *l = host->stream.head; l; l = l->next) {
        FakeOp *op = l->data;

        if (op->kind == FAKE_FENCE && op->fence == fence) {
            g_queue_delete_link(&host->stream, l);
            op_free(op);
            fence->pending = false;
            return;
        }
    }
    g_assert_false(fence->pending);
}

static void host_drop(PciHost *pci_host)
{
    FakeHost *host = fake_of(pci_host);
    GList *next;

    for (GList *l = host->stream.head; l; l = next) {
        FakeOp *op = l->data;

        next = l->next;
        if (op->kind == FAKE_WRITE && !op->sent) {
            g_queue_delete_link(&host->stream, l);
            op_free(op);
        }
    }
}

static bool host_msi(PciHost *pci_host, unsigned vector, bool ordered)
{
    FakeHost *host = fake_of(pci_host);

    g_assert_cmpuint(vector, ==, 0);
    g_assert_true(pci_msi_enabled(host->device));
    if (ordered && !host->ordered_msi) {
        return false;
    }
    host->msi_ordered += ordered;
    if (ordered && !g_queue_is_empty(&host->stream)) {
        FakeOp *op = g_new0(FakeOp, 1);

        op->kind = FAKE_MSI;
        g_queue_push_tail(&host->stream, op);
    } else {
        host->msi++;
    }
    return true;
}

static void host_intx(PciHost *pci_host, bool level)
{
    FakeHost *host = fake_of(pci_host);

    host->intx_edges += host->intx != level;
    host->intx = level;
}

static const PciHostOps fake_ops = {
    .dma_read = host_read,
    .dma_read_cancel = host_read_cancel,
    .dma_write = host_write,
    .dma_write_small = host_write_small,
    .dma_map_write = host_map,
    .fence = host_fence,
    .fence_cancel = host_fence_cancel,
    .dma_drop = host_drop,
    .msi = host_msi,
    .intx = host_intx,
};

FakeHost *fake_host_new(PciDevice *device, bool delayed)
{
    FakeHost *host = g_new0(FakeHost, 1);

    host->host.ops = &fake_ops;
    host->device = device;
    host->ram = g_malloc0(FAKE_RAM_SIZE);
    host->delayed = delayed;
    host->ordered_msi = true;
    g_queue_init(&host->stream);
    g_queue_init(&host->waiting_reads);
    device->host = &host->host;
    return host;
}

void fake_host_free(FakeHost *host)
{
    FakeOp *op;

    g_assert_true(g_queue_is_empty(&host->waiting_reads));
    while ((op = g_queue_pop_head(&host->stream))) {
        g_assert_true(op->kind != FAKE_FENCE);
        op_free(op);
    }
    host->device->host = NULL;
    g_free(host->ram);
    g_free(host);
}

bool fake_host_step(FakeHost *host)
{
    FakeOp *op = g_queue_pop_head(&host->stream);
    FakeKind kind;
    PciFence *fence;

    if (!op) {
        return false;
    }
    kind = op->kind;
    fence = op->fence;
    if (kind == FAKE_WRITE) {
        g_assert_cmpuint(checksum(op_data(op), op->len), ==, op->checksum);
        apply_write(host, op->addr, op_data(op), op->len);
    }
    op_free(op);
    if (kind == FAKE_FENCE) {
        finish_fence(host, fence);
    } else if (kind == FAKE_MSI) {
        host->msi++;
    }
    return true;
}

bool fake_host_answer(FakeHost *host, unsigned n)
{
    PciDmaRead *read = g_queue_pop_nth(&host->waiting_reads, n);
    int result = 0;

    if (!read) {
        return false;
    }
    read->pending = false;
    if (memory_ok(host, read->addr, read->len)) {
        memcpy(read->buf, host->ram + read->addr, read->len);
    } else {
        result = -EFAULT;
    }
    read->done(read, result);
    return true;
}

void fake_host_send(FakeHost *host)
{
    for (GList *l = host->stream.head; l; l = l->next) {
        ((FakeOp *)l->data)->sent = true;
    }
}

void fake_host_drain(FakeHost *host)
{
    while (fake_host_answer(host, 0) || fake_host_step(host)) {
    }
}

bool fake_host_idle(const FakeHost *host)
{
    return !host->stream.length && !host->waiting_reads.length;
}

uint32_t fake_read32(FakeHost *host, uint64_t addr)
{
    return load_le32(host->ram + addr);
}

void fake_write32(FakeHost *host, uint64_t addr, uint32_t value)
{
    store_le32(host->ram + addr, value);
}
