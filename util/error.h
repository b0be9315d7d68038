/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The project's error domain. Codes are QMP's error classes, so that a GError from anywhere can be answered
 * as it is. Data-path functions do not use GError: they return 0 or a negative errno. Any thread.
 */
#ifndef SPINDLE_UTIL_ERROR_H
#define SPINDLE_UTIL_ERROR_H

#include <glib.h>

#define SPINDLE_ERROR spindle_error_quark()
GQuark spindle_error_quark(void);

typedef enum {
    SPINDLE_ERROR_GENERIC,           /* GenericError */
    SPINDLE_ERROR_COMMAND_NOT_FOUND, /* CommandNotFound */
    SPINDLE_ERROR_DEVICE_NOT_ACTIVE, /* DeviceNotActive */
    SPINDLE_ERROR_DEVICE_NOT_FOUND,  /* DeviceNotFound */
} SpindleError;

/* Sets a GenericError. Always returns false, so that `return error_set(error, …)` reads well. */
gboolean error_set(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Sets a GenericError "FORMAT…: strerror(errnum)"; errnum is positive or negative. Always returns false. */
gboolean error_set_errno(GError **error, int errnum, const char *format, ...) G_GNUC_PRINTF(3, 4);

#endif
