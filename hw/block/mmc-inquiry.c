/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * INQUIRY with its vital product data pages, REPORT LUNS.
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

#define INQUIRY_LENGTH 96   /* standard data, version descriptors included */
#define PERIPHERAL_CD  0x05 /* device type, connected */
#define VPD_SUPPORTED  0x00
#define VPD_SERIAL     0x80
#define VPD_DEVICE_ID  0x83
#define SERIAL_MAX     200 /* bytes of a serial number on a page */
#define VERSION_SPC3   0x0300
#define VERSION_MMC6   0x04e0

static void put_standard(const MmcDrive *drive, Reply *reply)
{
    reply_u8(reply, PERIPHERAL_CD);
    reply_u8(reply, 0x80); /* removable */
    reply_u8(reply, 0x05); /* SPC-3 */
    reply_u8(reply, 0x02); /* response data format */
    reply_u8(reply, INQUIRY_LENGTH - 5);
    reply_zeros(reply, 3);
    reply_text(reply, drive->vendor, 8);
    reply_text(reply, drive->product, 16);
    reply_text(reply, drive->revision, 4);
    reply_zeros(reply, 58 - 36);
    reply_be16(reply, VERSION_SPC3);
    reply_be16(reply, VERSION_MMC6);
    reply_zeros(reply, INQUIRY_LENGTH - 62);
}

static size_t serial_length(const MmcDrive *drive)
{
    return strnlen(drive->serial, SERIAL_MAX);
}

/* T10 vendor identification (SPC-4 7.8.6.4): vendor, product, serial number. */
static void put_device_id(const MmcDrive *drive, Reply *reply)
{
    const size_t serial = serial_length(drive);
    reply_u8(reply, 0x02); /* ASCII */
    reply_u8(reply, 0x01); /* of the logical unit, T10 vendor ID */
    reply_u8(reply, 0);
    reply_u8(reply, (uint8_t)(8 + 16 + serial));
    reply_text(reply, drive->vendor, 8);
    reply_text(reply, drive->product, 16);
    reply_text(reply, drive->serial, serial);
}

static bool put_vpd(const MmcDrive *drive, uint8_t page, Reply *reply)
{
    static const uint8_t pages[] = {VPD_SUPPORTED, VPD_SERIAL, VPD_DEVICE_ID};
    reply_u8(reply, PERIPHERAL_CD);
    reply_u8(reply, page);
    reply_be16(reply, 0);
    switch (page) {
    case VPD_SUPPORTED:
        reply_bytes(reply, pages, sizeof pages);
        break;
    case VPD_SERIAL:
        reply_text(reply, drive->serial, serial_length(drive));
        break;
    case VPD_DEVICE_ID:
        put_device_id(drive, reply);
        break;
    default:
        return false;
    }
    reply_set_be16(reply, 2, (uint16_t)(reply->used - 4));
    return true;
}

MmcStep mmc_inquiry(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const bool vital = cdb[1] & 0x01;
    Reply reply;
    if (cdb[1] & 0x02 || (!vital && cdb[2] != 0)) { /* CMDDT is obsolete */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    if (!vital) {
        put_standard(command->drive, &reply);
    } else if (!put_vpd(command->drive, cdb[2], &reply)) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    return mmc_reply_end(command, &reply, load_be16(&cdb[3]));
}

/* LUN 0 and no other. */
MmcStep mmc_report_luns(MmcCommand *command)
{
    Reply reply;
    if (command->cdb[2] > 2) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    const bool well_known_only = command->cdb[2] == 1;
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be32(&reply, well_known_only ? 0 : 8);
    reply_be32(&reply, 0);
    if (!well_known_only) {
        reply_be64(&reply, 0);
    }
    return mmc_reply_end(command, &reply, load_be32(&command->cdb[6]));
}
