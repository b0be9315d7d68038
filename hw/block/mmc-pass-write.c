/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How long a block is that a guest writes: WRITE tells how many they are, and the drive has been told before
 * what they hold, by the write parameters page (MMC-6 7.5) or, for a session at once, by the cue sheet
 * (MMC-6 6.33).
 */
#include "hw/block/mmc-pass.h"
#include "hw/block/msf.h"
#include "util/bytes.h"

#define PAGE_WRITE   0x05
#define SESSION_ONCE 2 /* write type */
#define CUE          8
#define SUB_CHANNEL  96

/* By data block type (MMC-6 table 661); 0: reserved or the vendor's. */
static const uint16_t block_types[16] = {2352, 2368, 2448, 2448, 0,    0,    0, 0,
                                         2048, 2336, 2048, 2056, 2324, 2332, 0, 0};

/* Pages that a guest may set: error recovery, write parameters, CD-DA control, power, timeouts. */
static bool page_may_be_set(uint8_t code)
{
    return code == 0x01 || code == PAGE_WRITE || code == 0x0d || code == 0x0e || code == 0x1a || code == 0x1d;
}

/* The next page of a MODE SELECT(10) list, NULL behind the last one; *ret_bad: it makes no sense. */
static const uint8_t *next_page(const uint8_t *data, size_t len, size_t *at, bool *ret_bad)
{
    if (*at == 0) {
        *at = len < 8 ? len + 1 : 8u + load_be16(&data[6]);
    }
    const size_t left = *at <= len ? len - *at : 0;
    *ret_bad = *at > len || (left > 0 && (left < 2 || left < 2u + data[*at + 1]));
    if (*ret_bad || left == 0) {
        return NULL;
    }
    const uint8_t *page = &data[*at];
    *at += 2u + page[1];
    return page;
}

MmcSense mmc_write_check_pages(const uint8_t *data, size_t len)
{
    const uint8_t *page;
    size_t at = 0;
    bool bad;
    while ((page = next_page(data, len, &at, &bad))) {
        const bool write = (page[0] & 0x3f) == PAGE_WRITE;
        if (!page_may_be_set(page[0] & 0x3f) || page[0] & 0x40 ||
            (write && (page[1] < 3 || block_types[page[4] & 0x0f] == 0))) {
            return SENSE_INVALID_PARAM;
        }
    }
    return bad ? SENSE_PARAM_LIST_LENGTH : SENSE_GOOD;
}

void mmc_write_take_pages(MmcDrive *drive, const uint8_t *data, size_t len)
{
    const uint8_t *page;
    size_t at = 0;
    bool bad;
    while ((page = next_page(data, len, &at, &bad))) {
        if ((page[0] & 0x3f) == PAGE_WRITE) {
            drive->write.block = block_types[page[4] & 0x0f];
            drive->write.by_cues = (page[2] & 0x0f) == SESSION_ONCE;
        }
    }
}

/* Bytes of a block of a cue sheet's data form (MMC-6 table 557): main channel, and 96 of sub-channel. */
static uint32_t form_bytes(uint8_t form)
{
    static const uint16_t user[] = {2352, 2048, 2336, 2336};
    const uint8_t source = form & 0x0f;
    const uint32_t sub = form >> 6 ? SUB_CHANNEL : 0;
    const unsigned kind = form >> 4 & 0x03;
    if (kind == 0) {
        return (source == 0 ? 2352 : 0) + sub;
    }
    return (source == 4 ? 0 : source & 1 ? SECTOR_RAW : user[kind]) + sub;
}

static bool form_is_known(uint8_t form)
{
    return (form & 0x0f) <= ((form >> 4 & 0x03) ? 4 : 1) && form >> 6 != 2;
}

/* Entries that are tracks' indices and not catalogue numbers or ISRCs. */
static bool is_position(const uint8_t *cue)
{
    return (cue[0] & 0x0f) == 1;
}

MmcSense mmc_write_check_cues(const uint8_t *data, size_t len)
{
    if (len % CUE != 0) {
        return SENSE_PARAM_LIST_LENGTH;
    }
    for (size_t at = 0; at < len; at += CUE) {
        if (is_position(&data[at]) && !form_is_known(data[at + 3])) {
            return SENSE_INVALID_PARAM;
        }
    }
    return SENSE_GOOD;
}

/* Bytes 3: data form, 5-7: MSF. Only where the length changes there is something to remember. */
void mmc_write_take_cues(MmcDrive *drive, const uint8_t *data, size_t len)
{
    MmcWrite *write = &drive->write;
    g_clear_pointer(&write->cues, g_array_unref);
    write->cues = g_array_new(false, false, sizeof(MmcCue));
    for (size_t at = 0; at + CUE <= len; at += CUE) {
        const uint8_t *from = &data[at];
        const MmcCue cue = {(int32_t)msf_to_lba((Msf){from[5], from[6], from[7]}), form_bytes(from[3])};
        const bool first = write->cues->len == 0;
        if (is_position(from) &&
            (first || g_array_index(write->cues, MmcCue, write->cues->len - 1).bytes != cue.bytes)) {
            g_array_append_val(write->cues, cue);
        }
    }
}

/* Addresses before LBA 0 are negative; what lies before the first cue is the lead-in, and like it. */
uint32_t mmc_write_block(const MmcDrive *drive, uint32_t lba)
{
    const MmcWrite *write = &drive->write;
    if (!write->by_cues || !write->cues || write->cues->len == 0) {
        return write->block;
    }
    uint32_t bytes = g_array_index(write->cues, MmcCue, 0).bytes;
    for (guint i = 1; i < write->cues->len; i++) {
        const MmcCue *cue = &g_array_index(write->cues, MmcCue, i);
        if (cue->start <= (int32_t)lba) {
            bytes = cue->bytes;
        }
    }
    return bytes;
}
