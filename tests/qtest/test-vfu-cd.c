/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The whole drive process but for its command line: AHCI and ATAPI registers driven over the socket, data
 * compared byte for byte with the file, and every malformed input of QEMU's IDE history (named where it came
 * from).
 */
#include <string.h>
#include "tests/lib/vfu-cd.h"
#include "tests/lib/vfu-fixture.h"
#include "util/bytes.h"

#define DISC_BYTES (UINT64_C(24) * 1024 * 1024 + 1000) /* the last sector is short */
#define SECTORS    ((DISC_BYTES + 2047) / 2048)
#define OK         0x50

static const struct {
    const char *name;
    VfuDmaMode mode;
    VfuClientRam kind;
} ways[] = {
    {"mmap-sealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_SEALED},
    {"mmap-unsealed", VFU_DMA_MODE_MMAP, VFU_CLIENT_RAM_UNSEALED},
    {"message-sealed", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED},
    {"message-no-fd", VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_NO_FD},
};

static VfuCd *cd_new(gconstpointer way, uint64_t bytes)
{
    unsigned i = GPOINTER_TO_UINT(way);
    return vfu_cd_new(ways[i].mode, ways[i].kind, bytes);
}

/* Fails the test unless the drive still reads. */
static void assert_reads(VfuCd *cd)
{
    memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 4 * 2048);
    g_assert_cmphex(vfu_cd_read10(cd, 100, 4), ==, OK);
    vfu_cd_check(cd, VFU_CD_DATA, 100 * 2048, 4 * 2048);
}

static void test_identify(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const uint8_t fis[20] = {0x27, 0x80, 0xa1, 0, 0, 0, 0, 0xa0};
    static const uint8_t inquiry[16] = {0x12, 0, 0, 0, 36}, capacity[16] = {0x25};
    VfuCdPrd prds[] = {{VFU_CD_DATA, 512}, {0}};

    g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_SIG), ==, 0xeb140101);
    vfu_cd_issue(cd, 3, fis, NULL, prds);
    g_assert_cmphex(vfu_cd_wait(cd, 3), ==, OK);
    g_assert_cmphex(load_le16(vfu_client_ram(cd->client, VFU_CD_DATA)) & 0xff00, ==, 0x8500);
    g_assert_cmphex(vfu_cd_command(cd, inquiry, 36), ==, OK);
    g_assert_cmphex(*vfu_client_ram(cd->client, VFU_CD_DATA), ==, 5);
    g_assert_cmphex(vfu_cd_command(cd, capacity, 8), ==, OK);
    g_assert_cmpuint(load_be32(vfu_client_ram(cd->client, VFU_CD_DATA)), ==, SECTORS - 1);
    g_assert_cmpuint(load_be32(vfu_client_ram(cd->client, VFU_CD_DATA + 4)), ==, 2048);
}

/* Random places, sizes up to 8 MiB and scatter lists with pieces of any even size, over the whole disc. */
static void test_read_scattered(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const uint16_t counts[] = {1, 2, 15, 16, 63, 64, 65, 200, 511, 512, 513, 1024, 4096};
    VfuCdPrd prds[4097];

    for (unsigned round = 0; round < 40; round++) {
        uint16_t count = counts[round % G_N_ELEMENTS(counts)];
        uint32_t lba = g_test_rand_int_range(0, SECTORS - count), left = count * 2048u, n = 0;
        uint64_t addr = VFU_CD_DATA;
        uint8_t packet[16] = {0x28};
        store_be32(packet + 2, lba);
        store_be16(packet + 7, count);
        while (left) {
            uint32_t most = round % 3 == 0 ? 0x400000 : round % 3 == 1 ? 16384 : 40000;
            uint32_t piece = (uint32_t)g_test_rand_int_range(1, most / 2 + 1) * 2;
            uint32_t part = n == 2000 ? left : MIN(left, piece);
            prds[n++] = (VfuCdPrd){addr, part};
            addr += part + (round % 2 ? 2 * g_test_rand_int_range(0, 3000) : 0);
            left -= part;
        }
        prds[n].bytes = 0;
        vfu_cd_packet(cd, round % 32, packet, 1, 0, prds);
        g_assert_cmphex(vfu_cd_wait(cd, round % 32), ==, OK);
        g_assert_cmpuint(vfu_cd_prdbc(cd, round % 32), ==, count * 2048u);
        uint64_t at = (uint64_t)lba * 2048;
        for (unsigned i = 0; i < n; i++) {
            vfu_cd_check(cd, prds[i].addr, at, prds[i].bytes);
            at += prds[i].bytes;
        }
    }
}

