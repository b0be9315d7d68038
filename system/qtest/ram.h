/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The machine's memory: one piece of anonymous memory, of which as much as fits lies below the PCI hole and
 * the rest from 4 GiB. Untouched pages cost nothing. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_RAM_H
#define SPINDLE_SYSTEM_QTEST_RAM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Ram {
    uint8_t *data;
    uint64_t size;  /* bytes in all */
    uint64_t below; /* of which are below the hole */
} Ram;

/* `below_max`: where the hole begins. False when the host has not that much address space. */
bool ram_init(Ram *ram, uint64_t size, uint64_t below_max, GError **error);
void ram_clear(Ram *ram);

/* The memory at `addr`, and in *ret_len how much of [addr, addr + len) is in one piece (at least 1). NULL:
 * *ret_len bytes are not memory. len > 0. */
uint8_t *ram_at(const Ram *ram, uint64_t addr, uint64_t len, uint64_t *ret_len);

/* All of it, or NULL. */
uint8_t *ram_span(const Ram *ram, uint64_t addr, uint64_t len);

#endif
