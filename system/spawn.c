/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/spawn.h"
#include <fcntl.h>
#include <unistd.h>

/* Only async-signal-safe calls. First above all targets, so that no descriptor is lost under another. */
static bool place_fds(const int *fds, int n)
{
    int moved[SPAWN_FDS_MAX];

    for (int i = 0; i < n; i++) {
        moved[i] = fcntl(fds[i], F_DUPFD, SPAWN_FIRST_FD + n);
        if (moved[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < n; i++) {
        if (dup2(moved[i], SPAWN_FIRST_FD + i) < 0) {
            return false;
        }
    }
    close_range(SPAWN_FIRST_FD + n, ~0u, 0);
    return true;
}

pid_t spawn_self(char **argv, const int *fds, size_t n, bool quiet)
{
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid(); /* no terminal's signals */
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || (quiet && dup2(null, 2) < 0) ||
        !place_fds(fds, (int)n)) {
        _exit(127);
    }
    execv("/proc/self/exe", argv);
    _exit(127);
}
