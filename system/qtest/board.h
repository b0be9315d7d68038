/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a PC has besides its drives and that test programs ask for: the firmware's configuration ports 510h
 * and 511h, and the real-time clock's memory behind ports 70h and 71h. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_BOARD_H
#define SPINDLE_SYSTEM_QTEST_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include "hw/ide/ata-geometry.h"
#include "system/qtest/fw-cfg.h"

#define CMOS_SIZE 128

/* Boot devices in the CMOS's codes, four bits each, the first lowest. `once`: until the first reset. */
typedef struct BoardBoot {
    uint16_t order, once;
    bool has_once, skip_floppy_check, menu;
    uint32_t reboot_timeout; /* these two as FwCfgValues has them */
    int32_t splash_time;
} BoardBoot;

typedef struct Board {
    FwCfgValues fw;
    uint8_t cmos[CMOS_SIZE];
    uint8_t cmos_index;
    int64_t boot_time; /* seconds since 1970 at virtual time 0 */
    uint16_t fw_item;
    uint32_t fw_offset;
    BoardBoot boot;
} Board;

void board_init(Board *board, uint64_t ram_size, uint64_t ram_below);
void board_reset(Board *board);

/* Tells firmware of hard disk `number` (0 to 3: master and slave of both channels); NULL: there is none. */
void board_set_disk(Board *board, unsigned number, const AtaGeometry *geometry);

/* At power-on. */
void board_set_boot(Board *board, const BoardBoot *boot);

/* For firmware; a UUID's usual form, which was checked. */
void board_set_uuid(Board *board, const char *text);

/* True when the port is the board's. `now`: virtual time in nanoseconds. */
bool board_port_read(Board *board, uint16_t port, unsigned size, int64_t now, uint32_t *ret_value);
bool board_port_write(Board *board, uint16_t port, unsigned size, uint32_t value);

#endif
