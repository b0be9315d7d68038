/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The router stands between the users of QEMU's QMP monitors and QEMU, as a process of its own beside the
 * drive process: it has the users' connections, QEMU and the drive process each have a socket towards it.
 * What concerns Spindle's drives goes to the drive process, what lists things is asked of both and joined,
 * all the rest passes as it is. This is how `spindle` starts it, before it becomes QEMU.
 */
#ifndef SPINDLE_SYSTEM_ROUTER_H
#define SPINDLE_SYSTEM_ROUTER_H

#include <glib.h>
#include <stdbool.h>
#include "system/plan.h"

typedef struct RouterSetup RouterSetup;

/* Opens the users' connections and QEMU's sockets, the latter in `folder`, which exists. NULL with an error
 * that names the option. The plan stays the caller's and must live as long. */
RouterSetup *router_setup_new(const Plan *plan, const char *folder, GError **error);

/* Closes what is open and removes what was made. NULL is allowed. */
void router_setup_free(RouterSetup *setup);

/* The drive process's monitors: its ends of their sockets, in order of their options. */
const int *router_drive_fds(const RouterSetup *setup, size_t *ret_n);
/* Appends those options; the first of the descriptors will be `first` there. */
void router_add_drive_options(const RouterSetup *setup, GPtrArray *argv, int first);

/* Starts the process; from here on the users' connections are its own. */
bool router_start(RouterSetup *setup, GError **error);

/* Appends what QEMU's command line needs; those descriptors stay open across exec. */
void router_add_engine_options(const RouterSetup *setup, GPtrArray *argv);

#endif
