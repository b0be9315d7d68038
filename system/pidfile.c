/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/pidfile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "util/cleanup.h"
#include "util/error.h"

bool pidfile_write(const char *path, char **ret_path, GError **error)
{
    auto_fd fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());

    if (fd < 0) {
        return error_set_errno(error, errno, "cannot create PID file '%s'", path);
    }
    errno = ENOSPC;
    if (write(fd, text, len) != len) {
        int errnum = errno;
        unlink(path);
        return error_set_errno(error, errnum, "cannot write PID file '%s'", path);
    }
    *ret_path = g_canonicalize_filename(path, NULL);
    return true;
}
