/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * An ATA-8 hard disk: an IdeDevice on a HardDisk. Loop thread only.
 */
#ifndef SPINDLE_HW_IDE_ATA_DISK_H
#define SPINDLE_HW_IDE_ATA_DISK_H

#include "hw/block/hard-disk.h"
#include "hw/ide/ata-geometry.h"
#include "hw/ide/ide-device.h"

/* Strings are copied; 0 and NULL mean the default, as QEMU's properties of the same names. */
typedef struct AtaDiskConfig {
    IdeIdentity identity;         /* serial, model, ver, wwn */
    uint32_t cyls, heads, secs;   /* all or none; at most 65535, 16, 255 */
    AtaTranslation translation;   /* bios-chs-trans */
    uint32_t logical_block_size;  /* 512 (default), or a power of two up to 4096 */
    uint32_t physical_block_size; /* at least the logical one; default 512 */
    uint16_t rotation_rate;       /* 0: not told, 1: no moving parts, else rpm */
} AtaDiskConfig;

/* `disk` stays the caller's and must outlive the device. Reads the first sector, and waits for it, when no
 * geometry is given. NULL and an error in QEMU's words for a geometry or
 * a block size that cannot be. */
IdeDevice *ata_disk_new(HardDisk *disk, const AtaDiskConfig *config, GError **error);

/* The geometry that the guest finds by IDENTIFY, and its translation, for firmware tables (CMOS). */
const AtaGeometry *ata_disk_geometry(const IdeDevice *device);

#endif
