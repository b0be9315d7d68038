/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The published faults of emulated ATA, ATAPI and AHCI devices, one test each, on the whole drive through the
 * socket. What is tried in every way of DMA (lists that are short, addresses that are no memory, resets in
 * flight, places beyond the disc) is in test-vfu-cd.c; with a fake host, and in more depth, in
 * test-ahci-hostile.c and test-mmc-cve.c. "Alive" means that a plain read works afterwards.
 */
#include <string.h>
#include <unistd.h>
#include "block/block.h"
#include "hw/block/mmc.h"
#include "tests/lib/vfu-cd.h"
#include "tests/lib/vfu-fixture.h"
#include "util/bytes.h"

#define SECTORS 400
#define OK      0x50
#define ABORTED 0x0451
#define PX_SACT 0x134
#define PX_TFES 0x40000000u

static VfuCd *cd_new(void)
{
    return vfu_cd_new(VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED, SECTORS * 2048);
}

static void finish(VfuCd *cd)
{
    memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 4 * 2048);
    g_assert_cmphex(vfu_cd_read10(cd, 100, 4), ==, OK);
    vfu_cd_check(cd, VFU_CD_DATA, 100 * 2048, 4 * 2048);
    vfu_cd_free(cd);
}

/* SMART EXECUTE OFFLINE IMMEDIATE ran an index below its log. */
static void test_smart(void)
{
    VfuCd *cd = cd_new();
    static const uint8_t fis[20] = {0x27, 0x80, 0xb0, 0xd4, 1, 0x4f, 0xc2, 0xa0};

    for (unsigned i = 0; i < 21; i++) {
        vfu_cd_issue(cd, 0, fis, NULL, NULL);
        g_assert_cmphex(vfu_cd_wait(cd, 0), ==, ABORTED);
        vfu_cd_recover(cd);
    }
    finish(cd);
}

/* START STOP UNIT with a power condition never completed, with DRQ set. */
static void test_power_condition(void)
{
    VfuCd *cd = cd_new();

    for (unsigned power = 0; power < 16; power++) {
        for (unsigned dma = 0; dma < 2; dma++) {
            const uint8_t packet[16] = {0x1b, 0, 0, 0, power << 4};
            vfu_cd_packet(cd, 0, packet, dma, 2048, NULL);
            g_assert_cmphex(vfu_cd_wait(cd, 0) & 0x88, ==, 0);
            vfu_cd_recover(cd);
        }
    }
    finish(cd);
}

/* READ NATIVE MAX and the like, on a loaded and an empty drive, divided by a geometry of zero. */
static void test_no_geometry(void)
{
    static const uint8_t commands[] = {0xf8, 0x27, 0x20, 0x24, 0x25, 0xc4, 0xc6, 0xf9, 0x91, 0x40};

    for (unsigned loaded = 0; loaded < 2; loaded++) {
        VfuCd *cd = loaded ? cd_new() : vfu_cd_new(VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED, 0);
        for (unsigned i = 0; i < sizeof commands; i++) {
            const uint8_t fis[20] = {0x27, 0x80, commands[i], 0, 0, 0, 0, 0xe0};
            vfu_cd_issue(cd, 0, fis, NULL, NULL);
            g_assert_cmphex(vfu_cd_wait(cd, 0) & 0xff89, ==, ABORTED & 0xff89);
            vfu_cd_recover(cd);
        }
        if (loaded) {
            finish(cd);
        } else {
            vfu_cd_free(cd);
        }
    }
}

/* Groups 3, 6 and 7 have no length: -1 bytes were copied. */
static void test_group_codes(void)
{
    VfuCd *cd = cd_new();

    for (unsigned op = 0x60; op < 0x100; op += op == 0x7f ? 0x41 : 1) {
        uint8_t packet[16] = {op};
        memset(packet + 1, 0xff, 15);
        g_assert_cmphex(vfu_cd_command(cd, packet, 65536), ==, 0x5051);
        g_assert_cmphex(vfu_cd_sense(cd), ==, 0x052000);
    }
    finish(cd);
}

/* A malformed queued command left its slot in use, and the port's reset freed it again. */
static void test_queued(void)
{
    VfuCd *cd = cd_new();

    for (unsigned slot = 0; slot < 32; slot++) {
        const uint8_t fis[20] = {0x27, 0x80, slot % 2 ? 0x60 : 0x61, 0xff, 1, 2, 3, 0x40, [12] = slot << 3};
        vfu_cd_write(cd, PX_SACT, 1u << slot);
        vfu_cd_issue(cd, slot, fis, NULL, NULL);
        g_assert_cmphex(vfu_cd_wait(cd, slot), ==, ABORTED);
        vfu_cd_write(cd, VFU_CD_PX_SCTL, 1);
        vfu_cd_write(cd, VFU_CD_PX_SCTL, 0);
        vfu_cd_recover(cd);
        g_assert_cmphex(vfu_cd_read(cd, PX_SACT), ==, 0);
        vfu_cd_read10(cd, 0, 1); /* takes the attention, if any */
    }
    finish(cd);
}

/* A slot of a port that does not run, or that nothing is attached to, was looked at. */
static void test_not_running(void)
{
    VfuCd *cd = cd_new();

    vfu_cd_write(cd, VFU_CD_PX_CMD, 6);
    while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 0xc000) {
    }
    for (unsigned port = 0; port < 6; port++) {
        vfu_cd_write(cd, VFU_CD_PX_CI + 0x80 * port, UINT32_MAX);
        g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_CI + 0x80 * port), ==, 0);
    }
    vfu_cd_port_up(cd);
    finish(cd);
}

