/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The real drive (hw/block) with a disc in memory, on port 0 of an AhciRig.
 */
#ifndef SPINDLE_TESTS_CD_RIG_H
#define SPINDLE_TESTS_CD_RIG_H

#include "tests/qtest/ahci-rig.h"

/* A disc of `sectors` sectors of 2048 bytes; 0: an empty drive. The power-on attention is taken already. */
AhciRig *cd_rig_new(bool delayed, uint32_t sectors);

/* Byte `at` of the disc. */
uint8_t cd_rig_byte(uint64_t at);

/* Sends a CDB by DMA to one buffer of `len` bytes at RIG_DATA and waits; returns PxTFD, recovers after an
 * error. */
uint32_t cd_rig_command(AhciRig *rig, const uint8_t *cdb, uint32_t len);

/* Sense key, ASC and ASCQ as 0xKKAAQQ by REQUEST SENSE. */
uint32_t cd_rig_sense(AhciRig *rig);

#endif
