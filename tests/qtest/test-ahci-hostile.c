/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Malformed input, one named test for each published fault of emulated ATA, ATAPI and AHCI devices: with the
 * real drive on an AHCI port. The right outcome is in each test; "alive" means that a plain read works
 * afterwards.
 */
#include "tests/qtest/cd-rig.h"

#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"

#define SECTORS 700
#define NOWHERE UINT64_C(0xe0000000) /* where a guest's BAR would be: no memory */

static void put_read10(uint8_t *cdb, uint32_t lba, uint16_t count)
{
    memset(cdb, 0, MMC_CDB_SIZE);
    cdb[0] = 0x28;
    store_be32(cdb + 2, lba);
    store_be16(cdb + 7, count);
}

static void check_disc(AhciRig *rig, uint64_t addr, uint64_t at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (rig->host->ram[addr + i] != cd_rig_byte(at + i)) {
            g_error("byte %zu of disc offset %" G_GUINT64_FORMAT " differs", i, at);
        }
    }
}

static void check_alive(AhciRig *rig)
{
    uint8_t cdb[MMC_CDB_SIZE];
    uint32_t tfd = rig_port_read(rig, 0, AHCI_PX_TFD);

    rig_settle(rig);
    if (tfd & (ATA_STATUS_BSY | ATA_STATUS_DRQ) ||
        rig_port_read(rig, 0, AHCI_PX_IS) & (AHCI_PX_IS_TFES | AHCI_PX_IS_HBFS | AHCI_PX_IS_IFS)) {
        rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
        rig_settle(rig);
        rig_port_write(rig, 0, AHCI_PX_SCTL, 1);
        rig_settle(rig);
        rig_port_write(rig, 0, AHCI_PX_SCTL, 0);
        rig_settle(rig);
    }
    rig_port_up(rig, 0);
    memset(cdb, 0, sizeof cdb);
    for (unsigned i = 0; i < 3; i++) {
        cd_rig_command(rig, cdb, 0); /* takes the attention of a reset */
    }
    put_read10(cdb, 16, 3);
    memset(rig->host->ram + RIG_DATA, 0, 6144);
    g_assert_cmphex(cd_rig_command(rig, cdb, 6144), ==, 0x50);
    check_disc(rig, RIG_DATA, 16 * 2048, 6144);
}

static void finish(AhciRig *rig)
{
    check_alive(rig);
    ahci_rig_free(rig);
}

static void check_ended(AhciRig *rig)
{
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & (ATA_STATUS_BSY | ATA_STATUS_DRQ), ==, 0);
}

/* CVE-2014-2894: SMART EXECUTE OFFLINE IMMEDIATE ran an index below its log. A packet device has no SMART. */
static void test_smart(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned i = 0; i < 21; i++) {
        rig_ata(rig, 0, 0, ATA_CMD_SMART, 0xd4, 0, NULL);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0451);
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* CVE-2015-5154: START STOP UNIT with a power condition left DRQ set. */
static void test_start_stop_power_condition(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned power = 0; power < 16; power++) {
        for (unsigned dma = 0; dma < 2; dma++) {
            uint8_t cdb[MMC_CDB_SIZE] = {0x1b, 0, 0, 0, (uint8_t)(power << 4)};

            rig_packet(rig, 0, 0, cdb, (uint8_t)dma, 2048, NULL);
            check_ended(rig);
            rig_recover(rig, 0);
        }
    }
    finish(rig);
}

