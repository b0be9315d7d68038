/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Starts the drive process and becomes QEMU.
 */
#ifndef SPINDLE_SYSTEM_LAUNCH_H
#define SPINDLE_SYSTEM_LAUNCH_H

#include <glib.h>
#include <stdbool.h>
#include "system/plan.h"
#include "system/router.h"
#include "system/run-as.h"

/* A name for the private folder of the sockets, not made yet: in $XDG_RUNTIME_DIR, /run, $TMPDIR or /tmp,
 * the first that can be written to; `for_all`: by every user. The caller's; NULL and an error when there is
 * none. */
char *launch_choose_folder(bool for_all, GError **error);

/* Makes it, for this user only, or for the one that the drive process will be. */
bool launch_make_folder(const char *folder, const RunAs *as, GError **error);

/* Starts the drive process with the plan's drives and waits until it is ready. On success *ret_fd must stay
 * open, across exec too, for as long as the machine lives: its end ends the drive process, which removes the
 * folder. On failure the error names the user's option. `router`: may be NULL. */
bool launch_drives(const Plan *plan, const char *folder, const RouterSetup *router, int *ret_fd,
                   GPid *ret_pid, GError **error);

/* Becomes `program` with `args` (without argv[0]). Returns only on failure, with an error. */
void launch_become(const char *program, char *const *args, GError **error);

/* Becomes `program` with the plan's command line. Returns only on failure, with an error; the drive process
 * (if fd is not -1) is ended. */
void launch_engine(const char *program, const Plan *plan, const RouterSetup *router, int fd, GPid pid,
                   GError **error);

#endif
