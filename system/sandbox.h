/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the drive process, which reads discs and messages that others made, has no need to ask of the kernel:
 * starting programs and processes, other rights, other processes' memory, mounts, modules and the like. Such
 * calls fail with EPERM from then on, in all threads, and no program that is started could gain rights.
 */
#ifndef SPINDLE_SYSTEM_SANDBOX_H
#define SPINDLE_SYSTEM_SANDBOX_H

#include <glib.h>
#include <stdbool.h>

/* "on" or "off". */
bool sandbox_parse(const char *text, bool *ret_on, GError **error);

/* For good. May be called when threads run already. */
bool sandbox_enter(GError **error);

/* Off in builds for the leak checker, which starts a process of its own at the end. */
bool sandbox_default(void);

#endif
