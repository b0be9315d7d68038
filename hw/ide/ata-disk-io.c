/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reads and writes of the hard disk, by PIO, DMA and native command queueing (ACS 4.16 to 4.20, 7; SATA
 * 3 13.6).
 */
#include "hw/ide/ata-disk-int.h"

#include <errno.h>
#include <string.h>

#define MAP_PIECES 128 /* pieces of guest memory that one read may fill directly */

static void xfer_run(AtaXfer *xfer);

static bool is_current(const AtaXfer *xfer)
{
    return xfer == &xfer->disk->current;
}

/* BSY and DRQ of the command that holds the registers; queued ones do not show. */
static void xfer_enter(AtaXfer *xfer, AtaXferState state)
{
    bool with_host = state == ATA_XFER_GIVE || state == ATA_XFER_TAKE;

    xfer->state = state;
    if (is_current(xfer)) {
        xfer->disk->ide.tf.status =
            ATA_STATUS_IDLE | (with_host && !xfer->dma ? ATA_STATUS_DRQ : ATA_STATUS_BSY);
    }
}

static void xfer_clear(AtaXfer *xfer)
{
    g_clear_pointer(&xfer->buffer, buffer_unref);
    xfer->io = NULL;
    xfer->state = ATA_XFER_IDLE;
    xfer->next = ATA_NEXT_NONE;
}

void ata_xfer_abandon(AtaXfer *xfer)
{
    if (xfer->io) {
        hard_disk_abandon(xfer->io);
    }
    xfer_clear(xfer);
    xfer->command = NULL;
}

/* The queued command's error log (SATA 3 13.7.2, ACS A.11). */
static void log_queued_error(AtaXfer *xfer, uint8_t error)
{
    AtaDisk *disk = xfer->disk;

    disk->log_tag = xfer->command->tag;
    disk->log_tf =
        (Taskfile){.status = ATA_STATUS_IDLE | ATA_STATUS_ERR, .error = error, .device = ATA_DEVICE_LBA};
    taskfile_set_lba48(&disk->log_tf, xfer->offset / disk->logical);
}

static void xfer_end(AtaXfer *xfer, uint8_t error)
{
    AtaDisk *disk = xfer->disk;
    IdeCommand *command;
    bool silent = !xfer->write && !xfer->dma && !xfer->verify && !error; /* PIO in: no interrupt at its end */

    if (error && !is_current(xfer)) {
        log_queued_error(xfer, error);
    } else if (error) {
        taskfile_set_lba48(&disk->ide.tf, xfer->offset / disk->logical);
    }
    xfer_clear(xfer);
    if (is_current(xfer)) {
        ata_disk_end(disk, error, !silent);
        return;
    }
    command = g_steal_pointer(&xfer->command);
    command->status = ATA_STATUS_IDLE | (error ? ATA_STATUS_ERR : 0);
    command->error = error;
    command->ops->complete(command, true);
}

static void xfer_io_done(void *opaque, int result)
{
    AtaXfer *xfer = opaque;

    xfer->io = NULL;
    if (result < 0) {
        xfer_end(xfer, xfer->write ? ATA_ERROR_ABRT : ATA_ERROR_UNC);
        return;
    }
    if (xfer->write || xfer->verify) {
        g_clear_pointer(&xfer->buffer, buffer_unref);
        xfer->offset += xfer->chunk;
        xfer->left -= xfer->chunk;
        xfer->next = ATA_NEXT_CHUNK;
    } else {
        xfer_enter(xfer, ATA_XFER_GIVE);
        xfer->next = ATA_NEXT_BLOCK;
    }
    xfer_run(xfer);
}

/* From the page cache into guest memory, with nothing in between. */
static bool fetch_straight(AtaXfer *xfer)
{
    IdeCommand *command = xfer->command;
    struct iovec iov[MAP_PIECES];
    int niov = MAP_PIECES;

    if (!xfer->dma || xfer->verify || !command->ops->map_in ||
        !command->ops->map_in(command, xfer->chunk, iov, &niov) ||
        hard_disk_read_now(xfer->disk->disk, xfer->offset, xfer->chunk, iov, niov) < 0) {
        return false;
    }
    xfer->part = xfer->chunk;
    xfer_enter(xfer, ATA_XFER_GIVE);
    command->ops->data_in(command, IDE_PHASE_DMA, NULL, 0, xfer->chunk, false);
    return true;
}

