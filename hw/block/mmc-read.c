/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading sectors: READ(10/12), READ CD, READ CD MSF, VERIFY, and the small commands about addresses. Ranges
 * and selections are checked here; mmc-transfer.c moves the data.
 */
#include "hw/block/mmc-int.h"
#include "hw/block/msf.h"
#include "hw/block/mmc-transfer.h"
#include "util/bytes.h"

/* SBC-3 5.15. The LBA field must be 0 unless PMI asks behind it, and a disc has no extents to tell apart. */
MmcStep mmc_read_capacity(MmcCommand *command)
{
    const MmcDrive *drive = command->drive;
    const uint8_t *cdb = command->cdb;
    const uint32_t length = drive->mode.block_length;
    Reply reply;
    if (!(cdb[8] & 0x01) && load_be32(&cdb[2]) != 0) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    const uint64_t blocks = (uint64_t)drive->disc->sectors * mmc_blocks_per_sector(length);
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be32(&reply, (uint32_t)MIN(blocks - 1, UINT32_MAX));
    reply_be32(&reply, length);
    return mmc_reply_end(command, &reply, 8);
}

static uint32_t block_count(const uint8_t *cdb)
{
    return cdb[0] == 0xa8 ? load_be32(&cdb[6]) : load_be16(&cdb[7]);
}

uint64_t mmc_length_read_blocks(const MmcDrive *drive, const uint8_t *cdb)
{
    return (uint64_t)block_count(cdb) * drive->mode.block_length;
}

/* What a block is, for the lengths that MODE SELECT takes. */
static MmcFields block_fields(uint32_t length)
{
    switch (length) {
    case SECTOR_RAW:
        return (MmcFields){.sync = true, .header = true, .subheader = true, .user = true, .edc = true};
    case SECTOR_MODE2:
        return (MmcFields){.subheader = true, .user = true, .edc = true};
    default:
        return (MmcFields){.user = true};
    }
}

static MmcStep read_range(MmcCommand *command, uint64_t lba, uint64_t blocks)
{
    const MmcDrive *drive = command->drive;
    const uint32_t length = drive->mode.block_length;
    const unsigned per_sector = mmc_blocks_per_sector(length);
    const uint64_t total = (uint64_t)drive->disc->sectors * per_sector;
    if (command->cdb[1] & 0x01) { /* relative addressing needs linked commands */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (lba >= total || blocks > total - lba) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    if (blocks == 0) {
        return mmc_good(command);
    }
    const uint64_t end = lba + blocks;
    command->read.fields = block_fields(length);
    command->read.block_size = MAX(length, SECTOR_USER);
    command->read.skip = (uint32_t)(lba % per_sector * length);
    command->read.tail = (uint32_t)((per_sector - end % per_sector) % per_sector * length);
    return mmc_transfer_begin(command, lba / per_sector,
                              (end + per_sector - 1) / per_sector - lba / per_sector);
}

MmcStep mmc_read_blocks(MmcCommand *command)
{
    return read_range(command, load_be32(&command->cdb[2]), block_count(command->cdb));
}

/* SBC-3 5.22 with BYTCHK 0: the sectors are read and nothing is given. */
MmcStep mmc_verify(MmcCommand *command)
{
    if (command->cdb[1] & 0x06) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    command->read.discard = true;
    return read_range(command, load_be32(&command->cdb[2]), block_count(command->cdb));
}

MmcStep mmc_seek(MmcCommand *command)
{
    MmcDrive *drive = command->drive;
    const uint32_t lba = load_be32(&command->cdb[2]);
    if (lba >= (uint64_t)drive->disc->sectors * mmc_blocks_per_sector(drive->mode.block_length)) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    drive->position = lba / mmc_blocks_per_sector(drive->mode.block_length);
    return mmc_good(command);
}

/* Selection of READ CD and READ CD MSF (MMC-6 6.19.2); false: 05/24. */
static bool parse_fields(const uint8_t *cdb, MmcFields *ret_fields)
{
    const unsigned type = cdb[1] >> 2 & 0x07, c2 = cdb[9] >> 1 & 0x03, sub = cdb[10] & 0x07;
    if (type > SECTOR_TYPE_MODE2_FORM2 || c2 == 3 || (sub != 0 && sub != 1 && sub != 2 && sub != 4)) {
        return false;
    }
    *ret_fields = (MmcFields){
        .expected = type,
        .sync = cdb[9] & 0x80,
        .subheader = cdb[9] & 0x40,
        .header = cdb[9] & 0x20,
        .user = cdb[9] & 0x10,
        .edc = cdb[9] & 0x08,
        .c2 = (uint8_t)c2,
        .sub = (uint8_t)sub,
    };
    return true;
}

/* The most that the selection can give for a sector, before anybody knows its type. */
static uint64_t length_read_cd(const uint8_t *cdb, uint64_t sectors)
{
    MmcFields fields;
    int most = 0;
    if (!parse_fields(cdb, &fields)) {
        return 0;
    }
    for (SectorType type = SECTOR_TYPE_CDDA; type <= SECTOR_TYPE_MODE2_FORM2; type++) {
        if (fields.expected == SECTOR_TYPE_ANY || fields.expected == type) {
            most = MAX(most, mmc_fields_size(&fields, type));
        }
    }
    return sectors * (unsigned)most;
}

uint64_t mmc_length_read_cd(const MmcDrive *drive, const uint8_t *cdb)
{
    return length_read_cd(cdb, load_be24(&cdb[6]));
}

uint64_t mmc_length_read_cd_msf(const MmcDrive *drive, const uint8_t *cdb)
{
    const int64_t start = msf_to_lba((Msf){cdb[3], cdb[4], cdb[5]});
    const int64_t end = msf_to_lba((Msf){cdb[6], cdb[7], cdb[8]});
    return end > start ? length_read_cd(cdb, (uint64_t)(end - start)) : 0;
}

static MmcStep read_cd_range(MmcCommand *command, uint64_t lba, uint64_t sectors)
{
    const Disc *disc = command->drive->disc;
    MmcFields *fields = &command->read.fields;
    if (!parse_fields(command->cdb, fields)) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (sectors == 0 || (!fields->sync && !fields->subheader && !fields->header && !fields->user &&
                         !fields->edc && !fields->c2 && !fields->sub)) {
        return mmc_good(command);
    }
    if (lba >= disc->sectors || sectors > disc->sectors - lba) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    const bool user_only = fields->user &&
                           !(fields->sync || fields->subheader || fields->header || fields->edc) &&
                           !fields->c2 && !fields->sub;
    if (!disc_is_cd(disc) && (!user_only || fields->expected == SECTOR_TYPE_CDDA)) {
        return mmc_fail(command, SENSE_ILLEGAL_TRACK_MODE); /* no such sectors on a DVD or BD */
    }
    return mmc_transfer_begin(command, lba, sectors);
}

MmcStep mmc_read_cd(MmcCommand *command)
{
    if (command->cdb[1] & 0x01) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    return read_cd_range(command, load_be32(&command->cdb[2]), load_be24(&command->cdb[6]));
}

/* MMC-6 6.20: from the start to before the end. */
MmcStep mmc_read_cd_msf(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const Msf from = {cdb[3], cdb[4], cdb[5]}, to = {cdb[6], cdb[7], cdb[8]};
    const int64_t start = msf_to_lba(from), end = msf_to_lba(to);
    if (!msf_is_valid(from) || !msf_is_valid(to) || start > end) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (start < 0) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    return read_cd_range(command, (uint64_t)start, (uint64_t)(end - start));
}
