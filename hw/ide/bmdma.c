/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bus-master DMA (Programming Interface for Bus Master IDE Controller 1.0).
 *
 * A transfer that has begun runs to its end even if the guest clears Start meanwhile: Active stays set until
 * then, so the guest sees that it goes on. Only a reset of the devices breaks it off. Every chunk has landed
 * in guest memory before its device goes on, hence before any interrupt.
 */
#include "hw/ide/pci-ide-int.h"

#include <errno.h>

#include "util/bytes.h"

#define BM_START     0x01 /* command register */
#define BM_TO_MEMORY 0x08
#define BM_ACTIVE    0x01 /* status register */
#define BM_ERROR     0x02
#define BM_INTERRUPT 0x04
#define BM_DRIVES    0x60 /* "drive n is set up for DMA": kept for the guest */

#define PRD_SIZE         8
#define PRD_END          0x80000000u
#define PRD_TABLE_WINDOW 0x10000u /* a table does not cross a 64 KiB boundary */

static void bmdma_run(IdeChannel *channel);

/* An address that is no memory: the master aborts and the drive is told. With bus mastering off nothing gets
 * to the bus at all; then the data goes nowhere and the command ends as usual. */
static void bmdma_fail(IdeChannel *channel)
{
    channel->dma.status |= BM_ERROR;
    channel->dma.status &= (uint8_t)~BM_ACTIVE;
    channel->dma.engaged = false;
    channel_fail(channel);
}

static void bmdma_take_prds(Bmdma *dma, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes && !dma->end_of_table; at += PRD_SIZE) {
        uint32_t count = load_le32(dma->prds + at + 4);

        sgl_add(&dma->sgl, load_le32(dma->prds + at) & ~1u,
                count & 0xfffe ? count & 0xfffe : PRD_TABLE_WINDOW);
        dma->end_of_table = count & PRD_END;
    }
    dma->next += bytes;
    dma->table_left -= bytes;
    if (!dma->table_left) {
        dma->end_of_table = true;
    }
}

static void bmdma_fetched(IdeChannel *channel, int result)
{
    Bmdma *dma = &channel->dma;

    if (result == 0) {
        bmdma_take_prds(dma, dma->fetching);
    } else if (!pci_bus_master(channel->pci)) {
        sgl_add(&dma->sgl, 0, (uint64_t)PRD_TABLE_WINDOW * PRD_TABLE_WINDOW / PRD_SIZE);
        dma->end_of_table = true;
    }
}

static int bmdma_read_memory(IdeChannel *channel, uint64_t addr, void *buf, uint32_t len,
                             void (*done)(PciDmaRead *read, int result))
{
    PciHost *host = channel->pci->host;
    Bmdma *dma = &channel->dma;
    int result;

    dma->read = (PciDmaRead){.addr = addr, .buf = buf, .len = len, .done = done};
    dma->reading = true;
    result = host ? host->ops->dma_read(host, &dma->read) : -EFAULT;
    dma->reading = result == -EINPROGRESS;
    return result;
}

/* A block that reaches out of memory is tried again as a single entry: the table may be shorter. */
static int bmdma_fetch(IdeChannel *channel, uint32_t bytes);

static void bmdma_fetch_done(PciDmaRead *read, int result)
{
    IdeChannel *channel = IDE_OWNER(read, IdeChannel, dma.read);

    channel->dma.reading = false;
    if (result < 0 && channel->dma.fetching > PRD_SIZE) {
        result = bmdma_fetch(channel, PRD_SIZE);
        if (result == -EINPROGRESS) {
            return;
        }
    } else {
        bmdma_fetched(channel, result);
    }
    if (result < 0 && pci_bus_master(channel->pci)) {
        bmdma_fail(channel);
        return;
    }
    bmdma_run(channel);
}

