/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Resets of every kind at every stage of a command, link events, error recovery, hot-plug.
 */
#include "tests/qtest/ahci-rig.h"

#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"

#define LEN 300000

static void reset_stop(AhciRig *rig)
{
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
}

static bool stop_done(AhciRig *rig)
{
    return !(rig_port_read(rig, 0, AHCI_PX_CMD) & AHCI_PX_CMD_CR);
}

static void reset_comreset(AhciRig *rig)
{
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0x301);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS) & 0xf, ==, 0);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0x300);
}

static void reset_comreset_running(AhciRig *rig)
{
    rig_port_write(rig, 0, AHCI_PX_SCTL, 1);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0);
}

static bool link_done(AhciRig *rig)
{
    return (rig_port_read(rig, 0, AHCI_PX_SSTS) & 0xf) == 3;
}

static void reset_hba(AhciRig *rig)
{
    rig_write(rig, AHCI_GHC * 4, AHCI_GHC_AE | AHCI_GHC_HR);
}

static bool hba_done(AhciRig *rig)
{
    return !(rig_read(rig, AHCI_GHC * 4) & AHCI_GHC_HR);
}

static void reset_pci(AhciRig *rig)
{
    rig->pci->ops->reset(rig->pci);
    pci_config_write(rig->pci, 4, 2, 6);
    pci_config_write(rig->pci, rig->pci->msi_cap + 2, 2, 1);
}

static bool at_once(AhciRig *rig)
{
    return true;
}

static void reset_unplug(AhciRig *rig)
{
    g_assert_true(ahci_detach(rig->ahci, 0) == rig->device);
    g_assert_true(ahci_attach(rig->ahci, 0, rig->device));
    fake_host_drain(rig->host);
    g_assert_cmpuint(rig->mmc->live, ==,
                     0); /* what was issued to the one that went is not for the one that came */
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
}

typedef struct Kind {
    const char *name;
    void (*reset)(AhciRig *rig);
    bool (*done)(AhciRig *rig);
    bool all; /* nothing at all may be written after `done`: the fake drops or has landed everything */
} Kind;

static const Kind kinds[] = {
    {"stop", reset_stop, stop_done, true},
    {"comreset", reset_comreset, link_done, true},
    {"comreset-while-running", reset_comreset_running, link_done, true},
    {"hba", reset_hba, hba_done, true},
    {"pci", reset_pci, at_once, false},
    {"unplug", reset_unplug, link_done, false},
};

/* One thing happens: a read is answered, the drive goes on, or a write lands; round robin by `turn`. */
static bool advance(AhciRig *rig, unsigned turn)
{
    for (unsigned i = 0; i < 3; i++) {
        switch ((turn + i) % 3) {
        case 0:
            if (fake_host_answer(rig->host, 0)) {
                return true;
            }
            break;
        case 1:
            if (fake_mmc_step(rig->mmc)) {
                return true;
            }
            break;
        default:
            if (fake_host_step(rig->host)) {
                return true;
            }
            break;
        }
    }
    return false;
}

static void start_command(AhciRig *rig, uint8_t op, bool dma)
{
    RigPrd prds[] = {{RIG_DATA, 4096}, {RIG_DATA + 8192, LEN - 4096}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];

    memset(rig->host->ram + RIG_DATA, 0x55, LEN);
    rig_cdb(cdb, op, 9, LEN);
    rig_packet(rig, 0, 0, cdb, dma, 32768, prds);
}

/* After the reset everything works as if nothing had been. */
static void check_alive(AhciRig *rig)
{
    RigPrd prds[] = {{RIG_DATA + 0x200000, LEN}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];

    rig_settle(rig);
    if (rig_port_read(rig, 0, AHCI_PX_TFD) & ATA_STATUS_BSY) {
        rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_CLO);
    }
    rig_port_up(rig, 0);
    rig_cdb(cdb, FAKE_CDB_IN, 77, LEN);
    rig_packet(rig, 0, 1, cdb, 1, 0, prds);
    rig_settle(rig);
    rig_check_done(rig, 0, 1, AHCI_PX_IS_DHRS, 0x50);
    rig_check_pattern(rig, RIG_DATA + 0x200000, 77, 0, LEN);
    g_assert_cmpuint(rig->mmc->live, ==, 0);
}

static void check_no_late_write(AhciRig *rig, const Kind *kind)
{
    g_autofree uint8_t *before = g_memdup2(rig->host->ram + RIG_DATA, LEN + 8192);

    if (kind->all) {
        rig_settle(rig);
        g_assert_cmpmem(rig->host->ram + RIG_DATA, LEN + 8192, before, LEN + 8192);
    }
}

