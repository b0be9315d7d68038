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

unsigned cdrom_scsi_sense_key(const uint8_t *sense, unsigned bytes)
{
    return bytes >= 3 ? (sense[0] & 0x02 ? sense[1] : sense[2]) & 0x0f : 0; /* descriptor or fixed format */
}

/* How the host's adapter fared (scsi/sg.h, the kernel's DID_ codes). */
static int host_error(const struct sg_io_hdr *io)
{
    switch (io->host_status) {
    case 0:
        return (io->driver_status & 0x0f) == 0 || io->status ? 0 : -EIO;
    case 1: /* no connect */
    case 4: /* bad target */
        return -ENODEV;
    case 3:
        return -ETIMEDOUT;
    default:
        return io->status ? 0 : -EIO;
    }
}

void cdrom_scsi_packet(int fd, BlockPacket *packet)
{
    static const int directions[] = {[BLOCK_PACKET_NONE] = SG_DXFER_NONE,
                                     [BLOCK_PACKET_IN] = SG_DXFER_FROM_DEV,
                                     [BLOCK_PACKET_OUT] = SG_DXFER_TO_DEV};
    struct sg_io_hdr io = {
        .interface_id = 'S',
        .dxfer_direction = packet->bytes ? directions[packet->direction] : SG_DXFER_NONE,
        .cmd_len = packet->cdb_bytes,
        .mx_sb_len = sizeof packet->sense,
        .dxfer_len = (unsigned)packet->bytes,
        .dxferp = packet->data,
        .cmdp = packet->cdb,
        .sbp = packet->sense,
        .timeout = packet->timeout_ms,
    };
    if (packet->direction == BLOCK_PACKET_IN && packet->bytes) {
        memset(packet->data, 0, packet->bytes); /* what a short answer leaves off is nobody's old memory */
    }
    if (ioctl(fd, SG_IO, &io) < 0) {
        packet->result = -errno;
        return;
    }
    packet->result = host_error(&io);
    packet->status = io.status;
    packet->sense_bytes = MIN(io.sb_len_wr, sizeof packet->sense);
    if (packet->direction == BLOCK_PACKET_IN) {
        const bool sane = io.resid > 0 && (size_t)io.resid <= packet->bytes;
        packet->received = packet->bytes - (sane ? (size_t)io.resid : 0);
    }
}

int cdrom_scsi_command(int fd, const uint8_t *cdb, uint8_t cdb_bytes, void *buf, size_t bytes,
                       size_t *ret_received)
{
    BlockPacket packet = {
        .cdb_bytes = cdb_bytes,
        .direction = bytes ? BLOCK_PACKET_IN : BLOCK_PACKET_NONE,
        .data = buf,
        .bytes = bytes,
        .timeout_ms = TIMEOUT_MS,
    };
    memcpy(packet.cdb, cdb, cdb_bytes);
    cdrom_scsi_packet(fd, &packet);
    if (ret_received) {
        *ret_received = packet.received;
    }
    if (packet.result < 0 || packet.status == 0) {
        return packet.result;
    }
    return packet.status == 0x02 && packet.sense_bytes >= 3
               ? error_of(cdrom_scsi_sense_key(packet.sense, packet.sense_bytes))
               : -EIO;
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
