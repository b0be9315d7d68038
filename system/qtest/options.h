/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QEMU's command line for the machine behind `-accel qtest`: QEMU's meaning where the option concerns it;
 * what concerns displays, sound, networks and the like is taken and has no effect. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_OPTIONS_H
#define SPINDLE_SYSTEM_QTEST_OPTIONS_H

#include "system/qtest/machine.h"
#include "system/qtest/server.h"

/* What is asked for besides the machine itself. */
typedef struct QtestSettings {
    char *qtest, *qtest_log, *pidfile, *incoming;
    bool paused; /* -S */
    Chardev *qtest_chardev;
} QtestSettings;

/* The machine with its drives and monitors, nothing connected yet; argv without argv[0]. NULL and an error
 * that begins with the option. */
QtestMachine *qtest_options_build(const char *const *argv, QtestSettings *ret_settings, GError **error);
void qtest_settings_clear(QtestSettings *settings);

#endif
