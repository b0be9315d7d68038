/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The packet protocol (ATA/ATAPI-6 9.8 and 9.9, SATA 3 11.8) between a controller and an MmcDrive.
 */
#include "hw/ide/atapi-int.h"

#include <errno.h>
#include <string.h>

static void atapi_run(AtapiDevice *atapi);

void atapi_enter(AtapiDevice *atapi, AtapiState state)
{
    Taskfile *tf = &atapi->ide.tf;
    uint8_t busy = ATA_STATUS_BSY, reason = 0;

    atapi->state = state;
    switch (state) {
    case ATAPI_AWAIT_PACKET:
        busy = ATA_STATUS_DRQ;
        reason = ATAPI_REASON_CD;
        break;
    case ATAPI_DATA_IN:
        busy = atapi->dma ? ATA_STATUS_BSY : ATA_STATUS_DRQ;
        reason = ATAPI_REASON_IO;
        break;
    case ATAPI_DATA_OUT:
        busy = atapi->dma ? ATA_STATUS_BSY : ATA_STATUS_DRQ;
        break;
    case ATAPI_IDLE:
    case ATAPI_STATUS:
        busy = 0;
        reason = ATAPI_REASON_CD | ATAPI_REASON_IO;
        break;
    case ATAPI_EXECUTING:
        break;
    }
    tf->status = ATA_STATUS_IDLE | busy;
    if (tf->command == ATA_CMD_PACKET) {
        tf->count = reason;
    }
}

static void atapi_drop_data(AtapiDevice *atapi)
{
    g_clear_pointer(&atapi->data, buffer_unref);
    atapi->left = 0;
}

void atapi_end(AtapiDevice *atapi, uint8_t error, bool interrupt)
{
    IdeCommand *command = g_steal_pointer(&atapi->command);

    atapi_drop_data(atapi);
    atapi_enter(atapi, ATAPI_STATUS);
    atapi->ide.tf.error = error;
    atapi->ide.tf.status |= error ? ATA_STATUS_ERR : 0;
    atapi->state = ATAPI_IDLE;
    command->ops->complete(command, interrupt);
}

/* An end that the drive knows nothing of. */
static void atapi_abort(AtapiDevice *atapi)
{
    if (atapi->mmc) {
        mmc_command_abandon(g_steal_pointer(&atapi->mmc));
    }
    atapi->next = ATAPI_NEXT_NONE;
    atapi_end(atapi, ATA_ERROR_ABRT, true);
}

void atapi_reply(AtapiDevice *atapi, Buffer *buffer, size_t len)
{
    IdeCommand *command = atapi->command;
    g_autoptr(Buffer) data = buffer;

    atapi->dma = false;
    atapi->block = len;
    atapi_enter(atapi, ATAPI_DATA_IN);
    command->ops->data_in(command, IDE_PHASE_PIO, data, 0, len, true);
}

/* The drive's callbacks. */

static void atapi_mmc_data_in(MmcCommand *mmc, Buffer *buffer, size_t offset, size_t len)
{
    AtapiDevice *atapi = mmc_command_opaque(mmc);

    if (atapi->dma) {
        atapi->block = len;
        atapi_enter(atapi, ATAPI_DATA_IN);
        atapi->command->ops->data_in(atapi->command, IDE_PHASE_DMA, buffer, offset, len, false);
        return;
    }
    atapi->data = buffer_ref(buffer);
    atapi->offset = offset;
    atapi->left = len;
    atapi->state = ATAPI_DATA_IN;
    atapi->next = ATAPI_NEXT_BLOCK;
    atapi_run(atapi);
}

static void atapi_mmc_data_out(MmcCommand *mmc, size_t len)
{
    AtapiDevice *atapi = mmc_command_opaque(mmc);

    atapi->data = buffer_new(len, BUFFER_ALIGN);
    atapi->offset = 0;
    atapi->left = len;
    atapi->total = len;
    atapi->state = ATAPI_DATA_OUT;
    atapi->next = ATAPI_NEXT_BLOCK;
    atapi_run(atapi);
}

/* CHECK CONDITION shows the sense key in bits 7:4 of the error register (ACS 7.18.4). */
static void atapi_mmc_complete(MmcCommand *mmc, const MmcSense *sense)
{
    AtapiDevice *atapi = mmc_command_opaque(mmc);
    uint8_t key = sense->key;

    atapi->mmc = NULL;
    atapi->next = ATAPI_NEXT_NONE;
    mmc_command_free(mmc);
    atapi_end(atapi, (uint8_t)(key << 4), true);
}

