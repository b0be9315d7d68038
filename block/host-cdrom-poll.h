/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel looks after removable media by itself only if it is told to (events_poll_msecs in sysfs;
 * desktops and servers with udev have it on, containers and small systems often not). These functions switch
 * it on for as long as a drive is held, by however many nodes of however many processes: the setting itself
 * counts them. The first one makes it 1000 ms (1500 where it was 0, not -1), each further one adds 1, and the
 * last one to go puts back what was there. Worker threads.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_POLL_H
#define SPINDLE_BLOCK_HOST_CDROM_POLL_H

#include "block/host-cdrom-device.h"

#define CDROM_POLL_MS      1000 /* … + the number of the others; it was -1, the default, before */
#define CDROM_POLL_OFF_MS  1500 /* the same where it was 0 */
#define CDROM_POLL_HOLDERS 100

typedef struct CdromPoll {
    char *path; /* of the device's setting, while it is ours; else NULL */
} CdromPoll;

/* True when the kernel tells of changes of the device's medium: because it always does, because polling is on
 * already, or is now on. False with the reason in *ret_why (static). */
bool cdrom_poll_begin(CdromPoll *poll, const CdromDevice *device, const char **ret_why);

/* Restores the setting, unless somebody else changed it since. */
void cdrom_poll_end(CdromPoll *poll);

/* The device is gone, and its setting with it. */
void cdrom_poll_forget(CdromPoll *poll);

/* One holder less of the setting. Only system calls: for a forked process, too. */
void cdrom_poll_leave(const char *path);

#endif
