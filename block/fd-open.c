/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/fd-open.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { LOCKING_OFF, LOCKING_ON, LOCKING_AUTO };
enum { AIO_THREADS, AIO_NATIVE, AIO_IO_URING };

const char *fd_open_filename(BlockNode *node, Options *options, GError **error)
{
    const char *filename = options_get(options, "filename");
    if (!filename) {
        error_set(error, "Parameter 'filename' is missing");
        return NULL;
    }
    if (!filename[0]) {
        error_set(error, "The '%s' block driver requires a file name", node->driver->name);
        return NULL;
    }
    block_node_set_filename(node, filename);
    return node->filename;
}

/* Options that tune QEMU's event loop are accepted: the way of waiting is ours. */
static bool parse_options(BlockNode *node, Options *options, int *ret_locking, GError **error)
{
    static const char *const locking_names[] = {"off", "on", "auto", NULL};
    static const char *const aio_names[] = {"threads", "native", "io_uring", NULL};
    int aio;
    uint64_t batch;
    bool drop_cache;
    if (!options_get_enum(options, "locking", locking_names, LOCKING_AUTO, ret_locking, error) ||
        !options_get_enum(options, "aio", aio_names, AIO_THREADS, &aio, error) ||
        !options_get_uint(options, "aio-max-batch", 0, INT64_MAX, 0, &batch, error) ||
        !options_get_bool(options, "drop-cache", true, &drop_cache, error)) {
        return false;
    }
    if (aio == AIO_NATIVE && !block_node_cache_direct(node)) {
        return error_set(
            error, "aio=native was specified, but it requires cache.direct=on, which was not specified.");
    }
    return true;
}

static bool is_read_only_error(int ret)
{
    return ret == -EACCES || ret == -EROFS || ret == -EPERM;
}

/* Opens for writing where that is wanted, for reading where auto-read-only allows to fall back. `extra` are
 * flags for open(2). -errno on failure. */
static int open_for_node(BlockNode *node, int extra)
{
    if (!block_node_wants_write(node)) {
        node->info.read_only = true;
        return block_open_fd(node->filename, O_RDONLY | extra);
    }
    int fd = block_open_fd(node->filename, O_RDWR | extra);
    if (fd < 0 && is_read_only_error(fd) && block_node_auto_read_only(node)) {
        fd = block_open_fd(node->filename, O_RDONLY | extra);
        node->info.read_only |= fd >= 0;
    }
    return fd;
}

/* A direct descriptor beside the buffered one, or a warning where there is no O_DIRECT. Uses `file->fd`. */
static bool add_direct(BlockNode *node, FdFile *file, GError **error)
{
    auto_fd fd = open_for_node(node, O_DIRECT);
    if (fd < 0 && fd != -EINVAL && fd != -EOPNOTSUPP) {
        return error_set_errno(error, fd, "Could not open '%s'", node->filename);
    }
    uint32_t align = fd >= 0 ? fd_direct_align(fd) : 0;
    if (align == 0) {
        log_warn("'%s': the file system does not support O_DIRECT; cache.direct=on is ignored and reads go "
                 "through "
                 "the host's page cache",
                 node->filename);
        return true;
    }
    file->tail_fd = file->fd;
    file->fd = steal_fd(&fd);
    file->align = align;
    return true;
}

bool fd_open_posix(BlockNode *node, Options *options, FdFile *file, FdLock *lock, GError **error)
{
    int locking;
    lock->fd = -1;
    if (!parse_options(node, options, &locking, error)) {
        return false;
    }
    int fd = open_for_node(node, 0);
    if (fd < 0) {
        return error_set_errno(error, fd, "Could not open '%s'", node->filename);
    }
    fd_file_init(file, fd);
    pthread_mutex_init(&lock->mutex, NULL);
    if (block_node_cache_direct(node) && !add_direct(node, file, error)) {
        goto fail;
    }
    if (locking != LOCKING_OFF && !block_node_force_share(node) &&
        !fd_lock_take(lock, fd, node->filename, error)) {
        goto fail;
    }
    return true;

fail:
    fd_lock_release(lock);
    fd_file_close(file);
    return false;
}
