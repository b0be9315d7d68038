/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Cleanup attributes that GLib 2.74 lacks. Any thread.
 */
#ifndef SPINDLE_UTIL_CLEANUP_H
#define SPINDLE_UTIL_CLEANUP_H

#include <unistd.h>

static inline void cleanup_close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

/* Closes the descriptor at the end of the scope unless it is -1 by then. */
#define auto_fd __attribute__((cleanup(cleanup_close_fd))) int

/* Hands the descriptor over and leaves -1 behind. */
static inline int steal_fd(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

#endif
