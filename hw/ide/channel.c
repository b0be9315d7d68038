/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One parallel ATA channel: two devices behind one set of registers (ATA/ATAPI-6 chapters 6 and 9).
 */
#include "hw/ide/pci-ide-int.h"

#include <errno.h>
#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/trace.h"

static IdeChannel *channel_of(IdeCommand *command)
{
    return IDE_OWNER(command, IdeChannel, command);
}

static unsigned selected_unit(const IdeChannel *channel)
{
    return channel->select & ATA_DEVICE_SELECT ? 1 : 0;
}

static IdeDevice *selected(const IdeChannel *channel)
{
    return channel->device[selected_unit(channel)];
}

void channel_show_line(IdeChannel *channel)
{
    bool line = channel->intrq && !(channel->control & ATA_CONTROL_NIEN);

    if (line != channel->line) {
        channel->line = line;
        channel->line_changed(channel);
    }
}

void channel_set_intrq(IdeChannel *channel, bool level)
{
    channel->intrq = level;
    if (level && !(channel->control & ATA_CONTROL_NIEN) && !channel->line) {
        channel->dma.status |= 4; /* Interrupt: the rising edge (BMIDE 1.0) */
    }
    channel_show_line(channel);
}

static void pio_done(IdeChannel *channel)
{
    g_clear_pointer(&channel->pio, buffer_unref);
}

static void command_over(IdeChannel *channel)
{
    channel->busy = false;
    pio_done(channel);
    bmdma_end(channel);
}

void channel_abandon(IdeChannel *channel)
{
    if (channel->busy) {
        command_over(channel);
        ide_command_abandon(&channel->command);
    }
}

void channel_fail(IdeChannel *channel)
{
    IdeDevice *device = channel->command.device;

    channel_abandon(channel);
    device->tf.status = ATA_STATUS_IDLE | ATA_STATUS_ERR;
    device->tf.error = ATA_ERROR_ABRT;
    channel_set_intrq(channel, true);
}

static void settled(PciFence *fence)
{
    IdeChannel *channel = IDE_OWNER(fence, IdeChannel, settle);

    channel->settling = false;
    if (channel->tell_broken) {
        channel->tell_broken = false;
        channel->told_broken = true;
        channel_set_intrq(channel, true);
    }
}

static void cancel_settle(IdeChannel *channel)
{
    if (channel->settling && channel->pci->host) {
        channel->pci->host->ops->fence_cancel(channel->pci->host, &channel->settle);
    }
    channel->settling = channel->tell_broken = false;
}

/* Breaks the running command off for a reset by the guest. `tell`: an interrupt follows if it was one with
 * DMA, as on QEMU, where such a command ends before the reset; a host that waits for the bus master alone
 * sees its end. */
static void channel_break_off(IdeChannel *channel, bool tell)
{
    tell = tell && channel->dma.engaged;
    PciHost *host = channel->pci->host;
    bool was_busy = channel->busy;

    channel_abandon(channel);
    if (!was_busy || !host) {
        return;
    }
    if (!channel->other->busy) {
        host->ops->dma_drop(host);
    }
    cancel_settle(channel);
    channel->settle = (PciFence){.done = settled};
    channel->settling = true;
    channel->tell_broken = tell;
    host->ops->fence(host, &channel->settle);
}

/* The device's callbacks. */

static void channel_arm_pio(IdeChannel *channel, Buffer *buffer, size_t offset, size_t len, bool out)
{
    channel->pio = buffer_ref(buffer);
    channel->pio_at = offset;
    channel->pio_end = offset + len;
    channel->pio_out = out;
}

static void channel_data_in(IdeCommand *command, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                            bool interrupt)
{
    IdeChannel *channel = channel_of(command);

    if (phase == IDE_PHASE_DMA) {
        bmdma_transfer(channel, buffer, offset, len, false);
        return;
    }
    channel_arm_pio(channel, buffer, offset, len, false);
    if (interrupt) {
        channel_set_intrq(channel, true);
    }
}

static void channel_data_out(IdeCommand *command, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                             bool interrupt)
{
    IdeChannel *channel = channel_of(command);

    if (phase == IDE_PHASE_DMA) {
        bmdma_transfer(channel, buffer, offset, len, true);
        return;
    }
    channel_arm_pio(channel, buffer, offset, len, true);
    if (interrupt) {
        channel_set_intrq(channel, true);
    }
}

static bool channel_map_in(IdeCommand *command, size_t len, struct iovec *iov, int *niov)
{
    return bmdma_map(channel_of(command), len, iov, niov);
}

static void channel_complete(IdeCommand *command, bool interrupt)
{
    IdeChannel *channel = channel_of(command);

    trace(ide_command_end, channel->index, command->device->slave, command->device->tf.status);
    command_over(channel);
    if (interrupt) {
        channel_set_intrq(channel, true);
    }
}

static const IdeCommandOps channel_ops = {
    .data_in = channel_data_in,
    .data_out = channel_data_out,
    .map_in = channel_map_in,
    .complete = channel_complete,
};

void channel_take_command(IdeChannel *channel, IdeDevice *device)
{
    channel->busy = true;
    channel->command = (IdeCommand){.ops = &channel_ops, .device = device};
    device->ops->adopt(device, &channel->command);
}

/* Registers. */

static void start_command(IdeChannel *channel, uint8_t code)
{
    IdeDevice *device = selected(channel);

    if (code == ATA_CMD_DIAGNOSTIC) { /* both execute it, device 0 reports and is selected (ATA6 8.11) */
        channel->select &= (uint8_t)~ATA_DEVICE_SELECT;
        for (unsigned i = 0; i < 2; i++) {
            if (channel->device[i]) {
                channel->device[i]->tf.device = channel->select;
                ide_device_reset(channel->device[i], IDE_RESET_SOFT);
            }
        }
        device = channel->device[0] ? channel->device[0] : channel->device[1];
    }
    if (!device) {
        return;
    }
    channel_set_intrq(channel, false);
    trace(ide_command_start, channel->index, device->slave, code);
    device->tf.command = code;
    channel->busy = true;
    channel->command.ops = &channel_ops;
    ide_device_start(device, &channel->command);
}

