/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parts of query answers that others need too. Loop thread.
 */
#ifndef SPINDLE_MONITOR_CMD_QUERY_H
#define SPINDLE_MONITOR_CMD_QUERY_H

#include "monitor/backend.h"

/* As in the greeting. The caller's. */
JsonObject *qmp_version_object(void);

/* "ok", "failed", "nospace" */
const char *backend_io_status_name(const Backend *backend);

/* Whether the node is the limits in front of a drive, which users do not see. */
bool backend_is_limit_node(const Monitor *monitor, const BlockNode *node);

#endif
