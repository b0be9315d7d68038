/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Random guests: registers, command lists, configuration space, resets, hot-plug and the operator's tray, in
 * any order, with DMA that takes its time. Nothing may crash or hang, and afterwards a reset drive reads its
 * disc. Short by default; SPINDLE_STRESS_SECONDS=600 for a long run. The seed is g_test's (--seed).
 */
#include "tests/qtest/cd-rig.h"

#include <stdlib.h>
#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"

#define SECTORS 300

static uint32_t any32(void)
{
    return (uint32_t)g_test_rand_int();
}

static uint32_t below(uint32_t n)
{
    return any32() % n;
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

/* Mostly memory, sometimes its end, sometimes nowhere. */
static uint64_t any_address(void)
{
    switch (below(8)) {
    case 0:
        return (uint64_t)any32() << 32 | any32();
    case 1:
        return FAKE_RAM_SIZE - below(8192);
    default:
        return RIG_DATA + below(0x700000);
    }
}

static void random_cdb(uint8_t *cdb)
{
    static const uint8_t likely[] = {0x00, 0x03, 0x12, 0x1b, 0x1e, 0x25, 0x28, 0x2b, 0x43, 0x46, 0x4a, 0x51,
                                     0x52, 0x55, 0x5a, 0xa8, 0xad, 0xb9, 0xbd, 0xbe, 0x15, 0x1a, 0x42, 0xa3};

    for (unsigned i = 0; i < MMC_CDB_SIZE; i++) {
        cdb[i] = one_in(2) ? 0 : (uint8_t)any32();
    }
    if (!one_in(8)) {
        cdb[0] = likely[below(sizeof likely)];
    }
    if (!one_in(4)) { /* an address and a count that are on the disc */
        store_be32(cdb + 2, below(SECTORS));
        cdb[6] = 0;
        store_be16(cdb + 7, (uint16_t)below(128));
    }
}

static void random_command(AhciRig *rig, unsigned port)
{
    RigPrd prds[64] = {{0}};
    unsigned slot = below(32), count = below(one_in(4) ? 63 : 4);
    uint8_t cdb[MMC_CDB_SIZE];
    Taskfile tf = {.command = one_in(4) ? (uint8_t)any32() : ATA_CMD_PACKET,
                   .features = (uint16_t)(one_in(8) ? any32() : below(2)),
                   .count = (uint16_t)below(4)};

    for (unsigned i = 0; i < count; i++) {
        prds[i] = (RigPrd){any_address(), 1 + below(one_in(3) ? 262144 : 4096)};
    }
    taskfile_set_byte_count(&tf, (uint16_t)any32());
    random_cdb(cdb);
    rig_slot(rig, port, slot, &tf, one_in(16) ? NULL : cdb, prds);
    if (one_in(16)) { /* spoil a byte of table or header */
        rig->host->ram[one_in(2) ? rig_table(port, slot) + below(0x100) : rig_list(port) + below(1024)] ^=
            (uint8_t)(1 << below(8));
    }
    if (one_in(32)) {
        rig->host->ram[rig_table(port, slot) + 1] = 0; /* control register */
        rig->host->ram[rig_table(port, slot) + 15] = (uint8_t)any32();
    }
    if (one_in(4)) {
        rig_port_write(rig, port, AHCI_PX_SACT, 1u << slot);
    }
    rig_issue(rig, port, one_in(16) ? any32() : 1u << slot);
}

static void random_register(AhciRig *rig)
{
    static const unsigned sizes[] = {1, 2, 4, 4, 4, 4, 8};
    unsigned size = sizes[below(G_N_ELEMENTS(sizes))];
    uint32_t offset = one_in(8) ? below(AHCI_ABAR_SIZE - 8) : 0x100 + below(0x80);

    if (size == 4 && !one_in(16)) {
        offset &= ~3u;
    }
    if (one_in(3)) {
        rig->pci->ops->bar_write(rig->pci, 5, offset, size, (uint64_t)any32() << 32 | any32());
    } else {
        rig->pci->ops->bar_read(rig->pci, 5, offset, size);
    }
}

static void random_control(AhciRig *rig)
{
    switch (below(9)) {
    case 0:
        rig_port_write(rig, 0, AHCI_PX_CMD, one_in(2) ? 0 : AHCI_PX_CMD_FRE);
        break;
    case 1:
        rig_port_write(rig, 0, AHCI_PX_SCTL, below(5));
        break;
    case 2:
        rig_write(rig, AHCI_GHC * 4, AHCI_GHC_HR | (one_in(2) ? AHCI_GHC_IE : 0));
        break;
    case 3:
        pci_config_write(rig->pci, below(0x100), 1 + below(4), any32());
        break;
    case 4:
        rig->pci->ops->reset(rig->pci);
        break;
    case 5:
        g_assert_true(ahci_detach(rig->ahci, 0) == rig->device);
        g_assert_true(ahci_attach(rig->ahci, 0, rig->device));
        break;
    case 6:
        mmc_drive_open_tray(rig->drive, true, NULL);
        break;
    default:
        mmc_drive_close_tray(rig->drive);
        break;
    }
}

/* Puts the port back to work without waiting for anything. */
static void revive(AhciRig *rig)
{
    pci_config_write(rig->pci, 4, 2, 6 | (one_in(4) ? 0x400 : 0));
    pci_config_write(rig->pci, rig->pci->msi_cap + 2, 2, one_in(4) ? 0 : 1);
    rig_write(rig, AHCI_GHC * 4, AHCI_GHC_IE);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0);
    rig_port_write(rig, 0, AHCI_PX_CMD, 0);
    rig_port_write(rig, 0, AHCI_PX_CLB, (uint32_t)rig_list(0));
    rig_port_write(rig, 0, AHCI_PX_CLB + 1, 0);
    rig_port_write(rig, 0, AHCI_PX_FB, (uint32_t)rig_fis(0));
    rig_port_write(rig, 0, AHCI_PX_FB + 1, 0);
    rig_port_write(rig, 0, AHCI_PX_IE, any32());
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_ST);
}

