/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The AHCI controller with a packet device: registers at power-on, commands, data in every mode, order of
 * what the guest sees.
 */
#include "tests/qtest/ahci-rig.h"

#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"

#define OK_TFD 0x0050

static void test_config_space(void)
{
    AhciRig *rig = ahci_rig_new(false);
    const uint8_t *config = rig->pci->config;

    g_assert_cmphex(load_le32(config), ==, 0x29228086);
    g_assert_cmphex(load_le32(config + 8) >> 8, ==, 0x010601);
    g_assert_cmphex(rig->pci->bars[5].size, ==, 4096);
    g_assert_cmphex(config[0x34], ==, 0x80);
    g_assert_cmphex(config[0x80], ==, 5);    /* MSI first… */
    g_assert_cmphex(config[0x81], ==, 0xa8); /* …then SATA */
    g_assert_cmphex(config[0xa8], ==, 0x12);
    g_assert_cmphex(config[0xa9], ==, 0);
    g_assert_cmphex(load_le16(config + 0xaa), ==, 0x10);
    g_assert_cmphex(config[0x3d], ==, 1);
    pci_config_write(rig->pci, 0x92, 1, 0x3f);
    g_assert_cmphex(pci_config_read(rig->pci, 0x92, 1), ==, 0x3f);
    ahci_rig_free(rig);
}

static void test_power_on_registers(void)
{
    static const struct {
        unsigned reg;
        uint32_t device, empty;
    } rows[] = {
        {AHCI_PX_CLB, 0, 0},
        {AHCI_PX_FB, 0, 0},
        {AHCI_PX_IS, 0, 0},
        {AHCI_PX_IE, 0, 0},
        {AHCI_PX_CMD, 0x00040006, 0x00040006},
        {AHCI_PX_TFD, 0x7f, 0x7f}, /* until FISes are let in */
        {AHCI_PX_SIG, 0xeb140101, 0xffffffff},
        {AHCI_PX_SSTS, 0x123, 0},
        {AHCI_PX_SCTL, 0, 0},
        {AHCI_PX_SERR, 0, 0},
        {AHCI_PX_SACT, 0, 0},
        {AHCI_PX_CI, 0, 0},
    };
    AhciRig *rig = ahci_rig_new(false);

    rig->pci->ops->reset(rig->pci);
    g_assert_cmphex(rig_read(rig, AHCI_CAP * 4), ==, 0xc1241f05);
    g_assert_cmphex(rig_read(rig, AHCI_GHC * 4), ==, 0x80000000);
    g_assert_cmphex(rig_read(rig, AHCI_IS * 4), ==, 0);
    g_assert_cmphex(rig_read(rig, AHCI_PI * 4), ==, 0x3f);
    g_assert_cmphex(rig_read(rig, AHCI_VS * 4), ==, 0x00010300);
    for (uint32_t at = 0x14; at < 0x100; at += 4) {
        g_assert_cmphex(rig_read(rig, at), ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmphex(rig_port_read(rig, 0, rows[i].reg), ==, rows[i].device);
        g_assert_cmphex(rig_port_read(rig, 1, rows[i].reg), ==, rows[i].empty);
    }
    for (uint32_t at = AHCI_PORT_BASE + 6 * AHCI_PORT_STRIDE; at < AHCI_ABAR_SIZE; at += 4) {
        g_assert_cmphex(rig_read(rig, at), ==, 0);
    }
    ahci_rig_free(rig);
}

/* What stays of all-ones written to each register of an idle port. */
static void test_write_masks(void)
{
    static const struct {
        unsigned reg;
        uint32_t expect;
    } rows[] = {
        {AHCI_PX_CLB, 0xfffffc00},
        {AHCI_PX_CLBU, 0xffffffff},
        {AHCI_PX_FB, 0xffffff00},
        {AHCI_PX_FBU, 0xffffffff},
        {AHCI_PX_IS, 0},
        {AHCI_PX_IE, 0xfdc000ff},
        {0x1c / 4, 0},
        {AHCI_PX_TFD, 0x7f},
        {AHCI_PX_SIG, 0xffffffff},
        {AHCI_PX_SSTS, 0},
        {AHCI_PX_SERR, 0},
        {AHCI_PX_SACT, 0},
        {AHCI_PX_CI, 0},
        {0x3c / 4, 0},
        {0x40 / 4, 0},
        {0x70 / 4, 0},
    };
    AhciRig *rig = ahci_rig_new(false);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        rig_port_write(rig, 5, rows[i].reg, ~0u);
        g_assert_cmphex(rig_port_read(rig, 5, rows[i].reg), ==, rows[i].expect);
    }
    ahci_rig_free(rig);
}

