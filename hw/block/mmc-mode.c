/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Mode pages: MODE SENSE and MODE SELECT, 6 and 10. A page is three arrays of the same length (current,
 * default, changeable bits) and a validator; the two commands are loops over them.
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "util/bytes.h"

#define PAGE_ALL         0x3f
#define PAGE_CAPABILITY  0x2a
#define CONTROL_CURRENT  0
#define CONTROL_MASK     1
#define CONTROL_DEFAULT  2
#define CONTROL_SAVED    3
#define DESCRIPTOR_BYTES 8

typedef struct ModePage {
    uint8_t defaults[MMC_PAGE_MAX]; /* byte 0 page code, byte 1 length behind it */
    uint8_t changeable[MMC_PAGE_MAX];
    bool (*valid)(const uint8_t *page); /* of a page whose unchangeable bits are right; NULL: always */
} ModePage;

/* Error recovery parameter: the combinations of MMC-6 table 666. */
static bool recovery_valid(const uint8_t *page)
{
    const uint8_t flags = page[2] & 0x37;
    return flags <= 0x07 || flags == 0x10 || flags == 0x11 || (flags >= 0x14 && flags <= 0x17) ||
           (flags >= 0x20 && flags <= 0x27) || flags >= 0x30;
}

/* Sorted by page code, as MODE SENSE of all pages gives them (SPC-4 6.11). */
static const ModePage pages[MMC_PAGES] = {
    /* read error recovery (MMC-6 7.3): retries are the host's affair, the parameters are kept */
    {{0x01, 0x0a, 0x00, 0x05}, {0x01, 0x0a, 0x37, 0xff}, recovery_valid},
    /* CD device parameters (SFF-8020i 10.8.6.2): 60 seconds, 75 frames */
    {{0x0d, 0x06, 0x00, 0x0d, 0x00, 0x3c, 0x00, 0x4b}, {0x0d, 0x06, 0x00, 0x0f}, NULL},
    /* CD audio control (MMC-6 annex; SFF-8020i 10.8.6.3) */
    {{0x0e, 0x0e, 0x04, 0, 0, 0, 0, 0x4b, 0x01, 0xff, 0x02, 0xff},
     {0x0e, 0x0e, 0x02, 0, 0, 0, 0, 0, 0x0f, 0xff, 0x0f, 0xff},
     NULL},
    /* power condition (MMC-6 7.8): timers may be set, standby costs no time here */
    {{0x1a, 0x0a}, {0x1a, 0x0a, 0x00, 0x03, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, NULL},
    /* time-out and protect (MMC-6 7.9): group 1 and 2 minimum time-outs, none of which may be changed */
    {{0x1d, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1e, 0x00, 0x3c}, {0x1d, 0x08}, NULL},
    /* capabilities and mechanical status (MMC-6 7.11); what moves is put in by capability_current() */
    {{0x2a, 0x1e, 0x3b, 0x00, 0x70, 0x63, 0x29, 0x00, 0, 0, 0x01, 0x00, 0x08, 0x00}, {0x2a, 0x1e}, NULL},
};

static size_t page_size(unsigned i)
{
    return 2u + pages[i].defaults[1];
}

void mmc_mode_init(MmcModePages *mode)
{
    mode->block_length = SECTOR_USER;
    for (unsigned i = 0; i < MMC_PAGES; i++) {
        memcpy(mode->current[i], pages[i].defaults, MMC_PAGE_MAX);
    }
}

static void capability_current(const MmcDrive *drive, uint8_t *page)
{
    page[6] |= tray_locked(&drive->tray) ? 0x02 : 0;
    store_be16(&page[8], (uint16_t)MIN(mmc_drive_max_speed(drive), 0xffff));
    store_be16(&page[14], (uint16_t)MIN(mmc_drive_speed(drive), 0xffff));
}

static void page_values(const MmcDrive *drive, unsigned i, unsigned control, uint8_t page[MMC_PAGE_MAX])
{
    switch (control) {
    case CONTROL_MASK:
        memcpy(page, pages[i].changeable, MMC_PAGE_MAX);
        return;
    case CONTROL_DEFAULT:
        memcpy(page, pages[i].defaults, MMC_PAGE_MAX);
        break;
    default:
        memcpy(page, drive->mode.current[i], MMC_PAGE_MAX);
        break;
    }
    if (page[0] == PAGE_CAPABILITY) {
        capability_current(drive, page);
    }
}

static void put_page(const MmcDrive *drive, unsigned i, unsigned control, Reply *reply)
{
    uint8_t page[MMC_PAGE_MAX];
    page_values(drive, i, control, page);
    reply_bytes(reply, page, page_size(i));
}

/* Medium type as the ATAPI drives of the time said it (SFF-8020i table 72); MMC-6 ignores the byte. */
static uint8_t medium_type(const MmcDrive *drive)
{
    if (drive->tray.state == TRAY_OPEN) {
        return 0x71;
    }
    if (!drive->disc) {
        return 0x70;
    }
    if (!disc_is_cd(drive->disc)) {
        return 0x00;
    }
    bool audio = false, data = false;
    for (unsigned i = 0; i < drive->disc->n_tracks; i++) {
        audio |= drive->disc->tracks[i].mode == DISC_AUDIO;
        data |= drive->disc->tracks[i].mode != DISC_AUDIO;
    }
    return audio ? data ? 0x03 : 0x02 : 0x01;
}

/* The header, and a block descriptor only for a host that has chosen a block length: ATAPI has none (MMC-6
 * 7.2.1), and hosts that do not expect one misread the pages. */
static void put_header(const MmcDrive *drive, bool ten, bool no_descriptor, Reply *reply)
{
    const uint8_t descriptor =
        no_descriptor || drive->mode.block_length == SECTOR_USER ? 0 : DESCRIPTOR_BYTES;
    if (ten) {
        reply_be16(reply, 0);
        reply_u8(reply, medium_type(drive));
        reply_zeros(reply, 3);
        reply_be16(reply, descriptor);
    } else {
        reply_u8(reply, 0);
        reply_u8(reply, medium_type(drive));
        reply_u8(reply, 0);
        reply_u8(reply, descriptor);
    }
    if (descriptor) {
        reply_be32(reply, 0); /* density 0, all blocks */
        reply_be32(reply, drive->mode.block_length);
    }
}

MmcStep mmc_mode_sense(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const bool ten = cdb[0] == 0x5a;
    const unsigned control = cdb[2] >> 6, code = cdb[2] & 0x3f;
    bool found = false;
    Reply reply;
    if (cdb[3] != 0 && !(cdb[3] == 0xff && code == PAGE_ALL)) { /* no sub-pages */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (control == CONTROL_SAVED) {
        return mmc_fail(command, SENSE_SAVING_UNSUPPORTED);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    put_header(command->drive, ten, cdb[1] & 0x08, &reply);
    for (unsigned i = 0; i < MMC_PAGES; i++) {
        if (code == PAGE_ALL || code == pages[i].defaults[0]) {
            put_page(command->drive, i, control, &reply);
            found = true;
        }
    }
    if (!found) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (ten) {
        reply_set_be16(&reply, 0, (uint16_t)(reply.used - 2));
    } else {
        reply_set_u8(&reply, 0, (uint8_t)(reply.used - 1));
    }
    return mmc_reply_end(command, &reply, ten ? load_be16(&cdb[7]) : cdb[4]);
}

/* Lengths that READ(10) can serve; a length of 0 or anything odd would be divided by later. */
static bool block_length_valid(uint32_t length)
{
    return length == 512 || length == SECTOR_USER || length == SECTOR_MODE2 || length == SECTOR_RAW;
}

bool mmc_mode_valid(const MmcModePages *mode)
{
    bool valid = block_length_valid(mode->block_length);

    for (unsigned i = 0; i < MMC_PAGES; i++) {
        for (size_t b = 0; b < MMC_PAGE_MAX; b++) {
            const uint8_t mask = b < 2 ? 0 : pages[i].changeable[b];
            valid &= !((mode->current[i][b] ^ pages[i].defaults[b]) & ~mask);
        }
        valid &= !pages[i].valid || pages[i].valid(mode->current[i]);
    }
    return valid;
}

static bool take_descriptor(const uint8_t *descriptor, MmcModePages *mode)
{
    const uint32_t length = load_be24(&descriptor[5]);
    if (!block_length_valid(length)) {
        return false;
    }
    mode->block_length = length;
    return true;
}

/* Bits that the guest may not change must be as MODE SENSE gives them. */
static bool page_acceptable(const MmcDrive *drive, unsigned i, const uint8_t *data)
{
    uint8_t now[MMC_PAGE_MAX];
    page_values(drive, i, CONTROL_CURRENT, now);
    for (size_t b = 2; b < page_size(i); b++) {
        if ((data[b] ^ now[b]) & ~pages[i].changeable[b]) {
            return false;
        }
    }
    return !pages[i].valid || pages[i].valid(data);
}

/* One whole page of a parameter list into `mode`. Its size, or 0: 05/26. */
static size_t take_page(const MmcDrive *drive, const uint8_t *data, MmcModePages *mode)
{
    for (unsigned i = 0; i < MMC_PAGES; i++) {
        if ((data[0] & 0x7f) == pages[i].defaults[0] && data[1] == pages[i].defaults[1]) {
            if (!page_acceptable(drive, i, data)) {
                return 0;
            }
            for (size_t b = 2; b < page_size(i); b++) {
                const uint8_t mask = pages[i].changeable[b];
                mode->current[i][b] = (mode->current[i][b] & ~mask) | (data[b] & mask);
            }
            return page_size(i);
        }
    }
    return 0;
}

/* All of the list is checked before any of it counts. */
static MmcSense take_list(MmcDrive *drive, const uint8_t *data, size_t len, bool ten)
{
    const size_t header = ten ? 8 : 4;
    MmcModePages mode = drive->mode;
    if (len < header) {
        return SENSE_PARAM_LIST_LENGTH;
    }
    const size_t descriptor = ten ? load_be16(&data[6]) : data[3];
    if (descriptor != 0 && descriptor != DESCRIPTOR_BYTES) {
        return SENSE_INVALID_PARAM;
    }
    if (len < header + descriptor) {
        return SENSE_PARAM_LIST_LENGTH;
    }
    if (descriptor && !take_descriptor(&data[header], &mode)) {
        return SENSE_INVALID_PARAM;
    }
    for (size_t at = header + descriptor; at < len;) {
        if (len - at < 2 || len - at < 2u + data[at + 1]) {
            return SENSE_PARAM_LIST_LENGTH;
        }
        const size_t size = take_page(drive, &data[at], &mode);
        if (size == 0) {
            return SENSE_INVALID_PARAM;
        }
        at += size;
    }
    drive->mode = mode;
    return SENSE_GOOD;
}

static MmcStep select_taken(MmcCommand *command)
{
    const MmcSense sense = take_list(command->drive, command->param, command->got, command->cdb[0] == 0x55);
    return sense.key ? mmc_fail(command, sense) : mmc_good(command);
}

MmcStep mmc_mode_select(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const size_t len = cdb[0] == 0x55 ? load_be16(&cdb[7]) : cdb[4];
    if (cdb[1] & 0x01) { /* SP: nothing is saved. PF is not asked for: old drivers leave it 0 */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (len == 0) {
        return mmc_good(command);
    }
    if (len > MMC_PARAM_MAX) {
        return mmc_fail(command, SENSE_PARAM_LIST_LENGTH);
    }
    return mmc_want(command, len, select_taken);
}
