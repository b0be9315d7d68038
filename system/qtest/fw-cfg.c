/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/fw-cfg.h"
#include <glib.h>
#include <string.h>
#include "util/bytes.h"

enum {
    FW_SIGNATURE = 0,
    FW_ID = 1,
    FW_UUID = 2,
    FW_RAM_SIZE = 3,
    FW_CPUS = 5,
    FW_BOOT_MENU = 14,
    FW_MAX_CPUS = 15,
    FW_FILES = 25, /* their directory */
    FW_FIRST_FILE = 32,
};

#define FILES_MAX  2
#define ENTRY_SIZE 64 /* size and item, big-endian; two bytes; name */
#define NAME_AT    8
#define ITEM_MAX   (4 + FILES_MAX * ENTRY_SIZE)

typedef struct File {
    const char *name;
    uint8_t data[4];
    uint32_t size;
} File;

/* By name, as in the directory; how many. */
static unsigned list_files(const FwCfgValues *values, File files[FILES_MAX])
{
    unsigned n = 0;

    files[n] = (File){.name = "etc/boot-fail-wait", .size = 4};
    store_le32(files[n++].data, values->reboot_timeout);
    if (values->splash_time >= 0) {
        files[n] = (File){.name = "etc/boot-menu-wait", .size = 2};
        store_le16(files[n++].data, (uint16_t)values->splash_time);
    }
    return n;
}

static void make_directory(const FwCfgValues *values, uint8_t out[ITEM_MAX])
{
    File files[FILES_MAX];
    unsigned n = list_files(values, files);

    store_be32(out, n);
    for (unsigned i = 0; i < n; i++) {
        uint8_t *entry = out + 4 + ENTRY_SIZE * i;
        store_be32(entry, files[i].size);
        store_be16(entry + 4, (uint16_t)(FW_FIRST_FILE + i));
        g_strlcpy((char *)entry + NAME_AT, files[i].name, ENTRY_SIZE - NAME_AT);
    }
}

static void make_file(const FwCfgValues *values, unsigned number, uint8_t out[ITEM_MAX])
{
    File files[FILES_MAX];

    if (number < list_files(values, files)) {
        memcpy(out, files[number].data, files[number].size);
    }
}

uint8_t fw_cfg_byte(const FwCfgValues *values, uint16_t item, uint32_t offset)
{
    uint8_t bytes[ITEM_MAX] = {0};

    switch (item) {
    case FW_SIGNATURE:
        memcpy(bytes, "QEMU", 4);
        break;
    case FW_ID: /* without DMA */
    case FW_CPUS:
    case FW_MAX_CPUS:
        bytes[0] = 1;
        break;
    case FW_UUID:
        memcpy(bytes, values->uuid, sizeof values->uuid);
        break;
    case FW_RAM_SIZE:
        store_le64(bytes, values->ram_size);
        break;
    case FW_BOOT_MENU:
        bytes[0] = values->boot_menu;
        break;
    case FW_FILES:
        make_directory(values, bytes);
        break;
    default:
        if (item >= FW_FIRST_FILE) {
            make_file(values, item - FW_FIRST_FILE, bytes);
        }
        break;
    }
    return offset < sizeof bytes ? bytes[offset] : 0;
}
