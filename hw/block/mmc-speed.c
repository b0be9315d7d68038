/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Speed and buffering: SET CD SPEED, SET STREAMING, GET PERFORMANCE, READ BUFFER CAPACITY. The speed is told
 * back as it was set; data comes as fast as its source gives it.
 */
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

#define STREAMING_BYTES 28 /* of a performance descriptor (MMC-6 6.39.3) */
#define BUFFER_BYTES    (2 * 1024 * 1024)

static void set_speed(MmcDrive *drive, uint32_t speed)
{
    drive->speed = speed >= mmc_drive_max_speed(drive) ? 0 : speed;
}

/* MMC-6 6.37: kB/s, FFFF the most. */
MmcStep mmc_set_cd_speed(MmcCommand *command)
{
    const uint16_t speed = load_be16(&command->cdb[2]);
    if (speed == 0) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    set_speed(command->drive, speed == 0xffff ? UINT32_MAX : speed);
    return mmc_good(command);
}

static MmcStep streaming_taken(MmcCommand *command)
{
    const uint8_t *data = command->param;
    MmcDrive *drive = command->drive;
    if (command->got < STREAMING_BYTES) {
        return mmc_fail(command, SENSE_PARAM_LIST_LENGTH);
    }
    if (data[0] & 0x04) { /* restore defaults */
        set_speed(drive, UINT32_MAX);
        return mmc_good(command);
    }
    const uint32_t start = load_be32(&data[4]), end = load_be32(&data[8]);
    const uint32_t size = load_be32(&data[12]), ms = load_be32(&data[16]);
    if (start > end || ms == 0 || size == 0) {
        return mmc_fail(command, SENSE_INVALID_PARAM);
    }
    const uint64_t speed = (uint64_t)size * 1000 / ms;
    if (data[0] & 0x01 && speed > mmc_drive_max_speed(drive)) { /* exact: promised or refused */
        return mmc_fail(command, SENSE_INVALID_PARAM);
    }
    set_speed(drive, (uint32_t)CLAMP(speed, 1, UINT32_MAX));
    return mmc_good(command);
}

MmcStep mmc_set_streaming(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const uint16_t len = load_be16(&cdb[9]);
    if (cdb[8] != 0) { /* type: only the performance descriptor; there is no defect cache */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (len == 0) {
        return mmc_good(command);
    }
    if (len != STREAMING_BYTES) {
        return mmc_fail(command, SENSE_PARAM_LIST_LENGTH);
    }
    return mmc_want(command, len, streaming_taken);
}

/* MMC-6 6.8: nominal performance, one extent over the whole disc; exceptions: none. */
MmcStep mmc_get_performance(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    MmcDrive *drive = command->drive;
    const unsigned except = cdb[1] & 0x03, tolerance = cdb[1] >> 3 & 0x03;
    const bool write = cdb[1] & 0x04;
    MmcSense sense;
    Reply reply;
    if (cdb[10] != 0 || write || except == 3 || tolerance != 2) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (!tray_check_ready(&drive->tray, &sense)) {
        return mmc_fail(command, sense);
    }
    const uint32_t start = load_be32(&cdb[2]), last = drive->disc->sectors - 1;
    if (start > last) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    const uint64_t room = 8 + (except ? 6ull : 16ull) * load_be16(&cdb[8]);
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be32(&reply, 4);
    reply_u8(&reply, (uint8_t)(except ? 0x01 : 0));
    reply_zeros(&reply, 3);
    if (!except) {
        reply_set_be32(&reply, 0, 4 + 16);
        reply_be32(&reply, start);
        reply_be32(&reply, mmc_drive_speed(drive));
        reply_be32(&reply, last);
        reply_be32(&reply, mmc_drive_speed(drive));
    }
    return mmc_reply_end(command, &reply, room);
}

/* MMC-6 6.18: nothing is ever buffered for writing, so all of it is blank. */
MmcStep mmc_read_buffer_capacity(MmcCommand *command)
{
    const bool in_blocks = command->cdb[1] & 0x01;
    Reply reply;
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be16(&reply, 10);
    reply_u8(&reply, 0);
    reply_u8(&reply, in_blocks);
    reply_be32(&reply, in_blocks ? 0 : BUFFER_BYTES);
    reply_be32(&reply, in_blocks ? BUFFER_BYTES / SECTOR_USER : BUFFER_BYTES);
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[7]));
}
