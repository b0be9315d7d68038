/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parallel channel and its bus master with packet devices: register file, selection, PIO, PRD
 * tables.
 */
#include <string.h>

#include "hw/ide/atapi.h"
#include "tests/qtest/ide-cd.h"
#include "util/bytes.h"

#define OK IDE_CD_OK

static void test_config_space(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    g_assert_cmphex(load_le32(cd.rig->pci->config), ==, 0x70108086);
    g_assert_cmphex(load_le32(cd.rig->pci->config + 8) >> 8, ==, 0x010180);
    g_assert_cmpuint(cd.rig->pci->bars[4].size, ==, 16);
    g_assert_true(cd.rig->pci->bars[4].io);
    g_assert_true(pci_ide_owns_port(cd.rig->ide, 0x1f7));
    g_assert_true(pci_ide_owns_port(cd.rig->ide, 0x376));
    g_assert_false(pci_ide_owns_port(cd.rig->ide, 0x1f8));
    g_assert_false(pci_ide_owns_port(cd.rig->ide, 0x3f5));
    g_assert_cmphex(pci_ide_port_read(cd.rig->ide, 0x3f5, 2), ==, 0xffff);
    ide_cd_free(&cd);
}

static void test_identify(void)
{
    IdeCd cd;
    uint8_t id[512];

    ide_cd_new(&cd, false);
    ide_out(cd.rig, TASKFILE_DEVICE, 0);
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_IDENTIFY_PACKET);
    g_assert_true(cd.rig->irq[0]);
    for (unsigned i = 0; i < 512; i += 2) {
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK | ATA_STATUS_DRQ);
        g_assert_false(cd.rig->irq[0]);
        store_le16(id + i, ide_in_data(cd.rig));
    }
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
    g_assert_cmpuint(cd.rig->irqs, ==, 1);
    g_assert_cmphex(load_le16(id), ==, 0x85c0);
    g_assert_cmpmem(id + 20, 6, "AMTSRE", 6);
    g_assert_cmphex(load_le16(id + 2 * 76), ==, 0);
    g_assert_cmphex(ide_in_data(cd.rig), ==, 0); /* nothing is armed */
    ide_out_data(cd.rig, 0x1234);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
    ide_cd_free(&cd);
}

/* DRQ blocks of the byte count limit, an interrupt each, one at the end; odd limits lose a byte. */
static void test_packet_pio(void)
{
    static const uint16_t limits[] = {2, 512, 2048, 5120, 5121, 0xfffe, 0xffff};
    static const uint32_t lengths[] = {2, 2048, 10240, 10242, 70000};
    IdeCd cd;

    ide_cd_new(&cd, false);
    for (unsigned n = 0; n < G_N_ELEMENTS(limits) * G_N_ELEMENTS(lengths); n++) {
        uint16_t limit = limits[n % G_N_ELEMENTS(limits)];
        uint32_t len = lengths[n / G_N_ELEMENTS(limits)], at = 0;

        cd.mmc[0]->delayed = n % 2;
        ide_cd_send_packet(cd.rig, FAKE_CDB_IN, n, len, 0, limit);
        while (at < len) {
            uint32_t block;

            ide_settle(cd.rig);
            g_assert_true(cd.rig->irq[0]);
            g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK | ATA_STATUS_DRQ);
            g_assert_cmphex(ide_in(cd.rig, TASKFILE_COUNT), ==, ATAPI_REASON_IO);
            block = ide_in(cd.rig, TASKFILE_LBA_MID) | (uint32_t)ide_in(cd.rig, TASKFILE_LBA_HIGH) << 8;
            g_assert_cmpuint(block, <=, limit & ~1u);
            g_assert_cmpuint(block, >, 0);
            for (uint32_t i = 0; i < block; i += 2, at += 2) {
                uint16_t word = ide_in_data(cd.rig);

                g_assert_cmphex(word & 0xff, ==, fake_mmc_pattern(n, at));
                g_assert_cmphex(word >> 8, ==, fake_mmc_pattern(n, at + 1));
            }
        }
        ide_settle(cd.rig);
        g_assert_true(cd.rig->irq[0]);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COUNT), ==, ATAPI_REASON_IO | ATAPI_REASON_CD);
        g_assert_false(cd.rig->irq[0]);
    }
    ide_cd_free(&cd);
}

