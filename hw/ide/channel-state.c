/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of a parallel channel: registers, bus master, both devices, and the command in the
 * middle of its work, with what is left of the block at the data port or of a chunk that waits for the bus
 * master.
 */
#include "hw/ide/pci-ide-int.h"

#include <string.h>

#include "hw/ide/ata-regs.h"

#define WINDOW   0x10000u /* bytes that a PRD table may have before its boundary */
#define RUNS_MAX (WINDOW / 8)

typedef struct BmdmaImage {
    uint8_t command, status;
    uint32_t table, next, table_left;
    bool engaged, end_of_table;
    Sgl sgl;
} BmdmaImage;

typedef struct ChannelImage {
    uint8_t select, control;
    bool intrq, told_broken;
    const StateOps *ops[2]; /* of the devices */
    void *devices[2];
    bool busy;
    unsigned unit; /* whose command it is */
    IdeWait wait;
    uint32_t left; /* PIO: bytes that the guest has still to take or to give */
    Buffer *data;  /* IN: these bytes */
    size_t data_len;
    BmdmaImage dma;
} ChannelImage;

bool channel_settled(const IdeChannel *channel)
{
    return !channel->settling && !channel->dma.reading && !channel->dma.fencing;
}

static void capture_bytes(ChannelImage *image, const Buffer *buffer, size_t at, size_t len)
{
    image->data = buffer_new(MAX(len, 1), BUFFER_ALIGN);
    image->data_len = len;
    memcpy(image->data->data, buffer->data + at, len);
}

static void capture_wait(const IdeChannel *channel, ChannelImage *image)
{
    const Bmdma *dma = &channel->dma;

    image->unit = channel->command.device == channel->device[1];
    image->wait = channel->pio   ? channel->pio_out ? IDE_WAIT_PIO_OUT : IDE_WAIT_PIO_IN
                  : dma->pending ? dma->out ? IDE_WAIT_DMA_OUT : IDE_WAIT_DMA_IN
                                 : IDE_WAIT_IO;
    if (channel->pio) {
        image->left = (uint32_t)(channel->pio_end - channel->pio_at);
    }
    if (image->wait == IDE_WAIT_PIO_IN) {
        capture_bytes(image, channel->pio, channel->pio_at, image->left);
    } else if (image->wait == IDE_WAIT_DMA_IN && dma->data) {
        capture_bytes(image, dma->data, dma->offset, dma->left);
    }
}

static void channel_capture(void *object, void *data)
{
    const IdeChannel *channel = object;
    const Bmdma *dma = &channel->dma;
    ChannelImage *image = data;

    image->select = channel->select;
    image->control = channel->control;
    image->intrq = channel->intrq;
    image->told_broken = channel->told_broken;
    image->busy = channel->busy;
    if (channel->busy) {
        capture_wait(channel, image);
    }
    image->dma = (BmdmaImage){.command = dma->command,
                              .status = dma->status,
                              .table = dma->table,
                              .next = dma->next,
                              .table_left = dma->table_left,
                              .engaged = dma->engaged,
                              .end_of_table = dma->end_of_table};
    for (Sgl left = sgl_peek(&dma->sgl); left.index < left.count;) {
        uint64_t addr;
        size_t len;

        sgl_take(&left, SIZE_MAX, &addr, &len);
        sgl_add(&image->dma.sgl, addr, len);
    }
}

static void visit_bmdma(StateIo *io, BmdmaImage *dma)
{
    state_u8(io, &dma->command);
    state_u8(io, &dma->status);
    state_u32(io, &dma->table);
    state_bool(io, &dma->engaged);
    state_u32(io, &dma->next);
    STATE_NUMBER(io, dma->table_left, 0, WINDOW);
    state_bool(io, &dma->end_of_table);
    sgl_visit(&dma->sgl, io, RUNS_MAX);
    if (dma->command & ~0x09 || dma->status & ~0x67 || dma->table & 3) {
        state_fail(io, "a register of the bus master has bits that it has not");
    } else if (dma->table_left % 8 && dma->table_left % 4) {
        state_fail(io, "the table of the bus master is not aligned");
    }
}

