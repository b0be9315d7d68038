/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/pidfile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/cleanup.h"
#include "util/error.h"

struct PidFile {
    char *path; /* absolute: it holds after a chdir() */
    int fd;     /* has the lock */
    struct stat st;
};

static bool is_at(const struct stat *st, const char *path)
{
    struct stat now;

    return lstat(path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* Neither waits for a FIFO's reader nor empties a file that another process has locked. */
static bool pidfile_open(const char *path, int *ret_fd, struct stat *ret_st, GError **error)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    for (;;) {
        auto_fd fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
        if (fd < 0 || fstat(fd, ret_st) < 0) {
            return error_set_errno(error, errno, "cannot create PID file '%s'", path);
        }
        if (S_ISREG(ret_st->st_mode)) {
            if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
                return error_set_errno(error, errno, "cannot lock PID file '%s'", path);
            }
            if (!is_at(ret_st, path)) {
                continue; /* its owner ended and removed it meanwhile */
            }
        }
        *ret_fd = steal_fd(&fd);
        return true;
    }
}

PidFile *pidfile_new(const char *path, GError **error)
{
    PidFile file;
    char text[32];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());

    if (!pidfile_open(path, &file.fd, &file.st, error)) {
        return NULL;
    }
    file.path = g_canonicalize_filename(path, NULL);
    if (S_ISREG(file.st.st_mode) && ftruncate(file.fd, 0) < 0) {
        len = -1;
    }
    errno = len < 0 ? errno : ENOSPC;
    PidFile *ret = g_memdup2(&file, sizeof file);
    if (len < 0 || write(file.fd, text, len) != len) {
        error_set_errno(error, errno, "cannot write PID file '%s'", path);
        pidfile_free(ret);
        return NULL;
    }
    return ret;
}

void pidfile_free(PidFile *file)
{
    if (!file) {
        return;
    }
    /* A device or a FIFO was there before and stays. */
    if (S_ISREG(file->st.st_mode) && is_at(&file->st, file->path)) {
        unlink(file->path);
    }
    close(file->fd);
    g_free(file->path);
    g_free(file);
}