/* CVE-2015-6855: ATA commands for disks on a packet device, loaded or empty. Only the allow-list succeeds. */
static void test_every_ata_command(gconstpointer sectors)
{
    static const uint8_t allowed[] = {0x08, 0x90, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0xa1,
                                      0xe0, 0xe1, 0xe2, 0xe3, 0xe5, 0xe6, 0xe7, 0xef};
    AhciRig *rig = cd_rig_new(false, GPOINTER_TO_UINT(sectors));

    for (unsigned command = 0; command < 256; command++) {
        RigPrd prds[] = {{RIG_DATA, 512}, {0}};
        bool ok = memchr(allowed, (int)command, sizeof allowed);

        if (command == ATA_CMD_PACKET) {
            continue;
        }
        for (unsigned count = 0; count < 3; count++) {
            rig_ata(rig, 0, 0, (uint8_t)command, command == 0xef ? 0xaa : 0, (uint16_t)count, prds);
            check_ended(rig);
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD) & ATA_STATUS_ERR, ==, ok ? 0 : ATA_STATUS_ERR);
            rig_recover(rig, 0);
        }
    }
    if (sectors) {
        check_alive(rig);
    }
    ahci_rig_free(rig);
}

/* CVE-2015-5158: operation codes of groups whose length is not defined. */
static void test_every_packet(gconstpointer fill)
{
    static const uint8_t tray[] = {0x1b, 0xa6}; /* may take the disc away, lawfully */
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned op = 0; op < 256; op++) {
        uint8_t cdb[MMC_CDB_SIZE];
        RigPrd prds[] = {{RIG_DATA, 65536}, {0}};

        memset(cdb, GPOINTER_TO_INT(fill), sizeof cdb);
        cdb[0] = (uint8_t)op;
        if (memchr(tray, (int)op, sizeof tray)) {
            continue;
        }
        for (unsigned dma = 0; dma < 2; dma++) {
            rig_packet(rig, 0, 0, cdb, (uint8_t)dma, 0x8000, prds);
            check_ended(rig);
            rig_recover(rig, 0);
        }
    }
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 0);
    finish(rig);
}

/* CVE-2014-9718, GL2777: descriptor tables that hold less than a sector, or nothing. The surplus is dropped,
 * the overflow is told (PxIS.OFS), the byte count is what arrived. */
static void test_short_prdt(gconstpointer delayed)
{
    static const uint32_t rooms[] = {0, 2, 510, 512, 2046, 4096};
    AhciRig *rig = cd_rig_new(GPOINTER_TO_INT(delayed), SECTORS);

    for (unsigned i = 0; i < G_N_ELEMENTS(rooms); i++) {
        for (unsigned dma = 0; dma < 2; dma++) {
            RigPrd prds[] = {{RIG_DATA, rooms[i]}, {0}};
            uint8_t cdb[MMC_CDB_SIZE];

            memset(rig->host->ram + RIG_DATA, 0xee, 8192);
            put_read10(cdb, 5, 3);
            rig_packet(rig, 0, 0, cdb, (uint8_t)dma, 2048, prds);
            check_ended(rig);
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==,
                            AHCI_PX_IS_OFS | AHCI_PX_IS_DHRS | (dma ? 0 : AHCI_PX_IS_PSS));
            g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + 4), ==, rooms[i]);
            check_disc(rig, RIG_DATA, 5 * 2048, rooms[i]);
            g_assert_cmphex(rig->host->ram[RIG_DATA + rooms[i]], ==, 0xee);
            rig_recover(rig, 0);
        }
    }
    finish(rig);
}