/* Resets after n steps, for n = 0, 1, 2… until the command ends by itself. */
static void test_reset_in_flight(gconstpointer data)
{
    const Kind *kind = data;
    static const uint8_t ops[] = {FAKE_CDB_IN, FAKE_CDB_OUT};
    bool ended = false;

    for (unsigned variant = 0; variant < 12; variant++) {
        ended = false;
        for (unsigned n = 0; !ended && n < 400; n++) {
            AhciRig *rig = ahci_rig_new(true);

            rig->mmc->delayed = variant & 1;
            rig_port_up(rig, 0);
            start_command(rig, ops[variant / 2 % 2], variant < 8);
            for (unsigned i = 0; i < n; i++) {
                ended = !advance(rig, variant & 1 ? i : 0);
            }
            if (n % 2) {
                fake_host_send(rig->host);
            }
            kind->reset(rig);
            g_assert_cmpuint(rig->mmc->live, ==, 0);
            while (!kind->done(rig)) {
                g_assert_true(fake_host_step(rig->host));
            }
            check_no_late_write(rig, kind);
            check_alive(rig);
            ahci_rig_free(rig);
        }
        g_assert_true(ended);
    }
}

/* CVE-2023-5088's kind: what was reset does not finish into the next command. */
static void test_other_port_undisturbed(void)
{
    AhciRig *rig = ahci_rig_new(true);
    IdeIdentity identity = {0};
    FakeMmc *mmc;
    MmcDrive *drive = fake_mmc_new(&mmc);
    IdeDevice *second = atapi_new(drive, &identity);
    RigPrd prds[] = {{RIG_DATA + 0x200000, LEN}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];

    g_assert_true(ahci_attach(rig->ahci, 1, second));
    rig_settle(rig);
    rig_port_up(rig, 0);
    rig_port_up(rig, 1);
    rig_cdb(cdb, FAKE_CDB_IN, 3, LEN);
    rig_packet(rig, 1, 0, cdb, 1, 0, prds);
    start_command(rig, FAKE_CDB_IN, true);
    while (fake_host_answer(rig->host, 0)) {
    }
    reset_stop(rig); /* queued writes of port 1 are not dropped with port 0's */
    rig_settle(rig);
    rig_check_done(rig, 1, 0, AHCI_PX_IS_DHRS, 0x50);
    rig_check_pattern(rig, RIG_DATA + 0x200000, 3, 0, LEN);
    g_assert_true(ahci_detach(rig->ahci, 1) == second);
    ide_device_free(second);
    fake_mmc_free(drive);
    ahci_rig_free(rig);
}

static void test_comreset_events(void)
{
    AhciRig *rig = ahci_rig_new(false);

    rig_port_up(rig, 0);
    rig->host->msi = 0;
    reset_comreset(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SERR), ==, AHCI_SERR_EXCHANGED | AHCI_SERR_PHYRDY);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, AHCI_PX_IS_PCS | AHCI_PX_IS_PRCS);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0100);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    rig_port_write(rig, 0, AHCI_PX_IS, ~0u); /* these two only go with PxSERR */
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, AHCI_PX_IS_PCS | AHCI_PX_IS_PRCS);
    rig_port_write(rig, 0, AHCI_PX_SERR, AHCI_SERR_EXCHANGED);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, AHCI_PX_IS_PRCS);
    rig_port_write(rig, 0, AHCI_PX_SERR, ~0u);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, 0);
    g_assert_cmpuint(rig->mmc->hard_resets, >=, 1);
    ahci_rig_free(rig);
}

static void test_phy_off(void)
{
    AhciRig *rig = ahci_rig_new(false);

    rig_port_write(rig, 0, AHCI_PX_SCTL, 4);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 4);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SIG), ==, 0xffffffff);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0x123);
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0x11); /* at most 1.5 Gb/s */
    rig_port_write(rig, 0, AHCI_PX_SCTL, 0x10);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0x113);
    rig_port_write(rig, 1, AHCI_PX_SCTL, 1); /* an empty port stays empty */
    rig_port_write(rig, 1, AHCI_PX_SCTL, 0);
    g_assert_cmphex(rig_port_read(rig, 1, AHCI_PX_SSTS), ==, 0);
    g_assert_cmphex(rig_port_read(rig, 1, AHCI_PX_TFD), ==, 0x7f);
    ahci_rig_free(rig);
}

/* SATA's software reset: two register FISes without the C bit. */
static void test_software_reset(gconstpointer delayed)
{
    AhciRig *rig = ahci_rig_new(GPOINTER_TO_INT(delayed));
    Taskfile tf = {0};
    unsigned hard;

    rig_port_up(rig, 0);
    hard = rig->mmc->hard_resets;
    rig_slot(rig, 0, 0, &tf, NULL, NULL);
    rig->host->ram[rig_table(0, 0) + 1] = 0;
    rig->host->ram[rig_table(0, 0) + 15] = ATA_CONTROL_SRST;
    fake_write32(rig->host, rig_list(0), 5 | 1 << 8 | 1 << 10); /* R, C */
    rig_slot(rig, 0, 1, &tf, NULL, NULL);
    rig->host->ram[rig_table(0, 1) + 1] = 0;
    rig_issue(rig, 0, 1);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
    g_assert_cmpuint(rig->mmc->resets, ==, hard);
    memset(rig->host->ram + rig_fis(0), 0, 256);
    rig_issue(rig, 0, 2);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0100);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SIG), ==, 0xeb140101);
    g_assert_cmphex(rig->host->ram[rig_fis(0) + 0x40], ==, FIS_TYPE_D2H);
    g_assert_cmpuint(rig->mmc->resets, ==, hard + 1);
    g_assert_cmpuint(rig->mmc->hard_resets, ==, hard);
    ahci_rig_free(rig);
}

