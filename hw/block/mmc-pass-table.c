/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What may be passed to a drive of the host, by policy. The tray, its lock and the events are Spindle's own
 * (the host's kernel and its users have a say in them), as are identity, sense and unit attentions.
 */
#include "hw/block/mmc-pass.h"
#include "util/bytes.h"

#define OWN       MMC_PASS_OWN
#define DRIVE     MMC_PASS_DRIVE
#define FIRST     MMC_PASS_FIRST
#define DENY      MMC_PASS_DENY
#define MEDIUM    MMC_NEED_MEDIUM
#define ATTENTION MMC_PASS_ATTENTION

#define MINUTES 60
#define HOURS   3600

#define KEY_FORMAT_REGION 0x06 /* REPORT KEY: the state. SEND KEY: sets it, five times in a drive's life */

/* When nothing is left to tell of the last command: how far the drive is (progress of a long one). */
static MmcPassHow choose_request_sense(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    const Tray *tray = &drive->tray;
    return drive->sense.key || tray->power_on_pending || tray->medium_pending || tray->state == TRAY_OPEN
               ? OWN
               : how;
}

/* Position and audio status; numbers that do not change are known. */
static MmcPassHow choose_sub_channel(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    return cdb[2] & 0x40 && cdb[3] != 0x01 ? OWN : how;
}

/* The drive's PMA and ATIP; the others are known, unless somebody is about to write them. */
static MmcPassHow choose_toc(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    const unsigned format = cdb[2] & 0x0f ? cdb[2] & 0x0f : cdb[9] >> 6;
    return drive->passthrough == MMC_PASSTHROUGH_SAFE && format != 3 && format != 4 ? OWN : how;
}

static MmcPassHow choose_send_key(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    const bool region = (cdb[10] & 0x3f) == KEY_FORMAT_REGION;
    return region && drive->passthrough != MMC_PASSTHROUGH_BURN ? DENY : how;
}

/* `tray=off` keeps the guest's hands off this, too. */
static MmcPassHow choose_load(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    return block_tray(drive->node) == BLOCK_TRAY_NONE ? DENY : how;
}

/* READ MEDIA SERIAL NUMBER alone of the SERVICE ACTION INs. */
static MmcPassHow choose_service_action(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    return (cdb[1] & 0x1f) == 0x01 ? how : DENY;
}

/* BYTCHK would compare with data, which MMC drives do not know. */
static MmcPassHow choose_verify(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    return cdb[1] & 0x06 ? OWN : how;
}

/* Saved pages would outlast the guest. */
static MmcPassHow choose_mode_select(const MmcDrive *drive, const uint8_t *cdb, MmcPassHow how)
{
    return cdb[1] & 0x01 ? OWN : how;
}

static uint64_t length_format(const MmcDrive *drive, const uint8_t *cdb)
{
    return cdb[1] & 0x10 ? 12 : 0; /* MMC-6 6.4.3: header and one descriptor */
}

static uint64_t length_read10(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be16(&cdb[7]) * UINT64_C(2048);
}

static uint64_t length_read12(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be32(&cdb[6]) * UINT64_C(2048);
}

static uint64_t length_write10(const MmcDrive *drive, const uint8_t *cdb)
{
    return (uint64_t)load_be16(&cdb[7]) * mmc_write_block(drive, load_be32(&cdb[2]));
}

static uint64_t length_write12(const MmcDrive *drive, const uint8_t *cdb)
{
    return (uint64_t)load_be32(&cdb[6]) * mmc_write_block(drive, load_be32(&cdb[2]));
}

static uint64_t length_capacity(const MmcDrive *drive, const uint8_t *cdb)
{
    return 8;
}

/* Header and as many descriptors as the CDB allows; the longest have 16 bytes (MMC-6 6.8.3). */
static uint64_t length_performance(const MmcDrive *drive, const uint8_t *cdb)
{
    return 8 + 16ull * load_be16(&cdb[8]);
}

#define NO_DATA MMC_DATA_NONE, 0, 0
#define IN      MMC_DATA_IN
#define OUT     MMC_DATA_OUT
#define WHOLE   MMC_SPLIT_NEVER

/* clang-format off: a table */
static const MmcPassRow rows[256] = {
    /* asked of every drive */
    [0x23] = {"READ FORMAT CAPACITIES", MMC_PASS_READ, DRIVE, DRIVE, IN, 7, 2, WHOLE, 0},
    [0x42] = {"READ SUB-CHANNEL", MMC_PASS_READ, FIRST, FIRST, IN, 7, 2, WHOLE, MEDIUM,
              .choose = choose_sub_channel},
    [0x43] = {"READ TOC/PMA/ATIP", MMC_PASS_READ, DRIVE, DRIVE, IN, 7, 2, WHOLE, MEDIUM,
              .choose = choose_toc},
    [0x51] = {"READ DISC INFORMATION", MMC_PASS_READ, FIRST, DRIVE, IN, 7, 2, WHOLE, MEDIUM},
    [0x52] = {"READ TRACK INFORMATION", MMC_PASS_READ, FIRST, DRIVE, IN, 7, 2, WHOLE, MEDIUM},
    [0xa7] = {"SET READ AHEAD", MMC_PASS_READ, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0xab] = {"READ MEDIA SERIAL NUMBER", MMC_PASS_READ, DRIVE, DRIVE, IN, 6, 4, WHOLE, MEDIUM,
              .choose = choose_service_action},
    [0xac] = {"GET PERFORMANCE", MMC_PASS_READ, FIRST, FIRST, IN, 0, 0, WHOLE, 0,
              .length = length_performance},
    [0xad] = {"READ DISC STRUCTURE", MMC_PASS_READ, FIRST, FIRST, IN, 8, 2, WHOLE, 0},

    /* by the drive's own output */
    [0x45] = {"PLAY AUDIO(10)", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x47] = {"PLAY AUDIO MSF", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x48] = {"PLAY AUDIO TRACK INDEX", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x4b] = {"PAUSE/RESUME", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x4e] = {"STOP PLAY/SCAN", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0xa5] = {"PLAY AUDIO(12)", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0xba] = {"SCAN", MMC_PASS_AUDIO, DRIVE, DRIVE, NO_DATA, WHOLE, MEDIUM},

    /* START STOP UNIT and PREVENT ALLOW are Spindle's: they go by way of the node's tray */
    [0xa6] = {"LOAD/UNLOAD MEDIUM", MMC_PASS_EJECT, DRIVE, DRIVE, NO_DATA, WHOLE, 0, 2 * MINUTES,
              .choose = choose_load},

    [0xa3] = {"SEND KEY", MMC_PASS_KEYS, DRIVE, DRIVE, OUT, 8, 2, WHOLE, 0, .choose = choose_send_key},
    [0xa4] = {"REPORT KEY", MMC_PASS_KEYS, DRIVE, DRIVE, IN, 8, 2, WHOLE, 0},

    /* what a writer has to know: of the drive, not of Spindle's reader */
    [0x00] = {"TEST UNIT READY", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x03] = {"REQUEST SENSE", MMC_PASS_BURN, OWN, DRIVE, IN, 4, 1, WHOLE, ATTENTION | MMC_KEEP_SENSE,
              .choose = choose_request_sense},
    [0x25] = {"READ CAPACITY", MMC_PASS_BURN, OWN, DRIVE, IN, 0, 0, WHOLE, MEDIUM, .length = length_capacity},
    [0x46] = {"GET CONFIGURATION", MMC_PASS_BURN, OWN, FIRST, IN, 7, 2, WHOLE, ATTENTION},
    [0x5a] = {"MODE SENSE(10)", MMC_PASS_BURN, OWN, FIRST, IN, 7, 2, WHOLE, 0},
    [0x5c] = {"READ BUFFER CAPACITY", MMC_PASS_BURN, OWN, DRIVE, IN, 7, 2, WHOLE, MEDIUM},
    [0xbb] = {"SET CD SPEED", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, 0},
    [0xb6] = {"SET STREAMING", MMC_PASS_BURN, OWN, DRIVE, OUT, 9, 2, WHOLE, 0},
    /* past the host's page cache, which knows nothing of what is written here */
    [0x28] = {"READ(10)", MMC_PASS_BURN, OWN, DRIVE, IN, 0, 0, MMC_SPLIT_10, MEDIUM, .length = length_read10},
    [0x2b] = {"SEEK(10)", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM},
    [0x2f] = {"VERIFY(10)", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, 10 * MINUTES,
              .choose = choose_verify},
    [0xa8] = {"READ(12)", MMC_PASS_BURN, OWN, DRIVE, IN, 0, 0, MMC_SPLIT_12, MEDIUM, .length = length_read12},
    [0xb9] = {"READ CD MSF", MMC_PASS_BURN, OWN, DRIVE, IN, 0, 0, MMC_SPLIT_MSF, MEDIUM,
              .length = mmc_length_read_cd_msf},
    [0xbe] = {"READ CD", MMC_PASS_BURN, OWN, DRIVE, IN, 0, 0, MMC_SPLIT_CD, MEDIUM,
              .length = mmc_length_read_cd},
    /* writes */
    [0x04] = {"FORMAT UNIT", MMC_PASS_BURN, OWN, DRIVE, OUT, 0, 0, WHOLE, MEDIUM, 6 * HOURS,
              .length = length_format},
    [0x2a] = {"WRITE(10)", MMC_PASS_BURN, OWN, DRIVE, OUT, 0, 0, MMC_SPLIT_10, MEDIUM, 5 * MINUTES,
              .length = length_write10},
    [0x2e] = {"WRITE AND VERIFY(10)", MMC_PASS_BURN, OWN, DRIVE, OUT, 0, 0, MMC_SPLIT_10, MEDIUM, 5 * MINUTES,
              .length = length_write10},
    [0x35] = {"SYNCHRONIZE CACHE", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, HOURS},
    [0x53] = {"RESERVE TRACK", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, HOURS},
    [0x54] = {"SEND OPC INFORMATION", MMC_PASS_BURN, OWN, DRIVE, OUT, 7, 2, WHOLE, MEDIUM, 5 * MINUTES},
    [0x55] = {"MODE SELECT(10)", MMC_PASS_BURN, OWN, DRIVE, OUT, 7, 2, WHOLE, 0, .choose = choose_mode_select,
              .check = mmc_write_check_pages, .taken = mmc_write_take_pages},
    [0x58] = {"REPAIR TRACK", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, HOURS},
    [0x5b] = {"CLOSE TRACK/SESSION", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, 3 * HOURS},
    [0x5d] = {"SEND CUE SHEET", MMC_PASS_BURN, OWN, DRIVE, OUT, 6, 3, WHOLE, MEDIUM, 5 * MINUTES,
              .check = mmc_write_check_cues, .taken = mmc_write_take_cues},
    [0xa1] = {"BLANK", MMC_PASS_BURN, OWN, DRIVE, NO_DATA, WHOLE, MEDIUM, 6 * HOURS},
    [0xaa] = {"WRITE(12)", MMC_PASS_BURN, OWN, DRIVE, OUT, 0, 0, MMC_SPLIT_12, MEDIUM, 5 * MINUTES,
              .length = length_write12},
    [0xbf] = {"SEND DISC STRUCTURE", MMC_PASS_BURN, OWN, DRIVE, OUT, 8, 2, WHOLE, MEDIUM, 5 * MINUTES},
};
/* clang-format on */

const MmcPassRow *mmc_pass_find(uint8_t opcode)
{
    return rows[opcode].name ? &rows[opcode] : NULL;
}

MmcPassHow mmc_pass_choose(const MmcDrive *drive, const uint8_t *cdb, const MmcPassRow **ret_row)
{
    const MmcPassRow *row = mmc_pass_find(cdb[0]);
    *ret_row = row;
    if (!row || drive->passthrough == MMC_PASSTHROUGH_OFF || !drive->node ||
        block_packet_max(drive->node) == 0) {
        return OWN;
    }
    const MmcPassHow how = drive->passthrough == MMC_PASSTHROUGH_BURN ? row->burn : row->safe;
    return how != OWN && row->choose ? row->choose(drive, cdb, how) : how;
}
