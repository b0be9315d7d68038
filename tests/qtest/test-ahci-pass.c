/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands to a drive of the host, all the way from the port's registers: data of several parts in both
 * directions, by DMA and PIO; lists that are too short; a reset while the drive hangs. Needs root.
 */
#include "hw/ide/ata-regs.h"
#include "tests/qtest/ahci-rig.h"
#include "tests/unit/pass-rig.h"
#include <string.h>

#define BLOCKS 20
#define BYTES  (BLOCKS * 2048)

static bool step(AhciRig *rig)
{
    const bool busy = rig->ahci->port[0].state == AHCI_PORT_BUSY;
    return g_main_context_iteration(NULL, busy && fake_host_idle(rig->host));
}

/* On the disc of `pass`. NULL: skipped. */
static AhciRig *port_new(Rig *pass, bool delayed)
{
    const MmcDriveConfig config = {.id = "cd1", .no_power_on = true, .passthrough = MMC_PASSTHROUGH_BURN};
    const IdeIdentity identity = {0};
    if (!rig_new(pass, MMC_PASSTHROUGH_BURN, "")) {
        return NULL;
    }
    MmcDrive *mmc = mmc_drive_new(&config);
    g_assert_true(mmc_drive_insert(mmc, pass->guest.node, false, NULL));
    AhciRig *rig = ahci_rig_new_device(delayed, atapi_new(mmc, &identity));
    rig->drive = mmc;
    rig->free_drive = mmc_drive_free;
    rig->step = step;
    rig_port_up(rig, 0);
    for (unsigned i = 0; i < BYTES; i++) {
        rig->host->ram[RIG_DATA + i] = (uint8_t)(i * 7 + i / 2048);
    }
    return rig;
}

static void port_free(AhciRig *rig, Rig *pass)
{
    ahci_rig_free(rig);
    rig_free(pass);
}

static uint32_t send(AhciRig *rig, const uint8_t *cdb, bool dma, const RigPrd *prds)
{
    drive_reset();
    rig_packet(rig, 0, 0, cdb, dma, dma ? 0 : 6000, prds);
    rig_settle(rig);
    const uint32_t tfd = rig_port_read(rig, 0, AHCI_PX_TFD);
    if (tfd & ATA_STATUS_ERR) {
        rig_recover(rig, 0);
    } else {
        rig_check_done(rig, 0, 0, rig_port_read(rig, 0, AHCI_PX_IS), tfd);
    }
    return tfd & 0xffff;
}

static const uint8_t write20[12] = {0x2a, 0, 0, 0, 1, 0, 0, 0, BLOCKS},
                     read20[12] = {0x28, 0, 0, 0, 1, 0, 0, 0, BLOCKS};

static void test_data(void)
{
    static const RigPrd pieces[] = {
        {RIG_DATA, 1000}, {RIG_DATA + 1000, 30000}, {RIG_DATA + 31000, BYTES - 31000}, {0}};
    for (unsigned kind = 0; kind < 4; kind++) {
        Rig pass;
        AhciRig *rig = port_new(&pass, kind & 2);
        if (!rig) {
            return;
        }
        g_assert_cmphex(send(rig, write20, kind & 1, pieces), ==, 0x50);
        g_assert_cmpuint(drive_count(), ==, 3);
        g_assert_cmpmem(drive.written->data, drive.written->len, rig->host->ram + RIG_DATA, BYTES);
        g_assert_cmphex(send(rig, read20, kind & 1, pieces), ==, 0x50);
        for (unsigned i = 0; i < BYTES; i++) {
            const Part *part = &drive.part[i / PASS_LIMIT];
            g_assert_cmphex(rig->host->ram[RIG_DATA + i], ==, drive_byte(part->cdb, i % PASS_LIMIT));
        }
        port_free(rig, &pass);
    }
}

/* The guest gives less than the blocks have: they are not written with whatever is there. */
static void test_short_list(void)
{
    static const RigPrd list[] = {{RIG_DATA, 20000}, {0}};
    Rig pass;
    AhciRig *rig = port_new(&pass, false);
    if (!rig) {
        return;
    }
    g_assert_cmphex(send(rig, write20, true, list) & ATA_STATUS_ERR, ==, ATA_STATUS_ERR);
    g_assert_cmpuint(drive_count(), ==, 1);
    g_assert_cmpuint(drive.written->len, ==, PASS_LIMIT);
    port_free(rig, &pass);
}

/* The registers answer, the port is reset and works again, while the drive has a command that does not end.
 */
static void test_hang(void)
{
    static const uint8_t blank[12] = {0xa1}, inquiry[12] = {0x12, 0, 0, 0, 36};
    static const RigPrd list[] = {{RIG_DATA, 36}, {0}};
    Rig pass;
    AhciRig *rig = port_new(&pass, false);
    if (!rig) {
        return;
    }
    drive_reset();
    drive_hangs(true);
    rig_packet(rig, 0, 0, blank, 0, 0, NULL);
    while (drive_count() == 0) {
        g_main_context_iteration(NULL, FALSE);
    }
    const gint64 begun = g_get_monotonic_time();
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 1);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & ATA_STATUS_BSY, ==, ATA_STATUS_BSY);
    rig_recover(rig, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
    rig_packet(rig, 0, 0, inquiry, 0, 36, list);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & 0xff, ==, 0x50);
    g_assert_cmpmem(rig->host->ram + RIG_DATA + 8, 7, "SPINDLE", 7);
    g_assert_cmpint(g_get_monotonic_time() - begun, <, 100000);
    drive_hangs(false);
    port_free(rig, &pass);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ahci-pass/data", test_data);
    g_test_add_func("/ahci-pass/short-list", test_short_list);
    g_test_add_func("/ahci-pass/hang", test_hang);
    return g_test_run();
}
