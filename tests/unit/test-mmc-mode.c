/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * MODE SELECT: what may be changed and what not, block lengths, all or nothing; and what READ(10) makes of a
 * block length.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define DISC "mem,size=1M,pattern=offset"

/* A header of the 10-byte form and `page`. */
static uint32_t select_page(MmcGuest *g, const uint8_t *page, size_t len)
{
    uint8_t list[300] = {0};
    memcpy(list + 8, page, len);
    return mmc_guest_send(g, CDB(0x55, 0x10, 0, 0, 0, 0, 0, (8 + len) >> 8, (8 + len) & 255), list, 8 + len);
}

static uint32_t select_block_length(MmcGuest *g, uint32_t length)
{
    uint8_t list[12] = {0, 0, 0, 8};
    store_be32(list + 8, length);
    return mmc_guest_send(g, CDB(0x15, 0x10, 0, 0, 12), list, 12);
}

typedef struct Row {
    const char *name;
    uint8_t list[64];
    unsigned len;
    uint32_t sense;
} Row;

/* Lists of the 6-byte form. */
static const Row rows[] = {
    {"header-only", {0}, 4, 0},
    {"short-header", {0}, 3, 0x051a00},
    {"descriptor-2048", {0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 8, 0}, 12, 0},
    {"descriptor-length-7", {0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 8}, 11, 0x052600},
    {"descriptor-cut", {0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 8}, 11, 0x051a00},
    {"two-descriptors", {0, 0, 0, 16}, 20, 0x052600},
    {"recovery", {0, 0, 0, 0, 0x01, 0x0a, 0x20, 9}, 16, 0},
    {"recovery-page-cut", {0, 0, 0, 0, 0x01, 0x0a, 0x20, 9}, 15, 0x051a00},
    {"recovery-page-of-one-byte", {0, 0, 0, 0, 0x01}, 5, 0x051a00},
    {"recovery-wrong-length", {0, 0, 0, 0, 0x01, 0x06, 0x20, 9}, 12, 0x052600},
    {"recovery-reserved-bit", {0, 0, 0, 0, 0x01, 0x0a, 0x40, 5}, 16, 0x052600},
    {"recovery-impossible-combination", {0, 0, 0, 0, 0x01, 0x0a, 0x12, 5}, 16, 0x052600},
    {"recovery-fixed-byte", {0, 0, 0, 0, 0x01, 0x0a, 0x00, 5, 1}, 16, 0x052600},
    {"audio-volumes", {0, 0, 0, 0, 0x0e, 0x0e, 4, 0, 0, 0, 0, 75, 2, 0x80, 1, 0x40}, 20, 0},
    {"audio-fixed-byte", {0, 0, 0, 0, 0x0e, 0x0e, 4, 0, 0, 0, 0, 0, 1, 255, 2, 255}, 20, 0x052600},
    {"inactivity-timer", {0, 0, 0, 0, 0x0d, 6, 0, 0x0f, 0, 60, 0, 75}, 12, 0},
    {"power-timers", {0, 0, 0, 0, 0x1a, 0x0a, 0, 3, 0, 0, 1, 0, 0, 0, 2, 0}, 16, 0},
    {"timeout-unchanged", {0, 0, 0, 0, 0x1d, 8, 0, 0, 0, 0, 0, 30, 0, 60}, 14, 0},
    {"timeout-changed", {0, 0, 0, 0, 0x1d, 8, 0, 0, 0, 0, 0, 31, 0, 60}, 14, 0x052600},
    {"unknown-page", {0, 0, 0, 0, 0x05, 2, 0, 0}, 8, 0x052600},
    {"sub-page-format", {0, 0, 0, 0, 0x41, 0x0a}, 16, 0x052600},
    {"two-pages", {0, 0, 0, 0, 0x0d, 6, 0, 1, 0, 60, 0, 75, 0x01, 0x0a, 0x01, 1}, 24, 0},
    {"second-page-bad", {0, 0, 0, 0, 0x0d, 6, 0, 1, 0, 60, 0, 75, 0x05, 0x0a}, 24, 0x052600},
};