/* Every byte of the disc, in order, 128 KiB at a time; the short last sector is padded with zeros. */
static void test_read_all(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);

    for (uint32_t lba = 0; lba < SECTORS; lba += 64) {
        uint16_t count = MIN(64, SECTORS - lba);
        uint64_t at = (uint64_t)lba * 2048, bytes = MIN(count * 2048, DISC_BYTES - at);
        memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, count * 2048);
        g_assert_cmphex(vfu_cd_read10(cd, lba, count), ==, OK);
        vfu_cd_check(cd, VFU_CD_DATA, at, bytes);
        for (uint64_t i = bytes; i < count * 2048u; i++) {
            g_assert_cmphex(vfu_client_ram(cd->client, VFU_CD_DATA)[i], ==, 0);
        }
    }
}

/* PIO with byte count limits of all kinds, 9ef2e93f9b among them. */
static void test_pio(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const uint16_t limits[] = {0, 1, 2, 3, 511, 2048, 2050, 4095, 0xfffe, 0xffff};

    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        static const uint8_t packet[16] = {0x28, 0, 0, 0, 0, 50, 0, 0, 40};
        VfuCdPrd prds[] = {{VFU_CD_DATA, 40 * 2048}, {0}};
        memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 40 * 2048);
        vfu_cd_packet(cd, 0, packet, 0, limits[i], prds);
        uint32_t tfd = vfu_cd_wait(cd, 0);
        if (tfd == OK) {
            vfu_cd_check(cd, VFU_CD_DATA, 50 * 2048, 40 * 2048);
        } else {
            g_assert_cmphex(tfd, ==, 0x0451); /* ABRT */
            g_assert_cmpuint(limits[i], <, 2);
            vfu_cd_recover(cd);
        }
    }
    assert_reads(cd);
}

/* The data is in memory when its interrupt comes, and one interrupt comes for each command. */
static void test_interrupts(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    bool message = ways[GPOINTER_TO_UINT(way)].mode == VFU_DMA_MODE_MESSAGE;

    vfu_client_settle(cd->client);
    vfu_client_take_irqs(cd->client, VFU_IRQ_MSI);
    for (unsigned i = 0; i < 10; i++) {
        unsigned n, msis = 0;
        vfu_client_clear_dma_log(cd->client);
        g_assert_cmphex(vfu_cd_read10(cd, i * 64, 64), ==, OK);
        vfu_client_settle(cd->client);
        const VfuClientDma *log = vfu_client_dma_log(cd->client, &n);
        for (unsigned k = 0; k < n; k++) {
            msis += log[k].msi;
            g_assert_true(!log[k].msi || k == n - 1 || !log[k + 1].write); /* behind all of the data */
        }
        uint64_t events = vfu_client_take_irqs(cd->client, VFU_IRQ_MSI);
        g_assert_cmpuint(events, ==, message ? 0 : 1);
        g_assert_cmpuint(msis, ==, message ? 1 : 0);
    }
}

/* Two commands of two slots issued at once, and more than the queue of one turn. */
static void test_many_slots(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);

    for (unsigned slot = 0; slot < 32; slot++) {
        uint8_t packet[16] = {0x28, 0, 0, 0, slot, 0, 0, 0, 32};
        VfuCdPrd prds[] = {{VFU_CD_DATA + slot * 65536, 65536}, {0}};
        vfu_cd_packet(cd, slot, packet, 1, 0, prds);
    }
    for (unsigned slot = 0; slot < 32; slot++) {
        g_assert_cmphex(vfu_cd_wait(cd, slot) & 1, ==, 0); /* BSY may be the next one's */
    }
    g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_TFD), ==, OK);
    for (unsigned slot = 0; slot < 32; slot++) {
        vfu_cd_check(cd, VFU_CD_DATA + slot * 65536, slot * 256 * 2048, 65536);
    }
}

/* CVE-2020-29443, 58ac321135: places that are not, or not wholly, on the disc. */
static void test_beyond_the_disc(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const struct {
        uint32_t lba;
        uint16_t count;
    } rows[] = {{SECTORS, 1},     {SECTORS - 1, 2},      {SECTORS - 1, 0xffff}, {UINT32_MAX, 1},
                {UINT32_MAX, 16}, {UINT32_MAX - 15, 16}, {0x80000000, 1},       {SECTORS + 1, 0xffff}};

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t read10[16] = {0x28}, read12[16] = {0xa8}, read_cd[16] = {0xbe, 0, [9] = 0x10};
        store_be32(read10 + 2, rows[i].lba);
        store_be16(read10 + 7, rows[i].count);
        store_be32(read12 + 2, rows[i].lba);
        store_be32(read12 + 6, rows[i].count);
        store_be32(read_cd + 2, rows[i].lba);
        store_be24(read_cd + 6, rows[i].count);
        const uint8_t *packets[] = {read10, read12, read_cd};
        for (unsigned k = 0; k < G_N_ELEMENTS(packets); k++) {
            g_assert_cmphex(vfu_cd_command(cd, packets[k], 0x800000) & 0xff, ==, 0x51);
            g_assert_cmphex(vfu_cd_sense(cd), ==, 0x052100);
        }
    }
    assert_reads(cd);
}

