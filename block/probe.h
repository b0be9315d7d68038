/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which disk image format a file begins like, as QEMU's probing would find it. Pure. Any thread.
 */
#ifndef SPINDLE_BLOCK_PROBE_H
#define SPINDLE_BLOCK_PROBE_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK_PROBE_SIZE 512 /* bytes that are looked at */

/* A driver's name in QEMU; "raw" when it begins like none. `size` may be less when the file is. */
const char *block_probe_format(const uint8_t *head, size_t size);

#endif
