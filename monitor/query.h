/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parts of query answers, in QEMU's words. Objects are the caller's. Loop thread.
 */
#ifndef SPINDLE_MONITOR_QUERY_H
#define SPINDLE_MONITOR_QUERY_H

#include "block/inspect.h"
#include "monitor/backend.h"

/* As in the greeting. */
JsonObject *qmp_version_object(void);

/* BlockDeviceInfo. `backend`: the drive whose limits and cache it shows, or NULL. */
JsonObject *query_node_object(const GArray *measures, BlockNode *node, const Backend *backend);

/* BlockInfo. */
JsonObject *query_drive_object(const GArray *measures, Backend *backend);

/* BlockStats of a node, with those below it. */
JsonObject *query_node_stats(BlockNode *node);
/* BlockStats of a drive. */
JsonObject *query_drive_stats(Backend *backend);

/* "ok", "failed", "nospace" */
const char *backend_io_status_name(const Backend *backend);

/* Whether the node is the limits in front of a drive, which users do not see. */
bool backend_is_limit_node(const Monitor *monitor, const BlockNode *node);

#endif
