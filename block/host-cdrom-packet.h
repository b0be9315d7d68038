/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The commands of a guest on their way to a drive of the host: a queue, and a thread that lives while there
 * is something in it. See block/packet.h for what is promised.
 *
 *   QUEUED ── thread takes it ──► RUNNING ── the drive answered ──► done
 *      └──── abandoned: -ECANCELED ──────────────────────────────────┘
 *
 * A packet holds the device that it is for, and the queue has a life of its own, since a command may hang
 * longer than the node lives.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_PACKET_H
#define SPINDLE_BLOCK_HOST_CDROM_PACKET_H

#include "block/host-cdrom-device.h"
#include "block/packet.h"

typedef struct CdromPackets CdromPackets;

/* `doubt` is called on the thread when an answer says that the medium or the drive may be another than
 * before; `opaque` lives until `release` was called with it (any thread). */
CdromPackets *cdrom_packets_new(void (*doubt)(void *opaque), void *opaque, GDestroyNotify release);

/* What is queued is still carried out. Any thread. */
void cdrom_packets_unref(CdromPackets *packets);

/* Takes the reference of `device` over; NULL: unplugged. Loop thread. */
void cdrom_packets_submit(CdromPackets *packets, BlockPacket *packet, CdromDevice *device);

#endif
