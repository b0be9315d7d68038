/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/daemon.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include "util/error.h"

static void wait_for_child(int fd)
{
    char byte;
    ssize_t n;

    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    _exit(n == 1 ? 0 : 1);
}

bool daemon_fork(Daemonizer *daemonizer, GError **error)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return error_set_errno(error, errno, "Could not make a pipe");
    }
    pid_t pid = fork();
    if (pid < 0) {
        int errnum = errno;
        close(fds[0]);
        close(fds[1]);
        return error_set_errno(error, errnum, "Could not fork");
    }
    if (pid > 0) {
        close(fds[1]);
        wait_for_child(fds[0]);
    }
    close(fds[0]);
    setsid();
    daemonizer->ready_fd = fds[1];
    return true;
}

void daemon_ready(Daemonizer *daemonizer)
{
    if (daemonizer->ready_fd < 0) {
        return;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        for (int fd = 0; fd <= 2; fd++) {
            dup2(null, fd);
        }
        close(null);
    }
    /* No folder is kept in use; opened files do not mind. */
    bool moved = chdir("/") == 0;
    if (write(daemonizer->ready_fd, moved ? "1" : "0", 1) == 1) {
        close(daemonizer->ready_fd);
        daemonizer->ready_fd = -1;
    }
}
