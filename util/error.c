/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/error.h"

G_DEFINE_QUARK(spindle - error - quark, spindle_error)

gboolean error_set(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error) {
        *error = g_error_new_valist(SPINDLE_ERROR, SPINDLE_ERROR_GENERIC, format, args);
    }
    va_end(args);
    return FALSE;
}

gboolean error_set_errno(GError **error, int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return error_set(error, "%s: %s", text, g_strerror(errnum < 0 ? -errnum : errnum));
}
