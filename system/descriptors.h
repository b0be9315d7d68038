/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Whether the process may open what it will need: a library that gets no descriptor for its own use aborts.
 */
#ifndef SPINDLE_SYSTEM_DESCRIPTORS_H
#define SPINDLE_SYSTEM_DESCRIPTORS_H

#include <glib.h>
#include <stdbool.h>

/* True when at least DESCRIPTORS_MIN more can be open at once. The soft limit (RLIMIT_NOFILE) is raised for
 * that where it has to be, at most to the hard one. Any thread. */
bool descriptors_ensure(GError **error);

#define DESCRIPTORS_MIN 32

#endif
