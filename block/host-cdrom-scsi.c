/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-scsi.h"
#include <errno.h>
#include <linux/fs.h>
#include <scsi/sg.h>
#include <string.h>
#include <sys/ioctl.h>

#define TIMEOUT_MS 30000 /* spinning up takes its time */
#define LEAST      (64 * 1024)
#define MOST       (512 * 1024)

/* By the sense key (SPC-4 4.5.6). */
static int error_of(unsigned key)
{
    switch (key) {
    case 0x0:
    case 0x1: /* recovered: the data is good */
        return 0;
    case 0x2: /* not ready */
        return -ENOMEDIUM;
    case 0x4: /* hardware; as the kernel calls it */
        return -EREMOTEIO;
    case 0xb: /* aborted */
        return -ECANCELED;
    default:
        return -EIO;
    }
}

/* What status and sense mean for somebody who only wants to know if it worked. */
static int result_of(const struct sg_io_hdr *io, const uint8_t *sense)
{
    if (io->status == 0 && io->host_status == 0 && (io->driver_status & 0x0f) == 0) {
        return 0;
    }
    if (io->host_status == 3) {
        return -ETIMEDOUT;
    }
    if (io->sb_len_wr >= 3 && io->status == 0x02) {
        const unsigned key = (sense[0] & 0x02 ? sense[1] : sense[2]) & 0x0f; /* descriptor or fixed format */
        return error_of(key);
    }
    return io->host_status == 1 ? -ENODEV : -EIO;
}

int cdrom_scsi_command(int fd, const uint8_t *cdb, uint8_t cdb_bytes, void *buf, size_t bytes,
                       CdromReply *ret_reply)
{
    CdromReply reply = {0};
    struct sg_io_hdr io = {
        .interface_id = 'S',
        .dxfer_direction = bytes ? SG_DXFER_FROM_DEV : SG_DXFER_NONE,
        .cmd_len = cdb_bytes,
        .mx_sb_len = sizeof reply.sense,
        .dxfer_len = (unsigned)bytes,
        .dxferp = buf,
        .cmdp = (uint8_t *)cdb,
        .sbp = reply.sense,
        .timeout = TIMEOUT_MS,
    };
    if (bytes) {
        memset(buf, 0, bytes); /* what a short answer leaves off is nobody's old memory */
    }
    if (ioctl(fd, SG_IO, &io) < 0) {
        return -errno;
    }
    reply.sense_bytes = io.sb_len_wr;
    reply.bytes = io.resid > 0 && (size_t)io.resid <= bytes ? bytes - io.resid : bytes;
    if (ret_reply) {
        *ret_reply = reply;
    }
    return result_of(&io, reply.sense);
}

bool cdrom_scsi_is_mmc(int fd)
{
    const uint8_t cdb[6] = {0x12, 0, 0, 0, 36};
    uint8_t reply[36];
    return cdrom_scsi_command(fd, cdb, sizeof cdb, reply, sizeof reply, NULL) == 0 && (reply[0] & 0x1f) == 5;
}

uint32_t cdrom_scsi_max_bytes(int fd)
{
    unsigned short sectors = 0;
    if (ioctl(fd, BLKSECTGET, &sectors) < 0) {
        return LEAST;
    }
    return CLAMP(sectors * 512u, 4096u, MOST);
}
