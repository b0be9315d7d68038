/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Starting this program again as one of its other selves (system/main.c). Before any thread is started.
 */
#ifndef SPINDLE_SYSTEM_SPAWN_H
#define SPINDLE_SYSTEM_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SPAWN_FIRST_FD 3
#define SPAWN_FDS_MAX  64

/* A process in a session of its own, with `fds` (at most SPAWN_FDS_MAX) as descriptors 3, 4, …, of the
 * caller's others only standard error, and not even that when `quiet`. argv[0] says what it is to be. -1 and
 * errno. */
pid_t spawn_self(char **argv, const int *fds, size_t n, bool quiet);

#endif
