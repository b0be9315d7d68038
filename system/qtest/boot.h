/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `-boot` and `-no-fd-bootchk` as firmware finds them in the PC's CMOS memory. Pure.
 */
#ifndef SPINDLE_SYSTEM_QTEST_BOOT_H
#define SPINDLE_SYSTEM_QTEST_BOOT_H

#include "system/qemu-options.h"
#include "system/qtest/board.h"

/* Reads the options of the whole line; as with QEMU a later -boot adds to the earlier. false and an error
 * that begins with the option. */
bool boot_order_read(CmdLine *line, BoardBoot *ret, GError **error);

#endif
