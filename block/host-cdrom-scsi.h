/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MMC commands to a drive of the host through SG_IO. They block; worker threads.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_SCSI_H
#define SPINDLE_BLOCK_HOST_CDROM_SCSI_H

#include "block/host-cdrom-device.h"
#include "block/packet.h"

/* Sends the packet and fills what came of it. */
void cdrom_scsi_packet(int fd, BlockPacket *packet);

/* The key in a drive's sense of either format; 0: none. */
unsigned cdrom_scsi_sense_key(const uint8_t *sense, unsigned bytes);

/* A command of ours that receives up to `bytes` bytes (none: a command without data); *ret_received may be
 * NULL. 0, or -errno: what the drive's sense means, or why the command never got there. */
int cdrom_scsi_command(int fd, const uint8_t *cdb, uint8_t cdb_bytes, void *buf, size_t bytes,
                       size_t *ret_received);

/* INQUIRY says that it is a CD/DVD device (type 5). */
bool cdrom_scsi_is_mmc(int fd);

/* Bytes that the host passes in one command, at least a sector's. */
uint32_t cdrom_scsi_max_bytes(int fd);

/* The disc's table of contents, if it is no CD or there is more to it than one track of data; then
 * device->raw_base is set, and *size to the bytes of the node with the raw sectors behind its data. NULL: a
 * plain CD. */
BlockToc *cdrom_scsi_read_toc(CdromDevice *device, uint64_t *size);

/* Bytes of the node from device->raw_base on. 0 or -errno. */
int cdrom_scsi_preadv_raw(const CdromDevice *device, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                          int niov);

#endif