static void test_command_list_override(void)
{
    AhciRig *rig = ahci_rig_new(true);

    rig->mmc->delayed = true;
    rig_port_up(rig, 0);
    start_command(rig, FAKE_CDB_IN, true);
    while (fake_host_answer(rig->host, 0)) {
    }
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_ST | AHCI_PX_CMD_CLO);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & 0x80, ==, 0x80); /* only while ST is off */
    reset_stop(rig);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & 0x80, ==, 0x80);
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_CLO);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & 0x88, ==, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CMD) & AHCI_PX_CMD_CLO, ==, 0);
    check_alive(rig);
    ahci_rig_free(rig);
}

static void test_hot_plug(void)
{
    AhciRig *rig = ahci_rig_new(false);
    IdeIdentity identity = {0};
    FakeMmc *mmc;
    MmcDrive *drive = fake_mmc_new(&mmc);
    IdeDevice *second = atapi_new(drive, &identity);

    rig_port_write(rig, 3, AHCI_PX_IE, ~0u);
    rig_write(rig, AHCI_GHC * 4, AHCI_GHC_IE);
    rig->host->msi = 0;
    g_assert_false(ahci_attach(rig->ahci, 0, second));
    g_assert_false(ahci_attach(rig->ahci, 6, second));
    g_assert_true(ahci_attach(rig->ahci, 3, second));
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_SSTS), ==, 0x123);
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_IS), ==, AHCI_PX_IS_PCS | AHCI_PX_IS_PRCS);
    g_assert_cmphex(rig_read(rig, AHCI_IS * 4), ==, 1u << 3);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    rig_port_up(rig, 3);
    rig->host->msi = 0;
    g_assert_true(ahci_detach(rig->ahci, 3) == second);
    g_assert_null(ahci_detach(rig->ahci, 3));
    g_assert_null(ahci_detach(rig->ahci, 99));
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_SSTS), ==, 0);
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_TFD), ==, 0x7f);
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_IS), ==, AHCI_PX_IS_PRCS);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    rig_issue(rig, 3, 1); /* nobody there: stays issued until ST is off */
    g_assert_cmphex(rig_port_read(rig, 3, AHCI_PX_CI), ==, 1);
    rig_recover(rig, 3);
    ide_device_free(second);
    fake_mmc_free(drive);
    ahci_rig_free(rig);
}

static void test_staggered_spin_up(void)
{
    AhciRig *rig = ahci_rig_new(false);

    ahci_set_staggered_spin_up(rig->ahci, true);
    g_assert_cmphex(rig_read(rig, AHCI_CAP * 4) & AHCI_CAP_SSS, ==, AHCI_CAP_SSS);
    rig->pci->ops->reset(rig->pci);
    pci_config_write(rig->pci, 4, 2, 6);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CMD) & AHCI_PX_CMD_SUD, ==, 0);
    rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_SUD);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0x123);
    rig_port_up(rig, 0);
    ahci_rig_free(rig);
}

static void test_hba_reset_keeps_addresses(void)
{
    AhciRig *rig = ahci_rig_new(true);

    rig_port_up(rig, 0);
    start_command(rig, FAKE_CDB_IN, true);
    while (fake_host_answer(rig->host, 0)) {
    }
    fake_host_send(rig->host);
    reset_hba(rig);
    g_assert_false(hba_done(rig)); /* writes on the wire */
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0);
    rig_settle(rig);
    g_assert_true(hba_done(rig));
    g_assert_cmphex(rig_read(rig, AHCI_GHC * 4), ==, AHCI_GHC_AE);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CLB), ==, rig_list(0));
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_FB), ==, rig_fis(0));
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IE), ==, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SSTS), ==, 0x123);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SERR), ==, 0);
    check_alive(rig);
    ahci_rig_free(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *path = g_strdup_printf("/ahci-reset/in-flight/%s", kinds[i].name);

        g_test_add_data_func(path, &kinds[i], test_reset_in_flight);
    }
    g_test_add_func("/ahci-reset/other-port-undisturbed", test_other_port_undisturbed);
    g_test_add_func("/ahci-reset/comreset-events", test_comreset_events);
    g_test_add_func("/ahci-reset/phy-off", test_phy_off);
    g_test_add_data_func("/ahci-reset/software-reset/mmap", GINT_TO_POINTER(0), test_software_reset);
    g_test_add_data_func("/ahci-reset/software-reset/message", GINT_TO_POINTER(1), test_software_reset);
    g_test_add_func("/ahci-reset/command-list-override", test_command_list_override);
    g_test_add_func("/ahci-reset/hot-plug", test_hot_plug);
    g_test_add_func("/ahci-reset/staggered-spin-up", test_staggered_spin_up);
    g_test_add_func("/ahci-reset/hba-reset-keeps-addresses", test_hba_reset_keeps_addresses);
    return g_test_run();
}
