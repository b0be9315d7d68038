/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The 512 bytes of IDENTIFY PACKET DEVICE. Pure: built from a description, little-endian words as on the
 * wire. Any thread.
 */
#ifndef SPINDLE_HW_IDE_ATA_IDENTIFY_H
#define SPINDLE_HW_IDE_ATA_IDENTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include "hw/ide/ata-regs.h"
#include "hw/ide/ide-device.h"

/* The transfer modes that SET FEATURES 03 chose, by number; -1: none. */
typedef struct AtaTransferMode {
    int mwdma; /* 0-2 */
    int udma;  /* 0-5 */
} AtaTransferMode;

#define ATA_MAX_MWDMA 2
#define ATA_MAX_UDMA  5

/* At power-on the fastest mode is selected, as firmware would do. */
#define ATA_TRANSFER_MODE_DEFAULT                                                                            \
    {                                                                                                        \
        .mwdma = -1, .udma = ATA_MAX_UDMA                                                                    \
    }

void ata_transfer_mode_visit(AtaTransferMode *mode, StateIo *io);

/* CHECK POWER MODE's answer. */
void ata_power_visit(uint8_t *power, StateIo *io);

/* Applies SET FEATURES 03's count register. False for a mode the device has not. */
bool ata_transfer_mode_set(AtaTransferMode *mode, uint8_t count);

/* Stores `text` as an ATA string: two characters a word, first one in the high byte, padded with spaces (ACS
 * 3.3.10). `words` from out[word]. */
void ata_identify_put_string(uint8_t *out, unsigned word, unsigned words, const char *text);

/* Word 255: signature and checksum over all 512 bytes. */
void ata_identify_seal(uint8_t *out);

/* Words 63, 88, 93, 76, 222 and the PIO timings, which all devices here share. */
void ata_identify_put_link(uint8_t *out, const AtaTransferMode *mode, bool serial_link, bool slave);

/* ACS 7.17 (IDENTIFY PACKET DEVICE). */
void ata_identify_packet(uint8_t out[ATA_IDENTIFY_SIZE], const IdeIdentity *identity,
                         const AtaTransferMode *mode, bool serial_link, bool slave);

#endif
