/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=file`: regular files, and `driver=host_device`: block devices, with QEMU's options.
 */
#include "block/block-int.h"
#include "block/fd-io.h"
#include "block/fd-open.h"
#include "util/error.h"
#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct FileState {
    FdFile file;
    FdLock lock;
} FileState;

static void file_close(BlockNode *node)
{
    FileState *s = node->state;
    fd_lock_release(&s->lock);
    fd_file_close(&s->file);
}

/* By path, before anything is opened: opening a FIFO would wait, a tape would wind, a tray close. */
static bool check_kind(mode_t mode, mode_t wanted, const char *filename, GError **error)
{
    if ((mode & S_IFMT) == wanted) {
        return true;
    }
    return wanted == S_IFREG
               ? error_set(error, "'file' driver requires '%s' to be a regular file", filename)
               : error_set(error, "'host_device' driver requires '%s' to be a block device", filename);
}

static bool open_kind(BlockNode *node, Options *options, mode_t wanted, GError **error)
{
    FileState *s = node->state;
    const char *filename = fd_open_filename(node, options, error);
    struct stat st;
    if (!filename || (stat(filename, &st) == 0 && !check_kind(st.st_mode, wanted, filename, error)) ||
        !fd_open_posix(node, options, &s->file, &s->lock, error)) {
        return false;
    }
    bool good = fstat(s->file.fd, &st) == 0;
    if (!good) {
        error_set_errno(error, errno, "Could not stat '%s'", filename);
    }
    if (!good || !check_kind(st.st_mode, wanted, filename, error)) {
        file_close(node);
        return false;
    }
    node->info.size = st.st_size;
    node->info.align = s->file.align;
    return true;
}

static bool file_open(BlockNode *node, Options *options, GError **error)
{
    return open_kind(node, options, S_IFREG, error);
}

/* A device can be read-only while its file may be opened for writing. */
static bool check_device_read_only(BlockNode *node, int fd, GError **error)
{
    int read_only = 0;
    if (node->info.read_only || ioctl(fd, BLKROGET, &read_only) < 0 || !read_only) {
        return true;
    }
    if (!block_node_auto_read_only(node)) {
        return error_set_errno(error, EROFS, "Could not open '%s'", node->filename);
    }
    node->info.read_only = true;
    return true;
}

static bool host_device_open(BlockNode *node, Options *options, GError **error)
{
    FileState *s = node->state;
    if (!open_kind(node, options, S_IFBLK, error)) {
        return false;
    }
    unsigned short rotational = 0;
    s->file.is_device = true;
    if (!check_device_read_only(node, s->file.fd, error)) {
        goto fail;
    }
    if (ioctl(s->file.fd, BLKGETSIZE64, &node->info.size) < 0) {
        error_set_errno(error, errno, "Could not get the size of '%s'", node->filename);
        goto fail;
    }
    node->info.slow = ioctl(s->file.fd, BLKROTATIONAL, &rotational) == 0 && rotational;
    return true;

fail:
    file_close(node);
    return false;
}

static int file_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    FileState *s = node->state;
    return fd_file_preadv(&s->file, offset, bytes, iov, niov);
}

static int file_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    FileState *s = node->state;
    return fd_file_read_now(&s->file, offset, bytes, iov, niov);
}

static int file_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                        BlockFlags flags)
{
    FileState *s = node->state;
    int ret = fd_lock_write(&s->lock);
    ret = ret < 0 ? ret : fd_file_pwritev(&s->file, offset, bytes, iov, niov, flags & BLOCK_FUA);
    if (ret == 0 && flags & BLOCK_WRITE_BEHIND) {
        fd_file_write_behind(&s->file, offset, bytes);
    }
    return ret;
}

static int file_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    FileState *s = node->state;
    if (!s->file.in_memory || fd_lock_write(&s->lock) < 0) {
        return -EAGAIN;
    }
    return fd_file_write_now(&s->file, offset, bytes, iov, niov);
}

static int file_flush(BlockNode *node)
{
    FileState *s = node->state;
    return fd_file_flush(&s->file);
}

static int file_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    FileState *s = node->state;
    int ret = fd_lock_write(&s->lock);
    return ret < 0 ? ret : fd_file_discard(&s->file, offset, bytes);
}

static int file_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    FileState *s = node->state;
    int ret = fd_lock_write(&s->lock);
    return ret < 0
               ? ret
               : fd_file_write_zeroes(&s->file, offset, bytes, flags & BLOCK_MAY_UNMAP, flags & BLOCK_FUA);
}

static int file_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                       unsigned *ret_status)
{
    FileState *s = node->state;
    return fd_file_status(&s->file, offset, bytes, ret_bytes, ret_status);
}

static int file_resize(BlockNode *node, uint64_t size, GError **error)
{
    FileState *s = node->state;
    if (!fd_lock_claim(&s->lock, node->filename, error)) {
        return -EBUSY;
    }
    if (ftruncate(s->file.fd, (off_t)size) < 0) {
        int ret = -errno;
        error_set_errno(error, ret, "Failed to resize the file '%s'", node->filename);
        return ret;
    }
    return 0;
}

static bool file_claim_write(BlockNode *node, GError **error)
{
    FileState *s = node->state;
    return fd_lock_claim(&s->lock, node->filename, error);
}

static int64_t file_allocated(BlockNode *node)
{
    struct stat st;
    return fstat(((FileState *)node->state)->file.fd, &st) < 0 ? -errno : (int64_t)st.st_blocks * 512;
}

static bool file_hold(BlockNode *node, bool on, GError **error)
{
    FileState *s = node->state;
    return fd_lock_hold(&s->lock, on, node->filename, error);
}

/* clang-format off */
/* What regular files and block devices have in common. */
#define FILE_FUNCTIONS                                                       \
    .parallel = true,                                                        \
    .state_size = sizeof(FileState),                                         \
    .close = file_close,                                                     \
    .preadv = file_preadv,                                                   \
    .pwritev = file_pwritev,                                                 \
    .flush = file_flush,                                                     \
    .discard = file_discard,                                                 \
    .write_zeroes = file_write_zeroes,                                       \
    .read_now = file_read_now,                                               \
    .allocated = file_allocated,                                             \
    .claim_write = file_claim_write,                                         \
    .hold = file_hold
/* clang-format on */

static const char *const file_protocols[] = {"file", NULL};

const BlockDriver block_driver_file = {
    .name = "file",
    .protocols = file_protocols,
    .open = file_open,
    .write_now = file_write_now,
    .status = file_status,
    .resize = file_resize,
    FILE_FUNCTIONS,
};

static const char *const host_device_protocols[] = {"host_device", NULL};

const BlockDriver block_driver_host_device = {
    .name = "host_device",
    .protocols = host_device_protocols,
    .open = host_device_open,
    FILE_FUNCTIONS,
};