/* Packets whose direction is not that of the DMA (DMADIR of PACKET). */
static void test_direction(void)
{
    static const uint8_t ops[] = {0x28, 0x55, 0x2a, 0xaa, 0x12, 0x00, 0xbf};
    VfuCd *cd = cd_new();

    for (unsigned i = 0; i < sizeof ops; i++) {
        for (unsigned features = 0; features < 8; features++) {
            const uint8_t packet[16] = {ops[i], 0, 0, 0, 36, 0, 0, 0, 1};
            VfuCdPrd prds[] = {{VFU_CD_DATA, 2048}, {0}};
            vfu_cd_packet(cd, 0, packet, features, 2048, prds);
            g_assert_cmphex(vfu_cd_wait(cd, 0) & 0x88, ==, 0);
            vfu_cd_recover(cd);
        }
    }
    finish(cd);
}

/* Replies held bytes of earlier ones, or of the heap. */
static void test_stale_bytes(void)
{
    static const uint8_t queries[][16] = {{0x5a, 0, 0x0e, [8] = 255},
                                          {0x5a, 0, 0x3f, [7] = 4},
                                          {0x03, [4] = 252},
                                          {0x12, [4] = 255},
                                          {0x46, [7] = 4},
                                          {0x43, [7] = 4},
                                          {0x4a, 1, [4] = 0x10, [8] = 255}};
    VfuCd *cd = cd_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(queries); i++) {
        uint8_t first[1024];
        for (unsigned round = 0; round < 2; round++) {
            g_assert_cmphex(vfu_cd_read10(cd, round ? 201 : 7, 16), ==, OK);
            memset(vfu_client_ram(cd->client, VFU_CD_DATA), 0xcc, 65536);
            g_assert_cmphex(vfu_cd_command(cd, queries[i], 65536), ==, OK);
            if (round) {
                g_assert_cmpmem(vfu_client_ram(cd->client, VFU_CD_DATA), sizeof first, first, sizeof first);
            }
            memcpy(first, vfu_client_ram(cd->client, VFU_CD_DATA), sizeof first);
        }
    }
    finish(cd);
}

/* A file that was cut under the guest gave zeros and GOOD. */
static void test_truncated(void)
{
    VfuCd *cd = cd_new();

    g_assert_cmphex(vfu_cd_read10(cd, 250, 8), ==, OK);
    g_assert_cmpint(truncate(cd->disc, 255 * 2048 + 1), ==, 0);
    g_assert_cmphex(vfu_cd_read10(cd, 250, 8) & 1, ==, 1);
    g_assert_cmphex(vfu_cd_sense(cd), ==, 0x031100);
    g_assert_cmphex(vfu_cd_read10(cd, 390, 1) & 1, ==, 1);
    g_assert_cmphex(vfu_cd_sense(cd), ==, 0x031100);
    finish(cd);
}

/* A stuck source froze the guest: registers answer at once, and a reset needs nothing of it. */
static void test_stuck_source(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) options =
        options_parse("driver=fault,hang-read=1,file.driver=mem,file.size=4M", NULL, &error);
    static const uint8_t packet[16] = {0x28, [8] = 16};
    VfuCdPrd prds[] = {{VFU_CD_DATA, 32768}, {0}};
    VfuCd *cd = vfu_cd_new(VFU_DMA_MODE_MESSAGE, VFU_CLIENT_RAM_SEALED, 0);
    BlockNode *node = block_open(options, &error);

    g_assert_no_error(error);
    g_assert_true(mmc_drive_insert(cd->drive, node, false, &error));
    block_unref(node);
    vfu_cd_packet(cd, 0, packet, 1, 0, prds);
    gint64 start = g_get_monotonic_time();
    /* Long enough for a worker to be with the source: a read that a reset takes back before is none. */
    while (g_get_monotonic_time() - start < G_USEC_PER_SEC / 2) {
        g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_CI), ==, 1);
        g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_TFD) & 0x80, ==, 0x80);
    }
    vfu_cd_write(cd, VFU_CD_PX_SCTL, 1);
    vfu_cd_write(cd, VFU_CD_PX_SCTL, 0);
    vfu_cd_recover(cd);
    g_assert_cmphex(vfu_cd_read(cd, VFU_CD_PX_CI), ==, 0);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 5 * G_USEC_PER_SEC);
    vfu_cd_read10(cd, 0, 1); /* takes the attention, if any */
    g_assert_cmphex(vfu_cd_read10(cd, 0, 1), ==, OK);
    vfu_cd_free(cd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vfu-cve/CVE-2014-2894-smart", test_smart);
    g_test_add_func("/vfu-cve/CVE-2015-5154-power-condition", test_power_condition);
    g_test_add_func("/vfu-cve/CVE-2015-6855-no-geometry", test_no_geometry);
    g_test_add_func("/vfu-cve/CVE-2015-5158-group-codes", test_group_codes);
    g_test_add_func("/vfu-cve/CVE-2016-1568-queued", test_queued);
    g_test_add_func("/vfu-cve/CVE-2019-12067-GL2778-not-running", test_not_running);
    g_test_add_func("/vfu-cve/GL342-direction", test_direction);
    g_test_add_func("/vfu-cve/stale-bytes", test_stale_bytes);
    g_test_add_func("/vfu-cve/truncated-file", test_truncated);
    g_test_add_func("/vfu-cve/stuck-source", test_stuck_source);
    return g_test_run();
}
