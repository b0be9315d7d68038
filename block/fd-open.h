/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Opening files and block devices as QEMU's `file` and `host_device` do: their common options, read-only
 * fallback, O_DIRECT, and image locks.
 *
 * Locks are QEMU's (byte-range locks of the open file description on bytes 100+n, "I use permission n", and
 * 200+n, "nobody else may use permission n"), so that Spindle and QEMU keep each other off an image. A node
 * that only reads refuses other writers; fd_lock_claim() says that it writes itself.
 */
#ifndef SPINDLE_BLOCK_FD_OPEN_H
#define SPINDLE_BLOCK_FD_OPEN_H

#include "block/block-int.h"
#include "block/fd-io.h"
#include <pthread.h>

typedef struct FdLock {
    int fd; /* the file's; -1: no locking */
    pthread_mutex_t mutex;
    gint claimed; /* atomic */
    gint held;    /* atomic: 0 while another process has the image, see block_release_images() */
} FdLock;

/* The `filename` option; also sets the node's filename. Stays the node's. NULL and an error. */
const char *fd_open_filename(BlockNode *node, Options *options, GError **error);

/* Opens the node's filename by its options (aio, locking, and the generic ones); sets node->info.read_only
 * when auto-read-only fell back. The caller closes both. */
bool fd_open_posix(BlockNode *node, Options *options, FdFile *file, FdLock *lock, GError **error);

/* Before a write. Any thread. 0 or -EBUSY. */
int fd_lock_write(FdLock *lock);

/* The same with words. Any thread. */
bool fd_lock_claim(FdLock *lock, const char *filename, GError **error);

/* Forgets the lock; the locks themselves go with the descriptor. */
void fd_lock_release(FdLock *lock);

/* The locks of a reader; none while block_open_released() is on. */
bool fd_lock_take(FdLock *lock, int fd, const char *filename, GError **error);

/* Takes a reader's locks again after they were let go of, or lets go of all. Any thread. */
bool fd_lock_hold(FdLock *lock, bool on, const char *filename, GError **error);

#endif