static void test_access_sizes(void)
{
    AhciRig *rig = ahci_rig_new(false);
    const PciDeviceOps *ops = rig->pci->ops;

    ops->bar_write(rig->pci, 5, 0x100, 8, UINT64_C(0x1122334455667788));
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x100, 8), ==, UINT64_C(0x1122334455667400));
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x102, 2), ==, 0x5566);
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x103, 4), ==, 0x22334455);
    ops->bar_write(rig->pci, 5, 0x103, 2, 0xaabb);
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x100, 8), ==, UINT64_C(0x112233aabb667400));
    ops->bar_write(rig->pci, 5, 0x115, 1, 0xff); /* one byte of PxIE */
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x114, 4), ==, 0x0000);
    ops->bar_write(rig->pci, 5, 0x114, 1, 0xff);
    g_assert_cmphex(ops->bar_read(rig->pci, 5, 0x114, 4), ==, 0x00ff);
    ahci_rig_free(rig);
}

static void test_index_data_pair(void)
{
    AhciRig *rig = ahci_rig_new(false);
    const PciDeviceOps *ops = rig->pci->ops;

    ops->bar_write(rig->pci, 4, 0x10, 4, 0x100);
    ops->bar_write(rig->pci, 4, 0x14, 4, 0x12345678);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CLB), ==, 0x12345400);
    g_assert_cmphex(ops->bar_read(rig->pci, 4, 0x14, 4), ==, 0x12345400);
    ops->bar_write(rig->pci, 4, 0x10, 4, ~0u); /* the last dword, not beyond */
    g_assert_cmphex(ops->bar_read(rig->pci, 4, 0x14, 4), ==, 0);
    ahci_rig_free(rig);
}

static void test_signature_fis(void)
{
    AhciRig *rig = ahci_rig_new(false);

    rig_port_up(rig, 0);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0100);
    g_assert_cmphex(fake_read32(rig->host, rig_fis(0) + 0x40), ==, 0x01000034);
    g_assert_cmphex(fake_read32(rig->host, rig_fis(0) + 0x44) & 0xffffff, ==, 0xeb1401);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, 0);
    ahci_rig_free(rig);
}

static void test_identify(gconstpointer delayed)
{
    AhciRig *rig = ahci_rig_new(GPOINTER_TO_INT(delayed));
    RigPrd prds[] = {{RIG_DATA, 512}, {0}};
    uint8_t *id = rig->host->ram + RIG_DATA, sum = 0;

    rig_port_up(rig, 0);
    rig_ata(rig, 0, 3, ATA_CMD_IDENTIFY_PACKET, 0, 0, prds);
    rig_settle(rig);
    rig_check_done(rig, 0, 3, AHCI_PX_IS_DHRS | AHCI_PX_IS_PSS, OK_TFD);
    g_assert_cmphex(load_le16(id), ==, 0x85c0);
    g_assert_cmpmem(id + 20, 8, "MQ0000 1", 8);
    for (unsigned i = 0; i < 512; i++) {
        sum += id[i];
    }
    g_assert_cmphex(sum, ==, 0);
    g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + 3 * 32 + 4), ==, 512);
    g_assert_cmphex(fake_read32(rig->host, rig_fis(0) + 0x20) & 0xffff, ==, 0x605f); /* PIO Setup, I, D */
    g_assert_cmpuint(load_le16(rig->host->ram + rig_fis(0) + 0x30), ==, 512);
    g_assert_cmphex(fake_read32(rig->host, rig_fis(0) + 0x40), ==, 0x00504034);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    ahci_rig_free(rig);
}