static void test_list(gconstpointer data)
{
    const Row *row = data;
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g_autoptr(GByteArray) before = g_byte_array_new();
    assert_good(&g, 0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0);
    g_byte_array_append(before, g.data->data, g.data->len);
    const uint8_t cdb[] = {0x15, 0x10, 0, 0, (uint8_t)row->len};
    g_assert_cmphex(mmc_guest_send(&g, cdb, sizeof cdb, row->list, row->len), ==, row->sense);
    g_assert_cmpuint(g.wanted, ==, row->len);
    if (row->sense) { /* nothing of it counts */
        assert_good(&g, 0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0);
        g_assert_cmpmem(g.data->data, g.data->len, before->data, before->len);
    } else if (row->len > 4 && row->list[3] == 0) { /* it comes back */
        const uint8_t page = row->list[4], size = row->list[5] + 2;
        assert_good(&g, 0x1a, 0, page, 0, 255);
        g_assert_cmpmem(g.data->data + 4, size, row->list + 4, size);
        assert_good(&g, 0x1a, 0, 0x80 | page, 0, 255); /* the default stays */
        mmc_drive_reset(g.drive, true);
        assert_sense(&g, 0x062900, 0x00);
        g_autoptr(GByteArray) fresh = g_byte_array_new();
        assert_good(&g, 0x1a, 0, 0x80 | page, 0, 255);
        g_byte_array_append(fresh, g.data->data, g.data->len);
        assert_good(&g, 0x1a, 0, page, 0, 255); /* reset brings it back */
        g_assert_cmpmem(g.data->data, g.data->len, fresh->data, fresh->len);
    }
    mmc_guest_teardown(&g);
}

/* What MODE SENSE of all pages gave may be sent back as it is, though some of it moves. */
static void test_round_trip(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1e, 0, 0, 0, 1);
    assert_good(&g, 0xbb, 0, 0x02, 0xc0);
    assert_good(&g, 0x5a, 0, 0x3f, 0, 0, 0, 0, 1, 0);
    g_autofree uint8_t *list = g_memdup2(g.data->data, g.data->len);
    const unsigned len = g.data->len;
    g_assert_cmphex(mmc_guest_send(&g, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, len), list, len), ==, 0);
    assert_good(&g, 0x1e, 0, 0, 0, 0);
    assert_good(&g, 0x1a, 0, 0x2a, 0, 255);
    g_assert_cmphex(g.data->data[4 + 6], ==, 0x29); /* unlocked: the page tells, it does not remember */
    mmc_guest_teardown(&g);
}

static void test_every_bit(void)
{
    static const uint8_t codes[] = {0x01, 0x0d, 0x0e, 0x1a, 0x1d, 0x2a};
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    for (unsigned c = 0; c < sizeof codes; c++) {
        uint8_t page[64], mask[64];
        assert_good(&g, 0x1a, 0, codes[c], 0, 255);
        const unsigned size = g.data->len - 4;
        memcpy(page, g.data->data + 4, size);
        assert_good(&g, 0x1a, 0, 0x40 | codes[c], 0, 255);
        memcpy(mask, g.data->data + 4, size);
        g_assert_cmpmem(mask, 2, page, 2);
        for (unsigned bit = 16; bit < size * 8; bit++) {
            page[bit / 8] ^= 1 << bit % 8;
            const bool changeable = mask[bit / 8] >> bit % 8 & 1;
            const uint32_t sense = select_page(&g, page, size);
            if (changeable && codes[c] != 0x01) { /* 01 has combinations that mean nothing */
                g_assert_cmphex(sense, ==, 0);
            } else if (!changeable) {
                g_assert_cmphex(sense, ==, 0x052600);
            }
            page[bit / 8] ^= 1 << bit % 8;
            g_assert_cmphex(select_page(&g, page, size), ==, 0);
        }
    }
    mmc_guest_teardown(&g);
}

