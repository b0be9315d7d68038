/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands that go to the drive of the host as they are (`passthrough=`). What may go is in one table
 * (mmc-pass-table.c); what is not in it never does: no microcode (WRITE BUFFER), no vendor's opcodes. The
 * direction of the data and its length are the table's, made from the CDB. Loop thread only.
 */
#ifndef SPINDLE_HW_BLOCK_MMC_PASS_H
#define SPINDLE_HW_BLOCK_MMC_PASS_H

#include "hw/block/mmc-int.h"

typedef enum {
    MMC_PASS_READ,  /* asks */
    MMC_PASS_AUDIO, /* plays */
    MMC_PASS_EJECT, /* moves discs */
    MMC_PASS_KEYS,  /* CSS, CPPM and AACS authentication, the region code */
    MMC_PASS_BURN,  /* writes, and what a writer has to know of the drive */
} MmcPassClass;

/* Where one command becomes several, each of what the host passes at once. */
typedef enum {
    MMC_SPLIT_NEVER,
    MMC_SPLIT_10,  /* LBA in bytes 2-5, blocks in 7-8 */
    MMC_SPLIT_12,  /* …, in 6-9 */
    MMC_SPLIT_CD,  /* …, in 6-8 */
    MMC_SPLIT_MSF, /* from the MSF in bytes 3-5 to before that in 6-8 */
} MmcPassSplit;

typedef struct MmcPassRow {
    const char *name; /* as in the standard */
    MmcPassClass class;
    MmcPassHow safe, burn; /* by policy */
    MmcDirection direction;
    uint8_t at, width; /* of the allocation or parameter list length in the CDB; width 0: none there */
    MmcPassSplit split;
    unsigned gates;   /* MmcGate */
    unsigned seconds; /* that the drive has for it; 0: PASS_SECONDS */
    /* What the table's word comes to for this CDB. */
    MmcPassHow (*choose)(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how);
    /* Bytes, where the CDB does not simply say so. */
    uint64_t (*length)(const MmcDrive *drive, const uint8_t *cdb);
    /* May parameter data go? Key 0: yes. */
    MmcSense (*check)(const uint8_t *data, size_t len);
    /* Sent, and GOOD. */
    void (*taken)(MmcDrive *drive, const uint8_t *data, size_t len);
} MmcPassRow;

#define MMC_PASS_SECONDS 30

/* NULL: never passed. */
const MmcPassRow *mmc_pass_find(uint8_t opcode);

/* What happens to this CDB, and by which row. */
MmcPassHow mmc_pass_choose(const MmcDrive *drive, const uint8_t *cdb, const MmcPassRow **ret_row);

/* Where the guest's data goes, when it was asked for. */
uint8_t *mmc_pass_data(const MmcCommand *command);

/* Bytes of the command's data, at most. */
uint64_t mmc_pass_length(const MmcCommand *command);

/* The first step behind the gates. */
MmcStep mmc_pass_begin(MmcCommand *command);

/* In a burning drive an empty tray is the drive's to tell: what Spindle cannot read may be a blank disc. */
bool mmc_pass_is_drives(const MmcCommand *command);

/* It waits for an answer that is of no use any more: the medium is another. */
bool mmc_pass_is_stale(const MmcCommand *command);

/* Lets go of what is under way. */
void mmc_pass_clear(MmcCommand *command);

/* mmc-pass-write.c: what the guest told the drive of the blocks that it is going to write. */

/* Bytes of a block at `lba`; 0: the drive was told of none that is known. */
uint32_t mmc_write_block(const MmcDrive *drive, uint32_t lba);
MmcSense mmc_write_check_pages(const uint8_t *data, size_t len);
void mmc_write_take_pages(MmcDrive *drive, const uint8_t *data, size_t len);
MmcSense mmc_write_check_cues(const uint8_t *data, size_t len);
void mmc_write_take_cues(MmcDrive *drive, const uint8_t *data, size_t len);

#endif