static bool atapi_mmc_map_in(MmcCommand *mmc, size_t len, struct iovec *iov, int *niov)
{
    AtapiDevice *atapi = mmc_command_opaque(mmc);

    return atapi->dma && atapi->command->ops->map_in &&
           atapi->command->ops->map_in(atapi->command, len, iov, niov);
}

const MmcTransport atapi_transport = {
    .data_in = atapi_mmc_data_in,
    .data_out = atapi_mmc_data_out,
    .complete = atapi_mmc_complete,
    .map_in = atapi_mmc_map_in,
};

/* Offers the next DRQ block, or all of an outgoing DMA chunk. */
static void atapi_next_block(AtapiDevice *atapi)
{
    IdeCommand *command = atapi->command;
    IdePhase phase = atapi->dma ? IDE_PHASE_DMA : IDE_PHASE_PIO;

    atapi->block = atapi->dma ? atapi->left : MIN(atapi->left, atapi->limit);
    if (!atapi->dma) {
        taskfile_set_byte_count(&atapi->ide.tf, (uint16_t)atapi->block);
    }
    atapi_enter(atapi, atapi->state);
    if (atapi->state == ATAPI_DATA_IN) {
        command->ops->data_in(command, phase, atapi->data, atapi->offset, atapi->block, true);
    } else {
        command->ops->data_out(command, phase, atapi->data, atapi->offset, atapi->block, true);
    }
}

static void atapi_run(AtapiDevice *atapi)
{
    if (atapi->running) {
        return; /* the loop further up the stack sees the new `next` */
    }
    atapi->running = true;
    while (atapi->next != ATAPI_NEXT_NONE) {
        AtapiNext next = atapi->next;

        atapi->next = ATAPI_NEXT_NONE;
        if (next == ATAPI_NEXT_BLOCK) {
            atapi_next_block(atapi);
            continue;
        }
        atapi_enter(atapi, ATAPI_EXECUTING);
        if (next == ATAPI_NEXT_START) {
            mmc_command_start(atapi->mmc);
        } else if (next == ATAPI_NEXT_RESUME) {
            mmc_command_resume(atapi->mmc);
        } else {
            g_autoptr(Buffer) data = g_steal_pointer(&atapi->data);

            mmc_command_data_out(atapi->mmc, data->data, atapi->total);
        }
    }
    atapi->running = false;
}

/* A zero limit is for commands without data; with data by PIO it aborts (ACS 7.18.3). */
static void atapi_packet_here(AtapiDevice *atapi)
{
    uint8_t cdb[MMC_CDB_SIZE] = {0};

    memcpy(cdb, atapi->packet->data, ATAPI_PACKET_SIZE);
    atapi->power = ATA_POWER_ACTIVE;
    atapi->mmc = mmc_command_new(atapi->drive, cdb, &atapi_transport, atapi);
    if (!atapi->dma && !taskfile_byte_count(&atapi->ide.tf) &&
        mmc_command_direction(atapi->mmc) != MMC_DATA_NONE && mmc_command_length(atapi->mmc)) {
        atapi_abort(atapi);
        return;
    }
    atapi->next = ATAPI_NEXT_START;
    atapi_run(atapi);
}

static void atapi_block_here(AtapiDevice *atapi)
{
    atapi->offset += atapi->block;
    atapi->left -= atapi->block;
    atapi->next = atapi->left ? ATAPI_NEXT_BLOCK : ATAPI_NEXT_TAKE;
    atapi_run(atapi);
}

static void atapi_data_in_done(AtapiDevice *atapi)
{
    if (!atapi->mmc) {
        atapi_end(atapi, 0, false); /* atapi_reply(): PIO data-in ends with its last block */
        return;
    }
    if (!atapi->dma) {
        atapi->offset += atapi->block;
        atapi->left -= atapi->block;
    }
    if (!atapi->dma && atapi->left) {
        atapi->next = ATAPI_NEXT_BLOCK;
    } else {
        atapi_drop_data(atapi);
        atapi->next = ATAPI_NEXT_RESUME;
    }
    atapi_run(atapi);
}

