/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Keeps a `host_cdrom` node true to its drive without asking the drive all the time. The kernel's device
 * events, an I/O error or a command for the tray start a job on a worker, which opens the device anew (until
 * then the kernel reports no second change, and the old descriptor keeps the old size), looks at it, and
 * hands what it found to the loop thread. There is one job at a time; whatever comes meanwhile makes it run
 * once more.
 *
 *   IDLE ── kick ──► RUNNING ── done, nothing new ──► IDLE    (the node is told if something differs)
 *                     │    ▲
 *                     └────┘ kicked, or told to move the tray, meanwhile: what was found may be old already
 *
 * A watch has a life of its own, since a job may hang in the drive longer than the node lives: it is freed
 * when the node and the job have let go of it. Loop thread, unless said otherwise.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_WATCH_H
#define SPINDLE_BLOCK_HOST_CDROM_WATCH_H

#include "block/host-cdrom-device.h"
#include "block/packet.h"
#include "block/block-int.h"

typedef struct CdromWatch CdromWatch;

typedef struct CdromWatchConfig {
    bool direct;         /* O_DIRECT */
    bool moves_tray;     /* the host's tray follows the guest */
    unsigned check_s;    /* seconds between looks where the kernel tells nothing */
    CdromDevice *device; /* as opened; the watch takes the reference over */
    CdromState state;    /* as found */
} CdromWatchConfig;

/* Starts when the loop runs. Any thread. */
CdromWatch *cdrom_watch_new(BlockNode *node, const CdromWatchConfig *config);

/* The node goes: no event comes any more, the lock and the kernel's polling are as they were. Any thread. */
void cdrom_watch_stop(CdromWatch *watch);

/* A reference to the device as it is now, or NULL (unplugged). Any thread; no system call. */
CdromDevice *cdrom_watch_device(CdromWatch *watch);

/* A read failed: see what became of the medium. Any thread. */
void cdrom_watch_doubt(CdromWatch *watch);

BlockTray cdrom_watch_tray(const CdromWatch *watch);
void cdrom_watch_move_tray(CdromWatch *watch, bool open);
void cdrom_watch_lock(CdromWatch *watch, bool locked);
void cdrom_watch_check(CdromWatch *watch);

/* The functions of block/packet.h. */
uint32_t cdrom_watch_packet_max(CdromWatch *watch);
void cdrom_watch_packet(CdromWatch *watch, BlockPacket *packet);

#endif