static void test_packet_pio_32bit_and_odd(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 7, 7, 0, 0xfffe);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_LBA_MID), ==, 7);
    for (unsigned i = 0; i < 8; i += 4) {
        uint32_t dword = pci_ide_port_read(cd.rig->ide, 0x1f0, 4);

        for (unsigned k = 0; k < 4; k++) {
            g_assert_cmphex(dword >> (8 * k) & 0xff, ==, i + k < 7 ? fake_mmc_pattern(7, i + k) : 0);
        }
    }
    g_assert_cmphex(ide_wait(cd.rig), ==, OK);
    ide_cd_free(&cd);
}

static void test_packet_pio_out(void)
{
    IdeCd cd;
    uint32_t len = 5000, at = 0;

    ide_cd_new(&cd, false);
    ide_cd_send_packet(cd.rig, FAKE_CDB_OUT, 3, len, 0, 2048);
    while (at < len) {
        uint32_t block = MIN(len - at, 2048);

        g_assert_true(cd.rig->irq[0]);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK | ATA_STATUS_DRQ);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COUNT), ==, 0);
        g_assert_cmpuint(ide_in(cd.rig, TASKFILE_LBA_MID) | ide_in(cd.rig, TASKFILE_LBA_HIGH) << 8, ==,
                         block);
        for (uint32_t i = 0; i < block; i += 2, at += 2) {
            ide_out_data(cd.rig, (uint16_t)(fake_mmc_pattern(3, at) | fake_mmc_pattern(3, at + 1) << 8));
        }
    }
    g_assert_true(cd.rig->irq[0]);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
    ide_cd_free(&cd);
}

static void test_check_condition(void)
{
    IdeCd cd;
    uint8_t cdb[12] = {FAKE_CDB_SENSE, 5};

    ide_cd_new(&cd, false);
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_PACKET);
    for (unsigned i = 0; i < 12; i += 2) {
        ide_out_data(cd.rig, load_le16(cdb + i));
    }
    g_assert_true(cd.rig->irq[0]);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK | ATA_STATUS_ERR);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_FEATURES), ==, 0x50);
    ide_cd_free(&cd);
}

typedef struct PrdCase {
    const char *name;
    IdePrd prds[5];
    uint32_t len;
    uint8_t status; /* of the bus master */
} PrdCase;

/* BMIDE 3.1: exact, larger and smaller tables. */
static const PrdCase prd_cases[] = {
    {"exact", {{IDE_RIG_DATA, 4096}}, 4096, 4},
    {"exact-pieces", {{IDE_RIG_DATA, 2048}, {IDE_RIG_DATA + 65536, 2}, {IDE_RIG_DATA + 2048, 2046}}, 4096, 4},
    {"64K", {{IDE_RIG_DATA, 65536}}, 65536, 4},
    {"longer", {{IDE_RIG_DATA, 8192}}, 4096, 5},
    {"longer-by-an-entry", {{IDE_RIG_DATA, 4096}, {IDE_RIG_DATA + 8192, 2}}, 4096, 5},
    {"shorter", {{IDE_RIG_DATA, 2048}}, 4096, 0},
    {"two-bytes", {{IDE_RIG_DATA, 2}}, 4096, 0},
    {"several-chunks",
     {{IDE_RIG_DATA, 65536}, {IDE_RIG_DATA + 65536, 65536}, {IDE_RIG_DATA + 131072, 65536}},
     196608,
     4},
};

