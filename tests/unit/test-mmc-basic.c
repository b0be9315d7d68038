/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A data disc from INQUIRY to READ(10): what firmware and a booting kernel need.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define DISC "mem,size=8M,pattern=offset"

static void test_power_on_attention(void)
{
    MmcGuest g;
    mmc_guest_setup_raw(&g, DISC, false);
    assert_good(&g, 0x12, 0, 0, 0, 36); /* passes the attention */
    assert_sense(&g, 0x062900, 0x00);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0x062900);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0);
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

static void test_inquiry(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x12, 0, 0, 0, 36);
    assert_data(&g, 0x05, 0x80, 0x05, 0x02, 91, 0, 0, 0, 'S', 'P', 'I', 'N', 'D', 'L', 'E', ' ', 'C', 'D',
                '/', 'D', 'V', 'D', ' ', 'D', 'r', 'i', 'v', 'e', ' ', ' ', ' ', ' ', '1', '.', '0', ' ');
    mmc_guest_teardown(&g);
}

static void test_capacity(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 0x0f, 0xff, 0, 0, 8, 0);
    mmc_guest_teardown(&g);
}

/* Every 8 bytes of the image hold their own offset. */
static void check_pattern(const MmcGuest *g, uint64_t offset, size_t len)
{
    g_assert_cmpuint(g->data->len, ==, len);
    for (size_t at = 0; at < len; at += 8) {
        g_assert_cmpuint(load_le64(g->data->data + at), ==, offset + at);
    }
}

static void test_read(gconstpointer later)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g.later = later != NULL;
    assert_good(&g, 0x28, 0, 0, 0, 0, 16, 0, 0, 1);
    check_pattern(&g, 16 * 2048, 2048);
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0x10, 0x00); /* all of it: several chunks */
    check_pattern(&g, 0, 8 << 20);
    g_assert_cmpuint(g.chunks, ==, 8);
    assert_good(&g, 0xa8, 0, 0, 0, 0x0f, 0xff, 0, 0, 0, 1);
    check_pattern(&g, 0xfff * 2048, 2048);
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0, 0);
    g_assert_cmpuint(g.data->len, ==, 0);
    mmc_guest_teardown(&g);
}

/* Read straight into the guest's memory, in pieces of any size. */
static void test_direct(gconstpointer piece)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g.mapped = true;
    g.piece = GPOINTER_TO_SIZE(piece);
    assert_good(&g, 0x28, 0, 0, 0, 0, 100, 0, 0, 64);
    check_pattern(&g, 100 * 2048, 64 * 2048);
    g_assert_cmpuint(g.direct, ==, 64 * 2048 / g.piece <= 256);
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0x10, 0x00);
    check_pattern(&g, 0, 8 << 20);
    assert_good(&g, 0xbe, 0, 0, 0, 0, 1, 0, 0, 1, 0xf8); /* what must be made is not read directly */
    g_assert_cmpuint(g.direct, ==, 0);
    g_assert_cmpuint(g.data->len, ==, 2352);
    mmc_guest_teardown(&g);
}

static void test_direct_tail(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "mem,size=100000,pattern=7");
    g.mapped = true;
    assert_good(&g, 0x28, 0, 0, 0, 0, 40, 0, 0, 9);
    g_assert_cmpuint(g.direct, ==, 1);
    for (unsigned i = 0; i < 9 * 2048; i++) {
        g_assert_cmphex(g.data->data[i], ==, 40 * 2048 + i < 100000 ? 7 : 0);
    }
    mmc_guest_teardown(&g);
}

/* The fault is found by the other way: the good sectors come, then the error. */
static void test_direct_error(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "fault,bad-offset=204800,bad-bytes=1,file.driver=mem,file.pattern=offset");
    g.mapped = true;
    assert_sense(&g, 0x031100, 0x28, 0, 0, 0, 0, 90, 0, 0, 64);
    check_pattern(&g, 90 * 2048, 10 * 2048);
    g_assert_cmpuint(g.sense.info, ==, 100);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/basic/power-on-attention", test_power_on_attention);
    g_test_add_func("/mmc/basic/inquiry", test_inquiry);
    g_test_add_func("/mmc/basic/capacity", test_capacity);
    g_test_add_data_func("/mmc/basic/read/answered-inside", NULL, test_read);
    g_test_add_data_func("/mmc/basic/read/answered-later", "later", test_read);
    g_test_add_data_func("/mmc/basic/direct/pages", GSIZE_TO_POINTER(4096), test_direct);
    g_test_add_data_func("/mmc/basic/direct/one-piece", GSIZE_TO_POINTER(BUFFER_MAX), test_direct);
    g_test_add_data_func("/mmc/basic/direct/odd-pieces", GSIZE_TO_POINTER(1234), test_direct);
    g_test_add_data_func("/mmc/basic/direct/too-many-pieces", GSIZE_TO_POINTER(256), test_direct);
    g_test_add_func("/mmc/basic/direct/tail", test_direct_tail);
    g_test_add_func("/mmc/basic/direct/error", test_direct_error);
    return g_test_run();
}
