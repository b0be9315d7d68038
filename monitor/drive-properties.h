/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QEMU's properties of ide-cd and ide-hd, for those who ask (qom-get, device-list-properties). Loop thread.
 */
#ifndef SPINDLE_MONITOR_DRIVE_PROPERTIES_H
#define SPINDLE_MONITOR_DRIVE_PROPERTIES_H

#include "monitor/backend.h"

/* [{"name": …, "type": …}]: those of any object, and of the drive. The caller's. */
JsonArray *drive_properties_list(const Backend *backend);

/* A property's value, the caller's; NULL: there is no such property. */
JsonNode *drive_property_get(const Backend *backend, const char *name);

/* device-list-properties: with defaults and descriptions. NULL: no such type. */
JsonArray *drive_type_properties(const char *type);

#endif