/* Commands without data: what a packet device answers (ACS, and real drives). */
static void test_ata_commands(void)
{
    static const struct {
        const char *name;
        uint8_t command, features;
        uint16_t count;
        uint32_t tfd;
        int32_t count_after; /* -1: do not look */
        bool signature;
    } rows[] = {
        {"NOP", ATA_CMD_NOP, 0, 0, 0x0451, -1, false},
        {"DEVICE RESET", ATA_CMD_DEVICE_RESET, 0, 0, 0x0100, 1, true},
        {"DIAGNOSTIC", ATA_CMD_DIAGNOSTIC, 0, 0, 0x0100, 1, true},
        {"IDENTIFY DEVICE", ATA_CMD_IDENTIFY, 0, 0, 0x0451, 1, true},
        {"READ SECTORS", ATA_CMD_READ_SECTORS, 0, 1, 0x0451, 1, true},
        {"READ DMA EXT", ATA_CMD_READ_DMA_EXT, 0, 1, 0x0451, -1, false},
        {"WRITE DMA", ATA_CMD_WRITE_DMA, 0, 1, 0x0451, -1, false},
        {"READ NATIVE MAX", ATA_CMD_READ_NATIVE_MAX, 0, 0, 0x0451, -1, false},
        {"SMART", ATA_CMD_SMART, 0xd4, 1, 0x0451, -1, false},
        {"READ FPDMA", ATA_CMD_READ_FPDMA, 1, 0, 0x0451, -1, false},
        {"WRITE FPDMA", ATA_CMD_WRITE_FPDMA, 1, 0, 0x0451, -1, false},
        {"GET MEDIA STATUS", 0xda, 0, 0, 0x0451, -1, false},
        {"FLUSH CACHE", ATA_CMD_FLUSH_CACHE, 0, 0, OK_TFD, -1, false},
        {"SET FEATURES UDMA5", ATA_CMD_SET_FEATURES, 3, 0x45, OK_TFD, -1, false},
        {"SET FEATURES UDMA6", ATA_CMD_SET_FEATURES, 3, 0x46, 0x0451, -1, false},
        {"SET FEATURES MWDMA2", ATA_CMD_SET_FEATURES, 3, 0x22, OK_TFD, -1, false},
        {"SET FEATURES SWDMA", ATA_CMD_SET_FEATURES, 3, 0x10, 0x0451, -1, false},
        {"SET FEATURES PIO4", ATA_CMD_SET_FEATURES, 3, 0x0c, OK_TFD, -1, false},
        {"SET FEATURES look-ahead", ATA_CMD_SET_FEATURES, 0xaa, 0, OK_TFD, -1, false},
        {"SET FEATURES unknown", ATA_CMD_SET_FEATURES, 0x42, 0, 0x0451, -1, false},
        {"CHECK POWER MODE", ATA_CMD_CHECK_POWER_MODE, 0, 0, OK_TFD, 0xff, false},
        {"STANDBY IMMEDIATE", ATA_CMD_STANDBY_IMMEDIATE, 0, 0, OK_TFD, -1, false},
        {"CHECK POWER MODE, standby", ATA_CMD_OLD_CHECK_POWER_MODE, 0, 7, OK_TFD, 0, false},
        {"IDLE", ATA_CMD_IDLE, 0, 0, OK_TFD, -1, false},
        {"CHECK POWER MODE, idle", ATA_CMD_CHECK_POWER_MODE, 0, 7, OK_TFD, 0x80, false},
        {"SLEEP", ATA_CMD_SLEEP, 0, 0, OK_TFD, -1, false},
    };
    AhciRig *rig = ahci_rig_new(false);

    rig_port_up(rig, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool error = rows[i].tfd & 1;

        g_test_message("%s", rows[i].name);
        rig_ata(rig, 0, 0, rows[i].command, rows[i].features, rows[i].count, NULL);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, rows[i].tfd);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==,
                        AHCI_PX_IS_DHRS | (error ? AHCI_PX_IS_TFES : 0));
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, error);
        if (rows[i].count_after >= 0) {
            g_assert_cmphex(load_le16(rig->host->ram + rig_fis(0) + 0x4c), ==, (uint16_t)rows[i].count_after);
        }
        if (rows[i].signature) {
            g_assert_cmphex(load_le16(rig->host->ram + rig_fis(0) + 0x45), ==, 0xeb14);
        }
        rig_recover(rig, 0);
    }
    ahci_rig_free(rig);
}

