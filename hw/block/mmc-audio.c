/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sub-channel and header queries, and the audio commands as a drive answers them that plays nothing: an
 * address that is no audio track is 05/64 (MMC-6 annex; SFF-8020i 10.8.8).
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "hw/block/msf.h"
#include "util/bytes.h"

#define STATUS_NONE 0x15 /* no current audio status to return */

static void put_address(Reply *reply, int64_t lba, bool msf)
{
    if (!msf) {
        reply_be32(reply, (uint32_t)lba);
        return;
    }
    const Msf at = msf_from_lba(lba);
    reply_u8(reply, 0);
    reply_u8(reply, at.m);
    reply_u8(reply, at.s);
    reply_u8(reply, at.f);
}

/* MMC-6 6.24.3.2: where the pickup is. */
static void put_position(const MmcDrive *drive, bool msf, Reply *reply)
{
    const DiscTrack *track = disc_find_track(drive->disc, drive->position);
    const DiscTrack *shown = track ? track : &drive->disc->tracks[0];
    const bool pregap = drive->position < shown->start;
    const int64_t relative = (int64_t)drive->position - shown->start;
    reply_u8(reply, 0x01);
    reply_u8(reply, (uint8_t)(1 << 4 | shown->control));
    reply_u8(reply, shown->number);
    reply_u8(reply, pregap ? 0 : 1);
    put_address(reply, drive->position, msf);
    if (msf) { /* a duration, not an address: without the two seconds of LBA 0 */
        put_address(reply, ABS(relative) - CD_LEAD_TIME, true);
    } else {
        put_address(reply, relative, false);
    }
}

static void put_catalogue_number(const Disc *disc, Reply *reply)
{
    reply_be32(reply, 0x02000000);
    reply_u8(reply, disc->mcn[0] ? 0x80 : 0);
    reply_bytes(reply, disc->mcn, 13);
    reply_be16(reply, 0);
}

static bool put_isrc(const Disc *disc, uint8_t number, Reply *reply)
{
    const DiscTrack *track = disc_track(disc, number);
    if (!track) {
        return false;
    }
    reply_u8(reply, 0x03);
    reply_u8(reply, (uint8_t)(1 << 4 | track->control));
    reply_u8(reply, track->number);
    reply_u8(reply, 0);
    reply_u8(reply, track->isrc[0] ? 0x80 : 0);
    reply_bytes(reply, track->isrc, 12);
    reply_zeros(reply, 3);
    return true;
}

static bool put_sub_channel(const MmcDrive *drive, const uint8_t *cdb, Reply *reply)
{
    switch (cdb[3]) {
    case 0x01:
        put_position(drive, cdb[1] & 0x02, reply);
        return true;
    case 0x02:
        put_catalogue_number(drive->disc, reply);
        return true;
    case 0x03:
        return put_isrc(drive->disc, cdb[6], reply);
    default:
        return false;
    }
}

MmcStep mmc_read_sub_channel(MmcCommand *command)
{
    const MmcDrive *drive = command->drive;
    const uint8_t *cdb = command->cdb;
    Reply reply;
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_u8(&reply, 0);
    reply_u8(&reply, STATUS_NONE);
    reply_be16(&reply, 0);
    if (cdb[2] & 0x40) {
        if (!disc_is_cd(drive->disc)) {
            return mmc_fail(command, SENSE_INCOMPATIBLE_FORMAT);
        }
        if (!put_sub_channel(drive, cdb, &reply)) {
            return mmc_fail(command, SENSE_INVALID_FIELD);
        }
        reply_set_be16(&reply, 2, (uint16_t)(reply.used - 4));
    }
    return mmc_reply_end(command, &reply, load_be16(&cdb[7]));
}

/* SFF-8020i 10.8.14 (legacy). */
MmcStep mmc_read_header(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const Disc *disc = command->drive->disc;
    const uint32_t lba = load_be32(&cdb[2]);
    Reply reply;
    if (lba >= disc->sectors) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    const DiscTrack *track = disc_find_track(disc, lba);
    if (!track || track->mode == DISC_AUDIO) {
        return mmc_fail(command, SENSE_ILLEGAL_TRACK_MODE);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_u8(&reply, track->mode == DISC_MODE1 ? 1 : 2);
    reply_zeros(&reply, 3);
    put_address(&reply, lba, cdb[1] & 0x02);
    return mmc_reply_end(command, &reply, load_be16(&cdb[7]));
}

/* First and last sector (exclusive) that a PLAY or SCAN addresses; false: 05/24. */
static bool audio_range(const Disc *disc, const uint8_t *cdb, int64_t *ret_start, int64_t *ret_end)
{
    switch (cdb[0]) {
    case 0x45:
        *ret_start = load_be32(&cdb[2]);
        *ret_end = *ret_start + load_be16(&cdb[7]);
        return true;
    case 0xa5:
        *ret_start = load_be32(&cdb[2]);
        *ret_end = *ret_start + load_be32(&cdb[6]);
        return true;
    case 0x47: {
        const Msf start = {cdb[3], cdb[4], cdb[5]}, end = {cdb[6], cdb[7], cdb[8]};
        *ret_start = msf_to_lba(start);
        *ret_end = msf_to_lba(end);
        return msf_is_valid(start) && msf_is_valid(end) && *ret_start <= *ret_end;
    }
    case 0x48: {
        const DiscTrack *first = disc_track(disc, cdb[4]);
        *ret_start = first ? first->start : 0;
        *ret_end = first ? first->start + 1 : 0;
        return first && cdb[4] <= cdb[7];
    }
    default: /* SCAN: from an LBA, an MSF or a track number in the same four bytes */
        *ret_start = cdb[9] & 0xc0 ? 0 : load_be32(&cdb[2]);
        *ret_end = *ret_start + 1;
        return true;
    }
}

/* The drive has no audio output: what would be audio is 05/64 too, but addresses are checked first. */
MmcStep mmc_play_audio(MmcCommand *command)
{
    const Disc *disc = command->drive->disc;
    int64_t start, end;
    if (!audio_range(disc, command->cdb, &start, &end)) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (start == end) { /* playing nothing is no error (MMC-2 6.1.9) */
        return mmc_good(command);
    }
    if (start < 0 || start >= disc->sectors || end > disc->sectors) {
        return mmc_fail(command, SENSE_LBA_RANGE);
    }
    return mmc_fail(command, SENSE_ILLEGAL_TRACK_MODE);
}

/* Nothing is being played or paused. */
MmcStep mmc_pause_resume(MmcCommand *command)
{
    return mmc_fail(command, SENSE_SEQUENCE_ERROR);
}
