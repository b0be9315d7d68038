/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Cylinders, heads and sectors of a hard disk, for guests that still ask. Pure. Any thread.
 */
#ifndef SPINDLE_HW_IDE_ATA_GEOMETRY_H
#define SPINDLE_HW_IDE_ATA_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

/* How firmware translates the geometry for INT 13h; the values after AUTO are those of `bios-chs-trans=`, and
 * value - 1 is what the CMOS byte 39h holds. */
typedef enum {
    ATA_TRANSLATION_AUTO,
    ATA_TRANSLATION_NONE,
    ATA_TRANSLATION_LBA,
    ATA_TRANSLATION_LARGE,
    ATA_TRANSLATION_RECHS
} AtaTranslation;

typedef struct AtaGeometry {
    uint32_t cyls, heads, secs;
    AtaTranslation translation; /* never AUTO */
} AtaGeometry;

/* The geometry for a disk of `sectors` sectors (of 512 bytes) whose first sector is `mbr` (NULL: unreadable).
 * A partition that ends on a cylinder boundary tells with which heads and sectors it was made: up to 16 heads
 * are taken as they are, more mean that firmware translated. Without one: 16 heads, 63 sectors. */
void ata_geometry_guess(const uint8_t *mbr, uint64_t sectors, AtaGeometry *ret);

/* The translation for a geometry that the user gave. */
AtaTranslation ata_geometry_translation(uint32_t cyls, uint32_t heads, uint32_t secs);

#endif