/* The same for data from the guest: the command cannot be carried out and aborts. */
static void test_short_prdt_out(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned dma = 0; dma < 2; dma++) {
        RigPrd prds[] = {{RIG_DATA, 4}, {0}};
        uint8_t cdb[MMC_CDB_SIZE] = {0x55, 0x10, 0, 0, 0, 0, 0, 0, 20}; /* MODE SELECT(10) */

        rig_packet(rig, 0, 0, cdb, (uint8_t)dma, 2048, prds);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0451);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS) & AHCI_PX_IS_TFES, ==, AHCI_PX_IS_TFES);
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* CVE-2019-20175: sizes that are no multiple of 512, odd byte counts and addresses (bit 0 does not count). */
static void test_odd_sizes(void)
{
    AhciRig *rig = cd_rig_new(true, SECTORS);

    for (uint32_t piece = 1; piece < 80; piece += 3) {
        uint64_t addr = RIG_DATA | 1;
        RigPrd prds[200] = {{0}};
        uint32_t even = (piece + 1) & ~1u;
        uint8_t cdb[MMC_CDB_SIZE];

        for (unsigned i = 0; i < 150; i++, addr += even) {
            prds[i] = (RigPrd){addr, piece};
        }
        put_read10(cdb, 9, 1);
        rig_packet(rig, 0, 0, cdb, 1, 0, prds);
        check_ended(rig);
        g_assert_cmpuint(fake_read32(rig->host, rig_list(0) + 4), ==, MIN(2048, 150 * even));
        check_disc(rig, RIG_DATA, 9 * 2048, MIN(2048, 150 * even));
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* CVE-2016-1568: a malformed queued command left its slot in use, and the port's reset freed it again. */
static void test_ncq_to_packet_device(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned slot = 0; slot < 32; slot++) {
        Taskfile tf = {.command = slot % 2 ? ATA_CMD_READ_FPDMA : ATA_CMD_WRITE_FPDMA, .count = 0xffff};

        rig_slot(rig, 0, slot, &tf, NULL, NULL);
        rig_port_write(rig, 0, AHCI_PX_SACT, 1u << slot);
        rig_issue(rig, 0, 1u << slot);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x0451);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS) & AHCI_PX_IS_TFES, ==, AHCI_PX_IS_TFES);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SACT), ==, 1u << slot);
        rig_port_write(rig, 0, AHCI_PX_SCTL, 1);
        rig_port_write(rig, 0, AHCI_PX_SCTL, 0);
        rig_recover(rig, 0);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_SACT), ==, 0);
    }
    finish(rig);
}

/* CVE-2020-29443, 58ac321135: reads of LBA -1, at and over the end. */
static void test_read_beyond_end(void)
{
    static const struct {
        uint32_t lba;
        uint16_t count;
    } rows[] = {{0xffffffff, 1}, {0xffffffff, 0xffff}, {SECTORS, 1},      {SECTORS - 1, 2},
                {0x80000000, 1}, {0, 0xffff},          {0x1fffffff, 512}, {0xfffff000, 0x1000}};
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t cdb[MMC_CDB_SIZE];

        put_read10(cdb, rows[i].lba, rows[i].count);
        g_assert_cmphex(cd_rig_command(rig, cdb, 65536), ==, 0x5051);
        g_assert_cmphex(cd_rig_sense(rig), ==, 0x052100);
        memset(cdb, 0, sizeof cdb);
        cdb[0] = 0xbe; /* READ CD */
        store_be32(cdb + 2, rows[i].lba);
        store_be16(cdb + 7, rows[i].count);
        cdb[9] = 0xf8;
        g_assert_cmphex(cd_rig_command(rig, cdb, 65536), ==, 0x5051);
        g_assert_cmphex(cd_rig_sense(rig), ==, 0x052100);
    }
    finish(rig);
}

/* CVE-2019-12067, GL2778: a port whose lists are nowhere, or that does not run, has no slot to look at. */
static void test_port_not_running(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);
    unsigned reads;

    rig_port_write(rig, 0, AHCI_PX_CMD, 0);
    reads = rig->host->reads;
    for (unsigned port = 0; port < 6; port++) {
        rig_port_write(rig, port, AHCI_PX_CI, ~0u);
        rig_port_write(rig, port, AHCI_PX_SACT, ~0u);
        g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_CI), ==, 0);
        g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_SACT), ==, 0);
    }
    for (unsigned port = 1; port < 6; port++) { /* running, but nobody is there */
        rig_port_write(rig, port, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_ST);
        rig_port_write(rig, port, AHCI_PX_CI, ~0u);
    }
    g_assert_cmpuint(rig->host->reads, ==, reads);
    finish(rig);
}

