/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What `--device help` and `--device DRIVER,help` print. Main thread.
 */
#ifndef SPINDLE_SYSTEM_DEVICE_HELP_H
#define SPINDLE_SYSTEM_DEVICE_HELP_H

#include <glib.h>
#include <stdbool.h>

/* Whether `arg` (of --device) asks for help. */
bool device_help_wanted(const char *arg);

/* Prints to standard output; false with QEMU's message for a driver that there is not. */
bool device_help_print(const char *arg, GError **error);

#endif
