/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the hard disk. On a parallel channel the command in the registers goes on: a chunk
 * that was being read is read again, one that was being written (or was kept because of an error) is written
 * again, a block at the data port goes on at its byte. Flushes and TRIM are done anew.
 */
#include "hw/ide/ata-disk-int.h"

#include <string.h>

#include "util/checked.h"

typedef struct XferImage {
    AtaXferState state; /* IDLE: a flush */
    bool write, dma, fua, verify, trim, first;
    uint32_t block;
    uint64_t offset, left;
    size_t chunk, at, part;
    Buffer *buffer; /* not in FETCH, nor where DMA gives: there the controller has it */
    size_t buffer_len;
} XferImage;

typedef struct DiskImage {
    Taskfile tf;
    AtaTransferMode mode;
    uint8_t power, multiple;
    bool read_ahead, smart, smart_autosave, write_back;
    uint32_t cur_heads, cur_secs;
    uint8_t log_tag;
    Taskfile log_tf;
    bool busy; /* on a parallel channel; then there is `xfer` */
    XferImage xfer;
} DiskImage;

static bool needs_buffer(const XferImage *image)
{
    return image->state == ATA_XFER_TAKE || image->state == ATA_XFER_STORE ||
           (image->state == ATA_XFER_GIVE && !image->dma);
}

static void capture_xfer(const AtaDisk *disk, XferImage *image)
{
    const AtaXfer *xfer = &disk->current;
    Buffer *buffer = disk->ranges ? disk->ranges : xfer->buffer;

    image->state = xfer->state;
    image->write = xfer->write;
    image->dma = xfer->dma;
    image->fua = xfer->fua;
    image->verify = xfer->verify;
    image->trim = xfer->trim;
    image->first = xfer->first;
    image->block = xfer->block;
    image->offset = xfer->offset;
    image->left = xfer->left;
    image->chunk = xfer->chunk;
    image->at = xfer->at;
    image->part = xfer->state == ATA_XFER_TAKE || xfer->state == ATA_XFER_GIVE ? xfer->part : 0;
    if (needs_buffer(image)) {
        image->buffer = buffer_ref(buffer);
        image->buffer_len = xfer->chunk;
    }
}

static void disk_capture(void *object, void *data)
{
    const AtaDisk *disk = object;
    DiskImage *image = data;

    image->tf = disk->ide.tf;
    image->mode = disk->mode;
    image->power = disk->power;
    image->multiple = disk->multiple;
    image->read_ahead = disk->read_ahead;
    image->smart = disk->smart;
    image->smart_autosave = disk->smart_autosave;
    image->write_back = hard_disk_write_back(disk->disk);
    image->cur_heads = disk->cur_heads;
    image->cur_secs = disk->cur_secs;
    image->log_tag = disk->log_tag;
    image->log_tf = disk->log_tf;
    image->busy = disk->current.command && !disk->ide.serial_link;
    if (image->busy) {
        capture_xfer(disk, &image->xfer);
    } else {
        image->tf.status &= (uint8_t) ~(ATA_STATUS_BSY | ATA_STATUS_DRQ);
    }
}

/* Lengths within lengths, and the whole within the disk. */
static bool lengths_fit(const AtaDisk *disk, const XferImage *image)
{
    bool with_host = image->state == ATA_XFER_TAKE || image->state == ATA_XFER_GIVE;

    if (!image->chunk || image->chunk > image->left || image->chunk > ATA_CHUNK || !image->block ||
        image->block > ATA_BLOCK_MAX || image->at > image->chunk || image->part > image->chunk - image->at ||
        (with_host && !image->part) || (with_host && !image->dma && image->part > image->block)) {
        return false;
    }
    return image->trim ? image->left <= ATA_DSM_BLOCKS * 512 && image->chunk % 512 == 0
                       : range_inside(image->offset, image->left, ata_disk_sectors(disk) * disk->logical);
}

static void visit_xfer(const AtaDisk *disk, XferImage *image, StateIo *io)
{
    STATE_NUMBER(io, image->state, ATA_XFER_IDLE, ATA_XFER_GIVE);
    state_bool(io, &image->write);
    state_bool(io, &image->dma);
    state_bool(io, &image->fua);
    state_bool(io, &image->verify);
    state_bool(io, &image->trim);
    state_bool(io, &image->first);
    state_u32(io, &image->block);
    state_u64(io, &image->offset);
    STATE_NUMBER(io, image->left, 0, (uint64_t)0x10000 * 4096);
    STATE_NUMBER(io, image->chunk, 0, ATA_CHUNK);
    STATE_NUMBER(io, image->at, 0, ATA_CHUNK);
    STATE_NUMBER(io, image->part, 0, ATA_CHUNK);
    state_buffer(io, "chunk", &image->buffer, &image->buffer_len, ATA_CHUNK, ATA_CHUNK);
    if (image->buffer_len != (needs_buffer(image) ? image->chunk : 0)) {
        state_fail(io, "its transfer has %zu bytes of data", image->buffer_len);
    }
    if (!state_loading(io) || state_failed(io) || image->state == ATA_XFER_IDLE) {
        return;
    }
    if ((image->state == ATA_XFER_TAKE || image->state == ATA_XFER_STORE) != image->write ||
        (image->trim && (!image->write || !image->dma)) ||
        (image->verify && image->state != ATA_XFER_FETCH) || !lengths_fit(disk, image)) {
        state_fail(io, "the lengths of its transfer do not fit");
    }
}

