/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * --daemonize: the process goes on in a session of its own, and the one that the user started ends when it is
 * ready, or fails with it. Before any thread is started.
 */
#ifndef SPINDLE_SYSTEM_DAEMON_H
#define SPINDLE_SYSTEM_DAEMON_H

#include <glib.h>
#include <stdbool.h>

typedef struct Daemonizer {
    int ready_fd; /* -1: not daemonized */
} Daemonizer;

#define DAEMONIZER_NONE ((Daemonizer){-1})

/* Returns in the child only. The parent waits for daemon_ready() or the child's end and exits with 0 or 1. */
bool daemon_fork(Daemonizer *daemonizer, GError **error);

/* Lets the parent go; standard input, output and error become /dev/null, the folder /. */
void daemon_ready(Daemonizer *daemonizer);

#endif
