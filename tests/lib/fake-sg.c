/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/fake-sg.h"
#include <errno.h>
#include <linux/cdrom.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

FakeSg fake_sg;

int fake_sg_check(struct sg_io_hdr *io, uint8_t key, uint8_t asc, uint8_t ascq)
{
    const uint8_t fixed[18] = {0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq};
    memcpy(io->sbp, fixed, MIN(sizeof fixed, io->mx_sb_len));
    io->sb_len_wr = sizeof fixed;
    io->status = 2;
    io->driver_status = 8;
    io->resid = (int)io->dxfer_len;
    return 0;
}

int fake_sg_answer(struct sg_io_hdr *io, const void *data, size_t bytes)
{
    const size_t given = MIN(bytes, io->dxfer_len);
    memcpy(io->dxferp, data, given);
    io->resid = (int)(io->dxfer_len - given);
    return 0;
}

/* As the kernel: what is longer than the limit is refused. */
static int send_packet(int fd, struct sg_io_hdr *io)
{
    io->status = io->host_status = io->driver_status = io->sb_len_wr = 0;
    io->resid = 0;
    if (io->dxfer_len > fake_sg.max_sectors * 512) {
        g_atomic_int_inc(&fake_sg.too_large);
        errno = EIO;
        return -1;
    }
    return fake_sg.packet(fd, io);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (!fake_sg.on) {
        return (int)syscall(SYS_ioctl, fd, request, arg);
    }
    if (g_atomic_int_get(&fake_sg.gone)) {
        errno = g_atomic_int_get(&fake_sg.gone);
        return -1;
    }
    switch (request) {
    case CDROM_GET_CAPABILITY:
        return CDC_OPEN_TRAY | CDC_CLOSE_TRAY | CDC_LOCK;
    case CDROM_DRIVE_STATUS:
        return fake_sg.status;
    case CDROMEJECT:
        g_atomic_int_inc(&fake_sg.ejects);
        errno = fake_sg.eject_errno;
        return fake_sg.eject_errno ? -1 : 0;
    case CDROMCLOSETRAY:
        g_atomic_int_inc(&fake_sg.closes);
        return 0;
    case CDROM_LOCKDOOR:
        g_atomic_int_inc(&fake_sg.lockdoors);
        return 0;
    case BLKSECTGET:
        *(unsigned short *)arg = (unsigned short)fake_sg.max_sectors;
        return 0;
    case SG_IO:
        return send_packet(fd, arg);
    default:
        return (int)syscall(SYS_ioctl, fd, request, arg);
    }
}
