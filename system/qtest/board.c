/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/board.h"
#include <glib.h>
#include <string.h>
#include "util/bytes.h"

#define FW_SELECT 0x510
#define FW_DATA   0x511
#define RTC_INDEX 0x70
#define RTC_DATA  0x71

/* CMOS memory, as SeaBIOS and the AT's BIOS use it. */
enum {
    CMOS_STATUS_A = 0x0a,
    CMOS_STATUS_B = 0x0b,
    CMOS_STATUS_C = 0x0c,
    CMOS_STATUS_D = 0x0d,
    CMOS_DISK_TYPES = 0x12, /* a nibble a disk, 15: see the byte below */
    CMOS_BASE_MEMORY = 0x15,
    CMOS_EXTENDED_MEMORY = 0x17,
    CMOS_DISK0_TYPE = 0x19, /* and 1ah */
    CMOS_DISK0 = 0x1b,      /* and 24h: 9 bytes */
    CMOS_EXTENDED_MEMORY2 = 0x30,
    CMOS_CENTURY = 0x32,
    CMOS_MEMORY_16M = 0x34,  /* in 64 KiB above 16 MiB */
    CMOS_BOOT3 = 0x38,       /* the third boot device in bits 7:4; bit 0: no look for a floppy's signature */
    CMOS_TRANSLATION = 0x39, /* two bits a disk */
    CMOS_BOOT = 0x3d,        /* the second and the first */
};
#define DISK_TYPE_USER 47
#define DISK_BYTES     9

static void put_le16(uint8_t *at, uint64_t value)
{
    store_le16(at, (uint16_t)MIN(value, 0xffff));
}

void board_init(Board *board, uint64_t ram_size, uint64_t ram_below)
{
    uint64_t kib = ram_below / 1024, extended = kib > 1024 ? kib - 1024 : 0;

    *board = (Board){.fw = {.ram_size = ram_size, .reboot_timeout = UINT32_MAX, .splash_time = -1},
                     .boot_time = g_get_real_time() / G_USEC_PER_SEC};
    board->cmos[CMOS_STATUS_A] = 0x26; /* 32768 Hz, 1024 Hz */
    board->cmos[CMOS_STATUS_B] = 0x02; /* 24 hours, BCD */
    board->cmos[CMOS_STATUS_D] = 0x80; /* battery is good */
    put_le16(board->cmos + CMOS_BASE_MEMORY, MIN(kib, 640));
    put_le16(board->cmos + CMOS_EXTENDED_MEMORY, extended);
    put_le16(board->cmos + CMOS_EXTENDED_MEMORY2, extended);
    put_le16(board->cmos + CMOS_MEMORY_16M, kib > 16384 ? (kib - 16384) / 64 : 0);
}

static void put_boot_order(Board *board, uint16_t order)
{
    board->cmos[CMOS_BOOT] = order & 0xff;
    board->cmos[CMOS_BOOT3] = (uint8_t)((order >> 8) << 4 | board->boot.skip_floppy_check);
}

void board_set_boot(Board *board, const BoardBoot *boot)
{
    board->boot = *boot;
    board->fw.boot_menu = boot->menu;
    board->fw.splash_time = boot->splash_time;
    board->fw.reboot_timeout = boot->reboot_timeout;
    put_boot_order(board, boot->has_once ? boot->once : boot->order);
}

void board_set_uuid(Board *board, const char *text)
{
    unsigned n = 0;

    for (; n < sizeof board->fw.uuid && g_ascii_isxdigit(text[0]) && g_ascii_isxdigit(text[1]); n++) {
        board->fw.uuid[n] = (uint8_t)(g_ascii_xdigit_value(text[0]) << 4 | g_ascii_xdigit_value(text[1]));
        text += text[2] == '-' ? 3 : 2;
    }
}

void board_reset(Board *board)
{
    if (board->boot.has_once) {
        board->boot.has_once = false;
        put_boot_order(board, board->boot.order);
    }
    board->cmos_index = 0;
    board->fw_item = 0;
    board->fw_offset = 0;
}

void board_set_disk(Board *board, unsigned number, const AtaGeometry *geometry)
{
    uint8_t *translation = board->cmos + CMOS_TRANSLATION;

    if (!geometry) {
        return;
    }
    *translation |= (uint8_t)((geometry->translation - ATA_TRANSLATION_NONE) << (2 * number));
    if (number > 1) {
        return;
    }
    uint8_t *at = board->cmos + CMOS_DISK0 + DISK_BYTES * number;
    board->cmos[CMOS_DISK_TYPES] |= number == 0 ? 0xf0 : 0x0f;
    board->cmos[CMOS_DISK0_TYPE + number] = DISK_TYPE_USER;
    store_le16(at, (uint16_t)geometry->cyls);
    at[2] = (uint8_t)geometry->heads;
    at[3] = at[4] = 0xff; /* no write precompensation */
    at[5] = 0xc0 | (geometry->heads > 8 ? 8 : 0);
    store_le16(at + 6, (uint16_t)geometry->cyls); /* landing zone */
    at[8] = (uint8_t)geometry->secs;
}

static uint8_t bcd(int value)
{
    return (uint8_t)(value / 10 << 4 | value % 10);
}

static uint8_t cmos_read(Board *board, int64_t now)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(board->boot_time + now / 1000000000);

    switch (board->cmos_index) {
    case 0:
        return bcd(g_date_time_get_second(time));
    case 2:
        return bcd(g_date_time_get_minute(time));
    case 4:
        return bcd(g_date_time_get_hour(time));
    case 6:
        return bcd(g_date_time_get_day_of_week(time) % 7 + 1);
    case 7:
        return bcd(g_date_time_get_day_of_month(time));
    case 8:
        return bcd(g_date_time_get_month(time));
    case 9:
        return bcd(g_date_time_get_year(time) % 100);
    case CMOS_CENTURY:
        return bcd(g_date_time_get_year(time) / 100);
    default:
        return board->cmos[board->cmos_index];
    }
}

static void cmos_write(Board *board, uint8_t value)
{
    if (board->cmos_index != CMOS_STATUS_C && board->cmos_index != CMOS_STATUS_D) {
        board->cmos[board->cmos_index] = value;
    }
}

static uint8_t fw_read(Board *board)
{
    uint8_t byte = fw_cfg_byte(&board->fw, board->fw_item, board->fw_offset);

    board->fw_offset += board->fw_offset < UINT32_MAX;
    return byte;
}

bool board_port_read(Board *board, uint16_t port, unsigned size, int64_t now, uint32_t *ret_value)
{
    if (port == RTC_DATA) {
        *ret_value = cmos_read(board, now);
        return true;
    }
    if (port == FW_SELECT || port == FW_DATA) {
        *ret_value = size == 1 ? fw_read(board) : 0;
        return true;
    }
    return false;
}

bool board_port_write(Board *board, uint16_t port, unsigned size, uint32_t value)
{
    switch (port) {
    case RTC_INDEX:
        board->cmos_index = value & 0x7f;
        return true;
    case RTC_DATA:
        cmos_write(board, (uint8_t)value);
        return true;
    case FW_SELECT:
        if (size == 2) {
            board->fw_item = (uint16_t)value;
            board->fw_offset = 0;
        }
        return true;
    default:
        return false;
    }
}
