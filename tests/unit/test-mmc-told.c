/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Replies that tell of the drive's state, and follow it: features, speed, power and media events, position.
 */
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define CD "mem,size=1M" /* 512 sectors */

/* Features are in ascending order, their lengths are true, and RT 1 is exactly the current ones of RT 0. */
static void test_configuration_walk(gconstpointer disc)
{
    MmcGuest g;
    mmc_guest_setup(&g, disc);
    g_autoptr(GByteArray) current = g_byte_array_new();
    assert_good(&g, 0x46, 0, 0, 0, 0, 0, 0, 0x10, 0);
    g_assert_cmpuint(load_be32(g.data->data), ==, g.data->len - 4);
    int last = -1;
    for (size_t at = 8; at < g.data->len; at += 4u + g.data->data[at + 3]) {
        const uint8_t *feature = g.data->data + at;
        g_assert_cmpint(load_be16(feature), >, last);
        last = load_be16(feature);
        g_assert_cmpuint(feature[3] % 4, ==, 0);
        g_assert_true(!(feature[2] & 2) || feature[2] & 1); /* persistent: current */
        g_assert_cmpuint(at + 4 + feature[3], <=, g.data->len);
        if (feature[2] & 1) {
            g_byte_array_append(current, feature, 4u + feature[3]);
        }
    }
    g_assert_cmpint(last, ==, 0x0108);
    assert_good(&g, 0x46, 1, 0, 0, 0, 0, 0, 0x10, 0);
    g_assert_cmpmem(g.data->data + 8, g.data->len - 8, current->data, current->len);
    mmc_guest_teardown(&g);
}

static void test_speed_is_told_back(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, CD);
    assert_good(&g, 0xbb, 0, 0x02, 0xc0, 0xff, 0xff); /* 704 kB/s */
    assert_good(&g, 0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255);
    g_assert_cmpuint(load_be16(g.data->data + 8 + 14), ==, 704);
    assert_good(&g, 0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1);
    g_assert_cmpuint(load_be32(g.data->data + 12), ==, 704);
    uint8_t streaming[28] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0x10, 0, 0, 0, 3, 232};
    g_assert_cmphex(mmc_guest_send(&g, CDB(0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28), streaming, 28), ==, 0);
    assert_good(&g, 0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1);
    g_assert_cmpuint(load_be32(g.data->data + 12), ==, 4096);
    assert_good(&g, 0xbb, 0, 0xff, 0xff, 0xff, 0xff);
    assert_good(&g, 0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255);
    g_assert_cmpuint(load_be16(g.data->data + 8 + 14), ==, 9173);
    streaming[16] = streaming[17] = streaming[18] = streaming[19] = 0; /* in no time */
    g_assert_cmphex(mmc_guest_send(&g, CDB(0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28), streaming, 28), ==,
                    0x052600);
    g_assert_cmphex(mmc_guest_send(&g, CDB(0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28), streaming, 20), ==,
                    0x051a00);
    mmc_guest_teardown(&g);
}

static void test_power_events(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, CD);
    assert_good(&g, 0x1b, 0, 0, 0, 0x30);             /* standby */
    assert_good(&g, 0x4a, 1, 0, 0, 0x04, 0, 0, 0, 4); /* the header alone takes nothing */
    assert_good(&g, 0x4a, 1, 0, 0, 0x14, 0, 0, 0, 8); /* before media, which has none */
    assert_data(&g, 0, 6, 2, 0x5e, 1, 3, 0, 0);
    assert_good(&g, 0x4a, 1, 0, 0, 0x04, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 2, 0x5e, 0, 3, 0, 0);
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
    assert_good(&g, 0x4a, 1, 0, 0, 0x04, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 2, 0x5e, 0, 1, 0, 0); /* a read wakes it */
    mmc_guest_teardown(&g);
}

static void test_change_events(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, CD);
    g_assert_true(mmc_drive_insert(g.drive, g.node, true, NULL));
    assert_good(&g, 0x4a, 1, 0, 0, 0x12, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 1, 0x5e, 2, 0, 0, 1); /* features changed */
    assert_good(&g, 0x4a, 1, 0, 0, 0x12, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 3, 0, 0, 0); /* removal: nothing in */
    assert_good(&g, 0x4a, 1, 0, 0, 0x12, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 2, 2, 0, 0); /* new media */
    assert_good(&g, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 0, 2, 0, 0);
    mmc_guest_teardown(&g);
}

static void test_sub_channel_position(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, CD);
    assert_good(&g, 0x28, 0, 0, 0, 0x01, 0x00, 0, 0, 1);
    assert_good(&g, 0x42, 2, 0x40, 1, 0, 0, 0, 0, 255);
    assert_data(&g, 0, 0x15, 0, 12, 1, 0x14, 1, 1, 0, 0, 5, 31, 0, 0, 3, 31); /* 256 = 3 s 31 f */
    assert_good(&g, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8);
    assert_data(&g, 0, 0, 0, 1, 0, 1, 0, 0);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/mmc/told/configuration-walk/empty", NULL, test_configuration_walk);
    g_test_add_data_func("/mmc/told/configuration-walk/cd", CD, test_configuration_walk);
    g_test_add_data_func("/mmc/told/configuration-walk/dvd", "null-co,size=4G", test_configuration_walk);
    g_test_add_data_func("/mmc/told/configuration-walk/bd", "null-co,size=25000000000",
                         test_configuration_walk);
    g_test_add_func("/mmc/told/speed", test_speed_is_told_back);
    g_test_add_func("/mmc/told/events/power", test_power_events);
    g_test_add_func("/mmc/told/events/change", test_change_events);
    g_test_add_func("/mmc/told/position", test_sub_channel_position);
    return g_test_run();
}