static void fetch_chunk(AtaXfer *xfer)
{
    HardDisk *disk = xfer->disk->disk;
    struct iovec iov;

    if (fetch_straight(xfer)) {
        return;
    }
    xfer->buffer = buffer_pool_get(xfer->disk->pool);
    iov = (struct iovec){.iov_base = xfer->buffer->data, .iov_len = xfer->chunk};
    if (!xfer->verify && hard_disk_read_now(disk, xfer->offset, xfer->chunk, &iov, 1) == 0) {
        xfer_enter(xfer, ATA_XFER_GIVE);
        xfer->next = ATA_NEXT_BLOCK;
        return;
    }
    xfer_enter(xfer, ATA_XFER_FETCH);
    xfer->io = hard_disk_submit(disk, BLOCK_READ, xfer->offset, xfer->buffer, 0, xfer->chunk, false,
                                xfer_io_done, xfer);
}

static void start_chunk(AtaXfer *xfer)
{
    if (!xfer->left) {
        xfer_end(xfer, 0);
        return;
    }
    xfer->chunk = MIN(xfer->left, ATA_CHUNK);
    xfer->at = 0;
    if (!xfer->write) {
        fetch_chunk(xfer);
        return;
    }
    xfer->buffer = buffer_pool_get(xfer->disk->pool);
    xfer_enter(xfer, ATA_XFER_TAKE);
    xfer->next = ATA_NEXT_BLOCK;
}

/* The chunk, or one DRQ block of it, goes to the controller. The first block of a PIO write is not announced
 * by an interrupt (ATA6 9.7). */
static void offer_block(AtaXfer *xfer)
{
    IdeCommand *command = xfer->command;
    IdePhase phase = xfer->dma ? IDE_PHASE_DMA : IDE_PHASE_PIO;
    bool interrupt = !xfer->dma && !(xfer->write && xfer->first);

    xfer->part = xfer->dma ? xfer->chunk - xfer->at : MIN(xfer->chunk - xfer->at, xfer->block);
    xfer->first = false;
    xfer_enter(xfer, xfer->state);
    if (xfer->state == ATA_XFER_GIVE) {
        command->ops->data_in(command, phase, xfer->buffer, xfer->at, xfer->part, interrupt);
    } else {
        command->ops->data_out(command, phase, xfer->buffer, xfer->at, xfer->part, interrupt);
    }
}

static void store_chunk(AtaXfer *xfer)
{
    AtaDisk *disk = xfer->disk;

    xfer_enter(xfer, ATA_XFER_STORE);
    if (xfer->trim) {
        disk->ranges = g_steal_pointer(&xfer->buffer);
        disk->ranges_len = (uint32_t)xfer->chunk;
        disk->ranges_at = 0;
        ata_disk_trim_next(disk);
        return;
    }
    xfer->io = hard_disk_submit(disk->disk, BLOCK_WRITE, xfer->offset, xfer->buffer, 0, xfer->chunk,
                                xfer->fua, xfer_io_done, xfer);
}

static void xfer_run(AtaXfer *xfer)
{
    if (xfer->running) {
        return; /* the loop further up the stack sees the new `next` */
    }
    xfer->running = true;
    while (xfer->next != ATA_NEXT_NONE) {
        AtaNext next = xfer->next;

        xfer->next = ATA_NEXT_NONE;
        if (next == ATA_NEXT_CHUNK) {
            start_chunk(xfer);
        } else if (next == ATA_NEXT_BLOCK) {
            offer_block(xfer);
        } else {
            store_chunk(xfer);
        }
    }
    xfer->running = false;
}

void ata_xfer_go_on(AtaXfer *xfer)
{
    xfer->next = xfer->state == ATA_XFER_FETCH ? ATA_NEXT_CHUNK : ATA_NEXT_STORE;
    xfer_run(xfer);
}

void ata_xfer_data_done(AtaXfer *xfer, int result)
{
    if (xfer->state != ATA_XFER_GIVE && xfer->state != ATA_XFER_TAKE) {
        return;
    }
    if (result < 0) { /* the host's memory list is too short */
        xfer_end(xfer, ATA_ERROR_ABRT);
        return;
    }
    xfer->at += xfer->part;
    if (xfer->at < xfer->chunk) {
        xfer->next = ATA_NEXT_BLOCK;
    } else if (xfer->state == ATA_XFER_TAKE) {
        xfer->next = ATA_NEXT_STORE;
    } else {
        g_clear_pointer(&xfer->buffer, buffer_unref);
        xfer->offset += xfer->chunk;
        xfer->left -= xfer->chunk;
        xfer->next = ATA_NEXT_CHUNK;
    }
    xfer_run(xfer);
}

/* Cylinder, head and sector by the current translation (ATA-5 6.2); sector 0 does not exist. */
static bool chs_address(const AtaDisk *disk, uint64_t *ret_lba)
{
    const Taskfile *tf = &disk->ide.tf;
    uint32_t cylinder = (uint32_t)(tf->lba[2] << 8 | tf->lba[1]), head = tf->device & 0xf,
             sector = tf->lba[0];

    if (!sector || sector > disk->cur_secs || head >= disk->cur_heads) {
        return false;
    }
    *ret_lba = ((uint64_t)cylinder * disk->cur_heads + head) * disk->cur_secs + sector - 1;
    return true;
}