static void run_dma(IdeCd *cd, const PrdCase *c, unsigned variant)
{
    IdeRig *rig = cd->rig;
    bool start_first = variant & 1, stop_early = variant & 2, out = variant & 4;
    uint8_t direction = out ? 0 : 8, expect = c->status;
    uint32_t at = 0;

    memset(rig->host->ram + IDE_RIG_DATA, 0xee, 262144);
    for (unsigned i = 0; out && c->prds[i].bytes; i++) {
        for (uint32_t k = 0; k < c->prds[i].bytes; k++) {
            rig->host->ram[c->prds[i].addr + k] = fake_mmc_pattern(11, at++);
        }
    }
    bm_table(rig, c->prds);
    if (start_first) {
        bm_out(rig, 0, direction | 1);
        g_assert_cmphex(bm_in(rig, 2), ==, 1);
    }
    ide_cd_send_packet(rig, out ? FAKE_CDB_OUT : FAKE_CDB_IN, 11, c->len, 1, 0);
    if (!start_first) {
        ide_settle(rig);
        g_assert_cmphex(ide_alt(rig) & ATA_STATUS_BSY, ==, ATA_STATUS_BSY);
        bm_out(rig, 0, direction | 1);
    }
    if (stop_early) { /* Active tells that it goes on to its end */
        bm_out(rig, 0, 0);
        expect &= (uint8_t)~1;
    }
    ide_settle(rig);
    g_assert_cmphex(bm_in(rig, 2), ==, expect);
    g_assert_true(rig->irq[0] == !!(expect & 4));
    g_assert_cmphex(ide_in(rig, TASKFILE_COMMAND), ==, OK);
    g_assert_false(rig->irq[0]);
    at = 0;
    for (unsigned i = 0; !out && c->prds[i].bytes; i++) {
        for (uint32_t k = 0; k < c->prds[i].bytes; k++, at++) {
            g_assert_cmphex(rig->host->ram[c->prds[i].addr + k], ==,
                            at < c->len ? fake_mmc_pattern(11, at) : 0xee);
        }
    }
    bm_out(rig, 0, 0);
    g_assert_cmphex(bm_in(rig, 2) & 1, ==, 0);
}

static void test_prds(gconstpointer data)
{
    IdeCd cd;

    for (unsigned delayed = 0; delayed < 2; delayed++) {
        ide_cd_new(&cd, delayed);
        for (unsigned variant = 0; variant < 8; variant++) {
            cd.mmc[0]->delayed = variant / 2 % 2;
            run_dma(&cd, data, variant);
        }
        g_assert_cmpuint(cd.mmc[0]->live, ==, 0);
        ide_cd_free(&cd);
    }
}

/* Data has landed before the guest can see the end, by interrupt or by polling. */
static void test_dma_order(void)
{
    IdePrd prds[] = {{IDE_RIG_DATA, 4096}, {0}};
    IdeCd cd;

    ide_cd_new(&cd, true);
    bm_table(cd.rig, prds);
    bm_out(cd.rig, 0, 9);
    ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 1, 4096, 1, 0);
    for (;;) {
        bool landed = cd.rig->host->ram[IDE_RIG_DATA + 4095] == fake_mmc_pattern(1, 4095);

        if (!(ide_alt(cd.rig) & ATA_STATUS_BSY) || cd.rig->irq[0] || bm_in(cd.rig, 2) & 4) {
            g_assert_true(landed);
            break;
        }
        g_assert_true(fake_host_answer(cd.rig->host, 0) || fake_host_step(cd.rig->host));
    }
    ide_cd_free(&cd);
}

/* A table in the last bytes of memory, one without an end, one that is nowhere, data nowhere. */
static void test_odd_tables(gconstpointer delayed)
{
    static const struct {
        const char *name;
        uint32_t table, data;
        bool end;
        uint8_t status, device;
    } rows[] = {
        {"last-entry-of-memory", FAKE_RAM_SIZE - 8, IDE_RIG_DATA, true, 4, OK},
        {"no-end", IDE_RIG_TABLE, IDE_RIG_DATA, false, 5, OK},
        {"table-nowhere", 0xe0000000, IDE_RIG_DATA, true, 6, OK | ATA_STATUS_ERR},
        {"data-nowhere", IDE_RIG_TABLE, 0xe0000000, true, 6, OK | ATA_STATUS_ERR},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        IdeCd cd;

        ide_cd_new(&cd, GPOINTER_TO_INT(delayed));
        g_test_message("%s", rows[i].name);
        if (rows[i].table < FAKE_RAM_SIZE) {
            fake_write32(cd.rig->host, rows[i].table, rows[i].data);
            fake_write32(cd.rig->host, rows[i].table + 4, 4096 | (rows[i].end ? 0x80000000 : 0));
        }
        cd.rig->pci->ops->bar_write(cd.rig->pci, 4, 4, 4, rows[i].table);
        bm_out(cd.rig, 0, 9);
        ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 1, 4096, 1, 0);
        ide_settle(cd.rig);
        g_assert_cmphex(bm_in(cd.rig, 2), ==, rows[i].status);
        g_assert_true(cd.rig->irq[0]);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, rows[i].device);
        ide_cd_free(&cd);
    }
}

