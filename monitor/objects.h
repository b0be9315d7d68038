/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What users make beside nodes and drives: `-object` and object-add. Loop thread.
 */
#ifndef SPINDLE_MONITOR_OBJECTS_H
#define SPINDLE_MONITOR_OBJECTS_H

#include "monitor/monitor.h"

/* Values of qom-type=, NULL-terminated. */
extern const char *const object_type_names[];

/* A secret or a throttle group from its options; False with QEMU's errors. */
bool monitor_add_object(Monitor *monitor, Options *options, GError **error);

/* object-del. */
bool monitor_remove_object(Monitor *monitor, const char *id, GError **error);

#endif