static void test_block_length_512(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g_assert_cmphex(select_block_length(&g, 512), ==, 0);
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 0x07, 0xff, 0, 0, 2, 0);
    assert_good(&g, 0x1a, 0, 0x0d, 0, 255);
    g_assert_cmphex(g.data->data[3], ==, 8);
    g_assert_cmpuint(load_be24(g.data->data + 9), ==, 512);
    assert_good(&g, 0x1a, 8, 0x0d, 0, 255); /* DBD */
    g_assert_cmphex(g.data->data[3], ==, 0);
    for (unsigned start = 0; start < 9; start++) {
        for (unsigned n = 1; n < 12; n++) {
            assert_good(&g, 0x28, 0, 0, 0, 0, start, 0, 0, n);
            g_assert_cmpuint(g.data->len, ==, n * 512);
            for (unsigned at = 0; at < n * 512; at += 8) {
                g_assert_cmpuint(load_le64(g.data->data + at), ==, start * 512 + at);
            }
        }
    }
    assert_good(&g, 0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 1);
    assert_sense(&g, 0x052100, 0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 2);
    assert_sense(&g, 0x052100, 0x28, 0, 0, 0, 0x08, 0x00, 0, 0, 1);
    assert_good(&g, 0x28, 0, 0, 0, 0, 1, 0, 0x07, 0xff);
    g_assert_cmpuint(g.data->len, ==, 0x7ff * 512);
    assert_good(&g, 0xbe, 0, 0, 0, 0x01, 0xff, 0, 0, 1, 0x10); /* READ CD counts in sectors all the same */
    g_assert_cmpuint(load_le64(g.data->data), ==, 511 * 2048);
    mmc_drive_reset(g.drive, true);
    assert_sense(&g, 0x062900, 0x00);
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 0x01, 0xff, 0, 0, 8, 0);
    mmc_guest_teardown(&g);
}

static void test_block_length_raw(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0xbe, 0, 0, 0, 0, 16, 0, 0, 3, 0xf8);
    g_autoptr(GByteArray) raw = g_byte_array_new();
    g_byte_array_append(raw, g.data->data, g.data->len);
    g_assert_cmphex(select_block_length(&g, 2352), ==, 0);
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 0x01, 0xff, 0, 0, 9, 0x30);
    assert_good(&g, 0x28, 0, 0, 0, 0, 16, 0, 0, 3);
    g_assert_cmpmem(g.data->data, g.data->len, raw->data, raw->len);
    g_assert_cmphex(select_block_length(&g, 2336), ==, 0);
    assert_good(&g, 0x28, 0, 0, 0, 0, 16, 0, 0, 1); /* mode 1 has as many bytes behind its header */
    g_assert_cmpmem(g.data->data, g.data->len, raw->data + 16, 2336);
    mmc_guest_teardown(&g);
}

/* CVE-2023-42467: a length that something is divided by later, or that is none. */
static void test_block_length_bad(void)
{
    static const uint32_t bad[] = {0, 1, 256, 511, 513, 1024, 2047, 2049, 2324, 2448, 4096, 0xffffff};
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(select_block_length(&g, bad[i]), ==, 0x052600);
        assert_good(&g, 0x25);
        assert_data(&g, 0, 0, 0x01, 0xff, 0, 0, 8, 0);
    }
    mmc_guest_teardown(&g);
}

static void test_fewer_bytes_than_announced(gconstpointer later)
{
    const uint8_t list[16] = {0, 0, 0, 0, 0x01, 0x0a, 0, 9};
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g.later = later != NULL;
    g_assert_cmphex(mmc_guest_send(&g, CDB(0x15, 0x10, 0, 0, 16), list, 10), ==, 0x051a00);
    g_assert_cmphex(mmc_guest_send(&g, CDB(0x15, 0x10, 0, 0, 16), list, 16), ==, 0);
    assert_good(&g, 0x15, 0x10, 0, 0, 0); /* none */
    g_assert_cmpuint(g.wanted, ==, 0);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/mmc/mode-select/%s", rows[i].name);
        g_test_add_data_func(name, &rows[i], test_list);
    }
    g_test_add_func("/mmc/mode-select/round-trip", test_round_trip);
    g_test_add_func("/mmc/mode-select/every-bit", test_every_bit);
    g_test_add_func("/mmc/block-length/512", test_block_length_512);
    g_test_add_func("/mmc/block-length/2352-and-2336", test_block_length_raw);
    g_test_add_func("/mmc/block-length/CVE-2023-42467-bad", test_block_length_bad);
    g_test_add_data_func("/mmc/mode-select/fewer-bytes/inside", NULL, test_fewer_bytes_than_announced);
    g_test_add_data_func("/mmc/mode-select/fewer-bytes/later", "later", test_fewer_bytes_than_announced);
    return g_test_run();
}
