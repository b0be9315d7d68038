/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/taskfile.h"

#include <string.h>

#include "hw/ide/ata-regs.h"

void taskfile_set_signature(Taskfile *tf, TaskfileSignature signature)
{
    bool packet = signature == TASKFILE_PACKET;

    memset(tf->lba, 0, sizeof tf->lba);
    tf->count = 1;
    tf->lba[0] = 1;
    tf->lba[1] = packet ? 0x14 : 0;
    tf->lba[2] = packet ? 0xeb : 0;
    tf->features = 0;
    tf->device &= ATA_DEVICE_SELECT | ATA_DEVICE_OBS;
    tf->error = ATA_DIAGNOSTIC_OK;
    tf->status = packet ? 0 : ATA_STATUS_IDLE;
}

uint32_t taskfile_signature_word(TaskfileSignature signature)
{
    return signature == TASKFILE_PACKET ? 0xeb140101 : 0x00000101;
}

uint32_t taskfile_lba28(const Taskfile *tf)
{
    return (uint32_t)(tf->device & 0xf) << 24 | (uint32_t)tf->lba[2] << 16 | (uint32_t)tf->lba[1] << 8 |
           tf->lba[0];
}

uint64_t taskfile_lba48(const Taskfile *tf)
{
    uint64_t lba = 0;

    for (int i = 5; i >= 0; i--) {
        lba = lba << 8 | tf->lba[i];
    }
    return lba;
}

void taskfile_set_lba28(Taskfile *tf, uint32_t lba)
{
    tf->lba[0] = lba;
    tf->lba[1] = lba >> 8;
    tf->lba[2] = lba >> 16;
    tf->device = (tf->device & 0xf0) | (lba >> 24 & 0xf);
}

void taskfile_set_lba48(Taskfile *tf, uint64_t lba)
{
    for (int i = 0; i < 6; i++) {
        tf->lba[i] = lba >> (8 * i);
    }
}

uint16_t taskfile_byte_count(const Taskfile *tf)
{
    return (uint16_t)(tf->lba[2] << 8 | tf->lba[1]);
}

void taskfile_set_byte_count(Taskfile *tf, uint16_t count)
{
    tf->lba[1] = count & 0xff;
    tf->lba[2] = count >> 8;
}

void taskfile_port_write(Taskfile *tf, unsigned reg, uint8_t value)
{
    switch (reg) {
    case TASKFILE_FEATURES:
        tf->features = (uint16_t)(tf->features << 8 | value);
        break;
    case TASKFILE_COUNT:
        tf->count = (uint16_t)(tf->count << 8 | value);
        break;
    case TASKFILE_LBA_LOW:
    case TASKFILE_LBA_MID:
    case TASKFILE_LBA_HIGH:
        tf->lba[reg - TASKFILE_LBA_LOW + 3] = tf->lba[reg - TASKFILE_LBA_LOW];
        tf->lba[reg - TASKFILE_LBA_LOW] = value;
        break;
    case TASKFILE_DEVICE:
        tf->device = value | ATA_DEVICE_OBS;
        break;
    default:
        break;
    }
}

uint8_t taskfile_port_read(const Taskfile *tf, unsigned reg)
{
    bool hob = tf->control & ATA_CONTROL_HOB;

    switch (reg) {
    case TASKFILE_FEATURES:
        return tf->error;
    case TASKFILE_COUNT:
        return hob ? tf->count >> 8 : tf->count & 0xff;
    case TASKFILE_LBA_LOW:
    case TASKFILE_LBA_MID:
    case TASKFILE_LBA_HIGH:
        return tf->lba[reg - TASKFILE_LBA_LOW + (hob ? 3 : 0)];
    case TASKFILE_DEVICE:
        return tf->device;
    case TASKFILE_COMMAND:
        return tf->status;
    default:
        return 0;
    }
}

void taskfile_visit(Taskfile *tf, StateIo *io)
{
    state_u16(io, &tf->features);
    state_u16(io, &tf->count);
    state_bytes(io, tf->lba, sizeof tf->lba);
    state_u8(io, &tf->device);
    state_u8(io, &tf->command);
    state_u8(io, &tf->control);
    state_u8(io, &tf->status);
    state_u8(io, &tf->error);
}
