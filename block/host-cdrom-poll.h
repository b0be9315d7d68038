/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel looks after removable media by itself only if it is told to (events_poll_msecs in sysfs;
 * desktops and servers with udev have it on, containers and small systems often not). These functions switch
 * it on for as long as a drive is held. Worker threads.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_POLL_H
#define SPINDLE_BLOCK_HOST_CDROM_POLL_H

#include "block/host-cdrom-device.h"

#define CDROM_POLL_MS 1000 /* what it is switched on to */

typedef struct CdromPoll {
    char *path;   /* of the device's setting, while it is ours; else NULL */
    char *before; /* what was there */
} CdromPoll;

/* True when the kernel tells of changes of the device's medium: because it always does, because polling is on
 * already, or is now on. False with the reason in *ret_why (static). */
bool cdrom_poll_begin(CdromPoll *poll, const CdromDevice *device, const char **ret_why);

/* Restores the setting, unless somebody else changed it since. */
void cdrom_poll_end(CdromPoll *poll);

/* The device is gone, and its setting with it. */
void cdrom_poll_forget(CdromPoll *poll);

#endif