/* GL62, LP1884693: command list, table, received FISes or data in the device's own registers, or nowhere. */
static void test_no_memory(gconstpointer delayed)
{
    static const struct {
        const char *what;
        bool list, table, fis, data;
    } rows[] = {{"list", true, false, false, false},
                {"table", false, true, false, false},
                {"fis", false, false, true, false},
                {"data", false, false, false, true}};
    static const uint64_t places[] = {NOWHERE, UINT64_C(0xfffffffffffff000), FAKE_RAM_SIZE - 0x400,
                                      FAKE_RAM_SIZE};

    for (unsigned i = 0; i < G_N_ELEMENTS(rows) * G_N_ELEMENTS(places); i++) {
        uint64_t place = places[i / G_N_ELEMENTS(rows)];
        unsigned row = i % G_N_ELEMENTS(rows);
        AhciRig *rig = cd_rig_new(GPOINTER_TO_INT(delayed), SECTORS);
        RigPrd prds[] = {{rows[row].data ? place : RIG_DATA, 131072}, {0}};
        uint8_t cdb[MMC_CDB_SIZE];
        Taskfile tf = {.command = ATA_CMD_PACKET, .features = 1};
        bool nowhere = place != FAKE_RAM_SIZE - 0x400;

        g_test_message("%s at %#" G_GINT64_MODIFIER "x", rows[row].what, place);
        pci_config_write(rig->pci, 0x24, 4, (uint32_t)NOWHERE);
        put_read10(cdb, 0, 64);
        rig_slot(rig, 0, 31, &tf, cdb, prds);
        if (rows[row].list) {
            rig_port_write(rig, 0, AHCI_PX_CLB, (uint32_t)place);
            rig_port_write(rig, 0, AHCI_PX_CLB + 1, place >> 32);
        }
        if (rows[row].fis) {
            rig_port_write(rig, 0, AHCI_PX_FB, (uint32_t)place);
            rig_port_write(rig, 0, AHCI_PX_FB + 1, place >> 32);
        }
        if (rows[row].table) {
            store_le64(rig->host->ram + rig_list(0) + 31 * 32 + 8, place);
        }
        rig_issue(rig, 0, 1u << 31);
        rig_settle(rig);
        if (nowhere || rows[row].data) {
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS) & AHCI_PX_IS_HBFS, ==, AHCI_PX_IS_HBFS);
            g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 1u << 31);
        }
        rig_port_write(rig, 0, AHCI_PX_CLB + 1, 0);
        rig_port_write(rig, 0, AHCI_PX_FB + 1, 0);
        rig_port_write(rig, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
        finish(rig);
    }
}

static void test_bus_mastering_off(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);
    uint8_t cdb[MMC_CDB_SIZE];
    RigPrd prds[] = {{RIG_DATA, 2048}, {0}};

    put_read10(cdb, 0, 1);
    pci_config_write(rig->pci, 4, 2, 2);
    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS) & AHCI_PX_IS_HBFS, ==, AHCI_PX_IS_HBFS);
    pci_config_write(rig->pci, 4, 2, 6);
    finish(rig);
}

/* GL342: a packet whose direction is not the header's. The packet decides. */
static void test_direction_mismatch(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);
    RigPrd prds[] = {{RIG_DATA, 2048}, {0}};

    for (unsigned write = 0; write < 2; write++) {
        for (unsigned dma = 0; dma < 2; dma++) {
            static const uint8_t ops[] = {0x28, 0x55, 0x2a, 0xaa, 0x12, 0x00, 0xbf};

            for (unsigned i = 0; i < sizeof ops; i++) {
                uint8_t cdb[MMC_CDB_SIZE] = {ops[i], 0, 0, 0, 36, 0, 0, 0, 1};
                Taskfile tf = {.command = ATA_CMD_PACKET, .features = (uint16_t)(dma | 4)};

                taskfile_set_byte_count(&tf, 2048);
                rig_slot(rig, 0, 0, &tf, cdb, prds);
                fake_write32(rig->host, rig_list(0),
                             fake_read32(rig->host, rig_list(0)) | (write ? 1 << 6 : 0));
                rig_issue(rig, 0, 1);
                check_ended(rig);
                rig_recover(rig, 0);
            }
        }
    }
    finish(rig);
}

