/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the packet device. On a parallel channel a command goes on in the state that it was
 * in: with the rest of the packet or of a block of data in the controller's hands, or with its drive at work.
 */
#include "hw/ide/atapi-int.h"

#include <string.h>

#define OUT_MAX 65536 /* bytes of parameters, more than any command takes */

typedef struct AtapiImage {
    AtaTransferMode mode;
    uint8_t power;
    Taskfile tf;
    void *drive; /* the MmcDrive's */

    bool busy; /* on a parallel channel; then the rest counts */
    AtapiState state;
    bool dma;
    uint16_t limit;
    uint8_t packet[ATAPI_PACKET_SIZE];
    bool has_mmc;
    MmcCommandImage mmc;
    Buffer *data; /* of a PIO data-in chunk what is left, the present block first; of a data-out one all */
    size_t data_len;
    size_t offset, block;
} AtapiImage;

static void capture_data(const AtapiDevice *atapi, AtapiImage *image)
{
    bool in = atapi->state == ATAPI_DATA_IN;

    image->data_len = in ? atapi->left : atapi->total;
    image->offset = in ? 0 : atapi->offset;
    image->data = buffer_new(MAX(image->data_len, 1), BUFFER_ALIGN);
    memcpy(image->data->data, atapi->data->data + (in ? atapi->offset : 0), image->data_len);
}

static void atapi_capture(void *object, void *data)
{
    const AtapiDevice *atapi = object;
    AtapiImage *image = data;

    image->mode = atapi->mode;
    image->power = atapi->power;
    image->tf = atapi->ide.tf;
    image->busy = atapi->command && !atapi->ide.serial_link;
    if (!image->busy) {
        image->tf.status &= (uint8_t) ~(ATA_STATUS_BSY | ATA_STATUS_DRQ);
        return;
    }
    image->state = atapi->state;
    image->dma = atapi->dma;
    image->limit = atapi->limit;
    image->block = atapi->block;
    memcpy(image->packet, atapi->packet->data, ATAPI_PACKET_SIZE);
    image->has_mmc = atapi->mmc != NULL;
    if (image->has_mmc) {
        mmc_command_capture(atapi->mmc, &image->mmc);
    }
    if (atapi->data && (atapi->state == ATAPI_DATA_IN || atapi->state == ATAPI_DATA_OUT)) {
        capture_data(atapi, image);
    }
}

/* Each state with the phase that its drive's command must be in, and the data there is. */
static void check_command(StateIo *io, const AtapiImage *image)
{
    const MmcPhase phase = image->mmc.phase;
    size_t len = image->data_len;
    bool good = true;

    switch (image->state) {
    case ATAPI_AWAIT_PACKET:
        good = !image->has_mmc && !len;
        break;
    case ATAPI_EXECUTING:
        good = image->has_mmc && phase == MMC_PHASE_READING && !len;
        break;
    case ATAPI_DATA_IN:
        good = image->block && (!image->has_mmc ? !image->dma && !len && image->block <= ATA_IDENTIFY_SIZE
                                : image->dma    ? phase == MMC_PHASE_TAKEN && !len
                                                : phase == MMC_PHASE_TAKEN && image->block <= len &&
                                                   image->block <= image->limit);
        break;
    default:
        good = image->state == ATAPI_DATA_OUT && image->has_mmc && phase == MMC_PHASE_WANTED &&
               image->block && image->mmc.want == len && image->offset < len &&
               image->block <= len - image->offset && (image->dma || image->block <= image->limit);
        break;
    }
    if (!good) {
        state_fail(io, "its command is not what its state %d needs", (int)image->state);
    }
}