typedef struct Mode {
    const char *name;
    bool delayed, dma, map;
    uint16_t limit;
    size_t chunk;
} Mode;

static const Mode modes[] = {
    {"dma-mmap", false, true, false, 0, 65536},
    {"dma-message", true, true, false, 0, 65536},
    {"dma-straight", false, true, true, 0, 65536},
    {"dma-small-chunks", true, true, false, 0, 2048},
    {"dma-1M-chunks", true, true, false, 0, 1 << 20},
    {"pio-2048", false, false, false, 2048, 65536},
    {"pio-2048-message", true, false, false, 2048, 65536},
    {"pio-64K", false, false, false, 0xffff, 65536},
    {"pio-odd-limit", true, false, false, 4097, 65536},
    {"pio-2-bytes", false, false, false, 2, 4096},
};

static const uint32_t lengths[] = {2, 512, 2046, 2048, 6144, 65536, 131072, 1500 * 1024};

/* How the guest cuts its memory: bytes of each PRD (the last one takes the rest), gap after each, offset. */
static const struct {
    const char *name;
    uint32_t piece, gap, offset;
} shapes[] = {
    {"one", 4 << 20, 0, 0},      {"pages", 4096, 0, 0},        {"scattered", 4096, 4096, 0},
    {"unaligned", 4096, 64, 18}, {"sector-pairs", 1024, 2, 0}, {"odd-page-offset", 65536, 2, 4094},
};

static unsigned make_prds(RigPrd *prds, unsigned shape, uint32_t len)
{
    uint64_t addr = RIG_DATA + shapes[shape].offset;
    unsigned n = 0;

    for (; len; n++) {
        uint32_t bytes = MIN(len, shapes[shape].piece);

        prds[n] = (RigPrd){addr, bytes};
        addr += bytes + shapes[shape].gap;
        len -= bytes;
    }
    prds[n] = (RigPrd){0};
    return n;
}

/* Every mode x length x shape: the data arrive, nothing around them is touched, counts and FISes are right.
 */
static void test_read_matrix(gconstpointer data)
{
    const Mode *mode = data;
    AhciRig *rig = ahci_rig_new(mode->delayed);
    g_autofree RigPrd *prds = g_new0(RigPrd, 2048);
    uint8_t cdb[MMC_CDB_SIZE];

    rig->host->map_ok = mode->map;
    rig->mmc->use_map = mode->map;
    rig->mmc->chunk = mode->chunk;
    rig_port_up(rig, 0);
    for (unsigned l = 0; l < G_N_ELEMENTS(lengths); l++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            uint32_t len = lengths[l], done = 0, start = l * 977 + s;
            unsigned slot = (l * 7 + s) % 32;

            if (mode->limit == 2 && len > 131072) {
                continue;
            }
            rig->mmc->delayed = (l + s) % 2;
            memset(rig->host->ram + RIG_DATA - 4096, 0xee, FAKE_RAM_SIZE - RIG_DATA + 4096);
            make_prds(prds, s, len);
            rig_cdb(cdb, FAKE_CDB_IN, start, len);
            rig_packet(rig, 0, slot, cdb, mode->dma, mode->limit, prds);
            rig_settle(rig);
            rig_check_done(rig, 0, slot, AHCI_PX_IS_DHRS | (mode->dma ? 0 : AHCI_PX_IS_PSS), OK_TFD);
            g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + slot * 32 + 4), ==, len);
            g_assert_cmphex(rig->host->ram[RIG_DATA + shapes[s].offset - 1], ==, 0xee);
            for (unsigned i = 0; prds[i].bytes; i++) {
                rig_check_pattern(rig, prds[i].addr, start, done, prds[i].bytes);
                done += prds[i].bytes;
                if (shapes[s].gap || !prds[i + 1].bytes) {
                    g_assert_cmphex(rig->host->ram[prds[i].addr + prds[i].bytes], ==, 0xee);
                }
            }
        }
    }
    g_assert_true(!mode->map || rig->mmc->mapped);
    ahci_rig_free(rig);
}