/* PACKET in a slot without the A bit: the packet then comes from the PRDT, as an HBA would send it; short, it
 * aborts. */
static void test_packet_without_atapi_bit(void)
{
    AhciRig *rig = cd_rig_new(false, SECTORS);
    Taskfile tf = {.command = ATA_CMD_PACKET, .features = 1};
    uint8_t cdb[MMC_CDB_SIZE] = {0};

    for (uint32_t room = 0; room <= 12; room += 6) {
        RigPrd prds[] = {{RIG_DATA, room}, {0}};

        memset(rig->host->ram + RIG_DATA, 0, 12); /* TEST UNIT READY */
        rig_slot(rig, 0, 0, &tf, cdb, prds);
        fake_write32(rig->host, rig_list(0), fake_read32(rig->host, rig_list(0)) & ~AHCI_HEADER_ATAPI);
        rig_issue(rig, 0, 1);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, room == 12 ? 0x50 : 0x0451);
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* 9ef2e93f9b: byte count limit 0 looped. With data it aborts, without data it is right; odd ones are rounded.
 */
static void test_byte_count_limit(void)
{
    static const struct {
        uint16_t limit;
        uint32_t tfd, last_block;
    } rows[] = {{0, 0x0451, 0},     {1, 0x50, 6144},      {2, 0x50, 2},
                {2049, 0x50, 2048}, {0xfffe, 0x50, 6144}, {0xffff, 0x50, 6144}};
    AhciRig *rig = cd_rig_new(false, SECTORS);
    uint8_t cdb[MMC_CDB_SIZE] = {0};

    rig_packet(rig, 0, 0, cdb, 0, 0, NULL);
    rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS, 0x50);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        RigPrd prds[] = {{RIG_DATA, 6144}, {0}};

        put_read10(cdb, 1, 3);
        rig_packet(rig, 0, 0, cdb, 0, rows[i].limit, prds);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, rows[i].tfd);
        if (rows[i].last_block) {
            g_assert_cmpuint(load_le16(rig->host->ram + rig_fis(0) + 0x30), ==, rows[i].last_block);
            check_disc(rig, RIG_DATA, 2048, 6144);
        }
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* 61f52e06f0: reads over 128 KiB came back corrupt. */
static void test_large_random_reads(gconstpointer delayed)
{
    AhciRig *rig = cd_rig_new(GPOINTER_TO_INT(delayed), SECTORS);

    for (unsigned i = 0; i < 60; i++) {
        uint32_t count = (uint32_t)g_test_rand_int_range(1, 512);
        uint32_t lba = (uint32_t)g_test_rand_int_range(0, (gint32)(SECTORS - count));
        uint32_t left = count * 2048, at = 0;
        uint64_t addr = RIG_DATA;
        RigPrd prds[600] = {{0}};
        uint8_t cdb[MMC_CDB_SIZE];

        for (unsigned n = 0; left; n++) {
            uint32_t want = (uint32_t)g_test_rand_int_range(1, 8) * 2048, bytes = MIN(left, want);

            prds[n] = (RigPrd){addr, bytes};
            addr += bytes + (g_test_rand_bit() ? 64 : 0);
            left -= bytes;
        }
        put_read10(cdb, lba, (uint16_t)count);
        rig_packet(rig, 0, 0, cdb, i % 3 != 0, 0xfffe, prds);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x50);
        for (unsigned n = 0; prds[n].bytes; n++) {
            check_disc(rig, prds[n].addr, (uint64_t)lba * 2048 + at, prds[n].bytes);
            at += prds[n].bytes;
        }
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* FISes that are none: no device takes them (interface error), nothing hangs. */
static void test_bad_fis(void)
{
    static const struct {
        uint8_t type, words;
    } rows[] = {{0, 5}, {0x34, 5}, {0xff, 5}, {0x27, 0}, {0x27, 1}, {0x27, 4}, {0x27, 17}, {0x27, 31}};
    AhciRig *rig = cd_rig_new(false, SECTORS);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Taskfile tf = {.command = ATA_CMD_FLUSH_CACHE};

        rig_slot(rig, 0, 7, &tf, NULL, NULL);
        rig->host->ram[rig_table(0, 7)] = rows[i].type;
        fake_write32(rig->host, rig_list(0) + 7 * 32, rows[i].words);
        rig_issue(rig, 0, 1u << 7);
        check_ended(rig);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_IS), ==, AHCI_PX_IS_IFS);
        g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, 1u << 7);
        rig_recover(rig, 0);
    }
    finish(rig);
}

