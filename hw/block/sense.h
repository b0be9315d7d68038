/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The sense triples that the drive gives, by name (MMC-6 annex F, SPC-4 annex D), and the one place where an
 * errno of the data path becomes one. Pure; any thread.
 */
#ifndef SPINDLE_HW_BLOCK_SENSE_H
#define SPINDLE_HW_BLOCK_SENSE_H

#include "hw/block/mmc.h"

#define SENSE_KEY_NOT_READY       0x02
#define SENSE_KEY_RECOVERED       0x01
#define SENSE_KEY_MEDIUM_ERROR    0x03
#define SENSE_KEY_HARDWARE_ERROR  0x04
#define SENSE_KEY_ILLEGAL_REQUEST 0x05
#define SENSE_KEY_UNIT_ATTENTION  0x06
#define SENSE_KEY_DATA_PROTECT    0x07
#define SENSE_KEY_ABORTED_COMMAND 0x0b

#define SENSE(k, c, q) ((MmcSense){.key = (k), .asc = (c), .ascq = (q)})

#define SENSE_GOOD                SENSE(0, 0, 0)
#define SENSE_BECOMING_READY      SENSE(SENSE_KEY_NOT_READY, 0x04, 0x01)
#define SENSE_NO_MEDIUM           SENSE(SENSE_KEY_NOT_READY, 0x3a, 0x01) /* tray closed */
#define SENSE_TRAY_OPEN           SENSE(SENSE_KEY_NOT_READY, 0x3a, 0x02)
#define SENSE_READ_ERROR          SENSE(SENSE_KEY_MEDIUM_ERROR, 0x11, 0x00)
#define SENSE_COMM_FAILURE        SENSE(SENSE_KEY_HARDWARE_ERROR, 0x08, 0x00)
#define SENSE_INTERNAL_FAILURE    SENSE(SENSE_KEY_HARDWARE_ERROR, 0x44, 0x00)
#define SENSE_PARAM_LIST_LENGTH   SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x1a, 0x00)
#define SENSE_INVALID_OPCODE      SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x20, 0x00)
#define SENSE_LBA_RANGE           SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x21, 0x00)
#define SENSE_INVALID_FIELD       SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x24, 0x00)
#define SENSE_INVALID_PARAM       SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x26, 0x00)
#define SENSE_SEQUENCE_ERROR      SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x2c, 0x00)
#define SENSE_INCOMPATIBLE_FORMAT SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x30, 0x02)
#define SENSE_SAVING_UNSUPPORTED  SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x39, 0x00)
#define SENSE_REMOVAL_PREVENTED   SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x53, 0x02)
#define SENSE_ILLEGAL_TRACK_MODE  SENSE(SENSE_KEY_ILLEGAL_REQUEST, 0x64, 0x00)
#define SENSE_MEDIUM_CHANGED      SENSE(SENSE_KEY_UNIT_ATTENTION, 0x28, 0x00)
#define SENSE_POWER_ON            SENSE(SENSE_KEY_UNIT_ATTENTION, 0x29, 0x00)
#define SENSE_WRITE_PROTECTED     SENSE(SENSE_KEY_DATA_PROTECT, 0x27, 0x00)
#define SENSE_ABORTED             SENSE(SENSE_KEY_ABORTED_COMMAND, 0x00, 0x00)
#define SENSE_PASS_FAILED         SENSE(SENSE_KEY_ABORTED_COMMAND, 0x08, 0x00) /* on the way to a host's drive */
#define SENSE_COMM_TIMEOUT        SENSE(SENSE_KEY_ABORTED_COMMAND, 0x08, 0x01)

/* A failed read at `lba`; errnum is a negative errno. Medium errors carry the LBA as information. */
MmcSense sense_from_errno(int errnum, uint32_t lba);

/* True when the fault may lie in one sector of a longer read, so that reading less can find it. */
bool sense_errno_is_medium(int errnum);

#endif
