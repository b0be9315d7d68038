/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive of the drive process: ide-cd or ide-hd with what it holds. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_DRIVE_H
#define SPINDLE_SYSTEM_DRIVE_H

#include "block/block.h"
#include "hw/ide/ide-device.h"
#include "monitor/backend.h"
#include "system/drive-props.h"

typedef struct Drive Drive;

/* `node`: the disc or disk, NULL for an empty drive (ide-cd); the drive takes a reference. `released`: the
 * image is another process's for now (hard-disk.h). NULL and an error in QEMU's words. */
Drive *drive_new(const DriveProps *props, BlockNode *node, bool released, GError **error);

/* Its device must be off the controller. NULL is allowed. */
void drive_free(Drive *drive);

/* What monitors see of it and do with it: from now on they are told of the tray and of errors. The backend
 * outlives the drive. */
void drive_set_backend(Drive *drive, Backend *backend);

/* The machine stands still: what failed and is kept is not tried again, until it runs: then at once. */
void drive_set_stopped(Drive *drive, bool stopped);

HardDisk *drive_disk(const Drive *drive); /* NULL: a CD drive */
MmcDrive *drive_mmc(const Drive *drive);  /* NULL: a disk */

const char *drive_id(const Drive *drive); /* NULL: none */
DriveModel drive_model(const Drive *drive);
IdeDevice *drive_device(const Drive *drive);

#endif