static void atapi_visit(void *object, void *data, StateIo *io)
{
    const AtapiDevice *atapi = object;
    AtapiImage *image = data;
    bool in;

    ata_transfer_mode_visit(&image->mode, io);
    ata_power_visit(&image->power, io);
    taskfile_visit(&image->tf, io);
    state_child(io, &mmc_drive_state, atapi->drive, &image->drive);
    state_bool(io, &image->busy);
    if (!image->busy) {
        return;
    }
    if (atapi->ide.serial_link) {
        state_fail(io, "it holds a command, and a serial controller starts commands anew");
    }
    STATE_NUMBER(io, image->state, ATAPI_AWAIT_PACKET, ATAPI_DATA_OUT);
    state_bool(io, &image->dma);
    STATE_NUMBER(io, image->limit, 0, 0xfffe);
    state_bytes(io, image->packet, ATAPI_PACKET_SIZE);
    state_bool(io, &image->has_mmc);
    if (image->has_mmc) {
        mmc_command_visit(&image->mmc, io);
    }
    in = image->state == ATAPI_DATA_IN;
    state_buffer(io, "data", &image->data, &image->data_len, in ? BUFFER_MAX : OUT_MAX, 0);
    STATE_NUMBER(io, image->offset, 0, in ? 0 : OUT_MAX);
    STATE_NUMBER(io, image->block, 0, BUFFER_MAX);
    check_command(io, image);
}

/* The command's own parts wait for atapi_adopt(). */
static void atapi_commit(void *object, void *data)
{
    AtapiDevice *atapi = object;
    AtapiImage *image = data;

    atapi->mode = image->mode;
    atapi->power = image->power;
    atapi->ide.tf = image->tf;
    state_commit(&mmc_drive_state, atapi->drive, g_steal_pointer(&image->drive));
    if (!image->busy) {
        return;
    }
    atapi->state = image->state;
    atapi->dma = image->dma;
    atapi->limit = image->limit;
    atapi->block = image->block;
    memcpy(atapi->packet->data, image->packet, ATAPI_PACKET_SIZE);
    atapi->data = g_steal_pointer(&image->data);
    atapi->offset = image->offset;
    atapi->total = image->data_len;
    atapi->left = image->data_len - image->offset;
    if (image->has_mmc) {
        atapi->mmc = mmc_command_restore(atapi->drive, &image->mmc, &atapi_transport, atapi);
    }
}

static void atapi_image_clear(void *data)
{
    AtapiImage *image = data;

    state_discard(&mmc_drive_state, image->drive);
    buffer_unref(image->data);
}

const StateOps atapi_state = {
    .name = "ide-cd",
    .version = 1,
    .size = sizeof(AtapiImage),
    .capture = atapi_capture,
    .visit = atapi_visit,
    .commit = atapi_commit,
    .clear = atapi_image_clear,
};

IdeWait atapi_image_wait(const void *data, size_t *ret_len)
{
    const AtapiImage *image = data;

    *ret_len = image->block;
    if (!image->busy) {
        return IDE_WAIT_NONE;
    }
    switch (image->state) {
    case ATAPI_AWAIT_PACKET:
        *ret_len = ATAPI_PACKET_SIZE;
        return IDE_WAIT_PIO_OUT;
    case ATAPI_DATA_IN:
        return image->dma ? IDE_WAIT_DMA_IN : IDE_WAIT_PIO_IN;
    case ATAPI_DATA_OUT:
        return image->dma ? IDE_WAIT_DMA_OUT : IDE_WAIT_PIO_OUT;
    default:
        return IDE_WAIT_IO;
    }
}

void atapi_adopt(IdeDevice *device, IdeCommand *command)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    atapi->command = command;
    atapi->parked = atapi->state == ATAPI_EXECUTING;
    if (atapi->state == ATAPI_AWAIT_PACKET) {
        command->ops->data_out(command, IDE_PHASE_PACKET, atapi->packet, 0, ATAPI_PACKET_SIZE, false);
    } else if (atapi->state == ATAPI_DATA_OUT) {
        command->ops->data_out(command, atapi->dma ? IDE_PHASE_DMA : IDE_PHASE_PIO, atapi->data,
                               atapi->offset, atapi->block, false);
    }
}

void atapi_go_on(IdeDevice *device)
{
    AtapiDevice *atapi = (AtapiDevice *)device;

    if (atapi->parked && atapi->mmc) { /* a change of the medium may have ended it */
        mmc_command_go_on(atapi->mmc);
    }
    atapi->parked = false;
}
