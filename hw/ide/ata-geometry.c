/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/ata-geometry.h"

#include <stddef.h>

#include "util/bytes.h"

#define MBR_PARTITIONS 0x1be
#define MBR_SIGNATURE  510
#define PHYSICAL_HEADS 16
#define PHYSICAL_SECS  63
#define MAX_CYLS       16383 /* what IDENTIFY and firmware can tell */

/* "Large" translation doubles heads until they reach 128, which is enough up to this many tracks. */
#define LARGE_TRACKS 131072

static uint32_t physical_cyls(uint64_t sectors)
{
    uint64_t cyls = sectors / (PHYSICAL_HEADS * PHYSICAL_SECS);

    return cyls > MAX_CYLS ? MAX_CYLS : cyls < 2 ? 2 : (uint32_t)cyls;
}

AtaTranslation ata_geometry_translation(uint32_t cyls, uint32_t heads, uint32_t secs)
{
    return cyls <= 1024 && heads <= PHYSICAL_HEADS && secs <= PHYSICAL_SECS ? ATA_TRANSLATION_NONE
                                                                            : ATA_TRANSLATION_LBA;
}

/* From the first partition whose end makes sense. */
static bool guess_from_partitions(const uint8_t *mbr, uint64_t sectors, AtaGeometry *ret)
{
    if (!mbr || load_le16(mbr + MBR_SIGNATURE) != 0xaa55) {
        return false;
    }
    for (const uint8_t *entry = mbr + MBR_PARTITIONS; entry < mbr + MBR_SIGNATURE; entry += 16) {
        uint32_t heads = entry[5] + 1u, secs = entry[6] & 63;

        if (load_le32(entry + 12) && heads > 1 && secs) {
            uint64_t cyls = sectors / (heads * secs);

            if (cyls >= 1 && cyls <= MAX_CYLS) {
                *ret = (AtaGeometry){(uint32_t)cyls, heads, secs, ATA_TRANSLATION_NONE};
                return true;
            }
        }
    }
    return false;
}

void ata_geometry_guess(const uint8_t *mbr, uint64_t sectors, AtaGeometry *ret)
{
    bool guessed = guess_from_partitions(mbr, sectors, ret);

    if (guessed && ret->heads <= PHYSICAL_HEADS) {
        return;
    }
    ret->cyls = physical_cyls(sectors);
    ret->heads = PHYSICAL_HEADS;
    ret->secs = PHYSICAL_SECS;
    if (guessed) {
        ret->translation =
            ret->cyls * ret->heads <= LARGE_TRACKS ? ATA_TRANSLATION_LARGE : ATA_TRANSLATION_LBA;
    } else {
        ret->translation = ata_geometry_translation(ret->cyls, ret->heads, ret->secs);
    }
}
