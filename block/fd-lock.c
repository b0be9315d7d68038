/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/fd-open.h"
#include "util/error.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* QEMU's permissions, by bit number, and where its lock bytes lie. */
enum { PERM_READ = 0, PERM_WRITE = 1, PERM_RESIZE = 3 };
#define LOCK_USED    100
#define LOCK_REFUSED 200

static const struct {
    int perm;
    const char *name;
} write_perms[] = {{PERM_WRITE, "write"}, {PERM_RESIZE, "resize"}};

static int lock_byte(int fd, off_t at, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int ret;
    do {
        ret = fcntl(fd, F_OFD_SETLK, &lock);
    } while (ret < 0 && errno == EINTR);
    return ret < 0 ? -errno : 0;
}

/* Whether another open file description holds the byte. */
static bool byte_is_taken(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool refuse(const char *what, const char *filename, GError **error)
{
    return error_set(error, "Failed to get %s lock\nIs another process using the image [%s]?", what,
                     filename);
}

static gint open_released; /* atomic */

void block_open_released(bool on)
{
    g_atomic_int_set(&open_released, on);
}

bool block_opens_released(void)
{
    return g_atomic_int_get(&open_released);
}

static bool take_for_reading(FdLock *lock, const char *filename, GError **error)
{
    int fd = lock->fd;
    int ret = lock_byte(fd, LOCK_USED + PERM_READ, F_RDLCK);
    for (guint i = 0; ret == 0 && i < G_N_ELEMENTS(write_perms); i++) {
        ret = lock_byte(fd, LOCK_REFUSED + write_perms[i].perm, F_RDLCK);
    }
    if (ret < 0 && ret != -EAGAIN && ret != -EACCES) {
        lock->fd = -1; /* a file system without locks: as with QEMU's locking=auto */
        return true;
    }
    if (byte_is_taken(fd, LOCK_REFUSED + PERM_READ)) {
        return refuse("\"consistent read\"", filename, error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(write_perms); i++) {
        if (byte_is_taken(fd, LOCK_USED + write_perms[i].perm)) {
            g_autofree char *what = g_strdup_printf("shared \"%s\"", write_perms[i].name);
            return refuse(what, filename, error);
        }
    }
    g_atomic_int_set(&lock->held, 1);
    return true;
}

bool fd_lock_take(FdLock *lock, int fd, const char *filename, GError **error)
{
    lock->fd = fd;
    return g_atomic_int_get(&open_released) || take_for_reading(lock, filename, error);
}

static void let_go(FdLock *lock)
{
    for (int perm = PERM_READ; perm <= PERM_RESIZE; perm++) {
        lock_byte(lock->fd, LOCK_USED + perm, F_UNLCK);
        lock_byte(lock->fd, LOCK_REFUSED + perm, F_UNLCK);
    }
    g_atomic_int_set(&lock->claimed, 0);
    g_atomic_int_set(&lock->held, 0);
}

bool fd_lock_hold(FdLock *lock, bool on, const char *filename, GError **error)
{
    bool good = true;

    if (lock->fd < 0) {
        return true;
    }
    pthread_mutex_lock(&lock->mutex);
    if (!on) {
        let_go(lock);
    } else if (!g_atomic_int_get(&lock->held) && !take_for_reading(lock, filename, error)) {
        let_go(lock);
        good = false;
    }
    pthread_mutex_unlock(&lock->mutex);
    return good;
}

bool fd_lock_claim(FdLock *lock, const char *filename, GError **error)
{
    if (lock->fd < 0 || g_atomic_int_get(&lock->claimed)) {
        return true;
    }
    pthread_mutex_lock(&lock->mutex);
    bool good = g_atomic_int_get(&lock->held) || take_for_reading(lock, filename, error);
    if (!good) {
        let_go(lock);
    }
    if (lock->fd < 0) {
        pthread_mutex_unlock(&lock->mutex);
        return good;
    }
    for (guint i = 0; good && !g_atomic_int_get(&lock->claimed) && i < G_N_ELEMENTS(write_perms); i++) {
        int perm = write_perms[i].perm;
        lock_byte(lock->fd, LOCK_USED + perm, F_RDLCK);
        if (byte_is_taken(lock->fd, LOCK_REFUSED + perm)) {
            g_autofree char *what = g_strdup_printf("\"%s\"", write_perms[i].name);
            good = refuse(what, filename, error);
        }
    }
    for (guint i = 0; !good && i < G_N_ELEMENTS(write_perms); i++) {
        lock_byte(lock->fd, LOCK_USED + write_perms[i].perm, F_UNLCK);
    }
    g_atomic_int_set(&lock->claimed, good);
    pthread_mutex_unlock(&lock->mutex);
    return good;
}

int fd_lock_write(FdLock *lock)
{
    return fd_lock_claim(lock, "", NULL) ? 0 : -EBUSY;
}

void fd_lock_release(FdLock *lock)
{
    lock->fd = -1;
    pthread_mutex_destroy(&lock->mutex);
}