/* Bus mastering off: nothing reaches memory, the command ends all the same. */
static void test_no_bus_master(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    memset(cd.rig->host->ram, 0xee, 65536);
    pci_config_write(cd.rig->pci, 4, 2, 1);
    bm_out(cd.rig, 0, 9);
    ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 1, 262144, 1, 0);
    g_assert_cmphex(bm_in(cd.rig, 2), ==, 5);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
    for (unsigned i = 0; i < 65536; i++) {
        g_assert_cmphex(cd.rig->host->ram[i], ==, 0xee);
    }
    ide_cd_free(&cd);
}

static void test_master_and_slave(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    ide_cd_add_device(&cd, 1);
    for (unsigned unit = 0; unit < 2; unit++) {
        ide_out(cd.rig, TASKFILE_DEVICE, (uint8_t)(unit << 4));
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_DEVICE), ==, 0xa0 | unit << 4);
        ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_IDENTIFY_PACKET);
        for (unsigned i = 0; i < 256; i++) {
            uint16_t word = ide_in_data(cd.rig);

            if (i == 10) {
                g_assert_cmphex(word, ==, unit ? 'S' << 8 | 'L' : 'M' << 8 | 'A');
            }
        }
    }
    ide_out(cd.rig, TASKFILE_COUNT, 0x5a); /* both take what is written */
    ide_out(cd.rig, TASKFILE_DEVICE, 0);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COUNT), ==, 0x5a);
    ide_out(cd.rig, TASKFILE_DEVICE, 0x10);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COUNT), ==, 0x5a);
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_DIAGNOSTIC);
    g_assert_true(cd.rig->irq[0]);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_DEVICE), ==, 0xa0);
    for (unsigned unit = 0; unit < 2; unit++) {
        ide_out(cd.rig, TASKFILE_DEVICE, (uint8_t)(unit << 4));
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_FEATURES), ==, 1);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_LBA_MID), ==, 0x14);
        g_assert_cmphex(ide_in(cd.rig, TASKFILE_LBA_HIGH), ==, 0xeb);
    }
    g_assert_true(pci_ide_detach(cd.rig->ide, 0, 1) == cd.device[1]);
    ide_cd_free(&cd);
}

/* Absent devices: registers store or read 0, commands do nothing, the bus master too (CVE-2020-25743). */
static void test_absent_devices(void)
{
    IdeCd cd;
    PciIde *ide;

    ide_cd_new(&cd, false);
    ide = cd.rig->ide;
    ide_out(cd.rig, TASKFILE_DEVICE, 0x10);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, 0);
    g_assert_cmphex(ide_alt(cd.rig), ==, 0);
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_IDENTIFY);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, 0);
    g_assert_false(cd.rig->irq[0]);
    for (unsigned reg = 0; reg < 8; reg++) {
        for (unsigned value = 0; value < 256; value++) {
            pci_ide_port_write(ide, (uint16_t)(0x170 + reg), 1, value);
            pci_ide_port_read(ide, (uint16_t)(0x170 + reg), 1);
        }
    }
    pci_ide_port_write(ide, 0x376, 1, ATA_CONTROL_SRST);
    pci_ide_port_write(ide, 0x376, 1, 0);
    g_assert_cmphex(pci_ide_port_read(ide, 0x177, 1), ==, 0);
    bm_out(cd.rig, 8, 9);
    g_assert_cmphex(bm_in(cd.rig, 8), ==, 9);
    g_assert_cmphex(bm_in(cd.rig, 10), ==, 1);
    bm_out(cd.rig, 8, 0);
    g_assert_cmphex(bm_in(cd.rig, 10), ==, 0);
    ide_cd_free(&cd);
}

static void test_interrupt_enable(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    ide_control(cd.rig, ATA_CONTROL_NIEN);
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_FLUSH_CACHE);
    g_assert_false(cd.rig->irq[0]);
    g_assert_cmphex(bm_in(cd.rig, 2) & 4, ==, 0);
    ide_control(cd.rig, 0); /* still pending */
    g_assert_true(cd.rig->irq[0]);
    g_assert_cmphex(bm_in(cd.rig, 2) & 4, ==, 4);
    g_assert_cmphex(ide_alt(cd.rig), ==, OK);
    g_assert_true(cd.rig->irq[0]);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK);
    g_assert_false(cd.rig->irq[0]);
    ide_cd_free(&cd);
}