static void test_write_matrix(gconstpointer data)
{
    const Mode *mode = data;
    AhciRig *rig = ahci_rig_new(mode->delayed);
    g_autofree RigPrd *prds = g_new0(RigPrd, 2048);
    uint8_t cdb[MMC_CDB_SIZE];

    rig->mmc->chunk = mode->chunk;
    rig_port_up(rig, 0);
    for (unsigned l = 0; l < G_N_ELEMENTS(lengths); l++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
            uint32_t len = lengths[l], done = 0, start = l * 977 + s;

            if (mode->limit == 2 && len > 131072) {
                continue;
            }
            rig->mmc->delayed = (l + s) % 2;
            make_prds(prds, s, len);
            for (unsigned i = 0; prds[i].bytes; i++) {
                for (uint32_t k = 0; k < prds[i].bytes; k++) {
                    rig->host->ram[prds[i].addr + k] = fake_mmc_pattern(start, done++);
                }
            }
            rig_cdb(cdb, FAKE_CDB_OUT, start, len);
            rig_packet(rig, 0, 0, cdb, mode->dma, mode->limit, prds);
            rig_settle(rig);
            rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS | (mode->dma ? 0 : AHCI_PX_IS_PSS), OK_TFD);
            g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + 4), ==, len);
        }
    }
    ahci_rig_free(rig);
}

static void test_merged_writes(void)
{
    AhciRig *rig = ahci_rig_new(false);
    g_autofree RigPrd *prds = g_new0(RigPrd, 64);
    uint8_t cdb[MMC_CDB_SIZE];

    make_prds(prds, 1, 131072);
    rig->mmc->chunk = 131072;
    rig_port_up(rig, 0);
    rig->host->writes = rig->host->small_writes = rig->host->fences = rig->host->reads = 0;
    rig_cdb(cdb, FAKE_CDB_IN, 0, 131072);
    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    g_assert_cmpuint(rig->host->writes, ==, 1);
    g_assert_cmpuint(rig->host->small_writes, ==, 2); /* byte count; PIO Setup and D2H in one */
    g_assert_cmpuint(rig->host->fences, ==, 1);
    g_assert_cmpuint(rig->host->reads, ==, 2);
    ahci_rig_free(rig);
}

static void test_check_condition(void)
{
    AhciRig *rig = ahci_rig_new(false);
    uint8_t cdb[MMC_CDB_SIZE] = {FAKE_CDB_SENSE, 6};

    rig_port_up(rig, 0);
    rig_packet(rig, 0, 4, cdb, 1, 0, NULL);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, AHCI_PX_IS_DHRS | AHCI_PX_IS_TFES);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x6051);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 1u << 4);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CMD) >> 8 & 31, ==, 4);
    /* nothing is issued until ST was off */
    cdb[0] = FAKE_CDB_GOOD;
    rig_packet(rig, 0, 5, cdb, 1, 0, NULL);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 3u << 4);
    rig_recover(rig, 0);
    rig_packet(rig, 0, 5, cdb, 1, 0, NULL);
    rig_check_done(rig, 0, 5, AHCI_PX_IS_DHRS, OK_TFD);
    g_assert_cmpuint(rig->mmc->started, ==, 2);
    ahci_rig_free(rig);
}

