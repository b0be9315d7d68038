/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One command slot, from the fetch of its header to its last FIS. Header, FIS, packet and PRDT are copied out
 * of guest memory once, and nothing is decided from anything but the copy.
 *
 * Whatever ends a command may free it inside the call, so each such call here is the last thing its function
 * does with the command.
 */
#include "hw/ide/ahci-int.h"

#include <errno.h>
#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"
#include "util/trace.h"

#define AHCI_TABLE_KEEP 8192 /* bytes of a command table's memory that are kept: 504 descriptors */
#ifdef __SANITIZE_ADDRESS__
#define AHCI_SPARES 0 /* a use after the end is to be seen */
#else
#define AHCI_SPARES AHCI_SLOTS
#endif

static void command_pull(AhciCommand *command);

static AhciCommand *command_of(IdeCommand *ide)
{
    return AHCI_OWNER(ide, AhciCommand, ide);
}

/* The end. */

static void command_end_landed(PciFence *fence)
{
    AhciCommand *command = AHCI_OWNER(fence, AhciCommand, end);

    command->end_pending = false;
    command->landed = true;
    if (!command->in_end) {
        ahci_port_command_landed(command->port, command);
    }
}

/* Everything the command writes is queued: PxIS, PxTFD and PxCI follow when it has landed. Where an MSI will
 * result it goes out right behind the writes, on the same stream, and saves the guest a round trip. */
static void command_end(AhciCommand *command)
{
    AhciPort *port = command->port;

    command->stage = AHCI_STAGE_ENDING;
    if (!command->ide.queued && command->transferred != command->written_prdbc) {
        uint8_t prdbc[4];

        store_le32(prdbc, command->transferred);
        ahci_dma_write_small(port->ahci, command->header_addr + 4, prdbc, sizeof prdbc);
    }
    if (command->failed) {
        command->is |= AHCI_PX_IS_TFES;
    }
    command->end = (PciFence){.done = command_end_landed};
    command->in_end = true;
    command->end_pending = true;
    ahci_fence(port->ahci, &command->end);
    command->in_end = false;
    if (command->landed) {
        ahci_port_command_landed(port, command);
        return;
    }
    if (ahci_irq_msi_expected(port, command->is)) {
        command->msi_sent = port->ahci->pci.host->ops->msi(port->ahci->pci.host, 0, true);
    }
}

/* A PIO Setup FIS that nobody has seen yet goes out together with the D2H FIS behind it. */
static void command_write_d2h(AhciCommand *command, const Taskfile *tf)
{
    uint8_t fis[AHCI_RFIS_D2H - AHCI_RFIS_PIO_SETUP + FIS_D2H_SIZE] = {0};
    unsigned start = command->pio_setup_held ? AHCI_RFIS_PIO_SETUP : AHCI_RFIS_D2H;

    memcpy(fis, command->pio_setup, FIS_PIO_SETUP_SIZE);
    fis_encode_d2h(fis + AHCI_RFIS_D2H - AHCI_RFIS_PIO_SETUP, tf, true);
    ahci_port_write_fis(command->port, start, fis + start - AHCI_RFIS_PIO_SETUP,
                        AHCI_RFIS_D2H + FIS_D2H_SIZE - start);
    command->pio_setup_held = false;
}

static void command_complete(IdeCommand *ide, bool interrupt)
{
    AhciCommand *command = command_of(ide);
    const Taskfile *tf = &ide->device->tf;

    trace(ahci_command_end, command->port->index, command->slot, ide->queued ? ide->status : tf->status,
          command->transferred);
    if (ide->queued) {
        uint8_t fis[FIS_SDB_SIZE];

        command->failed = ide->status & ATA_STATUS_ERR;
        command->tfd = (uint32_t)ide->error << 8 | ide->status;
        fis_encode_sdb(fis, ide->status, ide->error, command->failed ? 0 : 1u << ide->tag, true);
        ahci_port_write_fis(command->port, AHCI_RFIS_SDB, fis, sizeof fis);
        command->is |= AHCI_PX_IS_SDBS;
    } else {
        command->failed = tf->status & ATA_STATUS_ERR;
        command->tfd = (uint32_t)tf->error << 8 | tf->status;
        command_write_d2h(command, tf);
        command->is |= AHCI_PX_IS_DHRS;
    }
    command_end(command);
}

