/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Positioned I/O on a descriptor, for the drivers of files and block devices: short transfers, O_DIRECT with
 * a buffered tail, zeroing, discarding, finding holes. An FdFile is filled at open and then constant but for
 * its atomic flags, so that all functions may run on several threads at once. They return 0 or -errno.
 */
#ifndef SPINDLE_BLOCK_FD_IO_H
#define SPINDLE_BLOCK_FD_IO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct FdFile {
    int fd;      /* with O_DIRECT when `tail_fd` is not -1 */
    int tail_fd; /* the same file through the page cache, for the end that fills no block; -1: not direct */
    uint32_t align;   /* of O_DIRECT; 1 when buffered */
    bool is_device;   /* block device: BLKDISCARD, BLKZEROOUT */
    bool in_memory;   /* tmpfs: no wait for a device (but for what was swapped out) */
    gint flush_error; /* atomic: errno of the first flush that failed; from then on all do, see
                         fd_file_flush() */
    gint no_nowait;   /* atomic: RWF_NOWAIT does not work here */
    gint no_zero;     /* atomic: FALLOC_FL_ZERO_RANGE does not work here */
    gint no_punch;    /* atomic: the same for FALLOC_FL_PUNCH_HOLE */
    gint no_dsync;    /* atomic: the same for RWF_DSYNC */
} FdFile;

void fd_file_init(FdFile *file, int fd);

/* Closes both descriptors. */
void fd_file_close(FdFile *file);

/* All of the range or an error; -EIO where the file ends before it does. */
int fd_file_preadv(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int fd_file_pwritev(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                    bool fua);

/* Has the kernel begin to write the range out of the page cache. Errors show at the next flush. */
void fd_file_write_behind(FdFile *file, uint64_t offset, uint64_t bytes);

/* The whole range from the page cache, or -EAGAIN. */
int fd_file_read_now(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
/* A small range into a tmpfs, or -EAGAIN. (RWF_NOWAIT does not tell of a page cache that throttles writers in
 * time, and most file systems do not know it for writes.) */
int fd_file_write_now(FdFile *file, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

/* After a failure all later ones fail too: the kernel may have dropped the pages that it could not write, and
 * would call the rest a success. */
int fd_file_flush(FdFile *file);
int fd_file_discard(FdFile *file, uint64_t offset, uint64_t bytes);

/* -ENOTSUP when only writing zeroes will do. */
int fd_file_write_zeroes(FdFile *file, uint64_t offset, uint64_t bytes, bool may_unmap, bool fua);

/* Data or hole at `offset` by SEEK_DATA and SEEK_HOLE; *ret_bytes at most `bytes`. */
int fd_file_status(FdFile *file, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status);

/* The alignment that O_DIRECT wants on this open descriptor, asked of the kernel (STATX_DIOALIGN, BLKSSZGET),
 * else found by trying. 0 when O_DIRECT does not work on it. */
uint32_t fd_direct_align(int fd);

#endif