static void some_progress(AhciRig *rig)
{
    for (unsigned i = below(6); i; i--) {
        if (!fake_host_answer(rig->host, below(3))) {
            fake_host_answer(rig->host, 0);
        }
        fake_host_step(rig->host);
        g_main_context_iteration(NULL, false);
    }
    if (one_in(50)) {
        fake_host_send(rig->host);
    }
}

static void one_move(AhciRig *rig)
{
    uint32_t what = below(100);

    if (what < 35) {
        random_command(rig, one_in(8) ? below(6) : 0);
    } else if (what < 60) {
        random_register(rig);
    } else if (what < 64) {
        random_control(rig);
    } else if (what < 72) {
        revive(rig);
    } else {
        some_progress(rig);
    }
}

static void check_recovers(AhciRig *rig)
{
    uint8_t cdb[MMC_CDB_SIZE] = {0};

    mmc_drive_close_tray(rig->drive);
    rig->pci->ops->reset(rig->pci);
    fake_host_drain(rig->host);
    pci_config_write(rig->pci, 4, 2, 6);
    rig_port_up(rig, 0);
    for (unsigned i = 0; i < 6; i++) {
        cd_rig_command(rig, cdb, 0); /* attentions of reset, tray and medium */
    }
    cdb[0] = 0x28;
    store_be32(cdb + 2, 7);
    store_be16(cdb + 7, 8);
    g_assert_cmphex(cd_rig_command(rig, cdb, 16384), ==, 0x50);
    for (unsigned i = 0; i < 16384; i++) {
        g_assert_cmphex(rig->host->ram[RIG_DATA + i], ==, cd_rig_byte(7 * 2048 + i));
    }
}

static void test_stress(gconstpointer delayed)
{
    const char *seconds = g_getenv("SPINDLE_STRESS_SECONDS");
    gint64 end = g_get_monotonic_time() + (seconds ? atoi(seconds) * G_USEC_PER_SEC : G_USEC_PER_SEC * 3 / 2);

    do {
        AhciRig *rig = cd_rig_new(GPOINTER_TO_INT(delayed), SECTORS);

        for (unsigned i = 0; i < 20000 && g_get_monotonic_time() < end; i++) {
            one_move(rig);
        }
        check_recovers(rig);
        ahci_rig_free(rig);
    } while (g_get_monotonic_time() < end);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ahci-stress/mmap", GINT_TO_POINTER(0), test_stress);
    g_test_add_data_func("/ahci-stress/message", GINT_TO_POINTER(1), test_stress);
    return g_test_run();
}