/* A table of 65535 descriptors, each of 4 MiB: read in pieces, and no arithmetic overflows. */
static void test_largest_prdt(gconstpointer delayed)
{
    AhciRig *rig = cd_rig_new(GPOINTER_TO_INT(delayed), SECTORS);
    uint64_t table = UINT64_C(0xa00000);
    uint8_t cdb[MMC_CDB_SIZE];
    Taskfile tf = {.command = ATA_CMD_PACKET, .features = 1};

    put_read10(cdb, 3, 500);
    rig_slot(rig, 0, 0, &tf, cdb, NULL);
    memcpy(rig->host->ram + table, rig->host->ram + rig_table(0, 0), AHCI_TABLE_PRDT);
    for (unsigned i = 0; i < 65535; i++) {
        store_le64(rig->host->ram + table + AHCI_TABLE_PRDT + i * 16, i ? UINT64_MAX - 1 : RIG_DATA);
        store_le64(rig->host->ram + table + AHCI_TABLE_PRDT + i * 16 + 8, UINT64_MAX);
    }
    fake_write32(rig->host, rig_list(0), 5 | AHCI_HEADER_ATAPI | 65535u << 16);
    fake_write32(rig->host, rig_list(0) + 8, (uint32_t)table);
    rig_issue(rig, 0, 1);
    check_ended(rig);
    rig_check_done(rig, 0, 0, AHCI_PX_IS_DHRS, 0x50);
    check_disc(rig, RIG_DATA, 3 * 2048, 500 * 2048);
    finish(rig);
}

/* The guest changes table and packet while the command runs: only the first copy counts. */
static void test_table_changes_under_way(void)
{
    AhciRig *rig = cd_rig_new(true, SECTORS);
    RigPrd prds[] = {{RIG_DATA, 4096}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];

    memset(rig->host->ram + RIG_DATA, 0, 16384);
    put_read10(cdb, 4, 2);
    rig_packet(rig, 0, 0, cdb, 1, 0, prds);
    g_assert_true(fake_host_answer(rig->host, 0));
    g_assert_true(fake_host_answer(rig->host, 0));
    memset(rig->host->ram + rig_list(0), 0xff, 32);
    memset(rig->host->ram + rig_table(0, 0), 0xff, 256);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_TFD), ==, 0x50);
    check_disc(rig, RIG_DATA, 4 * 2048, 4096);
    rig_recover(rig, 0);
    finish(rig);
}

