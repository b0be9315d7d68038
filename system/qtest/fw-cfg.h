/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The firmware's configuration items behind ports 510h and 511h (QEMU's docs/specs/fw_cfg): numbers and files
 * that the machine was made with. No DMA. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_FW_CFG_H
#define SPINDLE_SYSTEM_QTEST_FW_CFG_H

#include <stdbool.h>
#include <stdint.h>

/* What the items are made of. */
typedef struct FwCfgValues {
    uint64_t ram_size;
    uint8_t uuid[16];
    bool boot_menu;
    uint32_t reboot_timeout; /* ms; all ones: none */
    int32_t splash_time;     /* ms, 16 bits; -1: not given */
} FwCfgValues;

/* Byte `offset` of an item; zero behind its end and in items that are none. */
uint8_t fw_cfg_byte(const FwCfgValues *values, uint16_t item, uint32_t offset);

#endif
