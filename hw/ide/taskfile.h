/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ATA task file as a plain struct: what a register FIS carries, what the command block ports hold. Pure.
 * Any thread.
 */
#ifndef SPINDLE_HW_IDE_TASKFILE_H
#define SPINDLE_HW_IDE_TASKFILE_H

#include <stdbool.h>
#include <stdint.h>
#include "util/state.h"

/* Two-byte registers are a current value (low byte) and a previous one (high byte, the HOB of 48-bit
 * commands). */
typedef struct Taskfile {
    uint16_t features;
    uint16_t count;
    uint8_t
        lba[6]; /* 0-2: low, mid, high; 3-5: their previous values: LBA bits 7:0 … 47:40 in 48-bit order */
    uint8_t device;
    uint8_t command;
    uint8_t control;
    uint8_t status;
    uint8_t error;
} Taskfile;

typedef enum { TASKFILE_ATA, TASKFILE_PACKET } TaskfileSignature;

/* The registers after a reset, DEVICE RESET or EXECUTE DEVICE DIAGNOSTIC (ACS 9.2, ATA6 9.12): signature,
 * diagnostic code "passed"; a packet device is not DRDY. `device` and `control` stay. */
void taskfile_set_signature(Taskfile *tf, TaskfileSignature signature);

/* PxSIG's layout of the same: LBA high, mid, low, count. */
uint32_t taskfile_signature_word(TaskfileSignature signature);

/* 28-bit address: device bits 3:0 and LBA high, mid, low. */
uint32_t taskfile_lba28(const Taskfile *tf);
uint64_t taskfile_lba48(const Taskfile *tf);
void taskfile_set_lba28(Taskfile *tf, uint32_t lba);
void taskfile_set_lba48(Taskfile *tf, uint64_t lba);

/* Byte count limit and byte count of PACKET: LBA mid and high. */
uint16_t taskfile_byte_count(const Taskfile *tf);
void taskfile_set_byte_count(Taskfile *tf, uint16_t count);

void taskfile_visit(Taskfile *tf, StateIo *io);

/* Command block register numbers as ports 1f1 to 1f7 have them. */
enum {
    TASKFILE_DATA,
    TASKFILE_FEATURES, /* read: error */
    TASKFILE_COUNT,
    TASKFILE_LBA_LOW,
    TASKFILE_LBA_MID,
    TASKFILE_LBA_HIGH,
    TASKFILE_DEVICE,
    TASKFILE_COMMAND /* read: status */
};

/* Port write to TASKFILE_FEATURES … TASKFILE_DEVICE: the old value moves to "previous" (ATA6 6.20). */
void taskfile_port_write(Taskfile *tf, unsigned reg, uint8_t value);

/* Port read of TASKFILE_FEATURES … TASKFILE_COMMAND; previous values while control has HOB. */
uint8_t taskfile_port_read(const Taskfile *tf, unsigned reg);

#endif
