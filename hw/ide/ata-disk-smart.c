/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * SMART (ACS 7.48) and READ LOG EXT (ACS 7.30). The disk is an image: it is always in good health, and says
 * so with the few attributes that tools expect.
 */
#include <string.h>

#include "hw/ide/ata-disk-int.h"
#include "util/bytes.h"

/* Features register of SMART; LBA mid and high must be the key. */
enum {
    SMART_READ_DATA = 0xd0,
    SMART_READ_THRESHOLDS = 0xd1,
    SMART_AUTOSAVE = 0xd2,
    SMART_OFFLINE = 0xd4,
    SMART_READ_LOG = 0xd5,
    SMART_ENABLE = 0xd8,
    SMART_DISABLE = 0xd9,
    SMART_STATUS = 0xda
};
#define SMART_KEY        0xc24f
#define SMART_ATTRIBUTES 30
#define SMART_ATTRIBUTE  12 /* bytes */

#define LOG_DIRECTORY     0x00
#define LOG_ERROR_SUMMARY 0x01
#define LOG_SELF_TEST     0x06
#define LOG_NCQ_ERROR     0x10

typedef struct SmartAttribute {
    uint8_t id;
    uint16_t flags; /* bit 0: pre-failure, bit 1: online */
    uint8_t value, worst;
    uint32_t raw;
    uint8_t threshold;
} SmartAttribute;

static const SmartAttribute attributes[] = {
    {1, 0x0003, 100, 100, 0, 6},   /* raw read error rate */
    {5, 0x0003, 100, 100, 0, 36},  /* reallocated sectors */
    {9, 0x0003, 100, 100, 1, 0},   /* power-on hours */
    {12, 0x0003, 100, 100, 1, 0},  /* power cycles */
    {190, 0x0003, 69, 69, 31, 50}, /* air flow temperature: 100 - degrees */
};

static void seal(uint8_t *data)
{
    uint8_t sum = 0;

    for (unsigned i = 0; i < 511; i++) {
        sum += data[i];
    }
    data[511] = -sum;
}

static void fill_data(const AtaDisk *disk, uint8_t *data)
{
    store_le16(data, 16); /* revision */
    for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
        uint8_t *a = data + 2 + i * SMART_ATTRIBUTE;

        a[0] = attributes[i].id;
        store_le16(a + 1, attributes[i].flags);
        a[3] = attributes[i].value;
        a[4] = attributes[i].worst;
        store_le32(a + 5, attributes[i].raw);
    }
    data[362] = 2 | (disk->smart_autosave ? 0x80 : 0); /* off-line collection was completed */
    data[367] = 0x01;                                  /* execute off-line immediate */
    store_le16(data + 368, 0x0003);                    /* saves attributes */
    data[370] = 0x01;                                  /* error log */
    data[372] = 2;                                     /* minutes of a short self-test */
    seal(data);
}

static void fill_thresholds(uint8_t *data)
{
    store_le16(data, 16);
    for (unsigned i = 0; i < G_N_ELEMENTS(attributes); i++) {
        data[2 + i * SMART_ATTRIBUTE] = attributes[i].id;
        data[3 + i * SMART_ATTRIBUTE] = attributes[i].threshold;
    }
    seal(data);
}

/* One sector of a log that SMART READ LOG knows. */
static bool fill_smart_log(uint8_t log, uint8_t *data)
{
    switch (log) {
    case LOG_DIRECTORY:
        store_le16(data, 1);
        data[2 * LOG_ERROR_SUMMARY] = 1;
        data[2 * LOG_SELF_TEST] = 1;
        return true;
    case LOG_ERROR_SUMMARY:
    case LOG_SELF_TEST:
        data[0] = 1; /* version; no entries */
        seal(data);
        return true;
    default:
        return false;
    }
}

static void smart_reply(AtaDisk *disk, Buffer *buffer, bool ok)
{
    if (ok) {
        ata_disk_reply(disk, buffer, 512);
    } else {
        buffer_unref(buffer);
        ata_disk_abort(disk);
    }
}

static void smart_read(AtaDisk *disk, uint8_t what)
{
    Buffer *buffer = buffer_new(512, BUFFER_ALIGN);
    bool ok = true;

    if (what == SMART_READ_DATA) {
        fill_data(disk, buffer->data);
    } else if (what == SMART_READ_THRESHOLDS) {
        fill_thresholds(buffer->data);
    } else {
        ok = (disk->ide.tf.count & 0xff) == 1 && fill_smart_log(disk->ide.tf.lba[0], buffer->data);
    }
    smart_reply(disk, buffer, ok);
}

void ata_disk_smart(AtaDisk *disk)
{
    Taskfile *tf = &disk->ide.tf;
    uint8_t what = tf->features & 0xff;

    if (taskfile_byte_count(tf) != SMART_KEY || (!disk->smart && what != SMART_ENABLE)) {
        ata_disk_abort(disk);
        return;
    }
    switch (what) {
    case SMART_READ_DATA:
    case SMART_READ_THRESHOLDS:
    case SMART_READ_LOG:
        smart_read(disk, what);
        return;
    case SMART_AUTOSAVE:
        disk->smart_autosave = tf->count & 0xff;
        break;
    case SMART_OFFLINE:
        if (tf->lba[0] > 2) { /* off-line routine, short and extended self-test: done at once; no others */
            ata_disk_abort(disk);
            return;
        }
        break;
    case SMART_ENABLE:
    case SMART_DISABLE:
        disk->smart = what == SMART_ENABLE;
        break;
    case SMART_STATUS: /* the key comes back unchanged: no threshold is exceeded */
        break;
    default:
        ata_disk_abort(disk);
        return;
    }
    ata_disk_end(disk, 0, true);
}

/* Log 10h tells which queued command failed; reading it clears it. */
static void fill_ncq_error(AtaDisk *disk, uint8_t *data)
{
    const Taskfile *tf = &disk->log_tf;

    data[0] = disk->log_tag;
    data[2] = tf->status;
    data[3] = tf->error;
    memcpy(data + 4, tf->lba, 3);
    data[7] = tf->device;
    memcpy(data + 8, tf->lba + 3, 3);
    seal(data);
    disk->log_tag = LOG_NO_TAG;
}

void ata_disk_read_log(AtaDisk *disk)
{
    const Taskfile *tf = &disk->ide.tf;
    uint16_t page = (uint16_t)(tf->lba[1] | tf->lba[4] << 8);
    Buffer *buffer;
    bool ok = true;

    if (tf->count != 1 || page) {
        ata_disk_abort(disk);
        return;
    }
    buffer = buffer_new(512, BUFFER_ALIGN);
    switch (tf->lba[0]) {
    case LOG_DIRECTORY:
        store_le16(buffer->data, 1);
        store_le16(buffer->data + 2 * LOG_NCQ_ERROR, disk->ide.serial_link ? 1 : 0);
        break;
    case LOG_NCQ_ERROR:
        fill_ncq_error(disk, buffer->data);
        break;
    default:
        ok = false;
        break;
    }
    smart_reply(disk, buffer, ok);
}
