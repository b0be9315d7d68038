/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Moving sectors from the medium to the guest, in chunks: the next one is read while the transport has the
 * present one. Loop thread only.
 */
#ifndef SPINDLE_HW_BLOCK_MMC_TRANSFER_H
#define SPINDLE_HW_BLOCK_MMC_TRANSFER_H

#include "hw/block/mmc-int.h"

/* Starts on `sectors` (> 0) from `lba`, a range that is inside the disc. command->read says what to give. */
MmcStep mmc_transfer_begin(MmcCommand *command, uint64_t lba, uint64_t sectors);

/* The command reads from a disc that is no longer the one in reach; its next step ends it. */
bool mmc_transfer_is_stale(const MmcCommand *command);

/* What a command ends with whose medium is another, or gone. */
MmcSense mmc_transfer_stale_sense(MmcDrive *drive);

/* Lets go of reads under way. */
void mmc_transfer_clear(MmcRead *read);

/* Bytes that the selection gives for a sector of the type, or -1 where MMC-6 forbids it: the chosen parts of
 * the main channel must be neighbours (table 352). */
int mmc_fields_size(const MmcFields *fields, SectorType type);

/* Blocks of READ(10) in a sector: 4 for 512 bytes, else 1. */
static inline unsigned mmc_blocks_per_sector(uint32_t block_length)
{
    return block_length < SECTOR_USER ? SECTOR_USER / block_length : 1;
}

/* Builds what the selection gives of one sector, whose stored bytes are at `stored`, into `out`. Returns the
 * bytes, or -1 with *ret_sense. */
int mmc_fields_build(const MmcFields *fields, const Disc *disc, const DiscTrack *track, uint32_t lba,
                     const uint8_t *stored, uint8_t *out, MmcSense *ret_sense);

#define MMC_SECTOR_OUT_MAX (SECTOR_RAW + 296 + 96)

#endif
