/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Media of a drive as users change them, for QMP and the human monitor alike. The backend has an MmcDrive.
 * Loop thread.
 */
#ifndef SPINDLE_MONITOR_CMD_TRAY_H
#define SPINDLE_MONITOR_CMD_TRAY_H

#include "monitor/backend.h"

/* Opens the tray unless it is open. */
bool tray_open_for_user(Backend *backend, bool force, GError **error);

/* Need an open tray. */
bool tray_remove_medium(Backend *backend, GError **error);
bool tray_insert_medium(Backend *backend, BlockNode *node, GError **error);

/* Opens the image, then the tray, and puts it in. `done` gets NULL or an error (taken over), inside the call
 * or later. */
typedef void (*TrayChanged)(GError *error, void *opaque);
void tray_change(Backend *backend, const char *filename, const char *format, bool force, TrayChanged done,
                 void *opaque);

#endif