static void disk_visit(void *object, void *data, StateIo *io)
{
    const AtaDisk *disk = object;
    DiskImage *image = data;

    state_same(io, "the number of sectors", ata_disk_sectors(disk));
    state_same(io, "logical_block_size", disk->logical);
    taskfile_visit(&image->tf, io);
    ata_transfer_mode_visit(&image->mode, io);
    ata_power_visit(&image->power, io);
    STATE_NUMBER(io, image->multiple, 0, ata_disk_multiple_max(disk));
    if (image->multiple && !is_power_of_2(image->multiple)) {
        state_fail(io, "its READ MULTIPLE takes %u sectors", image->multiple);
    }
    state_bool(io, &image->read_ahead);
    state_bool(io, &image->smart);
    state_bool(io, &image->smart_autosave);
    state_bool(io, &image->write_back);
    STATE_NUMBER(io, image->cur_heads, 1, 16);
    STATE_NUMBER(io, image->cur_secs, 1, 255);
    state_u8(io, &image->log_tag);
    if (image->log_tag != LOG_NO_TAG && image->log_tag >= ATA_QUEUE_DEPTH) {
        state_fail(io, "its error log names tag %u", image->log_tag);
    }
    taskfile_visit(&image->log_tf, io);
    state_bool(io, &image->busy);
    if (image->busy && disk->ide.serial_link) {
        state_fail(io, "it holds a command, and a serial controller starts commands anew");
    } else if (image->busy) {
        visit_xfer(disk, &image->xfer, io);
    }
}

static void commit_xfer(AtaDisk *disk, XferImage *image)
{
    AtaXfer *xfer = &disk->current;

    xfer->state = image->state;
    xfer->write = image->write;
    xfer->dma = image->dma;
    xfer->fua = image->fua;
    xfer->verify = image->verify;
    xfer->trim = image->trim;
    xfer->first = image->first;
    xfer->block = image->block;
    xfer->offset = image->offset;
    xfer->left = image->left;
    xfer->chunk = image->chunk;
    xfer->at = image->at;
    xfer->part = image->part;
    if (image->trim && image->state == ATA_XFER_STORE) {
        disk->ranges = g_steal_pointer(&image->buffer);
        disk->ranges_len = (uint32_t)image->chunk;
        disk->ranges_at = 0;
    } else {
        xfer->buffer = g_steal_pointer(&image->buffer);
    }
}

/* The command's own parts wait for ata_disk_adopt(). */
static void disk_commit(void *object, void *data)
{
    AtaDisk *disk = object;
    DiskImage *image = data;

    disk->ide.tf = image->tf;
    disk->mode = image->mode;
    disk->power = image->power;
    disk->multiple = image->multiple;
    disk->read_ahead = image->read_ahead;
    disk->smart = image->smart;
    disk->smart_autosave = image->smart_autosave;
    hard_disk_set_write_back(disk->disk, image->write_back);
    disk->cur_heads = image->cur_heads;
    disk->cur_secs = image->cur_secs;
    disk->log_tag = image->log_tag;
    disk->log_tf = image->log_tf;
    if (image->busy) {
        commit_xfer(disk, &image->xfer);
    }
}

static void disk_image_clear(void *data)
{
    buffer_unref(((DiskImage *)data)->xfer.buffer);
}

const StateOps ata_disk_state = {
    .name = "ide-hd",
    .version = 1,
    .size = sizeof(DiskImage),
    .capture = disk_capture,
    .visit = disk_visit,
    .commit = disk_commit,
    .clear = disk_image_clear,
};

IdeWait ata_disk_image_wait(const void *data, size_t *ret_len)
{
    const DiskImage *image = data;

    *ret_len = image->xfer.part;
    if (!image->busy) {
        return IDE_WAIT_NONE;
    }
    switch (image->xfer.state) {
    case ATA_XFER_GIVE:
        return image->xfer.dma ? IDE_WAIT_DMA_IN : IDE_WAIT_PIO_IN;
    case ATA_XFER_TAKE:
        return image->xfer.dma ? IDE_WAIT_DMA_OUT : IDE_WAIT_PIO_OUT;
    default:
        return IDE_WAIT_IO;
    }
}

void ata_disk_adopt(IdeDevice *device, IdeCommand *command)
{
    AtaDisk *disk = (AtaDisk *)(void *)device;
    AtaXfer *xfer = &disk->current;

    xfer->command = command;
    command->priv = xfer;
    disk->parked = xfer->state != ATA_XFER_GIVE && xfer->state != ATA_XFER_TAKE;
    if (xfer->state == ATA_XFER_TAKE) {
        command->ops->data_out(command, xfer->dma ? IDE_PHASE_DMA : IDE_PHASE_PIO, xfer->buffer, xfer->at,
                               xfer->part, false);
    }
}
