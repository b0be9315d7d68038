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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/basic/power-on-attention", test_power_on_attention);
    g_test_add_func("/mmc/basic/inquiry", test_inquiry);
    g_test_add_func("/mmc/basic/capacity", test_capacity);
    g_test_add_data_func("/mmc/basic/read/answered-inside", NULL, test_read);
    g_test_add_data_func("/mmc/basic/read/answered-later", "later", test_read);
    return g_test_run();
}
