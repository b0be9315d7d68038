/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive as users name it: QEMU's "block backend" with the device that uses it. `name` is -drive's id (or
 * empty for a device on a plain node), `id` and `qdev` are the device's. The machine makes them and keeps the
 * device; the monitor owns the backend. Loop thread.
 */
#ifndef SPINDLE_MONITOR_BACKEND_H
#define SPINDLE_MONITOR_BACKEND_H

#include "block/throttle.h"
#include "hw/block/hard-disk.h"
#include "hw/block/mmc.h"
#include "monitor/monitor.h"

typedef enum { BACKEND_IO_OK, BACKEND_IO_FAILED, BACKEND_IO_NOSPACE } BackendIoStatus;

typedef struct Backend {
    Monitor *monitor;
    char *name;      /* "" : none */
    char *id;        /* of the device, or NULL */
    char *qdev;      /* "/machine/unattached/device[4]", or NULL: no device */
    char *type;      /* "ide-hd", "ide-cd", or NULL */
    BlockNode *node; /* what it holds, with a reference; NULL: nothing */
    BlockNode *top;  /* the node that the device reads: `node`, behind the limits if there are any; with a
                        reference */
    ThrottleGroup *group;  /* whose limits it keeps, with a reference; NULL: it has none */
    BlockStats past, base; /* what former nodes did, and `top` had done before */
    MmcDrive *mmc;         /* the machine's; at most one of these two */
    HardDisk *disk;
    bool writeback;
    Options *props; /* the device's, as they were given; a reference, or NULL */
    bool hotplugged, hotpluggable;
    OnError rerror, werror;
    BackendIoStatus io_status;
} Backend;

/* Adds a drive; the strings are copied. Limits: none yet. NULL and an error when the name is taken. */
Backend *backend_new(Monitor *monitor, const char *name, GError **error);

/* Takes the device off and lets go of everything. */
void backend_remove(Backend *backend);

/* All, in order of their making: GPtrArray of Backend, the monitor's. */
GPtrArray *monitor_backends(const Monitor *monitor);

/* Takes the name and the image of a drive whose device stays: its disc is gone, its disk fails. */
bool backend_disown(Backend *backend, GError **error);

/* By -drive's id. NULL: none. */
Backend *backend_find(const Monitor *monitor, const char *name);

/* By the device's id or QOM path. */
Backend *backend_find_device(const Monitor *monitor, const char *id);

/* The commands' usual pair of arguments. NULL and QEMU's error. */
Backend *backend_find_either(const Monitor *monitor, const char *device, const char *id, GError **error);

/* Puts a node in, behind the limits, with new references; the device is not told. NULL empties it. */
bool backend_set_node(Backend *backend, BlockNode *node, GError **error);

/* block_set_io_throttle: the limits of the group `name` (NULL: the one it is in, else one by its own name),
 * which it joins; without any limit it leaves its group. The device reads on behind them. */
bool backend_set_limits(Backend *backend, const ThrottleLimits *limits, const char *name, GError **error);

/* What the device has done since the start, on whatever nodes. */
void backend_stats(const Backend *backend, BlockStats *ret);

/* The device. */
void backend_attach(Backend *backend, const char *type, const char *id, const char *qdev);

/* Whose root node this is, or NULL. */
Backend *backend_of_node(const Monitor *monitor, const BlockNode *node);

/* The name that users see for a drive in messages: its name, else its device's id or path. */
const char *backend_title(const Backend *backend);

/* QEMU's `qdev`: the device's id, else its path. NULL: no device. */
const char *backend_qdev(const Backend *backend);

/* An error on the data path: BLOCK_IO_ERROR, and the I/O status. */
void backend_io_error(Backend *backend, BlockOp op, int error, OnError action);

/* DEVICE_TRAY_MOVED. */
void backend_tray_moved(Backend *backend, bool open);

/* The machine runs on: what was kept because of an error is tried again. */
void backend_resume(Backend *backend);

#endif
