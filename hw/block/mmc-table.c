/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The commands that the drive has, with their gates. Every other opcode is 05/20.
 */
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

#define ATTENTION MMC_PASS_ATTENTION
#define MEDIUM    MMC_NEED_MEDIUM

static uint64_t length_at4(const MmcDrive *drive, const uint8_t *cdb)
{
    return cdb[4];
}

static uint64_t length_at3(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be16(&cdb[3]);
}

static uint64_t length_at6(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be32(&cdb[6]);
}

static uint64_t length_at7(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be16(&cdb[7]);
}

static uint64_t length_at8(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be16(&cdb[8]);
}

static uint64_t length_at9(const MmcDrive *drive, const uint8_t *cdb)
{
    return load_be16(&cdb[9]);
}

static uint64_t length_capacity(const MmcDrive *drive, const uint8_t *cdb)
{
    return 8; /* SBC-3 5.15: no allocation length */
}

/* Header and as many descriptors as the CDB allows (MMC-6 6.8.2.3). */
static uint64_t length_performance(const MmcDrive *drive, const uint8_t *cdb)
{
    return 8 + 16ull * load_be16(&cdb[8]);
}

static const MmcOp ops[256] = {
    [0x00] = {"TEST UNIT READY", mmc_test_unit_ready, MEDIUM},
    /* never stopped by an attention, and the one that reads the last sense (SPC-4 6.39) */
    [0x03] = {"REQUEST SENSE", mmc_request_sense, ATTENTION | MMC_KEEP_SENSE, MMC_DATA_IN, length_at4},
    [0x12] = {"INQUIRY", mmc_inquiry, ATTENTION, MMC_DATA_IN, length_at3}, /* SPC-4 6.6 */
    [0x15] = {"MODE SELECT(6)", mmc_mode_select, 0, MMC_DATA_OUT, length_at4},
    [0x1a] = {"MODE SENSE(6)", mmc_mode_sense, 0, MMC_DATA_IN, length_at4},
    [0x1b] = {"START STOP UNIT", mmc_start_stop, 0},
    [0x1e] = {"PREVENT ALLOW MEDIUM REMOVAL", mmc_prevent_allow, 0},
    [0x25] = {"READ CAPACITY", mmc_read_capacity, MEDIUM, MMC_DATA_IN, length_capacity},
    [0x28] = {"READ(10)", mmc_read_blocks, MEDIUM, MMC_DATA_IN, mmc_length_read_blocks},
    [0x2b] = {"SEEK(10)", mmc_seek, MEDIUM},
    [0x2f] = {"VERIFY(10)", mmc_verify, MEDIUM},
    [0x35] = {"SYNCHRONIZE CACHE", mmc_good, MEDIUM}, /* nothing is ever written */
    [0x42] = {"READ SUB-CHANNEL", mmc_read_sub_channel, MEDIUM, MMC_DATA_IN, length_at7},
    [0x43] = {"READ TOC/PMA/ATIP", mmc_read_toc, MEDIUM, MMC_DATA_IN, length_at7},
    [0x44] = {"READ HEADER", mmc_read_header, MEDIUM, MMC_DATA_IN, length_at7},
    [0x45] = {"PLAY AUDIO(10)", mmc_play_audio, MEDIUM},
    [0x46] = {"GET CONFIGURATION", mmc_get_configuration, ATTENTION, MMC_DATA_IN, length_at7}, /* MMC-6 6.5 */
    [0x47] = {"PLAY AUDIO MSF", mmc_play_audio, MEDIUM},
    [0x48] = {"PLAY AUDIO TRACK INDEX", mmc_play_audio, MEDIUM},
    [0x4a] = {"GET EVENT STATUS NOTIFICATION", mmc_get_event_status, ATTENTION, MMC_DATA_IN,
              length_at7}, /* MMC-6 6.6 */
    [0x4b] = {"PAUSE/RESUME", mmc_pause_resume, MEDIUM},
    [0x4e] = {"STOP PLAY/SCAN", mmc_good, MEDIUM}, /* nothing plays: SFF-8020i 10.8.30 calls that no error */
    [0x51] = {"READ DISC INFORMATION", mmc_read_disc_information, MEDIUM, MMC_DATA_IN, length_at7},
    [0x52] = {"READ TRACK INFORMATION", mmc_read_track_information, MEDIUM, MMC_DATA_IN, length_at7},
    [0x55] = {"MODE SELECT(10)", mmc_mode_select, 0, MMC_DATA_OUT, length_at7},
    [0x5a] = {"MODE SENSE(10)", mmc_mode_sense, 0, MMC_DATA_IN, length_at7},
    [0x5c] = {"READ BUFFER CAPACITY", mmc_read_buffer_capacity, MEDIUM, MMC_DATA_IN, length_at7},
    [0xa0] = {"REPORT LUNS", mmc_report_luns, ATTENTION, MMC_DATA_IN, length_at6}, /* SPC-4 6.33 */
    [0xa5] = {"PLAY AUDIO(12)", mmc_play_audio, MEDIUM},
    [0xa8] = {"READ(12)", mmc_read_blocks, MEDIUM, MMC_DATA_IN, mmc_length_read_blocks},
    [0xac] = {"GET PERFORMANCE", mmc_get_performance, 0, MMC_DATA_IN, length_performance},
    [0xad] = {"READ DISC STRUCTURE", mmc_read_disc_structure, 0, MMC_DATA_IN, length_at8},
    [0xb6] = {"SET STREAMING", mmc_set_streaming, 0, MMC_DATA_OUT, length_at9},
    [0xb9] = {"READ CD MSF", mmc_read_cd_msf, MEDIUM, MMC_DATA_IN, mmc_length_read_cd_msf},
    [0xba] = {"SCAN", mmc_play_audio, MEDIUM},
    [0xbb] = {"SET CD SPEED", mmc_set_cd_speed, 0},
    [0xbd] = {"MECHANISM STATUS", mmc_mechanism_status, 0, MMC_DATA_IN, length_at8},
    [0xbe] = {"READ CD", mmc_read_cd, MEDIUM, MMC_DATA_IN, mmc_length_read_cd},
};

const MmcOp *mmc_op_find(uint8_t opcode)
{
    return ops[opcode].handler ? &ops[opcode] : NULL;
}