static void test_many_slots(gconstpointer delayed)
{
    AhciRig *rig = ahci_rig_new(GPOINTER_TO_INT(delayed));
    uint8_t cdb[MMC_CDB_SIZE];

    rig->mmc->delayed = GPOINTER_TO_INT(delayed);
    rig_port_up(rig, 0);
    for (unsigned slot = 0; slot < 32; slot++) {
        RigPrd prds[] = {{RIG_DATA + slot * 4096, 4096}, {0}};
        Taskfile tf = {.command = ATA_CMD_PACKET, .features = 1};

        rig_cdb(cdb, FAKE_CDB_IN, slot, 4096);
        rig_slot(rig, 0, slot, &tf, cdb, prds);
    }
    rig_issue(rig, 0, ~0u);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
    for (unsigned slot = 0; slot < 32; slot++) {
        rig_check_pattern(rig, RIG_DATA + slot * 4096, slot, 0, 4096);
    }
    ahci_rig_free(rig);
}

/* Completion seen by the guest: never before the data, MSI behind the data and once. */
static void test_completion_order(gconstpointer ordered)
{
    AhciRig *rig = ahci_rig_new(true);
    RigPrd prds[] = {{RIG_DATA, 4096}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];
    bool landed = false;

    rig->host->ordered_msi = GPOINTER_TO_INT(ordered);
    rig_port_up(rig, 0);
    rig_cdb(cdb, FAKE_CDB_IN, 5, 4096);
    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    while (fake_host_answer(rig->host, 0)) {
    }
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & 0x80, ==, 0x80);
    do {
        landed = rig->host->ram[rig_fis(0) + 0x40] == 0x34 &&
                 rig->host->ram[RIG_DATA + 4095] == fake_mmc_pattern(5, 4095) &&
                 fake_read32(rig->host, rig_list(0) + 4) == 4096;
        if (!landed) {
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 1);
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, 0);
            g_assert_cmpuint(rig->host->msi, ==, 0);
        }
    } while (fake_host_step(rig->host));
    g_assert_true(landed);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    g_assert_cmpuint(rig->host->msi_ordered, ==, GPOINTER_TO_INT(ordered));
    rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS, OK_TFD);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    ahci_rig_free(rig);
}

/* The next chunk is asked for before the present one has landed, up to a bound. */
static void test_pipelining(void)
{
    AhciRig *rig = ahci_rig_new(true);
    RigPrd prds[] = {{RIG_DATA, 4 << 20}, {RIG_DATA, 4 << 20}, {RIG_DATA, 4 << 20}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];
    unsigned before;

    rig->mmc->chunk = 1 << 18;
    rig_port_up(rig, 0);
    before = rig->host->writes;
    rig_cdb(cdb, FAKE_CDB_IN, 0, 12 << 20);
    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    while (fake_host_answer(rig->host, 0)) {
    }
    g_assert_cmpuint(rig->host->writes - before, >=, 4);
    g_assert_cmpuint(rig->host->writes - before, <=, (AHCI_QUEUE_MAX >> 18) + 1);
    rig_settle(rig);
    rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS, OK_TFD);
    g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + 4), ==, 12 << 20);
    ahci_rig_free(rig);
}

static void test_intx_level(void)
{
    AhciRig *rig = ahci_rig_new(false);

    pci_config_write(rig->pci, rig->pci->msi_cap + 2, 2, 0);
    rig_port_up(rig, 0);
    rig_ata(rig, 0, 0, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    g_assert_true(rig->host->intx);
    g_assert_cmphex(rig->pci->config[6] & 8, ==, 8);
    rig_write(rig, AHCI_IS * 4, 1); /* the port still has an event: the bit comes back */
    g_assert_cmphex(rig_read(rig, AHCI_IS * 4), ==, 1);
    g_assert_true(rig->host->intx);
    pci_config_write(rig->pci, 4, 2, 0x406);
    g_assert_false(rig->host->intx);
    pci_config_write(rig->pci, 4, 2, 0x006);
    g_assert_true(rig->host->intx);
    rig_port_write(rig, 0, AHCI_PX_IE, 0);
    g_assert_true(rig->host->intx); /* IS is sticky */
    rig_write(rig, AHCI_IS * 4, 1);
    g_assert_false(rig->host->intx);
    rig_port_write(rig, 0, AHCI_PX_IE, 1);
    g_assert_true(rig->host->intx);
    rig_write(rig, AHCI_GHC * 4, 0);
    g_assert_false(rig->host->intx);
    rig_write(rig, AHCI_GHC * 4, AHCI_GHC_IE);
    rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS, OK_TFD);
    g_assert_false(rig->host->intx);
    g_assert_cmphex(rig->pci->config[6] & 8, ==, 0);
    g_assert_cmpuint(rig->host->msi, ==, 0);
    ahci_rig_free(rig);
}

