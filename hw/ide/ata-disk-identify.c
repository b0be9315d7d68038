/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * IDENTIFY DEVICE (ACS 7.16).
 */
#include <string.h>

#include "hw/ide/ata-disk-int.h"
#include "util/bytes.h"

/* Words 82 to 84: what there is. NOP, look-ahead, write cache, power management, SMART; FLUSH CACHE (EXT),
 * 48-bit addresses; WRITE DMA FUA EXT. */
#define SUPPORTED_1   0x4069
#define SUPPORTED_2   0x7400
#define SUPPORTED_3   0x4040
#define ENABLED_SMART 0x0001
#define ENABLED_CACHE 0x0020
#define ENABLED_AHEAD 0x0040
#define SUPPORTED_WWN 0x0100

static void put_word(uint8_t *out, unsigned word, uint16_t value)
{
    store_le16(out + 2 * word, value);
}

static void put_geometry(const AtaDisk *disk, uint8_t *out)
{
    uint64_t per_cylinder = (uint64_t)disk->cur_heads * disk->cur_secs;
    uint64_t cylinders =
        MIN(MIN(ata_disk_sectors(disk), 16514064) / per_cylinder, 65535); /* ACS: at most 8 GB by CHS */
    uint32_t capacity = (uint32_t)(cylinders * per_cylinder);

    put_word(out, 1, (uint16_t)disk->geometry.cyls);
    put_word(out, 3, (uint16_t)disk->geometry.heads);
    put_word(out, 6, (uint16_t)disk->geometry.secs);
    put_word(out, 54, (uint16_t)cylinders);
    put_word(out, 55, (uint16_t)disk->cur_heads);
    put_word(out, 56, (uint16_t)disk->cur_secs);
    store_le32(out + 2 * 57, capacity);
    store_le32(out + 2 * 60, (uint32_t)MIN(ata_disk_sectors(disk), ATA_MAX_LBA28));
    store_le64(out + 2 * 100, ata_disk_sectors(disk));
}

static void put_sector_sizes(const AtaDisk *disk, uint8_t *out)
{
    uint16_t word = 0x4000;
    unsigned shift = 0;

    while (disk->logical << shift < disk->physical) {
        shift++;
    }
    word |= (uint16_t)(shift ? 0x2000 | shift : 0);
    if (disk->logical != 512) {
        word |= 0x1000;
        store_le32(out + 2 * 117, disk->logical / 2); /* words */
    }
    put_word(out, 106, word);
    put_word(out, 209, 0x4000); /* the first sector is aligned */
}

static void put_features(const AtaDisk *disk, uint8_t *out)
{
    uint16_t enabled = SUPPORTED_1 & (uint16_t) ~(ENABLED_SMART | ENABLED_CACHE | ENABLED_AHEAD);
    uint16_t wwn = disk->wwn ? SUPPORTED_WWN : 0;

    enabled |= disk->smart ? ENABLED_SMART : 0;
    enabled |= hard_disk_write_back(disk->disk) ? ENABLED_CACHE : 0;
    enabled |= disk->read_ahead ? ENABLED_AHEAD : 0;
    put_word(out, 82, SUPPORTED_1);
    put_word(out, 83, SUPPORTED_2);
    put_word(out, 84, SUPPORTED_3 | wwn);
    put_word(out, 85, enabled);
    put_word(out, 86, SUPPORTED_2 & 0x3fff);
    put_word(out, 87, SUPPORTED_3 | wwn);
    for (unsigned i = 0; wwn && i < 4; i++) {
        put_word(out, 108 + i, (uint16_t)(disk->wwn >> (48 - 16 * i)));
    }
}

void ata_disk_identify(const AtaDisk *disk, uint8_t out[ATA_IDENTIFY_SIZE])
{
    memset(out, 0, ATA_IDENTIFY_SIZE);
    put_word(out, 0, 0x0040); /* fixed device */
    put_word(out, 4, (uint16_t)(disk->logical * disk->geometry.secs));
    put_word(out, 5, (uint16_t)disk->logical); /* bytes a sector, of ATA-1 */
    ata_identify_put_string(out, 10, 10, disk->serial);
    put_word(out, 20, 3);
    put_word(out, 21, 512); /* buffer, in sectors */
    put_word(out, 22, 4);
    ata_identify_put_string(out, 23, 4, disk->firmware);
    ata_identify_put_string(out, 27, 20, disk->model);
    put_word(out, 47, 0x8000 | ata_disk_multiple_max(disk));
    put_word(out, 48, 1);      /* 32-bit data port, of old */
    put_word(out, 49, 0x0f00); /* IORDY, LBA, DMA */
    put_word(out, 50, 0x4000);
    put_word(out, 51, 0x0200);
    put_word(out, 52, 0x0200);
    put_word(out, 59, disk->multiple ? 0x0100 | disk->multiple : 0);
    ata_identify_put_link(out, &disk->mode, disk->ide.serial_link, disk->ide.slave);
    put_word(out, 53, 0x0007);
    put_geometry(disk, out);
    if (disk->ide.serial_link) {
        put_word(out, 75, ATA_QUEUE_DEPTH - 1);
        put_word(out, 76, load_le16(out + 2 * 76) | 0x0100); /* native command queueing */
    }
    put_word(out, 80, 0x01f0); /* ATA/ATAPI-4 to ATA8 */
    put_features(disk, out);
    put_word(out, 105, ATA_DSM_BLOCKS);
    put_sector_sizes(disk, out);
    put_word(out, 169, 1); /* TRIM */
    put_word(out, 217, disk->rotation_rate);
    ata_identify_seal(out);
}
