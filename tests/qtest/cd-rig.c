/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/cd-rig.h"

#include <string.h>

#include "block/block.h"
#include "hw/ide/ata-regs.h"

#define PIECE 65536

uint8_t cd_rig_byte(uint64_t at)
{
    return (uint8_t)(at * 5 + at / 2048 * 3 + at / 524287);
}

static BlockNode *make_disc(uint32_t sectors)
{
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, (uint64_t)sectors * 2048);
    g_autofree uint8_t *data = g_malloc(PIECE);
    g_autoptr(Options) options = options_new();
    g_autoptr(GError) error = NULL;
    BlockNode *node;

    options_set(options, "driver", "mem");
    options_set(options, "size", size);
    node = block_open(options, &error);
    g_assert_no_error(error);
    for (uint64_t at = 0; at < (uint64_t)sectors * 2048; at += PIECE) {
        uint64_t n = MIN(PIECE, (uint64_t)sectors * 2048 - at);

        for (uint64_t i = 0; i < n; i++) {
            data[i] = cd_rig_byte(at + i);
        }
        g_assert_cmpint(block_pwrite(node, at, data, n, 0), ==, 0);
    }
    return node;
}

static bool step(AhciRig *rig)
{
    bool busy = rig->ahci->port[0].state == AHCI_PORT_BUSY;

    /* A read is with a worker: its completion will come. */
    return g_main_context_iteration(NULL, busy && fake_host_idle(rig->host));
}

AhciRig *cd_rig_new(bool delayed, uint32_t sectors)
{
    MmcDriveConfig config = {.id = "cd0", .serial = "CD0001"};
    IdeIdentity identity = {0};
    MmcDrive *drive = mmc_drive_new(&config);
    uint8_t cdb[MMC_CDB_SIZE] = {0};
    AhciRig *rig;

    if (sectors) {
        BlockNode *node = make_disc(sectors);
        g_autoptr(GError) error = NULL;

        mmc_drive_insert(drive, node, false, &error);
        g_assert_no_error(error);
        block_unref(node);
    }
    rig = ahci_rig_new_device(delayed, atapi_new(drive, &identity));
    rig->drive = drive;
    rig->free_drive = mmc_drive_free;
    rig->step = step;
    rig_port_up(rig, 0);
    for (unsigned i = 0; i < 3; i++) {
        cd_rig_command(rig, cdb, 0); /* TEST UNIT READY */
    }
    return rig;
}

uint32_t cd_rig_command(AhciRig *rig, const uint8_t *cdb, uint32_t len)
{
    RigPrd prds[] = {{RIG_DATA, len}, {0}};
    uint32_t tfd;

    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    rig_settle(rig);
    tfd = rig_port_read(rig, 0, AHCI_PX_TFD);
    g_assert_cmphex(tfd & (ATA_STATUS_BSY | ATA_STATUS_DRQ), ==, 0);
    if (tfd & ATA_STATUS_ERR) {
        rig_recover(rig, 0);
    } else {
        rig_check_done(rig, 0, 0, rig_port_read(rig, 0, AHCI_PX_IS), tfd);
    }
    return tfd;
}

uint32_t cd_rig_sense(AhciRig *rig)
{
    uint8_t cdb[MMC_CDB_SIZE] = {0x03, 0, 0, 0, 18};
    const uint8_t *sense = rig->host->ram + RIG_DATA;

    g_assert_cmphex(cd_rig_command(rig, cdb, 18), ==, 0x50);
    return (uint32_t)(sense[2] & 0xf) << 16 | (uint32_t)sense[12] << 8 | sense[13];
}