uint32_t ata_disk_count16(const AtaDisk *disk)
{
    return disk->ide.serial_link ? disk->ide.tf.count : disk->ide.tf.count & 0xff;
}

bool ata_disk_address(const AtaDisk *disk, bool ext, uint64_t *ret_lba, uint32_t *ret_count)
{
    const Taskfile *tf = &disk->ide.tf;

    if (ext) {
        *ret_count = tf->count ? tf->count : 0x10000;
        *ret_lba = taskfile_lba48(tf);
    } else {
        *ret_count = ata_disk_count16(disk);
        *ret_count = *ret_count ? *ret_count : 0x100;
        *ret_lba = taskfile_lba28(tf);
        if (!(tf->device & ATA_DEVICE_LBA) && !chs_address(disk, ret_lba)) {
            return false;
        }
    }
    return *ret_lba < ata_disk_sectors(disk) && *ret_count <= ata_disk_sectors(disk) - *ret_lba;
}

static void xfer_init(AtaXfer *xfer, uint64_t lba, uint32_t count, bool write, bool dma)
{
    xfer->offset = lba * xfer->disk->logical;
    xfer->left = (uint64_t)count * xfer->disk->logical;
    xfer->write = write;
    xfer->dma = dma;
    xfer->fua = xfer->verify = xfer->trim = false;
    xfer->first = true;
    xfer->block = xfer->disk->logical;
    xfer->next = ATA_NEXT_CHUNK;
}

void ata_disk_start_io(AtaDisk *disk, const AtaIoKind *kind)
{
    AtaXfer *xfer = &disk->current;
    uint64_t lba;
    uint32_t count;

    if (kind->multiple && !disk->multiple) {
        ata_disk_abort(disk);
        return;
    }
    if (!ata_disk_address(disk, kind->ext, &lba, &count)) {
        ata_disk_end(disk, ATA_ERROR_IDNF, true);
        return;
    }
    xfer_init(xfer, lba, count, kind->write, kind->dma);
    xfer->verify = kind->verify;
    xfer->fua = kind->fua;
    xfer->block = disk->logical * (kind->multiple ? disk->multiple : 1);
    xfer_run(xfer);
}

void ata_disk_start_trim(AtaDisk *disk, uint32_t blocks)
{
    AtaXfer *xfer = &disk->current;

    xfer_init(xfer, 0, 0, true, true);
    xfer->trim = true;
    xfer->left = (uint64_t)blocks * 512;
    xfer_run(xfer);
}

void ata_disk_reply(AtaDisk *disk, Buffer *buffer, size_t len)
{
    AtaXfer *xfer = &disk->current;

    xfer_init(xfer, 0, 0, false, false);
    xfer->buffer = buffer;
    xfer->left = xfer->chunk = len;
    xfer->at = 0;
    xfer->block = (uint32_t)len;
    xfer->state = ATA_XFER_GIVE;
    xfer->next = ATA_NEXT_BLOCK;
    xfer_run(xfer);
}

bool ata_disk_any_queued(const AtaDisk *disk)
{
    for (unsigned i = 0; i < ATA_QUEUE_DEPTH; i++) {
        if (disk->queued[i].command) {
            return true;
        }
    }
    return false;
}

/* READ and WRITE FPDMA QUEUED: count in the features register, tag in bits 7:3 of the count register, FUA in
 * the device register (SATA 3 13.6.4). */
void ata_disk_start_queued(AtaDisk *disk, IdeCommand *command, bool write)
{
    Taskfile *tf = &disk->ide.tf;
    uint64_t lba = taskfile_lba48(tf);
    uint32_t count = tf->features ? tf->features : 0x10000;
    unsigned tag = (tf->count & 0xff) >> 3;
    AtaXfer *xfer = &disk->queued[tag];

    if (!disk->ide.serial_link || !command->ops->accepted || xfer->command) {
        ata_disk_abort(disk);
        return;
    }
    if (lba >= ata_disk_sectors(disk) || count > ata_disk_sectors(disk) - lba) {
        ata_disk_end(disk, ATA_ERROR_IDNF, true);
        return;
    }
    disk->current.command = NULL;
    xfer->disk = disk;
    xfer->command = command;
    command->priv = xfer;
    command->queued = true;
    command->tag = (uint8_t)tag;
    xfer_init(xfer, lba, count, write, true);
    xfer->fua = tf->device & ATA_DEVICE_FUA;
    tf->status = ATA_STATUS_IDLE;
    command->ops->accepted(command);
    if (xfer->command == command) { /* it was not abandoned meanwhile */
        xfer_run(xfer);
    }
}