static void test_writes_while_busy(void)
{
    IdeCd cd;

    ide_cd_new(&cd, false);
    cd.mmc[0]->delayed = true;
    ide_cd_send_packet(cd.rig, FAKE_CDB_IN, 1, 2048, 0, 2048);
    g_assert_cmphex(ide_alt(cd.rig), ==, OK | ATA_STATUS_BSY);
    for (unsigned reg = 0; reg < 8; reg++) {
        ide_out(cd.rig, reg, 0x91);
    }
    ide_out(cd.rig, TASKFILE_COMMAND, ATA_CMD_FLUSH_CACHE);
    ide_settle(cd.rig);
    g_assert_cmphex(ide_in(cd.rig, TASKFILE_COMMAND), ==, OK | ATA_STATUS_DRQ);
    for (unsigned i = 0; i < 2048; i += 2) {
        g_assert_cmphex(ide_in_data(cd.rig) & 0xff, ==, fake_mmc_pattern(1, i));
    }
    g_assert_cmphex(ide_wait(cd.rig), ==, OK);
    ide_cd_free(&cd);
}

static void test_native_mode(void)
{
    PciIde *ide = pci_ide_new(PCI_IDE_PIIX4, true);
    PciDevice *pci = pci_ide_pci(ide);
    FakeHost *host = fake_host_new(pci, false);
    IdeIdentity identity = {0};
    FakeMmc *mmc;
    MmcDrive *drive = fake_mmc_new(&mmc);
    IdeDevice *device = atapi_new(drive, &identity);

    g_assert_true(pci_ide_attach(ide, 1, 0, device));
    g_assert_cmphex(load_le32(pci->config), ==, 0x71118086);
    g_assert_cmphex(load_le32(pci->config + 8) >> 8, ==, 0x01018f);
    g_assert_false(pci_ide_owns_port(ide, 0x1f0));
    pci_config_write(pci, 4, 2, 5);
    pci->ops->bar_write(pci, 2, 7, 1, ATA_CMD_FLUSH_CACHE);
    g_assert_true(host->intx);
    g_assert_cmphex(pci->config[6] & 8, ==, 8);
    pci_config_write(pci, 4, 2, 0x405);
    g_assert_false(host->intx);
    pci_config_write(pci, 4, 2, 5);
    g_assert_true(host->intx);
    g_assert_cmphex(pci->ops->bar_read(pci, 3, 2, 1), ==, OK);
    g_assert_cmphex(pci->ops->bar_read(pci, 2, 7, 1), ==, OK);
    g_assert_false(host->intx);
    g_assert_cmphex(pci->ops->bar_read(pci, 2, 4, 4), ==, 0x50a0eb14);
    pci->ops->reset(pci);
    fake_host_free(host);
    pci_ide_free(ide);
    ide_device_free(device);
    fake_mmc_free(drive);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ide/config-space", test_config_space);
    g_test_add_func("/ide/identify", test_identify);
    g_test_add_func("/ide/packet-pio", test_packet_pio);
    g_test_add_func("/ide/packet-pio-32bit-and-odd", test_packet_pio_32bit_and_odd);
    g_test_add_func("/ide/packet-pio-out", test_packet_pio_out);
    g_test_add_func("/ide/check-condition", test_check_condition);
    for (unsigned i = 0; i < G_N_ELEMENTS(prd_cases); i++) {
        g_autofree char *path = g_strdup_printf("/ide/bmdma/%s", prd_cases[i].name);

        g_test_add_data_func(path, &prd_cases[i], test_prds);
    }
    g_test_add_func("/ide/bmdma-order", test_dma_order);
    g_test_add_data_func("/ide/bmdma-odd-tables/mmap", GINT_TO_POINTER(0), test_odd_tables);
    g_test_add_data_func("/ide/bmdma-odd-tables/message", GINT_TO_POINTER(1), test_odd_tables);
    g_test_add_func("/ide/bmdma-no-bus-master", test_no_bus_master);
    g_test_add_func("/ide/master-and-slave", test_master_and_slave);
    g_test_add_func("/ide/CVE-2020-25743-absent-devices", test_absent_devices);
    g_test_add_func("/ide/interrupt-enable", test_interrupt_enable);
    g_test_add_func("/ide/writes-while-busy", test_writes_while_busy);
    g_test_add_func("/ide/native-mode", test_native_mode);
    return g_test_run();
}
