/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parallel channel with packet devices: resets while commands are under way, and random guests.
 */
#include <string.h>

#include "tests/qtest/ide-cd.h"
#include "util/bytes.h"

#define OK IDE_CD_OK

static void break_by_srst(IdeRig *rig)
{
    ide_control(rig, ATA_CONTROL_SRST);
    g_assert_true(ide_alt(rig) == ATA_STATUS_BSY || bm_in(rig, 2) & 4); /* a DMA command's end is told */
    ide_control(rig, 0);
}

static void break_by_device_reset(IdeRig *rig)
{
    ide_out(rig, TASKFILE_COMMAND, ATA_CMD_DEVICE_RESET);
}

/* CVE-2023-5088: a reset at every stage; what was in flight neither comes back nor goes elsewhere. */
static void test_reset_in_flight(gconstpointer data)
{
    void (*const *break_off)(IdeRig *) = data;
    IdePrd prds[] = {{IDE_RIG_DATA, 65536}, {IDE_RIG_DATA + 65536, 65536}, {0}};
    bool over = false;

    for (unsigned variant = 0; variant < 8; variant++) {
        over = false;
        for (unsigned n = 0; !over && n < 100; n++) {
            bool dma = variant & 1, out = variant & 2;
            IdeCd cd;

            ide_cd_new(&cd, true);
            cd.mmc[0]->delayed = variant & 4;
            bm_table(cd.rig, prds);
            bm_out(cd.rig, 0, out ? 1 : 9);
            ide_cd_send_packet(cd.rig, out ? FAKE_CDB_OUT : FAKE_CDB_IN, 1, 131072, dma, 2048);
            for (unsigned i = 0; i < n; i++) {
                over = !fake_host_answer(cd.rig->host, 0) && !fake_mmc_step(cd.mmc[0]) &&
                       !fake_host_step(cd.rig->host);
            }
            if (n % 2) {
                fake_host_send(cd.rig->host);
            }
            (*break_off)(cd.rig);
            g_assert_cmpuint(cd.mmc[0]->live, ==, 0);
            while (ide_alt(cd.rig) & ATA_STATUS_BSY) {
                g_assert_true(fake_host_step(cd.rig->host));
            }
            memset(cd.rig->host->ram + IDE_RIG_DATA, 0x77, 131072);
            ide_settle(cd.rig); /* nothing comes late */
            for (unsigned i = 0; i < 131072; i += 511) {
                g_assert_cmphex(cd.rig->host->ram[IDE_RIG_DATA + i], ==, 0x77);
            }
            g_assert_cmphex(ide_alt(cd.rig), ==, 0);
            g_assert_cmphex(ide_in(cd.rig, TASKFILE_LBA_MID), ==, 0x14);
            g_assert_cmphex(ide_in(cd.rig, TASKFILE_FEATURES), ==, 1);
            ide_settle(cd.rig);
            ide_in(cd.rig, TASKFILE_COMMAND);
            bm_table(cd.rig, prds);
            bm_out(cd.rig, 0, 9);
            ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 55, 131072, 1, 0);
            ide_settle(cd.rig);
            g_assert_cmphex(bm_in(cd.rig, 2), ==, 4);
            for (unsigned i = 0; i < 131072; i += 511) {
                g_assert_cmphex(cd.rig->host->ram[IDE_RIG_DATA + i], ==, fake_mmc_pattern(55, i));
            }
            ide_cd_free(&cd);
        }
        g_assert_true(over);
    }
}

static void (*const by_srst)(IdeRig *) = break_by_srst;
static void (*const by_device_reset)(IdeRig *) = break_by_device_reset;

/* Random ports, random memory. */
static void test_stress(gconstpointer delayed)
{
    IdeCd cd;

    ide_cd_new(&cd, GPOINTER_TO_INT(delayed));
    ide_cd_add_device(&cd, 1);
    for (unsigned i = 0; i < 150000; i++) {
        uint32_t r = (uint32_t)g_test_rand_int(), value = (uint32_t)g_test_rand_int();
        uint16_t port = (uint16_t)(0x1f0 + (r >> 8) % 8);

        switch (r % 16) {
        case 0:
            cd.rig->pci->ops->bar_write(cd.rig->pci, 4, (r >> 8) % 8, 1, value);
            break;
        case 1:
            cd.rig->pci->ops->bar_write(cd.rig->pci, 4, 4, 4, value % (FAKE_RAM_SIZE + 65536));
            break;
        case 2:
            ide_control(cd.rig, r & 0x10000 ? (uint8_t)value : 0);
            break;
        case 3:
            memset(cd.rig->host->ram + value % (FAKE_RAM_SIZE - 64), (int)(r >> 24), 64);
            break;
        case 4:
            ide_out(cd.rig, TASKFILE_COMMAND, r & 0x10000 ? (uint8_t)value : ATA_CMD_PACKET);
            break;
        case 5:
        case 6: { /* mostly sensible packets */
            uint8_t cdb[12] = {(uint8_t)(value % 5), 5};

            store_be32(cdb + 6, value >> 12);
            for (unsigned k = 0; k < 12; k += 2) {
                ide_out_data(cd.rig, load_le16(cdb + k));
            }
            break;
        }
        case 7:
        case 8:
        case 9:
            pci_ide_port_read(cd.rig->ide, 0x1f0, 2);
            break;
        case 10:
            pci_ide_port_write(cd.rig->ide, port, 1u << (r >> 20) % 3, value);
            break;
        case 11:
            pci_ide_port_read(cd.rig->ide, port, 1u << (r >> 20) % 3);
            break;
        case 12:
            cd.mmc[0]->delayed = !cd.mmc[0]->waiting && r & 0x10000;
            cd.mmc[1]->delayed = !cd.mmc[1]->waiting && r & 0x20000;
            pci_config_write(cd.rig->pci, 4, 2, r & 0x7000000 ? 5 : value);
            break;
        default:
            fake_host_answer(cd.rig->host, 0);
            fake_host_step(cd.rig->host);
            ide_cd_step(cd.rig);
            break;
        }
    }
    ide_cd_free(&cd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/ide/CVE-2023-5088-reset-in-flight/srst", &by_srst, test_reset_in_flight);
    g_test_add_data_func("/ide/CVE-2023-5088-reset-in-flight/device-reset", &by_device_reset,
                         test_reset_in_flight);
    g_test_add_data_func("/ide/stress/mmap", GINT_TO_POINTER(0), test_stress);
    g_test_add_data_func("/ide/stress/message", GINT_TO_POINTER(1), test_stress);
    return g_test_run();
}
