/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the drive is doing: TEST UNIT READY, REQUEST SENSE, events, mechanism; and the tray's commands.
 */
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

MmcStep mmc_test_unit_ready(MmcCommand *command)
{
    return mmc_good(command); /* the gates have said it all */
}

/* The last command's sense, else a pending attention (SPC-4 6.39, MMC-6 6.36): told once. */
MmcStep mmc_request_sense(MmcCommand *command)
{
    MmcDrive *drive = command->drive;
    uint8_t encoded[MMC_SENSE_SIZE];
    Reply reply;
    if (command->cdb[1] & 0x01) { /* descriptor format */
        drive->sense = SENSE_GOOD;
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    MmcSense sense = drive->sense;
    if (sense.key == 0 && !tray_take_attention(&drive->tray, &sense)) {
        sense = SENSE_GOOD;
    }
    drive->sense = SENSE_GOOD;
    mmc_sense_encode(&sense, encoded);
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_bytes(&reply, encoded, sizeof encoded);
    return mmc_reply_end(command, &reply, command->cdb[4]);
}

/* Notification classes (MMC-6 6.6.2.2). */
enum { CLASS_OPERATIONAL = 1, CLASS_POWER = 2, CLASS_EXTERNAL = 3, CLASS_MEDIA = 4, CLASS_BUSY = 6 };
#define CLASSES_SUPPORTED                                                                                    \
    (1 << CLASS_OPERATIONAL | 1 << CLASS_POWER | 1 << CLASS_EXTERNAL | 1 << CLASS_MEDIA | 1 << CLASS_BUSY)

static bool class_has_event(const MmcDrive *drive, unsigned class)
{
    switch (class) {
    case CLASS_OPERATIONAL:
        return drive->tray.features_changed;
    case CLASS_POWER:
        return drive->power_changed;
    case CLASS_MEDIA:
        return tray_has_event(&drive->tray);
    default:
        return false;
    }
}

/* The lowest requested class that has something to say, else the lowest one requested, which says that
 * nothing happened (MMC-6 6.6.2.5). 0: none is supported. */
static unsigned choose_class(const MmcDrive *drive, uint8_t request)
{
    unsigned first = 0;
    for (unsigned class = CLASS_BUSY; class > 0; class --) {
        if (request & CLASSES_SUPPORTED & 1u << class) {
            first = class;
        }
    }
    for (unsigned class = first; class && class <= CLASS_BUSY; class ++) {
        if (request & CLASSES_SUPPORTED & 1u << class && class_has_event(drive, class)) {
            return class;
        }
    }
    return first;
}

static void put_media(const MmcDrive *drive, TrayEvent event, Reply *reply)
{
    const Tray *tray = &drive->tray;
    const bool open = tray->state == TRAY_OPEN;
    /* a removal that a new disc followed at once is told as it was: nothing in */
    const bool present = !open && tray->medium && event != TRAY_EVENT_REMOVAL;
    reply_u8(reply, (uint8_t)event);
    reply_u8(reply, (uint8_t)(present << 1 | open));
    reply_be16(reply, 0); /* slots */
}

static void put_event(MmcDrive *drive, unsigned class, bool take, Reply *reply)
{
    Tray *tray = &drive->tray;
    switch (class) {
    case CLASS_OPERATIONAL:
        reply_u8(reply, tray->features_changed ? 2 : 0);
        reply_u8(reply, tray->persistent ? 0x80 : 0);
        reply_be16(reply, tray->features_changed ? 1 : 0); /* features changed */
        tray->features_changed &= !take;
        break;
    case CLASS_POWER:
        reply_u8(reply, drive->power_changed ? 1 : 0);
        reply_u8(reply, drive->power);
        reply_be16(reply, 0);
        drive->power_changed &= !take;
        break;
    case CLASS_MEDIA:
        put_media(drive,
                  take             ? tray_take_event(tray)
                  : tray->n_events ? tray->events[0]
                                   : TRAY_EVENT_NONE,
                  reply);
        break;
    case CLASS_EXTERNAL: /* no buttons */
        reply_u8(reply, 0);
        reply_u8(reply, tray->persistent ? 0x80 : 0);
        reply_be16(reply, 0);
        break;
    default: /* busy: never, as far as polling can see */
        reply_be32(reply, 0);
        break;
    }
}

MmcStep mmc_get_event_status(MmcCommand *command)
{
    const uint16_t allocation = load_be16(&command->cdb[7]);
    Reply reply;
    if (!(command->cdb[1] & 0x01)) { /* asynchronous notification is optional */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    const unsigned class = choose_class(command->drive, command->cdb[4]);
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be16(&reply, class ? 6 : 2);
    reply_u8(&reply, (uint8_t)(class ? class : 0x80)); /* NEA */
    reply_u8(&reply, CLASSES_SUPPORTED);
    if (class) {
        /* who asks for the header alone leaves the event in the queue (MMC-6 6.6.2.4) */
        put_event(command->drive, class, allocation > 4, &reply);
    }
    return mmc_reply_end(command, &reply, allocation);
}

MmcStep mmc_mechanism_status(MmcCommand *command)
{
    MmcDrive *drive = command->drive;
    Reply reply;
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_u8(&reply, 0);
    reply_u8(&reply, drive->tray.state == TRAY_OPEN ? 0x10 : 0);
    reply_be24(&reply, drive->position);
    reply_u8(&reply, 1);   /* slots */
    reply_be16(&reply, 0); /* length of the slot table, which only a changer has */
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[8]));
}

/* MMC-6 6.16: two locks, and only the plain one keeps the guest itself from ejecting. */
MmcStep mmc_prevent_allow(MmcCommand *command)
{
    Tray *tray = &command->drive->tray;
    const bool on = command->cdb[4] & 0x01;
    if (command->cdb[4] & 0x02) {
        tray->persistent = on;
    } else {
        tray->prevent = on;
    }
    mmc_drive_sync_lock(command->drive);
    return mmc_good(command);
}

static MmcStep set_power(MmcCommand *command, unsigned condition)
{
    MmcDrive *drive = command->drive;
    switch (condition) {
    case 1: /* active, idle, standby */
    case 2:
    case 3:
        break;
    case 5: /* sleep, which the next command ends: no bus to wake us by */
        condition = 3;
        break;
    default:
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    drive->power_changed |= drive->power != condition;
    drive->power = (uint8_t)condition;
    return mmc_good(command);
}

static MmcStep move_tray(MmcCommand *command, bool load)
{
    MmcDrive *drive = command->drive;
    if (load) {
        mmc_drive_close_tray(drive);
        return mmc_good(command);
    }
    if (drive->tray.prevent) {
        return mmc_fail(command, SENSE_REMOVAL_PREVENTED);
    }
    if (drive->node) {
        block_move_tray(drive->node, true);
    }
    mmc_drive_eject(drive);
    return mmc_good(command);
}

/* MMC-6 6.42. Moving takes no time here, so IMMED makes no difference. */
MmcStep mmc_start_stop(MmcCommand *command)
{
    const uint8_t flags = command->cdb[4];
    const bool start = flags & 0x01;
    MmcSense sense;
    if (command->cdb[3] & 0x0f || flags & 0x04) { /* format layers are a hybrid disc's */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (flags >> 4) {
        return set_power(command, flags >> 4);
    }
    if (flags & 0x02) {
        return move_tray(command, start);
    }
    if (start && !tray_check_ready(&command->drive->tray, &sense)) {
        return mmc_fail(command, sense);
    }
    return set_power(command, start ? 1 : 3);
}