static void atapi_data_done(IdeDevice *device, IdeCommand *command, int result)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    switch (atapi->state) {
    case ATAPI_AWAIT_PACKET:
        if (result < 0) {
            atapi_abort(atapi);
        } else {
            atapi_packet_here(atapi);
        }
        break;
    case ATAPI_DATA_IN:
        atapi_data_in_done(atapi); /* a host that wanted less than it asked for has what it wanted */
        break;
    case ATAPI_DATA_OUT:
        if (result < 0) {
            atapi_abort(atapi);
        } else {
            atapi_block_here(atapi);
        }
        break;
    default:
        break;
    }
}

/* FFFFh means FFFEh, odd limits are rounded down (ACS 7.18.3). */
static uint16_t atapi_limit(uint16_t count)
{
    count &= (uint16_t)~1;
    return count ? count : 0xfffe;
}

static void atapi_start(IdeDevice *device, IdeCommand *command)
{
    AtapiDevice *atapi = (AtapiDevice *)device;
    uint8_t features = device->tf.features & 0xff;

    atapi->command = command;
    if (device->tf.command != ATA_CMD_PACKET) {
        ata_table_run(atapi);
        return;
    }
    if (features & ATAPI_FEATURE_OVL) {
        atapi_abort(atapi);
        return;
    }
    atapi->dma = features & ATAPI_FEATURE_DMA;
    atapi->limit = atapi_limit(taskfile_byte_count(&device->tf));
    atapi_enter(atapi, ATAPI_AWAIT_PACKET);
    command->ops->data_out(command, IDE_PHASE_PACKET, atapi->packet, 0, ATAPI_PACKET_SIZE, false);
}

static void atapi_abandon(IdeDevice *device, IdeCommand *command)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    if (atapi->command != command) {
        return;
    }
    if (atapi->mmc) {
        mmc_command_abandon(g_steal_pointer(&atapi->mmc));
    }
    atapi_drop_data(atapi);
    atapi->next = ATAPI_NEXT_NONE;
    atapi->parked = false;
    atapi->command = NULL;
    atapi->state = ATAPI_IDLE;
    device->tf.status = ATA_STATUS_IDLE;
}

/* A software reset leaves the drive's unit attention alone (ATA6 9.12: like DEVICE RESET). At power-on the
 * drive has the attention it was made with. */
static void atapi_reset(IdeDevice *device, IdeReset reset)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    if (reset != IDE_RESET_SOFT) {
        atapi->mode = (AtaTransferMode)ATA_TRANSFER_MODE_DEFAULT;
    }
    atapi->power = ATA_POWER_ACTIVE;
    if (reset != IDE_RESET_POWER_ON) {
        mmc_drive_reset(atapi->drive, reset == IDE_RESET_HARD);
    }
    taskfile_set_signature(&device->tf, TASKFILE_PACKET);
}

static void atapi_free(IdeDevice *device)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    g_free(atapi->serial);
    g_free(atapi->model);
    g_free(atapi->firmware);
    buffer_unref(atapi->packet);
    g_free(atapi);
}

static const IdeDeviceOps atapi_ops = {
    .start = atapi_start,
    .data_done = atapi_data_done,
    .abandon = atapi_abandon,
    .reset = atapi_reset,
    .free = atapi_free,
    .state = &atapi_state,
    .image_wait = atapi_image_wait,
    .adopt = atapi_adopt,
    .go_on = atapi_go_on,
};

IdeDevice *atapi_new(MmcDrive *drive, const IdeIdentity *identity)
{
    AtapiDevice *atapi = g_new0(AtapiDevice, 1);
    const char *serial = identity->serial ? identity->serial : mmc_drive_serial(drive);

    atapi->ide.ops = &atapi_ops;
    atapi->ide.signature = TASKFILE_PACKET;
    atapi->drive = drive;
    atapi->serial = g_strdup(serial);
    atapi->model = g_strdup(identity->model ? identity->model : "SPINDLE CD/DVD Drive");
    atapi->firmware = g_strdup(identity->firmware ? identity->firmware : "1.0");
    atapi->wwn = identity->wwn;
    atapi->mode = (AtaTransferMode)ATA_TRANSFER_MODE_DEFAULT;
    atapi->power = ATA_POWER_ACTIVE;
    atapi->packet = buffer_new(MMC_CDB_SIZE, BUFFER_ALIGN);
    taskfile_set_signature(&atapi->ide.tf, TASKFILE_PACKET);
    return &atapi->ide;
}
