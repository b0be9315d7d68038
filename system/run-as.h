/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `-run-with user=`: going on as another user once all that takes rights has been done. Main thread.
 */
#ifndef SPINDLE_SYSTEM_RUN_AS_H
#define SPINDLE_SYSTEM_RUN_AS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct RunAs {
    char *name; /* NULL: given as numbers */
    uid_t uid;
    gid_t gid;
} RunAs;

/* Reads [user=]NAME or UID:GID. NULL with QEMU's message; the caller's. */
RunAs *run_as_new(const char *arg, GError **error);
/* The last `-run-with` with a user, or `-runas` of older ones, in QEMU's command line, without argv[0]; false
 * with an error for one that there is not. *ret_as: the caller's; NULL: there is none. What else `-run-with`
 * says is left to QEMU. */
bool run_as_from_argv(const char *const *argv, RunAs **ret_as, GError **error);
/* "NAME" or "UID:GID", the caller's. */
char *run_as_text(const RunAs *as);
void run_as_free(RunAs *as); /* NULL is allowed */

/* For good, for all threads: groups, group and user. */
bool run_as_enter(const RunAs *as, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunAs, run_as_free)

#endif