static void write_command(IdeChannel *channel, uint8_t code)
{
    if (channel->busy) {
        if (code != ATA_CMD_DEVICE_RESET || channel->command.device != selected(channel) ||
            selected(channel)->signature != TASKFILE_PACKET) {
            return;
        }
        channel_break_off(channel, false);
    } else if (channel->settling) {
        return;
    }
    start_command(channel, code);
}

static void write_data(IdeChannel *channel, unsigned size, uint32_t value)
{
    for (unsigned i = 0; i < size && channel->pio && channel->pio_out; i++, value >>= 8) {
        channel->pio->data[channel->pio_at++] = (uint8_t)value;
        if (channel->pio_at == channel->pio_end) {
            pio_done(channel);
            ide_command_data_done(&channel->command, 0);
            return;
        }
    }
}

/* A last odd byte comes in a word whose other half is 0. */
static uint32_t read_data(IdeChannel *channel, unsigned size)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < size && channel->pio && !channel->pio_out; i++) {
        value |= (uint32_t)channel->pio->data[channel->pio_at++] << (8 * i);
        if (channel->pio_at == channel->pio_end) {
            pio_done(channel);
            ide_command_data_done(&channel->command, 0);
            break;
        }
    }
    return value;
}

void channel_write(IdeChannel *channel, unsigned reg, unsigned size, uint32_t value)
{
    if (reg == TASKFILE_DATA) {
        write_data(channel, size, value);
        return;
    }
    channel->control &= (uint8_t)~ATA_CONTROL_HOB; /* ATA6 7.7: any write to the command block */
    for (unsigned i = 0; i < 2; i++) {
        if (channel->device[i]) {
            channel->device[i]->tf.control = channel->control;
        }
    }
    if (channel->control & ATA_CONTROL_SRST) {
        return;
    }
    if (reg == TASKFILE_COMMAND) {
        write_command(channel, (uint8_t)value);
        return;
    }
    if (channel->busy) {
        return;
    }
    if (reg == TASKFILE_DEVICE) {
        channel->select = (uint8_t)value | ATA_DEVICE_OBS;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (channel->device[i]) {
            taskfile_port_write(&channel->device[i]->tf, reg, (uint8_t)value);
        }
    }
}

/* An absent device reads as 0 throughout: status 0 is what device 0 answers for an absent device 1
 * (ATA6 9.16.1), and registers that do not keep what is written tell a host at once that nobody is there. */
uint8_t channel_read_alternate_status(const IdeChannel *channel)
{
    const IdeDevice *device = selected(channel);

    if (!device) {
        return 0;
    }
    return channel->settling || (channel->control & ATA_CONTROL_SRST && !channel->told_broken)
               ? ATA_STATUS_BSY
               : device->tf.status;
}

uint32_t channel_read(IdeChannel *channel, unsigned reg, unsigned size)
{
    const IdeDevice *device = selected(channel);

    if (reg == TASKFILE_DATA) {
        return read_data(channel, size);
    }
    if (reg == TASKFILE_COMMAND) {
        uint8_t status = channel_read_alternate_status(channel);

        if (device) {
            channel_set_intrq(channel, false);
        }
        return status;
    }
    if (!device) {
        return reg == TASKFILE_DEVICE && channel->device[0] ? channel->select : 0;
    }
    if (reg == TASKFILE_DEVICE) { /* the device's own: commands leave results in it */
        return (device->tf.device & (uint8_t)~ATA_DEVICE_SELECT) | (channel->select & ATA_DEVICE_SELECT);
    }
    return taskfile_port_read(&device->tf, reg);
}

static void software_reset(IdeChannel *channel)
{
    channel->select = ATA_DEVICE_OBS;
    for (unsigned i = 0; i < 2; i++) {
        if (channel->device[i]) {
            channel->device[i]->tf.device = channel->select;
            ide_device_reset(channel->device[i], IDE_RESET_SOFT);
        }
    }
}

void channel_write_control(IdeChannel *channel, uint8_t value)
{
    uint8_t old = channel->control;

    channel->control = value;
    for (unsigned i = 0; i < 2; i++) {
        if (channel->device[i]) {
            channel->device[i]->tf.control = value;
        }
    }
    if (value & ~old & ATA_CONTROL_SRST) {
        trace(ide_software_reset, channel->index);
        channel_set_intrq(channel, false);
        channel->told_broken = false;
        channel_break_off(channel, true);
        software_reset(channel);
    } else if (old & ~value & ATA_CONTROL_SRST) {
        software_reset(channel);
    }
    channel_set_intrq(channel, channel->intrq);
}

void channel_reset(IdeChannel *channel)
{
    channel_abandon(channel);
    cancel_settle(channel);
    bmdma_reset(channel);
    channel->control = 0;
    channel->select = ATA_DEVICE_OBS;
    for (unsigned i = 0; i < 2; i++) {
        if (channel->device[i]) {
            channel->device[i]->tf.control = 0;
            channel->device[i]->tf.device = channel->select;
            ide_device_reset(channel->device[i], IDE_RESET_HARD);
        }
    }
    channel_set_intrq(channel, false);
}

void channel_init(IdeChannel *channel, PciDevice *pci, unsigned index, const IdeChannel *other)
{
    channel->pci = pci;
    channel->index = index;
    channel->other = other;
    channel->select = ATA_DEVICE_OBS;
}