/* CVE-2014-9718, 3bcbe4aa80, CVE-2019-20175, GL2777, GL2778: scatter lists that are empty, short or odd. */
static void test_short_lists(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const uint32_t room[] = {0, 2, 510, 512, 1000, 2046, 2048, 4094};
    static const uint8_t packet[16] = {0x28, 0, 0, 0, 0, 7, 0, 0, 2};

    for (unsigned pio = 0; pio < 2; pio++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(room); i++) {
            VfuCdPrd prds[] = {{VFU_CD_DATA, room[i]}, {0}};
            memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 8192);
            vfu_cd_packet(cd, 0, packet, !pio, pio ? 2048 : 0, prds);
            vfu_cd_wait(cd, 0);
            vfu_client_settle(cd->client);
            for (unsigned k = room[i]; k < 8192; k++) {
                g_assert_cmphex(vfu_client_ram(cd->client, VFU_CD_DATA)[k], ==, 0xcc);
            }
            g_assert_cmpuint(vfu_cd_prdbc(cd, 0), <=, room[i]);
            vfu_cd_recover(cd);
            assert_reads(cd);
        }
    }
}

/* LP1911075 (GL62) and its kin: lists, FISes, tables and data in the controller's own registers, where no
 * memory is, and at the end of the address space. */
static void test_addresses_that_are_no_memory(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const uint64_t places[] = {
        VFU_CD_ABAR,        VFU_CD_ABAR + 0x100,          VFU_CD_RAM,
        VFU_CD_RAM - 0x400, UINT64_C(0xffffffffffffe000), UINT64_C(0x8000000000000000)};
    static const uint8_t packet[16] = {0x28, 0, 0, 0, 0, 7, 0, 0, 2};

    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
        for (unsigned what = 0; what < 4; what++) {
            VfuCdPrd prds[] = {{what == 3 ? places[i] : VFU_CD_DATA, 4096}, {0}};
            if (what < 2) {
                vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
                while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 0xc000) {
                }
                vfu_cd_write(cd, what ? VFU_CD_PX_FB : VFU_CD_PX_CLB, places[i]);
                vfu_cd_write(cd, (what ? VFU_CD_PX_FB : VFU_CD_PX_CLB) + 4, places[i] >> 32);
                vfu_cd_write(cd, VFU_CD_PX_CMD, 0x17);
            }
            vfu_cd_packet(cd, 0, packet, 1, 0, prds);
            if (what == 2) {
                vfu_cd_recover(cd);
                vfu_cd_write(cd, VFU_CD_PX_CMD, 6); /* hold it */
                store_le64(vfu_client_ram(cd->client, 0x1008), places[i]);
                while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 0x8000) {
                }
                vfu_cd_write(cd, VFU_CD_PX_CMD, 0x17);
                vfu_cd_write(cd, VFU_CD_PX_CI, 1);
            }
            vfu_client_settle(cd->client);
            vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
            while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 0xc000) {
            }
            vfu_cd_port_up(cd);
            assert_reads(cd);
        }
    }
}

/* CVE-2014-2894, CVE-2015-6855, CVE-2016-1568: every ATA command there can be, on a loaded and an empty
 * drive. */
static void test_every_ata_command(gconstpointer way)
{
    for (unsigned loaded = 0; loaded < 2; loaded++) {
        g_autoptr(VfuCd) cd = cd_new(way, loaded ? 64 * 2048 : 0);
        VfuCdPrd prds[] = {{VFU_CD_DATA, 8192}, {0}};
        for (unsigned command = 0; command < 256; command++) {
            uint8_t fis[20] = {0x27, 0x80, command, 0xd4, 1, 2, 3, 0xe0, 0, 0, 0, 0, 1};
            uint8_t packet[16] = {0};
            vfu_cd_issue(cd, command % 32, fis, packet, prds);
            vfu_cd_wait(cd, command % 32);
            vfu_cd_recover(cd);
        }
        if (loaded) {
            static const uint8_t packet[16] = {0x28, [5] = 7, [8] = 1};
            g_assert_cmphex(vfu_cd_command(cd, packet, 2048), ==, OK);
            vfu_cd_check(cd, VFU_CD_DATA, 7 * 2048, 2048);
        }
    }
}

