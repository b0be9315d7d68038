/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kinds of values that blockdev-add's members have, as far as they are the same in all drivers: on the
 * command line all are text, in QMP `"read-only": "yes"` is a mistake. Any thread.
 */
#ifndef SPINDLE_MONITOR_BLOCKDEV_TYPES_H
#define SPINDLE_MONITOR_BLOCKDEV_TYPES_H

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* False with "Invalid parameter type for 'file.read-only', expected: boolean". `path` stands before the
 * names: "", or as "options[0].". */
bool blockdev_check_types(JsonObject *options, const char *path, GError **error);

#endif
