/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The PCI functions and drives of a machine as one thing, for saving and loading their state. Made when it is
 * needed; what it names stays the machine's. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_DEVICE_SET_H
#define SPINDLE_SYSTEM_DEVICE_SET_H

#include "hw/block/hard-disk.h"
#include "hw/block/mmc.h"
#include "hw/pci/pci-device.h"

typedef struct DeviceSet DeviceSet;

DeviceSet *device_set_new(void);
void device_set_free(DeviceSet *set); /* NULL is allowed */

/* `name` is what the function goes by in a state: the same here and there. */
void device_set_add_function(DeviceSet *set, const char *name, PciDevice *pci);
void device_set_add_disk(DeviceSet *set, const char *name, HardDisk *disk);
void device_set_add_cd(DeviceSet *set, MmcDrive *mmc);

void device_set_each_function(DeviceSet *set, void (*call)(const char *name, PciDevice *pci, void *opaque),
                              void *opaque);

/* Waits until what was begun has come to where it can be saved: every request of a disk is over, or kept
 * because of an error; nothing is on its way to guest memory. Reads of a CD are given a moment, then they are
 * left to be done again. `done` runs once, on the loop, never inside the call: NULL, or an error (its to
 * free) that names what is not ready. The set is the callee's until then. */
typedef void (*DeviceSetSettled)(DeviceSet *set, GError *error, void *opaque);
void device_set_settle(DeviceSet *set, DeviceSetSettled done, void *opaque);
/* `done` will not run. */
void device_set_settle_cancel(DeviceSet *set);

/* See PciDeviceOps.park. */
void device_set_park(DeviceSet *set, bool on);

/* Takes the images' locks that were let go of, or never taken (block_release_images()), disks' for writing.
 * On failure none are held. */
bool device_set_hold_images(DeviceSet *set, GError **error);

/* Flushes the disks. Blocks: on a worker. 0 or -errno. */
int device_set_flush(DeviceSet *set);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DeviceSet, device_set_free)

/* Object: DeviceSet. */
extern const StateOps device_set_state;

#endif
