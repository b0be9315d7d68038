/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * An MmcDrive for tests of the packet protocol: hw/block/mmc.h's functions with a few made-up commands whose
 * timing the test chooses. It proves the transport's side of the contract: no call on a command after its
 * end, no start twice, nothing left over.
 */
#ifndef SPINDLE_TESTS_FAKE_MMC_H
#define SPINDLE_TESTS_FAKE_MMC_H

#include "hw/block/mmc.h"

/* CDBs: byte 0 is the operation; bytes 2-5 an LBA or pattern start, bytes 6-9 a length in bytes, big-endian.
 */
#define FAKE_CDB_GOOD          0x00 /* no data */
#define FAKE_CDB_SENSE         0x01 /* CHECK CONDITION with key byte 1 */
#define FAKE_CDB_IN            0x02 /* `length` bytes of the pattern */
#define FAKE_CDB_OUT           0x03 /* takes `length` bytes, checks the pattern, 05/26 if it differs */
#define FAKE_CDB_IN_THEN_SENSE 0x04

typedef struct FakeMmc {
    bool delayed;  /* callbacks come from fake_mmc_step() instead of inside start and resume */
    bool use_map;  /* asks map_in */
    size_t chunk;  /* bytes per data callback */
    unsigned live; /* commands that exist (abandoned ones with I/O under way too) */
    unsigned started, abandoned, resets, hard_resets;
    unsigned mapped;           /* chunks read straight into the guest */
    MmcCommand *waiting;       /* delayed: the command whose callback is due */
    uint8_t cdb[MMC_CDB_SIZE]; /* the last one */
} FakeMmc;

MmcDrive *fake_mmc_new(FakeMmc **ret_fake);
void fake_mmc_free(MmcDrive *drive);

/* Runs the callback that is due. False if none is. */
bool fake_mmc_step(FakeMmc *fake);

/* Byte `i` of the pattern that starts at `start`. */
uint8_t fake_mmc_pattern(uint32_t start, uint64_t i);

#endif
