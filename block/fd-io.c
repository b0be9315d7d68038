/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/fd-io.h"
#include "block/block.h"
#include "util/checked.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BATCH 64 /* iovecs in one system call */
#define IN_MEMORY_NOW                                                                                        \
    (16 *                                                                                                    \
     1024) /* most that the loop thread copies out of a tmpfs or into it: more goes to the workers' CPUs */

void fd_file_init(FdFile *file, int fd)
{
    struct statfs fs;
    *file = (FdFile){.fd = fd, .tail_fd = -1, .align = 1};
    file->in_memory = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

void fd_file_close(FdFile *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->tail_fd >= 0) {
        close(file->tail_fd);
    }
    file->fd = file->tail_fd = -1;
}

/* A place in an iovec array. */
typedef struct Cursor {
    const struct iovec *iov;
    int niov;
    size_t skip; /* bytes of *iov that are done */
} Cursor;

/* Describes up to `limit` bytes from the cursor on; returns the entries, *ret_bytes what they cover. */
static int cursor_batch(const Cursor *c, uint64_t limit, struct iovec *ret, uint64_t *ret_bytes)
{
    size_t skip = c->skip;
    uint64_t sum = 0;
    int n = 0;
    for (int i = 0; i < c->niov && n < BATCH && sum < limit; i++) {
        size_t len = MIN(c->iov[i].iov_len - skip, limit - sum);
        if (len > 0) {
            ret[n++] = (struct iovec){(uint8_t *)c->iov[i].iov_base + skip, len};
        }
        sum += len;
        skip = 0;
    }
    *ret_bytes = sum;
    return n;
}

static void cursor_advance(Cursor *c, uint64_t bytes)
{
    bytes += c->skip;
    while (c->niov > 0 && bytes >= c->iov->iov_len) {
        bytes -= c->iov->iov_len;
        c->iov++;
        c->niov--;
    }
    c->skip = bytes;
}

/* The descriptor for the next piece, and how much of `bytes` goes through it: whole blocks directly. What a
 * short transfer left off inside of a block goes through the page cache too. */
static int piece_fd(const FdFile *file, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes)
{
    if (file->tail_fd < 0) {
        *ret_bytes = bytes;
        return file->fd;
    }
    uint64_t whole = offset % file->align ? 0 : align_down(bytes, file->align);
    *ret_bytes = whole > 0 ? whole : bytes;
    return whole > 0 ? file->fd : file->tail_fd;
}

/* The calls without a vector cost the kernel less, which counts for 4 KiB. */
static ssize_t transfer_once(int fd, bool write, uint64_t offset, const struct iovec *iov, int niov, int rwf)
{
    if (niov == 1 && !rwf) {
        return write ? pwrite(fd, iov->iov_base, iov->iov_len, (off_t)offset)
                     : pread(fd, iov->iov_base, iov->iov_len, (off_t)offset);
    }
    return write ? pwritev2(fd, iov, niov, (off_t)offset, rwf) : preadv2(fd, iov, niov, (off_t)offset, rwf);
}

/* Until all is done. */
static int transfer(FdFile *file, bool write, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                    int niov, int rwf)
{
    Cursor cursor = {iov, niov, 0};
    while (bytes > 0) {
        struct iovec batch[BATCH];
        uint64_t want;
        int fd = piece_fd(file, offset, bytes, &want);
        int n = cursor_batch(&cursor, want, batch, &want);
        ssize_t got = transfer_once(fd, write, offset, batch, n, rwf);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -errno : write ? -ENOSPC : -EIO; /* 0: the file was truncated under us */
        }
        cursor_advance(&cursor, got);
        offset += got;
        bytes -= got;
    }
    return 0;
}

int fd_file_preadv(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return transfer(file, false, offset, bytes, iov, niov, 0);
}

int fd_file_pwritev(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                    bool fua)
{
    if (fua && !g_atomic_int_get(&file->no_dsync)) {
        int ret = transfer(file, true, offset, bytes, iov, niov, RWF_DSYNC);
        if (ret != -EOPNOTSUPP && ret != -ENOSYS) {
            return ret;
        }
        g_atomic_int_set(&file->no_dsync, 1);
    }
    int ret = transfer(file, true, offset, bytes, iov, niov, 0);
    return ret == 0 && fua ? fd_file_flush(file) : ret;
}

