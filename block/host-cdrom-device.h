/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * An open CD/DVD drive of the host, by the kernel's ioctls. Everything here may block for as long as the
 * drive likes (seconds while it spins up) and runs on worker threads; a CdromDevice is constant but for its
 * reference count and the atomic flags of its FdFile.
 *
 * Any block device will do: without the CD-ROM ioctls the medium's state is known by its size alone, and
 * there is no tray.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_DEVICE_H
#define SPINDLE_BLOCK_HOST_CDROM_DEVICE_H

#include "block/fd-io.h"
#include "block/toc.h"
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct CdromDevice {
    gint refs; /* atomic */
    FdFile file;
    int write_fd;        /* of the same device, for packets that need it: their thread's alone. -1: not yet */
    bool is_cdrom;       /* answers CDROM_GET_CAPABILITY */
    bool is_mmc;         /* … and INQUIRY by SG_IO with type 5 */
    uint32_t max_bytes;  /* of a transfer by SG_IO */
    char devname[64];    /* as in uevents: "sr0" */
    char sysfs[64];      /* its folder, "/sys/dev/block/11:0" */
    uint64_t data_bytes; /* of the medium that was in when cdrom_device_ask() ran, by its 2048-byte sectors */
    uint64_t raw_base;   /* where the sectors of 2352 bytes begin in the node, or UINT64_MAX */
} CdromDevice;

typedef enum {
    CDROM_GONE,     /* there is no such device (any more) */
    CDROM_EMPTY,    /* closed, nothing in it */
    CDROM_OPEN,     /* the tray is open */
    CDROM_SPINNING, /* not ready yet: look again */
    CDROM_LOADED,
} CdromStatus;

/* What was found; nothing here follows the drive by itself. */
typedef struct CdromState {
    CdromStatus status;
    bool has_tray;     /* one that software can know about */
    uint64_t size;     /* bytes of the node; 0 unless LOADED */
    uint64_t sequence; /* counts the media that the kernel saw in this device; 0: it does not tell */
    bool changed;      /* the kernel says that the medium is another than at the last question, where it does
                          not count */
} CdromState;

/* Opens without closing an open tray or asking for a disc (O_NONBLOCK), which also makes the kernel look
 * whether the medium was changed and report the next change. `direct`: O_DIRECT, unless that needs more than
 * `align` bytes (0: any). NULL and -errno in *ret_error. */
CdromDevice *cdrom_device_open(const char *filename, bool direct, uint32_t align, int *ret_error);
CdromDevice *cdrom_device_ref(CdromDevice *device);
void cdrom_device_unref(CdromDevice *device); /* NULL is allowed; any thread */
/* The same without closing it here, which may wait for somebody who opens it. Loop thread. */
void cdrom_device_unref_later(CdromDevice *device);

/* A descriptor that is open for writing, made at the first call, or -errno. One thread at a time. */
int cdrom_device_write_fd(CdromDevice *device);

/* Whether a path is a drive with the CD-ROM ioctls (links are followed). */
bool cdrom_device_probe(const char *filename);

/* Whether this host has a CD/DVD drive by the kernel's name for them. */
bool cdrom_device_exists(void);

/* The state, once after opening; also finds out where the sectors are. *ret_toc NULL: a plain compact
 * disc of data, or no disc. */
void cdrom_device_ask(CdromDevice *device, CdromState *ret, BlockToc **ret_toc);

/* The status alone, which is one command to the drive. */
CdromStatus cdrom_device_status(const CdromDevice *device);

/* 0 or -errno. */
int cdrom_device_move_tray(const CdromDevice *device, bool open);

/* The lock lasts until the device is closed by everybody: a process that is killed leaves no locked door. 0
 * or -errno. */
int cdrom_device_lock(const CdromDevice *device, bool locked);

#endif
