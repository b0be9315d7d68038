/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Drives of the command line: -drive and its short forms, -device ide-hd and ide-cd. Errors in QEMU's words
 * without the option they belong to. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_DRIVES_H
#define SPINDLE_SYSTEM_QTEST_DRIVES_H

#include "system/qtest/machine.h"
#include "util/options.h"

/* One -drive: its options with `if`, and for if=ide `bus` and `unit` settled. */
typedef struct QtestDriveSpec {
    Options *options;
    const char *origin;
    bool cd, ide; /* media=cdrom; if=ide: gets a device of its own */
    unsigned bus, unit;
} QtestDriveSpec;

/* Makes the backend (and its node) and, for if=ide, the device. `globals`: see drive_add_device(). */
bool drive_add(QtestMachine *machine, QtestDriveSpec *spec, Options *globals, GError **error);

/* The human monitor's drive_add: only if=none, for the machine runs. */
bool drive_add_later(QtestMachine *machine, Options *options, GError **error);

/* -device ide-hd,… and ide-cd,…; `globals` holds "ide-hd.serial" and such for what `options` do not say. */
bool drive_add_device(QtestMachine *machine, Options *options, Options *globals, GError **error);

#endif
