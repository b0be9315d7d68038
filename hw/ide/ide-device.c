/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/ide-device.h"

#include "hw/ide/ata-regs.h"

void ide_device_start(IdeDevice *device, IdeCommand *command)
{
    command->device = device;
    command->queued = false;
    device->tf.status = (device->tf.status & ATA_STATUS_IDLE) | ATA_STATUS_BSY;
    device->tf.error = 0;
    device->ops->start(device, command);
}

void ide_command_data_done(IdeCommand *command, int result)
{
    command->device->ops->data_done(command->device, command, result);
}

void ide_command_abandon(IdeCommand *command)
{
    command->device->ops->abandon(command->device, command);
}

void ide_device_reset(IdeDevice *device, IdeReset reset)
{
    device->ops->reset(device, reset);
}

void ide_device_free(IdeDevice *device)
{
    if (device) {
        device->ops->free(device);
    }
}