/* CVE-2015-5154, CVE-2015-5158, GL342: every packet command, with zeros, ones and a power condition behind
 * it, with and without room for its data. */
static void test_every_packet(gconstpointer way)
{
    static const uint8_t fills[] = {0x00, 0xff, 0x30};

    for (unsigned loaded = 0; loaded < 2; loaded++) {
        g_autoptr(VfuCd) cd = cd_new(way, loaded ? 64 * 2048 : 0);
        for (unsigned i = 0; i < 256 * G_N_ELEMENTS(fills); i++) {
            uint8_t packet[16];
            VfuCdPrd prds[] = {{VFU_CD_DATA, i % 2 ? 65536 : 0}, {0}};
            memset(packet, fills[i / 256], sizeof packet);
            packet[0] = i;
            vfu_cd_packet(cd, 0, packet, i % 4 < 2, i % 8 < 4 ? 0 : 0xfffe, prds);
            uint32_t tfd = vfu_cd_wait(cd, 0);
            g_assert_cmphex(tfd & 0x88, ==, 0); /* neither BSY nor DRQ stays */
            if (tfd & 1 || vfu_cd_read(cd, VFU_CD_PX_CI)) {
                vfu_cd_recover(cd);
            }
        }
        static const uint8_t load[16] = {0x1b, [4] = 3}, ready[16] = {0};
        for (unsigned i = 0; i < 4; i++) {
            vfu_cd_command(cd, load, 0);
            vfu_cd_command(cd, ready, 0);
        }
        g_assert_cmphex(vfu_cd_command(cd, ready, 0), ==, loaded ? OK : 0x2051);
    }
}

/* CVE-2023-5088, CVE-2019-12067: resets of every kind while data is on its way; none of it lands later. */
static void test_reset_in_flight(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);

    for (unsigned i = 0; i < 24; i++) {
        uint8_t packet[16] = {0x28, [5] = i, [7] = 4};
        VfuCdPrd prds[] = {{VFU_CD_DATA, 0x200000}, {0}};
        vfu_client_hold_dma(cd->client, true);
        vfu_cd_packet(cd, 0, packet, 1, 0, prds);
        for (unsigned turn = 0; turn < i / 4; turn++) {
            vfu_cd_read(cd, VFU_CD_PX_CI);
        }
        switch (i % 4) {
        case 0:
            vfu_cd_write(cd, VFU_CD_GHC, 0x80000001); /* HBA reset */
            break;
        case 1:
            vfu_cd_write(cd, VFU_CD_PX_SCTL, 1); /* COMRESET */
            vfu_cd_write(cd, VFU_CD_PX_SCTL, 0);
            break;
        case 2:
            vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
            break;
        case 3:
            vfu_cd_write(cd, VFU_CD_PX_CI, 0);
            vfu_cd_write(cd, VFU_CD_PX_CMD, 0);
            break;
        }
        vfu_cd_read(cd, VFU_CD_PX_CI); /* it has been done */
        vfu_client_hold_dma(cd->client, false);
        /* what the controller shows as over is over */
        while ((vfu_cd_read(cd, VFU_CD_PX_CMD) & 0x8000 && i % 4 != 1) || vfu_cd_read(cd, VFU_CD_GHC) & 1) {
        }
        if (i % 4 == 1) {
            vfu_client_settle(cd->client);
        }
        memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 0x200000);
        vfu_client_settle(cd->client);
        for (unsigned k = 0; k < 0x200000; k++) {
            g_assert_cmphex(vfu_client_ram(cd->client, VFU_CD_DATA)[k], ==, 0xcc);
        }
        vfu_cd_write(cd, VFU_CD_GHC, 0x80000002);
        vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
        while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 0xc000) {
        }
        vfu_cd_port_up(cd);
        vfu_cd_read10(cd, 0, 1); /* takes the attention, if any */
        assert_reads(cd);
    }
}

