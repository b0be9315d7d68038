/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * --pidfile: a file with the process's id, locked while the process lives. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_PIDFILE_H
#define SPINDLE_SYSTEM_PIDFILE_H

#include <glib.h>

typedef struct PidFile PidFile;

/* Writes this process's id and a newline; the file is created, or replaced in its content. A device or FIFO
 * just gets the text. NULL with "cannot create PID file '…': …", also when another process has it locked; its
 * content is as before then. */
PidFile *pidfile_new(const char *path, GError **error);
/* Removes the file, if it is the one that was written, and unlocks. NULL is allowed. */
void pidfile_free(PidFile *file);

#endif