static void command_accepted(IdeCommand *ide)
{
    AhciCommand *command = command_of(ide);
    uint8_t fis[FIS_D2H_SIZE];

    fis_encode_d2h(fis, &ide->device->tf, false);
    ahci_port_write_fis(command->port, AHCI_RFIS_D2H, fis, sizeof fis);
    ahci_port_command_accepted(command->port, command);
}

/* Data to the guest. */

static void command_fence_flow(AhciCommand *command);

/* May free the command: a failed write, or a device that goes on to the end. */
static void command_flow_landed(AhciCommand *command)
{
    if (command->flow.fault) {
        ahci_port_fail(command->port, AHCI_PX_IS_HBFS);
        return;
    }
    if (command->waiting && command->unfenced < AHCI_QUEUE_MAX / 2) {
        command->waiting = false;
        ide_command_data_done(&command->ide, command->is & AHCI_PX_IS_OFS ? -EOVERFLOW : 0);
    }
}

static void command_flow_done(PciFence *fence)
{
    AhciCommand *command = AHCI_OWNER(fence, AhciCommand, flow);

    command->flow_pending = false;
    command->fenced = 0;
    if (!command->in_flow) {
        if (!fence->fault && command->unfenced >= AHCI_QUEUE_MAX / 2) {
            command_fence_flow(command);
        }
        command_flow_landed(command);
    }
}

static void command_fence_flow(AhciCommand *command)
{
    command->fenced = command->unfenced;
    command->unfenced = 0;
    command->flow = (PciFence){.done = command_flow_done};
    command->flow_pending = true;
    command->in_flow = true;
    ahci_fence(command->port->ahci, &command->flow);
    command->in_flow = false;
}

static void command_hold_pio_setup(AhciCommand *command, bool to_host, bool interrupt, size_t len)
{
    const Taskfile *tf = &command->ide.device->tf;

    fis_encode_pio_setup(command->pio_setup, tf, to_host, interrupt,
                         (tf->status & (uint8_t)~ATA_STATUS_DRQ) | ATA_STATUS_BSY, (uint16_t)len);
    command->pio_setup_held = true;
    command->is |= interrupt ? AHCI_PX_IS_PSS : 0;
}

/* Half of AHCI_QUEUE_MAX may be on the wire under a fence while the other half is being filled. */
static void command_data_in(IdeCommand *ide, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                            bool interrupt)
{
    AhciCommand *command = command_of(ide);
    PciHost *host = command->port->ahci->pci.host;
    size_t done = 0, n;
    uint64_t addr;

    if (phase == IDE_PHASE_PIO) {
        command_hold_pio_setup(command, true, interrupt, len);
    }
    if (!buffer) {
        done = sgl_skip(&command->sgl, len);
    } else {
        while (host && sgl_take(&command->sgl, len - done, &addr, &n)) {
            host->ops->dma_write(host, addr, buffer, offset + done, n);
            command->unfenced += n + AHCI_QUEUE_COST;
            done += n;
        }
    }
    command->transferred += (uint32_t)done;
    command->is |= done < len ? AHCI_PX_IS_OFS : 0;
    command->waiting = true;
    if (command->unfenced >= AHCI_QUEUE_MAX / 2 && !command->flow_pending) {
        command_fence_flow(command);
    }
    if (!command->flow_pending || command->unfenced < AHCI_QUEUE_MAX / 2) {
        command_flow_landed(command);
    }
}

