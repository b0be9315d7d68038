/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A hard disk as a row of bytes behind an error policy, with no ATA word in it: what `werror=` and `rerror=`
 * say, the write cache, requests that are kept while the machine is stopped. The node below is one reference
 * of the disk's. Loop thread only.
 */
#ifndef SPINDLE_HW_BLOCK_HARD_DISK_H
#define SPINDLE_HW_BLOCK_HARD_DISK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "block/block.h"
#include "hw/block/on-error.h"
#include "util/buffer.h"

typedef struct HardDisk HardDisk;
typedef struct HardDiskRequest HardDiskRequest;

typedef struct HardDiskConfig {
    const char *id;  /* device id for messages and events; copied; may be NULL */
    BlockNode *node; /* not read-only, has a size */
    OnError rerror;  /* reads; ENOSPC is not for these */
    OnError werror;  /* writes, flushes, discards */
    bool released;   /* the image is another process's for now: see hard_disk_hold() */
    bool write_back; /* the cache is on at power-on; off: each write is on stable storage when it ends */
} HardDiskConfig;

/* NULL and an error in QEMU's words: read-only node, no sector in it, or another writer. */
HardDisk *hard_disk_new(const HardDiskConfig *config, GError **error);

/* Requests must be gone (done or abandoned). NULL is allowed. */
void hard_disk_free(HardDisk *disk);

const char *hard_disk_id(const HardDisk *disk);
BlockNode *hard_disk_node(const HardDisk *disk);

/* Another node with the same bytes: limits were put in front of the old one, or taken off. What is under way
 * ends there. The reference is a new one. */
void hard_disk_replace_node(HardDisk *disk, BlockNode *node);

/* From now on every error is the guest's. */
void hard_disk_report_errors(HardDisk *disk);

/* Bytes of the node now. */
uint64_t hard_disk_size(const HardDisk *disk);

/* The guest's SET FEATURES 02/82. Off takes effect with the next write. */
void hard_disk_set_write_back(HardDisk *disk, bool on);
bool hard_disk_write_back(const HardDisk *disk);
/* As configured: what a hard reset goes back to. */
void hard_disk_reset(HardDisk *disk);

/* Runs once unless abandoned, never inside hard_disk_submit(): 0 or a negative errno. The request is gone
 * when it returns. */
typedef void (*HardDiskDone)(void *opaque, int result);

/* op READ or WRITE: buffer->data[at, at + bytes), of which the request takes a reference. FLUSH, DISCARD: no
 * buffer; a node that cannot discard is none the worse for it. `fua`: on stable storage before `done`. A
 * range outside the node fails with -EINVAL. */
HardDiskRequest *hard_disk_submit(HardDisk *disk, BlockOp op, uint64_t offset, Buffer *buffer, size_t at,
                                  uint64_t bytes, bool fua, HardDiskDone done, void *opaque);

/* `done` will not run. Nothing waits. A write that was submitted goes on and ends before what is submitted
 * after it starts, unless the policy kept it: then nothing of it was or will be written. */
void hard_disk_abandon(HardDiskRequest *request);

/* A read answered inside the call: 0, or -EAGAIN (also for every error: the ordinary way will meet it again).
 */
int hard_disk_read_now(HardDisk *disk, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

/* Told of every failed request: `action` is what the policy made of it (REPORT, IGNORE or STOP). After STOP
 * the request is kept; whoever is told stops the machine. */
typedef void (*HardDiskFailed)(HardDisk *disk, BlockOp op, int error, OnError action, void *opaque);
void hard_disk_on_failed(HardDisk *disk, HardDiskFailed failed, void *opaque);

/* Takes the image's locks for writing, when the machine that had it has let go (block_release_images()). */
bool hard_disk_hold(HardDisk *disk, GError **error);

/* No read, write or flush is under way; kept requests are not. */
bool hard_disk_idle(const HardDisk *disk);

/* The machine runs again: kept requests are tried anew, in their order. */
void hard_disk_resume(HardDisk *disk);
unsigned hard_disk_kept(const HardDisk *disk);

#endif
