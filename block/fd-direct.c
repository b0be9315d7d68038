/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What O_DIRECT demands of a descriptor.
 */
#include "block/fd-io.h"
#include "util/buffer.h"
#include "util/checked.h"
#include "util/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#ifndef STATX_DIOALIGN /* Linux 6.1; the C library's header may be older than the kernel */
#define STATX_DIOALIGN 0x2000u
#endif

/* struct statx as of Linux 6.1: the two alignments follow stx_mnt_id, in what older headers call spare. */
#define STATX_DIO_MEM_ALIGN_AT    152
#define STATX_DIO_OFFSET_ALIGN_AT 156

/* 1: answered (0 in *ret: no O_DIRECT); 0: the kernel or file system does not tell. */
static int ask_statx(int fd, uint32_t *ret)
{
    union {
        struct statx buf;
        uint8_t bytes[256];
    } st = {0};
    G_STATIC_ASSERT(sizeof(struct statx) == 256);
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st.buf) < 0 || !(st.buf.stx_mask & STATX_DIOALIGN)) {
        return 0;
    }
    uint32_t mem, offset;
    memcpy(&mem, st.bytes + STATX_DIO_MEM_ALIGN_AT, sizeof mem);
    memcpy(&offset, st.bytes + STATX_DIO_OFFSET_ALIGN_AT, sizeof offset);
    *ret = mem && offset ? MAX(mem, offset) : 0;
    return 1;
}

/* Whether a read at `align` bytes into memory that is aligned to no more works. */
static bool probe(int fd, uint8_t *memory, uint32_t align)
{
    ssize_t got;
    do {
        got = pread(fd, memory + align, align, align);
    } while (got < 0 && errno == EINTR);
    return got >= 0; /* 0: past the end, but nothing was wrong with the shape */
}

uint32_t fd_direct_align(int fd)
{
    uint32_t align = 0;
    if (ask_statx(fd, &align)) {
        return is_power_of_2(align) && align <= BUFFER_MAX ? align : 0;
    }
    struct stat st;
    int sector;
    if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) && ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0) {
        return sector;
    }
    void *memory = NULL;
    if (posix_memalign(&memory, 2 * 65536, 2 * 65536) != 0) {
        return 0;
    }
    uint32_t found = 0;
    for (align = 512; align <= 65536 && !found; align *= 2) {
        found = probe(fd, memory, align) ? align : 0;
    }
    free(memory);
    return found;
}