/* Room for `len` bytes in memory that may be written to at once; all of it or nothing. */
static bool command_map_in(IdeCommand *ide, size_t len, struct iovec *iov, int *niov)
{
    AhciCommand *command = command_of(ide);
    PciHost *host = command->port->ahci->pci.host;
    Sgl sgl = sgl_peek(&command->sgl);
    int count = 0;
    uint64_t addr;
    size_t n;

    if (!host || !host->ops->dma_map_write || sgl.left < len) {
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

/* Data from the guest. */

static void command_pull_done(PciDmaRead *read, int result)
{
    AhciCommand *command = AHCI_OWNER(read, AhciCommand, read);

    command->reading = false;
    if (result < 0) {
        ahci_port_fail(command->port, AHCI_PX_IS_HBFS);
        return;
    }
    command_pull(command);
}

static void command_pull(AhciCommand *command)
{
    g_autoptr(Buffer) out = NULL;
    uint64_t addr;
    size_t n;

    while (sgl_take(&command->sgl, MIN(command->out_left, BUFFER_MAX), &addr, &n)) {
        int result;

        command->read = (PciDmaRead){.addr = addr,
                                     .buf = command->out->data + command->out_offset,
                                     .len = (uint32_t)n,
                                     .done = command_pull_done};
        command->out_offset += n;
        command->out_left -= n;
        command->transferred += (uint32_t)n;
        command->reading = true;
        result = ahci_dma_read(command->port->ahci, &command->read);
        if (result == -EINPROGRESS) {
            return;
        }
        command->reading = false;
        if (result < 0) {
            ahci_port_fail(command->port, AHCI_PX_IS_HBFS);
            return;
        }
    }
    out = g_steal_pointer(&command->out);
    ide_command_data_done(&command->ide, 0);
}

static void command_data_out(IdeCommand *ide, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                             bool interrupt)
{
    AhciCommand *command = command_of(ide);

    if (phase != IDE_PHASE_DMA) {
        command_hold_pio_setup(command, false, interrupt, len);
    }
    if (phase == IDE_PHASE_PACKET && command->header & AHCI_HEADER_ATAPI) {
        memcpy(buffer->data + offset, command->table + AHCI_TABLE_ACMD, MIN(len, 16));
        ide_command_data_done(ide, 0);
        return;
    }
    if (command->sgl.left < len) {
        ide_command_data_done(ide, -EOVERFLOW);
        return;
    }
    command->out = buffer_ref(buffer);
    command->out_offset = offset;
    command->out_left = len;
    command_pull(command);
}

static const IdeCommandOps ahci_command_ops = {
    .data_in = command_data_in,
    .data_out = command_data_out,
    .map_in = command_map_in,
    .accepted = command_accepted,
    .complete = command_complete,
};

/* The fetch. */

/* Byte counts are even: bit 0 of the zero-based count is 1 (4.2.3.3), whatever the guest wrote; so are
 * addresses. */
static void command_parse_prdt(AhciCommand *command)
{
    const uint8_t *prd = command->table + AHCI_TABLE_PRDT;
    unsigned entries = command->header >> 16;

    sgl_reset(&command->sgl);
    for (unsigned i = 0; i < entries; i++, prd += AHCI_PRD_SIZE) {
        sgl_add(&command->sgl, load_le64(prd) & ~UINT64_C(1), ((load_le32(prd + 12) & 0x3fffff) | 1) + 1);
    }
}

static void command_execute(AhciCommand *command)
{
    AhciPort *port = command->port;
    IdeDevice *device = port->device;
    Taskfile tf = device->tf;
    unsigned fis_len = (command->header & 0x1f) * 4;
    bool is_command;

    command->stage = AHCI_STAGE_ACTIVE;
    if (fis_len > AHCI_TABLE_ACMD || !fis_decode_h2d(command->table, fis_len, &tf, &is_command)) {
        port->regs[AHCI_PX_SERR] |= AHCI_SERR_HANDSHAKE;
        ahci_port_fail(port, AHCI_PX_IS_IFS);
        return;
    }
    if (!is_command) {
        command->ide.device = device;
        command->silent = !ahci_port_control(port, tf.control);
        command->tfd = (uint32_t)device->tf.error << 8 | device->tf.status;
        if (!command->silent) {
            command_write_d2h(command, &device->tf);
        }
        command_end(command);
        return;
    }
    command_parse_prdt(command);
    trace(ahci_command_start, port->index, command->slot, tf.command, command->header >> 16,
          command->sgl.count);
    device->tf = tf;
    port->regs[AHCI_PX_TFD] |= ATA_STATUS_BSY;
    ide_device_start(device, &command->ide);
}

static void command_fetch(AhciCommand *command, int result);

static void command_fetch_done(PciDmaRead *read, int result)
{
    AhciCommand *command = AHCI_OWNER(read, AhciCommand, read);

    command->reading = false;
    command_fetch(command, result);
}

/* Starts one read of the fetch: -EINPROGRESS, 0 or -EFAULT as pci_dma_read. */
static int command_fetch_read(AhciCommand *command, uint64_t addr, void *buf, uint32_t len)
{
    int result;

    command->read = (PciDmaRead){.addr = addr, .buf = buf, .len = len, .done = command_fetch_done};
    command->reading = true;
    result = ahci_dma_read(command->port->ahci, &command->read);
    command->reading = result == -EINPROGRESS;
    return result;
}

static int command_fetch_table(AhciCommand *command)
{
    uint32_t len = MIN(command->table_size - command->table_have, BUFFER_MAX);
    uint32_t have = command->table_have;

    command->table_have += len;
    return command_fetch_read(command, command->table_addr + have, command->table + have, len);
}

static void command_have_header(AhciCommand *command)
{
    const uint8_t *header = command->header_bytes;

    command->stage = AHCI_STAGE_TABLE;
    command->header = load_le32(header);
    command->written_prdbc = load_le32(header + 4);
    command->table_addr = load_le64(header + 8) & ~UINT64_C(0x7f);
    command->table_size = AHCI_TABLE_PRDT + (command->header >> 16) * AHCI_PRD_SIZE;
    if (command->table_room < command->table_size) {
        command->table_room = command->table_size;
        command->table = g_realloc(command->table, command->table_room);
    }
}

/* Goes on after a read that ended with `result`, for as long as the next one is answered at once. */
static void command_fetch(AhciCommand *command, int result)
{
    while (result == 0) {
        if (command->stage == AHCI_STAGE_HEADER) {
            command_have_header(command);
        } else if (command->table_have == command->table_size) {
            command_execute(command);
            return;
        }
        result = command_fetch_table(command);
    }
    if (result != -EINPROGRESS) {
        ahci_port_fail(command->port, AHCI_PX_IS_HBFS);
    }
}

AhciCommand *ahci_command_new(AhciPort *port, unsigned slot)
{
    AhciCommand *command = port->spares ? port->spare[--port->spares] : g_new0(AhciCommand, 1);

    command->ide.ops = &ahci_command_ops;
    command->port = port;
    command->slot = slot;
    command->header_addr = ahci_port_address(port, AHCI_PX_CLB) + slot * AHCI_HEADER_SIZE;
    return command;
}

void ahci_command_issue(AhciCommand *command)
{
    command_fetch(command,
                  command_fetch_read(command, command->header_addr, command->header_bytes, AHCI_HEADER_SIZE));
}

void ahci_command_abandon(AhciCommand *command)
{
    PciHost *host = command->port->ahci->pci.host;

    if (command->reading && host) {
        host->ops->dma_read_cancel(host, &command->read);
    }
    if (command->flow_pending && host) {
        host->ops->fence_cancel(host, &command->flow);
    }
    if (command->end_pending && host) {
        host->ops->fence_cancel(host, &command->end);
    }
    if (command->stage == AHCI_STAGE_ACTIVE && command->ide.device) {
        ide_command_abandon(&command->ide);
    }
    ahci_command_free(command);
}

static void command_destroy(AhciCommand *command)
{
    sgl_clear(&command->sgl);
    g_free(command->table);
    g_free(command);
}

/* Keeps the object with its memory, unless a guest has made that large. */
void ahci_command_free(AhciCommand *command)
{
    AhciPort *port = command->port;
    AhciCommand blank = {.table = command->table, .table_room = command->table_room, .sgl = command->sgl};

    buffer_unref(command->out);
    if (port->spares == AHCI_SPARES || command->table_room > AHCI_TABLE_KEEP) {
        command_destroy(command);
        return;
    }
    *command = blank;
    sgl_reset(&command->sgl);
    port->spare[port->spares++] = command;
}

void ahci_command_free_spares(AhciPort *port)
{
    while (port->spares) {
        command_destroy(port->spare[--port->spares]);
    }
}