/* The devices' images against the channel's. */
static void check_command(const IdeChannel *channel, const ChannelImage *image, StateIo *io)
{
    for (unsigned unit = 0; unit < 2; unit++) {
        const IdeDevice *device = channel->device[unit];
        size_t len = 0;
        IdeWait wait = device && image->devices[unit] ? device->ops->image_wait(image->devices[unit], &len)
                                                      : IDE_WAIT_NONE;

        if (wait != (image->busy && image->unit == unit ? image->wait : IDE_WAIT_NONE)) {
            state_fail(io, "device %u is at something else than its channel", unit);
        } else if ((wait == IDE_WAIT_PIO_IN && image->data_len != image->left) ||
                   (wait == IDE_WAIT_DMA_IN && image->data_len != len) ||
                   ((wait == IDE_WAIT_PIO_IN || wait == IDE_WAIT_PIO_OUT) &&
                    (!image->left || image->left > len))) {
            state_fail(io, "device %u and its channel have different data", unit);
        }
    }
}

static void channel_visit(void *object, void *data, StateIo *io)
{
    IdeChannel *channel = object;
    ChannelImage *image = data;

    state_u8(io, &image->select);
    state_u8(io, &image->control);
    state_bool(io, &image->intrq);
    state_bool(io, &image->told_broken);
    for (unsigned unit = 0; unit < 2; unit++) {
        IdeDevice *device = channel->device[unit];
        g_autofree char *what = g_strdup_printf("a device as unit %u of channel %u", unit, channel->index);

        image->ops[unit] = device ? device->ops->state : NULL;
        state_optional(io, what, image->ops[unit], device, &image->devices[unit]);
    }
    visit_bmdma(io, &image->dma);
    state_bool(io, &image->busy);
    if (image->busy) {
        STATE_NUMBER(io, image->unit, 0, 1);
        STATE_NUMBER(io, image->wait, IDE_WAIT_IO, IDE_WAIT_DMA_OUT);
        state_u32(io, &image->left);
        state_buffer(io, "data", &image->data, &image->data_len, BUFFER_MAX, 0);
        if (image->dma.engaged && image->wait >= IDE_WAIT_DMA_IN) {
            state_fail(io, "data waits for the bus master, which is at work");
        }
    }
    if (state_loading(io) && !state_failed(io)) {
        check_command(channel, image, io);
    }
}

static void commit_bmdma(Bmdma *dma, BmdmaImage *image)
{
    dma->command = image->command;
    dma->status = image->status;
    dma->table = image->table;
    dma->next = image->next;
    dma->table_left = image->table_left;
    dma->engaged = image->engaged;
    dma->end_of_table = image->end_of_table;
    sgl_clear(&dma->sgl);
    dma->sgl = image->sgl;
    image->sgl = (Sgl){0};
}

static void commit_command(IdeChannel *channel, ChannelImage *image)
{
    IdeCommand *command = &channel->command;

    channel_take_command(channel, channel->device[image->unit]);
    if (image->wait == IDE_WAIT_PIO_OUT) {
        channel->pio_at = channel->pio_end - image->left;
    } else if (image->wait == IDE_WAIT_PIO_IN) {
        command->ops->data_in(command, IDE_PHASE_PIO, image->data, 0, image->left, false);
    } else if (image->wait == IDE_WAIT_DMA_IN) {
        command->ops->data_in(command, IDE_PHASE_DMA, image->data, 0, image->data_len, false);
    }
}

static void channel_commit(void *object, void *data)
{
    IdeChannel *channel = object;
    ChannelImage *image = data;

    channel_abandon(channel);
    for (unsigned unit = 0; unit < 2; unit++) {
        IdeDevice *device = channel->device[unit];

        if (device) {
            state_commit(device->ops->state, device, g_steal_pointer(&image->devices[unit]));
        }
    }
    channel->select = image->select | ATA_DEVICE_OBS;
    channel->control = image->control;
    channel->intrq = image->intrq;
    channel->told_broken = image->told_broken;
    commit_bmdma(&channel->dma, &image->dma);
    channel_show_line(channel);
    if (image->busy) {
        commit_command(channel, image);
    }
}

static void channel_clear(void *data)
{
    ChannelImage *image = data;

    for (unsigned unit = 0; unit < 2; unit++) {
        if (image->devices[unit]) {
            state_discard(image->ops[unit], image->devices[unit]);
        }
    }
    buffer_unref(image->data);
    sgl_clear(&image->dma.sgl);
}

const StateOps channel_state = {
    .name = "ide-channel",
    .version = 1,
    .size = sizeof(ChannelImage),
    .capture = channel_capture,
    .visit = channel_visit,
    .commit = channel_commit,
    .clear = channel_clear,
};

void channel_go_on(IdeChannel *channel)
{
    for (unsigned unit = 0; unit < 2; unit++) {
        if (channel->device[unit]) {
            channel->device[unit]->ops->go_on(channel->device[unit]);
        }
    }
}