int fd_file_read_now(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    if (file->tail_fd >= 0 || niov > BATCH || g_atomic_int_get(&file->no_nowait)) {
        return -EAGAIN;
    }
    if (file->in_memory && bytes > IN_MEMORY_NOW) {
        return -EAGAIN;
    }
    /* tmpfs does not know the flag. */
    ssize_t got = transfer_once(file->fd, false, offset, iov, niov, file->in_memory ? 0 : RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
        g_atomic_int_set(&file->no_nowait, 1);
    }
    return got == (ssize_t)bytes ? 0 : -EAGAIN; /* a part, an error: the worker finds out more */
}

int fd_file_write_now(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    if (!file->in_memory || file->tail_fd >= 0 || niov > BATCH || bytes > IN_MEMORY_NOW) {
        return -EAGAIN;
    }
    ssize_t put = transfer_once(file->fd, true, offset, iov, niov, 0);
    return put == (ssize_t)bytes ? 0 : -EAGAIN;
}

void fd_file_write_behind(FdFile *file, uint64_t offset, uint64_t bytes)
{
    if (file->tail_fd < 0 && !file->in_memory) {
        (void)sync_file_range(file->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    }
}

int fd_file_flush(FdFile *file)
{
    int ret;
    do {
        ret = fdatasync(file->fd);
    } while (ret < 0 && errno == EINTR);
    if (ret < 0) {
        g_atomic_int_compare_and_exchange(&file->flush_error, 0, errno);
    }
    return -g_atomic_int_get(&file->flush_error);
}

static bool is_unsupported(int errnum)
{
    return errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == ENOTTY || errnum == EINVAL ||
           errnum == ENODEV;
}

static int try_fallocate(int fd, int mode, uint64_t offset, uint64_t bytes, gint *unsupported)
{
    if (g_atomic_int_get(unsupported)) {
        return -ENOTSUP;
    }
    int ret;
    do {
        ret = fallocate(fd, mode, (off_t)offset, (off_t)bytes);
    } while (ret < 0 && errno == EINTR);
    if (ret < 0 && is_unsupported(errno)) {
        g_atomic_int_set(unsupported, 1);
        return -ENOTSUP;
    }
    return ret < 0 ? -errno : 0;
}

int fd_file_discard(FdFile *file, uint64_t offset, uint64_t bytes)
{
    if (file->is_device) {
        uint64_t range[2] = {offset, bytes};
        if (ioctl(file->fd, BLKDISCARD, range) < 0) {
            return is_unsupported(errno) ? -ENOTSUP : -errno;
        }
        return 0;
    }
    return try_fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes,
                         &file->no_punch);
}

/* A punched hole reads as zeroes both in files and in block devices (the kernel makes sure for those). */
int fd_file_write_zeroes(FdFile *file, uint64_t offset, uint64_t bytes, bool may_unmap, bool fua)
{
    int ret = -ENOTSUP;
    if (may_unmap) {
        ret = try_fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes,
                            &file->no_punch);
    }
    if (ret == -ENOTSUP) {
        ret = try_fallocate(file->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, bytes,
                            &file->no_zero);
    }
    return ret == 0 && fua ? fd_file_flush(file) : ret;
}

int fd_file_status(FdFile *file, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status)
{
    off_t data = lseek(file->fd, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno != ENXIO) { /* cannot tell */
        *ret_bytes = bytes;
        *ret_status = BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED;
        return 0;
    }
    if (data != (off_t)offset) { /* ENXIO: a hole up to the end */
        *ret_bytes = data < 0 ? bytes : MIN(bytes, (uint64_t)data - offset);
        *ret_status = BLOCK_STATUS_ZERO;
        return 0;
    }
    off_t hole = lseek(file->fd, (off_t)offset, SEEK_HOLE);
    *ret_bytes = hole > (off_t)offset ? MIN(bytes, (uint64_t)hole - offset) : bytes;
    *ret_status = BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED;
    return 0;
}
