/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * --pidfile. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_PIDFILE_H
#define SPINDLE_SYSTEM_PIDFILE_H

#include <glib.h>
#include <stdbool.h>

/* Writes this process's id and a newline; the file is created or replaced in its content. False with "cannot
 * create PID file: …". The path is made absolute in *ret_path, for its removal after a chdir(). */
bool pidfile_write(const char *path, char **ret_path, GError **error);

#endif