/* An event between the guest's clearing of PxIS and of IS gets an MSI of its own; a usual handler gets none
 * too many. */
static void test_msi_edges(void)
{
    AhciRig *rig = ahci_rig_new(false);

    rig_port_up(rig, 0);
    rig_ata(rig, 0, 0, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    rig_port_write(rig, 0, AHCI_PX_IS, ~0u);
    g_assert_cmpuint(rig->host->msi, ==, 1);
    rig_ata(rig, 0, 1, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    g_assert_cmpuint(rig->host->msi, ==, 2);
    rig_write(rig, AHCI_IS * 4, 1); /* still pending: again */
    g_assert_cmpuint(rig->host->msi, ==, 3);
    rig_port_write(rig, 0, AHCI_PX_IS, ~0u);
    rig_write(rig, AHCI_IS * 4, 1);
    g_assert_cmpuint(rig->host->msi, ==, 3);
    g_assert_cmphex(rig_read(rig, AHCI_IS * 4), ==, 0);
    rig_port_write(rig, 0, AHCI_PX_IE, 0);
    rig_ata(rig, 0, 2, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    g_assert_cmpuint(rig->host->msi, ==, 3);
    rig_port_write(rig, 0, AHCI_PX_IE, 1);
    g_assert_cmpuint(rig->host->msi, ==, 4);
    ahci_rig_free(rig);
}

static void add_matrix(const char *what, GTestDataFunc func, bool maps)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_autofree char *path = g_strdup_printf("/ahci/%s/%s", what, modes[i].name);

        if (maps || !modes[i].map) {
            g_test_add_data_func(path, &modes[i], func);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ahci/config-space", test_config_space);
    g_test_add_func("/ahci/power-on-registers", test_power_on_registers);
    g_test_add_func("/ahci/write-masks", test_write_masks);
    g_test_add_func("/ahci/access-sizes", test_access_sizes);
    g_test_add_func("/ahci/index-data-pair", test_index_data_pair);
    g_test_add_func("/ahci/signature-fis", test_signature_fis);
    g_test_add_data_func("/ahci/identify/mmap", GINT_TO_POINTER(0), test_identify);
    g_test_add_data_func("/ahci/identify/message", GINT_TO_POINTER(1), test_identify);
    g_test_add_func("/ahci/ata-commands", test_ata_commands);
    add_matrix("read", test_read_matrix, true);
    add_matrix("write", test_write_matrix, false);
    g_test_add_func("/ahci/merged-writes", test_merged_writes);
    g_test_add_func("/ahci/check-condition", test_check_condition);
    g_test_add_data_func("/ahci/many-slots/mmap", GINT_TO_POINTER(0), test_many_slots);
    g_test_add_data_func("/ahci/many-slots/message", GINT_TO_POINTER(1), test_many_slots);
    g_test_add_data_func("/ahci/completion-order/msi-after-fence", GINT_TO_POINTER(0), test_completion_order);
    g_test_add_data_func("/ahci/completion-order/msi-behind-data", GINT_TO_POINTER(1), test_completion_order);
    g_test_add_func("/ahci/pipelining", test_pipelining);
    g_test_add_func("/ahci/intx-level", test_intx_level);
    g_test_add_func("/ahci/msi-edges", test_msi_edges);
    return g_test_run();
}