static int bmdma_fetch(IdeChannel *channel, uint32_t bytes)
{
    Bmdma *dma = &channel->dma;
    int result;

    dma->fetching = MIN(bytes, dma->table_left);
    result = bmdma_read_memory(channel, dma->next, dma->prds, dma->fetching, bmdma_fetch_done);
    if (result == -EFAULT && dma->fetching > PRD_SIZE) {
        return bmdma_fetch(channel, PRD_SIZE);
    }
    if (result != -EINPROGRESS) {
        bmdma_fetched(channel, result);
    }
    return result == -EFAULT && !pci_bus_master(channel->pci) ? 0 : result;
}

static void bmdma_landed(PciFence *fence)
{
    IdeChannel *channel = IDE_OWNER(fence, IdeChannel, dma.fence);
    Bmdma *dma = &channel->dma;

    dma->fencing = false;
    if (fence->fault && pci_bus_master(channel->pci)) {
        bmdma_fail(channel);
    } else if (dma->too_short) {
        dma->engaged = false;
        dma->status &= (uint8_t)~BM_ACTIVE;
        channel_abandon(channel);
    } else {
        ide_command_data_done(&channel->command, 0);
    }
}

/* The chunk is queued or read: to the device when it has landed. `too_short`: the table ended before the
 * device did. Then Active falls, no interrupt comes (BMIDE 3.1, "error condition"), and the device's command
 * is over. */
static void bmdma_chunk_done(IdeChannel *channel, bool too_short)
{
    Bmdma *dma = &channel->dma;
    PciHost *host = channel->pci->host;

    dma->too_short = too_short;
    g_clear_pointer(&dma->data, buffer_unref);
    dma->pending = false;
    dma->fence = (PciFence){.done = bmdma_landed};
    dma->fencing = true;
    if (dma->out || !host) {
        bmdma_landed(&dma->fence);
    } else {
        host->ops->fence(host, &dma->fence);
    }
}

static void bmdma_pulled(PciDmaRead *read, int result)
{
    IdeChannel *channel = IDE_OWNER(read, IdeChannel, dma.read);

    channel->dma.reading = false;
    if (result < 0 && pci_bus_master(channel->pci)) {
        bmdma_fail(channel);
        return;
    }
    bmdma_run(channel);
}

/* Moves one piece. 0, -EFAULT or -EINPROGRESS. */
static int bmdma_move(IdeChannel *channel, uint64_t addr, size_t len)
{
    Bmdma *dma = &channel->dma;
    PciHost *host = channel->pci->host;
    size_t at = dma->offset;
    int result = 0;

    dma->offset += len;
    dma->left -= len;
    if (dma->out) {
        result = bmdma_read_memory(channel, addr, dma->data->data + at, (uint32_t)len, bmdma_pulled);
    } else if (dma->data && host) {
        host->ops->dma_write(host, addr, dma->data, at, len);
    }
    return result == -EFAULT && !pci_bus_master(channel->pci) ? 0 : result;
}

/* Goes on with the chunk for as long as nothing has to be waited for. */
static void bmdma_run(IdeChannel *channel)
{
    Bmdma *dma = &channel->dma;
    uint64_t addr;
    size_t len;

    if (!dma->pending || !dma->engaged || dma->reading || dma->fencing) {
        return;
    }
    while (dma->left) {
        int result;

        if (sgl_take(&dma->sgl, MIN(dma->left, BUFFER_MAX), &addr, &len)) {
            result = bmdma_move(channel, addr, len);
        } else if (dma->end_of_table) {
            bmdma_chunk_done(channel, true);
            return;
        } else {
            result = bmdma_fetch(channel, BMDMA_BLOCK);
        }
        if (result == -EINPROGRESS) {
            return;
        }
        if (result < 0) {
            bmdma_fail(channel);
            return;
        }
    }
    bmdma_chunk_done(channel, false);
}

void bmdma_transfer(IdeChannel *channel, Buffer *buffer, size_t offset, size_t len, bool out)
{
    Bmdma *dma = &channel->dma;

    dma->data = buffer ? buffer_ref(buffer) : NULL;
    dma->offset = offset;
    dma->left = len;
    dma->out = out;
    dma->pending = true;
    bmdma_run(channel);
}

