/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GET CONFIGURATION: profiles and features of a BD-ROM drive (MMC-6 5.3 and 6.5).
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

#define PERSISTENT 0x02
#define CURRENT    0x01
#define RT_ALL     0
#define RT_CURRENT 1
#define RT_ONE     2

typedef struct Feature {
    uint16_t code;
    uint8_t version;
    bool persistent; /* always current */
    /* When current, for features that are not persistent. */
    bool (*current)(const MmcDrive *drive);
    /* Appends the feature dependent data, a multiple of four bytes; NULL: none. */
    void (*data)(const MmcDrive *drive, Reply *reply);
} Feature;

static bool any_medium(const MmcDrive *drive)
{
    return mmc_drive_profile(drive) != PROFILE_NONE;
}

static bool cd_medium(const MmcDrive *drive)
{
    return mmc_drive_profile(drive) == PROFILE_CD_ROM;
}

static bool dvd_medium(const MmcDrive *drive)
{
    return mmc_drive_profile(drive) == PROFILE_DVD;
}

static bool bd_medium(const MmcDrive *drive)
{
    return mmc_drive_profile(drive) == PROFILE_BD;
}

/* Most capable first (MMC-6 5.3.1). */
static void profile_list(const MmcDrive *drive, Reply *reply)
{
    static const uint16_t profiles[] = {PROFILE_BD, PROFILE_DVD, PROFILE_CD_ROM};
    for (unsigned i = 0; i < G_N_ELEMENTS(profiles); i++) {
        reply_be16(reply, profiles[i]);
        reply_u8(reply, profiles[i] == mmc_drive_profile(drive) ? CURRENT : 0);
        reply_u8(reply, 0);
    }
}

static void core(const MmcDrive *drive, Reply *reply)
{
    reply_be32(reply, 2);  /* physical interface: ATAPI */
    reply_u8(reply, 0x03); /* INQ2: vital product data; DBE: device busy events */
    reply_zeros(reply, 3);
}

static void morphing(const MmcDrive *drive, Reply *reply)
{
    reply_u8(reply, 0x02); /* operational change events; no asynchronous ones */
    reply_zeros(reply, 3);
}

static void removable(const MmcDrive *drive, Reply *reply)
{
    reply_u8(reply, 1 << 5 | 0x10 | 0x08 | 0x01); /* tray; loads, ejects, locks */
    reply_zeros(reply, 3);
}

static void random_readable(const MmcDrive *drive, Reply *reply)
{
    const uint16_t profile = mmc_drive_profile(drive);
    reply_be32(reply, SECTOR_USER);
    reply_be16(reply, profile == PROFILE_BD ? 32 : profile == PROFILE_DVD ? 16 : 1); /* blocks to one ECC */
    reply_u8(reply, 0x01); /* the error recovery page is there */
    reply_u8(reply, 0);
}

static void cd_read(const MmcDrive *drive, Reply *reply)
{
    reply_u8(reply, 0x01); /* CD-TEXT; no C2 flags to tell of, no digital audio play */
    reply_zeros(reply, 3);
}

static void four_zeros(const MmcDrive *drive, Reply *reply)
{
    reply_zeros(reply, 4);
}

/* Bit maps of versions by class (MMC-6 5.3.26): BD-RE and BD-R none, BD-ROM class 0 version 1. */
static void bd_read(const MmcDrive *drive, Reply *reply)
{
    reply_zeros(reply, 4 + 8 + 8);
    reply_be16(reply, 0x0002);
    reply_zeros(reply, 6);
}

static void streaming(const MmcDrive *drive, Reply *reply)
{
    reply_u8(reply, 0x18); /* READ BUFFER CAPACITY by block, SET CD SPEED; nothing about writing */
    reply_zeros(reply, 3);
}

static void serial_number(const MmcDrive *drive, Reply *reply)
{
    const size_t len = (MIN(strlen(drive->serial), 200) + 3) / 4 * 4;
    reply_text(reply, drive->serial, len);
}

/* In ascending order, as they are given (MMC-6 6.5.2.1). */
static const Feature features[] = {
    {0x0000, 0, true, NULL, profile_list},
    {0x0001, 2, true, NULL, core},
    {0x0002, 1, true, NULL, morphing},
    {0x0003, 2, true, NULL, removable},
    {0x0010, 0, false, any_medium, random_readable},
    {0x001d, 0, false, cd_medium, NULL}, /* multi-read */
    {0x001e, 2, false, cd_medium, cd_read},
    {0x001f, 1, false, dvd_medium, four_zeros}, /* DVD read: no DVD-R dual layer, no RW */
    {0x0040, 1, false, bd_medium, bd_read},
    {0x0100, 0, true, NULL, NULL},       /* power management */
    {0x0105, 1, true, NULL, four_zeros}, /* time-out */
    {0x0107, 4, false, any_medium, streaming},
    {0x0108, 0, true, NULL, serial_number},
};

static bool is_current(const MmcDrive *drive, const Feature *feature)
{
    return feature->persistent || feature->current(drive);
}

static void put_feature(const MmcDrive *drive, const Feature *feature, Reply *reply)
{
    const size_t start = reply->used;
    reply_be16(reply, feature->code);
    reply_u8(reply, (uint8_t)(feature->version << 2 | (feature->persistent ? PERSISTENT : 0) |
                              (is_current(drive, feature) ? CURRENT : 0)));
    reply_u8(reply, 0);
    if (feature->data) {
        feature->data(drive, reply);
    }
    reply_set_u8(reply, start + 3, (uint8_t)(reply->used - start - 4));
}

static bool is_requested(const MmcDrive *drive, const Feature *feature, unsigned request, uint16_t start)
{
    switch (request) {
    case RT_ONE:
        return feature->code == start;
    case RT_CURRENT:
        return feature->code >= start && is_current(drive, feature);
    default:
        return feature->code >= start;
    }
}

MmcStep mmc_get_configuration(MmcCommand *command)
{
    const MmcDrive *drive = command->drive;
    const unsigned request = command->cdb[1] & 0x03;
    const uint16_t start = load_be16(&command->cdb[2]);
    Reply reply;
    if (request > RT_ONE) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be32(&reply, 0);
    reply_be16(&reply, 0);
    reply_be16(&reply, mmc_drive_profile(drive));
    for (unsigned i = 0; i < G_N_ELEMENTS(features); i++) {
        if (is_requested(drive, &features[i], request, start)) {
            put_feature(drive, &features[i], &reply);
        }
    }
    reply_set_be32(&reply, 0, (uint32_t)(reply.used - 4));
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[7]));
}