/* The PCI function is reset, its memory unmapped, bus mastering switched off under a command. */
static void test_taken_away_in_flight(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);

    for (unsigned i = 0; i < 9; i++) {
        uint8_t packet[16] = {0x28, [5] = i, [7] = 4};
        VfuCdPrd prds[] = {{VFU_CD_DATA, 0x200000}, {0}};
        vfu_cd_packet(cd, 0, packet, 1, 0, prds);
        for (unsigned turn = 0; turn < i / 3; turn++) {
            vfu_cd_read(cd, VFU_CD_PX_CI);
        }
        switch (i % 3) {
        case 0:
            g_assert_cmpint(vfu_client_call(cd->client, VFU_DEVICE_RESET, NULL, 0, NULL, 0), ==, 0);
            break;
        case 1:
            g_assert_cmpint(vfu_client_remove_ram(cd->client, 0), ==, 0);
            break;
        case 2:
            vfu_client_write(cd->client, VFU_REGION_CONFIG, 4, 2, 2);
            break;
        }
        vfu_client_settle(cd->client);
        vfu_cd_reconnect(cd, ways[GPOINTER_TO_UINT(way)].kind);
        assert_reads(cd);
    }
}

/* The client dies at any point of a command; the next one finds a drive that works. */
static void test_client_dies_in_flight(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);

    for (unsigned i = 0; i < 12; i++) {
        uint8_t packet[16] = {0x28, [5] = i, [7] = 4};
        VfuCdPrd prds[] = {{VFU_CD_DATA, 0x200000}, {0}};
        vfu_client_hold_dma(cd->client, i % 2);
        vfu_cd_packet(cd, 0, packet, 1, 0, prds);
        for (unsigned turn = 0; turn < i / 2; turn++) {
            vfu_cd_read(cd, VFU_CD_PX_CI);
        }
        vfu_cd_reconnect(cd, ways[GPOINTER_TO_UINT(way)].kind);
        assert_reads(cd);
    }
}

/* Register accesses of every size, at every place of both BARs, with zeros and ones, do nothing worse than
 * stop. */
static void test_every_register(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, DISC_BYTES);
    static const struct {
        unsigned bar, size;
    } bars[] = {{4, 0x20}, {5, 0x1000}};

    for (unsigned b = 0; b < G_N_ELEMENTS(bars); b++) {
        for (unsigned size = 1; size <= 8; size *= 2) {
            for (unsigned at = 0; at + size <= bars[b].size; at += at < 0x200 ? 1 : 61) {
                vfu_client_post(cd->client, bars[b].bar, at, size, UINT64_MAX);
                vfu_client_post(cd->client, bars[b].bar, at, size, 0);
                vfu_client_read(cd->client, bars[b].bar, at, size);
            }
        }
    }
    vfu_cd_reconnect(cd, ways[GPOINTER_TO_UINT(way)].kind);
    assert_reads(cd);
}

/* "[M]": a medium of less than a sector. */
static void test_tiny_disc(gconstpointer way)
{
    g_autoptr(VfuCd) cd = cd_new(way, 100);
    static const uint8_t capacity[16] = {0x25};

    g_assert_cmphex(vfu_cd_command(cd, capacity, 8), ==, OK);
    g_assert_cmpuint(load_be32(vfu_client_ram(cd->client, VFU_CD_DATA)), ==, 0);
    memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 4096);
    g_assert_cmphex(vfu_cd_read10(cd, 0, 1), ==, OK);
    vfu_cd_check(cd, VFU_CD_DATA, 0, 100);
    for (unsigned i = 100; i < 2048; i++) {
        g_assert_cmphex(vfu_client_ram(cd->client, VFU_CD_DATA)[i], ==, 0);
    }
    g_assert_cmphex(*vfu_client_ram(cd->client, VFU_CD_DATA + 2048), ==, 0xcc);
}

static void add(const char *name, GTestDataFunc func)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *path = g_strdup_printf("/vfu-cd/%s/%s", name, ways[i].name);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), func);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("identify", test_identify);
    add("61f52e06f0-read-scattered", test_read_scattered);
    add("read-all", test_read_all);
    add("9ef2e93f9b-pio", test_pio);
    add("interrupts", test_interrupts);
    add("many-slots", test_many_slots);
    add("CVE-2020-29443-beyond-the-disc", test_beyond_the_disc);
    add("CVE-2014-9718-CVE-2019-20175-short-lists", test_short_lists);
    add("GL62-GL2778-LP1884693-addresses-that-are-no-memory", test_addresses_that_are_no_memory);
    add("CVE-2015-6855-every-ata-command", test_every_ata_command);
    add("CVE-2015-5154-CVE-2015-5158-every-packet", test_every_packet);
    add("CVE-2023-5088-CVE-2019-12067-reset-in-flight", test_reset_in_flight);
    add("taken-away-in-flight", test_taken_away_in_flight);
    add("client-dies-in-flight", test_client_dies_in_flight);
    add("every-register", test_every_register);
    add("tiny-disc", test_tiny_disc);
    return g_test_run();
}