bool bmdma_map(IdeChannel *channel, size_t len, struct iovec *iov, int *niov)
{
    PciHost *host = channel->pci->host;
    Sgl sgl = sgl_peek(&channel->dma.sgl);
    uint64_t addr;
    size_t n;
    int count = 0;

    if (!channel->dma.engaged || !host || !host->ops->dma_map_write || sgl.left < len) {
        return false;
    }
    for (size_t done = 0; done < len && sgl_take(&sgl, len - done, &addr, &n); done += n) {
        if (count == *niov || !(iov[count].iov_base = host->ops->dma_map_write(host, addr, n))) {
            return false;
        }
        iov[count++].iov_len = n;
    }
    *niov = count;
    return true;
}

/* Active stays set while the table has memory left and Start is set (BMIDE 3.1). */
static void bmdma_settle_active(Bmdma *dma)
{
    if (!(dma->command & BM_START) || (dma->end_of_table && !dma->sgl.left)) {
        dma->status &= (uint8_t)~BM_ACTIVE;
    }
}

void bmdma_end(IdeChannel *channel)
{
    Bmdma *dma = &channel->dma;
    PciHost *host = channel->pci->host;

    if (dma->reading && host) {
        host->ops->dma_read_cancel(host, &dma->read);
    }
    if (dma->fencing && host) {
        host->ops->fence_cancel(host, &dma->fence);
    }
    dma->reading = false;
    dma->fencing = false;
    dma->pending = false;
    g_clear_pointer(&dma->data, buffer_unref);
    bmdma_settle_active(dma);
    dma->engaged = dma->engaged && dma->command & BM_START;
}

void bmdma_reset(IdeChannel *channel)
{
    Bmdma *dma = &channel->dma;

    dma->command = 0;
    bmdma_end(channel);
    dma->status = 0;
    dma->table = 0;
    sgl_clear(&dma->sgl);
}

static void bmdma_write_command(IdeChannel *channel, uint8_t value)
{
    Bmdma *dma = &channel->dma;
    bool start = value & ~dma->command & BM_START;

    dma->command = value & (BM_START | BM_TO_MEMORY);
    if (start && !dma->engaged) {
        sgl_reset(&dma->sgl);
        dma->next = dma->table;
        dma->table_left = PRD_TABLE_WINDOW - (dma->table & (PRD_TABLE_WINDOW - 1));
        dma->end_of_table = false;
        dma->engaged = true;
        dma->status |= BM_ACTIVE;
        bmdma_run(channel);
    } else if (!(value & BM_START) && !channel->busy) {
        dma->engaged = false;
        dma->status &= (uint8_t)~BM_ACTIVE;
    }
}

uint8_t bmdma_read(const IdeChannel *channel, unsigned offset)
{
    const Bmdma *dma = &channel->dma;

    switch (offset) {
    case 0:
        return dma->command;
    case 2:
        return dma->status;
    case 4:
    case 5:
    case 6:
    case 7:
        return (uint8_t)(dma->table >> (8 * (offset - 4)));
    default:
        return 0;
    }
}

void bmdma_write(IdeChannel *channel, unsigned offset, unsigned size, uint32_t value)
{
    Bmdma *dma = &channel->dma;

    for (unsigned i = 0; i < size && offset + i < BMDMA_REGS; i++, value >>= 8) {
        uint8_t byte = (uint8_t)value;
        unsigned shift = 8 * ((offset + i) & 3);

        switch (offset + i) {
        case 0:
            bmdma_write_command(channel, byte);
            break;
        case 2:
            dma->status &= (uint8_t) ~(byte & (BM_ERROR | BM_INTERRUPT));
            dma->status = (dma->status & (uint8_t)~BM_DRIVES) | (byte & BM_DRIVES);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            dma->table = (dma->table & ~(0xffu << shift)) | (uint32_t)byte << shift;
            dma->table &= ~3u;
            break;
        default:
            break;
        }
    }
}