/* A register access is answered at once whatever the drive is doing (5f81724d80: the guest froze). */
static void test_registers_while_busy(void)
{
    AhciRig *rig = cd_rig_new(true, SECTORS);
    RigPrd prds[] = {{RIG_DATA, 65536}, {0}};
    uint8_t cdb[MMC_CDB_SIZE];

    put_read10(cdb, 0, 32);
    rig_packet(rig, 0, 0, cdb, 0, 2048, prds);
    for (uint32_t at = 0; at < 0x400; at += 4) {
        rig_read(rig, at);
    }
    rig_issue(rig, 0, ~0u); /* other slots hold rubbish: they come after this one */
    g_assert_cmphex(rig_port_read(rig, 0, AHCI_PX_CI), ==, ~0u);
    g_assert_cmpuint(rig->host->waiting_reads.length, ==, 1);
    rig_settle(rig);
    finish(rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ahci-hostile/CVE-2014-2894-smart", test_smart);
    g_test_add_func("/ahci-hostile/CVE-2015-5154-start-stop-power", test_start_stop_power_condition);
    g_test_add_data_func("/ahci-hostile/CVE-2015-6855-every-ata-command/loaded", GUINT_TO_POINTER(SECTORS),
                         test_every_ata_command);
    g_test_add_data_func("/ahci-hostile/CVE-2015-6855-every-ata-command/empty", NULL, test_every_ata_command);
    g_test_add_data_func("/ahci-hostile/CVE-2015-5158-every-packet/zeros", GINT_TO_POINTER(0),
                         test_every_packet);
    g_test_add_data_func("/ahci-hostile/CVE-2015-5158-every-packet/ones", GINT_TO_POINTER(0xff),
                         test_every_packet);
    g_test_add_data_func("/ahci-hostile/CVE-2014-9718-short-prdt/mmap", GINT_TO_POINTER(0), test_short_prdt);
    g_test_add_data_func("/ahci-hostile/CVE-2014-9718-short-prdt/message", GINT_TO_POINTER(1),
                         test_short_prdt);
    g_test_add_func("/ahci-hostile/GL2777-short-prdt-out", test_short_prdt_out);
    g_test_add_func("/ahci-hostile/CVE-2019-20175-odd-sizes", test_odd_sizes);
    g_test_add_func("/ahci-hostile/CVE-2016-1568-ncq-to-packet-device", test_ncq_to_packet_device);
    g_test_add_func("/ahci-hostile/CVE-2020-29443-read-beyond-end", test_read_beyond_end);
    g_test_add_func("/ahci-hostile/CVE-2019-12067-port-not-running", test_port_not_running);
    g_test_add_data_func("/ahci-hostile/GL62-GL2778-no-memory/mmap", GINT_TO_POINTER(0), test_no_memory);
    g_test_add_data_func("/ahci-hostile/GL62-GL2778-no-memory/message", GINT_TO_POINTER(1), test_no_memory);
    g_test_add_func("/ahci-hostile/bus-mastering-off", test_bus_mastering_off);
    g_test_add_func("/ahci-hostile/GL342-direction-mismatch", test_direction_mismatch);
    g_test_add_func("/ahci-hostile/packet-without-atapi-bit", test_packet_without_atapi_bit);
    g_test_add_func("/ahci-hostile/byte-count-limit", test_byte_count_limit);
    g_test_add_data_func("/ahci-hostile/large-random-reads/mmap", GINT_TO_POINTER(0),
                         test_large_random_reads);
    g_test_add_data_func("/ahci-hostile/large-random-reads/message", GINT_TO_POINTER(1),
                         test_large_random_reads);
    g_test_add_func("/ahci-hostile/bad-fis", test_bad_fis);
    g_test_add_data_func("/ahci-hostile/largest-prdt/mmap", GINT_TO_POINTER(0), test_largest_prdt);
    g_test_add_data_func("/ahci-hostile/largest-prdt/message", GINT_TO_POINTER(1), test_largest_prdt);
    g_test_add_func("/ahci-hostile/table-changes-under-way", test_table_changes_under_way);
    g_test_add_func("/ahci-hostile/registers-while-busy", test_registers_while_busy);
    return g_test_run();
}
