/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What users see on stderr, in QEMU's manner: `PROGRAM: message`, `PROGRAM: warning: message`. Any thread.
 */
#ifndef SPINDLE_UTIL_LOG_H
#define SPINDLE_UTIL_LOG_H

#include <glib.h>
#include <stdio.h>

/* The name before each message; the last path component of argv0. */
void log_set_program(const char *argv0);

/* `-msg timestamp=on` */
void log_set_timestamp(gboolean on);

/* `-D FILE`: traces go there instead of stderr. False if it cannot be opened. */
gboolean log_set_file(const char *path, GError **error);

void log_error(const char *format, ...) G_GNUC_PRINTF(1, 2);
void log_warn(const char *format, ...) G_GNUC_PRINTF(1, 2);
void log_info(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Where traces go: log_set_file()'s file, else stderr. */
FILE *log_get_stream(void);

/* Prints the error, prefix first ("-drive file=x: ", NULL for none), and frees it. */
void log_gerror(GError *error, const char *prefix_format, ...) G_GNUC_PRINTF(2, 3);

#endif
