/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Read-ahead: a sequential reader of a slow source gets all that the source gives, nothing is read twice,
 * random readers and fast sources are left alone, and nothing is kept that is not true or not wanted.
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define SLOW(what) "fault,slow=on," what "file.driver=mem,file.size=32M,file.pattern=offset"
#define CHUNK      (64 * 2048) /* bytes of a usual command */

static void check_pattern(const MmcGuest *g, uint64_t offset, size_t len)
{
    g_assert_cmpuint(g->data->len, ==, len);
    for (size_t at = 0; at < len; at += 8) {
        g_assert_cmpuint(load_le64(g->data->data + at), ==, offset + at);
    }
}

static void setup(MmcGuest *g, const char *node)
{
    mmc_guest_setup_raw(g, node, true);
    assert_sense(g, 0x062900, 0x00);
    g->later = true; /* the loop turns between commands, as in life */
}

static uint32_t read_at(MmcGuest *g, uint32_t lba, uint32_t sectors)
{
    const uint8_t cdb[] = {0x28, 0, lba >> 24, lba >> 16, lba >> 8, lba, 0, sectors >> 8, sectors};
    return mmc_guest_run(g, cdb, sizeof cdb);
}

static const SourceStats *stats(const MmcGuest *g)
{
    return source_stats(g->drive->source);
}

static uint64_t bytes_read(const MmcGuest *g)
{
    return block_stats(g->node)->bytes[BLOCK_READ];
}

static void test_sequential(void)
{
    MmcGuest g;
    setup(&g, SLOW("delay-read-ns=1000000,"));
    for (uint32_t lba = 0; lba < 8192; lba += 64) {
        g_assert_cmphex(read_at(&g, lba, 64), ==, 0);
        check_pattern(&g, lba * 2048ull, CHUNK);
    }
    g_assert_cmpuint(stats(&g)->misses, <=, 3);
    g_assert_cmpuint(stats(&g)->hits + stats(&g)->waits, >=, 120);
    mmc_guest_until(!g.drive->source || bytes_read(&g) >= 16 << 20);
    g_assert_cmpuint(bytes_read(&g), <=, (16 << 20) + 2 * BUFFER_MAX); /* once, and two spans ahead */
    mmc_guest_teardown(&g);
}

/* To the end of the disc and no further; the short sector there is padded in a span too. */
static void test_to_the_end(void)
{
    MmcGuest g;
    setup(&g, "fault,slow=on,file.driver=mem,file.size=3000000,file.pattern=7");
    for (uint32_t lba = 0; lba < 1465; lba += 10) {
        const uint32_t n = MIN(10, 1465 - lba);
        g_assert_cmphex(read_at(&g, lba, n), ==, 0);
        g_assert_cmpuint(g.data->len, ==, n * 2048);
    }
    const unsigned rest = 3000000 % 2048;
    for (unsigned i = 0; i < 2048; i++) {
        g_assert_cmphex(g.data->data[g.data->len - 2048 + i], ==, i < rest ? 7 : 0);
    }
    g_assert_cmpuint(bytes_read(&g), ==, 3000000);
    mmc_guest_teardown(&g);
}

/* What is on its way is waited for, not read again. */
static void test_single_flight(void)
{
    MmcGuest g;
    setup(&g, SLOW("bps-read=1M,"));
    g_assert_cmphex(read_at(&g, 0, 16), ==, 0);
    g_assert_cmphex(read_at(&g, 16, 16), ==, 0);
    g_assert_cmpuint(stats(&g)->ahead, ==, 2);
    g_assert_cmphex(read_at(&g, 32, 16), ==, 0);
    check_pattern(&g, 32 * 2048, 16 * 2048);
    g_assert_cmpuint(stats(&g)->waits, ==, 1);
    g_assert_cmpuint(stats(&g)->misses, ==, 2);
    mmc_guest_teardown(&g);
}

static void test_random_reader(void)
{
    MmcGuest g;
    setup(&g, SLOW(""));
    for (unsigned i = 0; i < 200; i++) {
        const uint32_t lba = (i * 7919u) % 16000;
        g_assert_cmphex(read_at(&g, lba, 2), ==, 0);
        check_pattern(&g, lba * 2048ull, 4096);
    }
    g_assert_cmpuint(stats(&g)->ahead, <=, 2);
    g_assert_cmpuint(bytes_read(&g), <=, 200 * 4096 + 2 * 128 * 1024);
    mmc_guest_teardown(&g);
}

/* Page cache and the like need no help, which would cost a hand-off. */
static void test_fast_source(void)
{
    MmcGuest g;
    setup(&g, "mem,size=32M,pattern=offset");
    for (uint32_t lba = 0; lba < 16384; lba += 64) {
        g_assert_cmphex(read_at(&g, lba, 64), ==, 0);
    }
    g_assert_cmpuint(stats(&g)->ahead, ==, 0);
    mmc_guest_teardown(&g);
}

/* A source that does not say so but is slow is found out. */
static void test_slow_source_found_out(void)
{
    MmcGuest g;
    setup(&g, "fault,slow=off,delay-read-ns=3000000,file.driver=mem,file.size=32M,file.pattern=offset");
    for (uint32_t lba = 0; lba < 2048; lba += 64) {
        g_assert_cmphex(read_at(&g, lba, 64), ==, 0);
        check_pattern(&g, lba * 2048ull, CHUNK);
    }
    g_assert_cmpuint(stats(&g)->ahead, >, 0);
    mmc_guest_teardown(&g);
}

static void test_off(void)
{
    MmcGuest g;
    mmc_guest_setup_raw(&g, SLOW(""), false);
    assert_sense(&g, 0x062900, 0x00);
    for (uint32_t lba = 0; lba < 1024; lba += 64) {
        g_assert_cmphex(read_at(&g, lba, 64), ==, 0);
    }
    g_assert_cmpuint(stats(&g)->ahead, ==, 0);
    mmc_guest_teardown(&g);
}

/* Odd lengths, jumps, going back, overlapping: always the right bytes. */
static void test_model(void)
{
    MmcGuest g;
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)g_test_rand_int());
    setup(&g, SLOW("delay-read-ns=200000,"));
    uint32_t lba = 0;
    for (unsigned i = 0; i < 1500; i++) {
        const uint32_t n = (uint32_t)g_rand_int_range(rand, 1, g_rand_boolean(rand) ? 700 : 40);
        switch (g_rand_int_range(rand, 0, 12)) {
        case 0:
            lba = (uint32_t)g_rand_int_range(rand, 0, 16000);
            break;
        case 1:
            lba -= MIN(lba, 30);
            break;
        default:
            break;
        }
        lba = lba + n > 16384 ? 0 : lba;
        g_assert_cmphex(read_at(&g, lba, n), ==, 0);
        check_pattern(&g, lba * 2048ull, n * 2048ull);
        lba += n;
    }
    mmc_guest_teardown(&g);
}

/* A bad sector inside a span: the reader gets all before it, and then exactly that error. */
static void test_error_in_a_span(void)
{
    MmcGuest g;
    setup(&g, SLOW("bad-offset=1024000,bad-bytes=1,")); /* sector 500 */
    uint32_t lba = 0;
    while (read_at(&g, lba, 16) == 0) {
        check_pattern(&g, lba * 2048ull, 16 * 2048);
        lba += 16;
    }
    g_assert_cmpuint(lba, ==, 496);
    g_assert_cmphex(g.sense.asc, ==, 0x11);
    g_assert_cmpuint(g.sense.info, ==, 500);
    check_pattern(&g, 496 * 2048, 4 * 2048);
    mmc_guest_teardown(&g);
}

/* Never the old disc's bytes. */
static void test_medium_change(void)
{
    MmcGuest g;
    setup(&g, SLOW(""));
    BlockNode *other = mmc_guest_open("mem,size=32M,pattern=9");
    g_assert_cmphex(read_at(&g, 0, 16), ==, 0);
    g_assert_cmphex(read_at(&g, 16, 16), ==, 0);
    g_assert_cmpuint(stats(&g)->ahead, >, 0);
    g_assert_true(mmc_drive_insert(g.drive, other, true, NULL));
    assert_sense(&g, 0x023a01, 0x00);
    assert_sense(&g, 0x062800, 0x00);
    g_assert_cmphex(read_at(&g, 32, 16), ==, 0);
    for (unsigned i = 0; i < g.data->len; i++) {
        g_assert_cmphex(g.data->data[i], ==, 9);
    }
    block_unref(other);
    mmc_guest_teardown(&g);
}

/* A span that hangs: whoever waits for it can be abandoned, and after a reset the source is asked anew. */
static void test_hung_span(void)
{
    MmcGuest g;
    /* room for one span: the third read */
    setup(&g, "fault,slow=on,hang-read=3,file.driver=mem,file.size=192k,file.pattern=offset");
    g_assert_cmphex(read_at(&g, 0, 16), ==, 0);
    g_assert_cmphex(read_at(&g, 16, 16), ==, 0);
    mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 32, 0, 0, 16));
    for (unsigned i = 0; i < 50; i++) {
        g_main_context_iteration(NULL, FALSE);
        g_usleep(100);
    }
    g_assert_cmpuint(g.ends, ==, 0);
    mmc_guest_abandon(&g);
    mmc_drive_reset(g.drive, true);
    assert_sense(&g, 0x062900, 0x00);
    mmc_guest_teardown(&g);
}

static void test_idle_gives_memory_back(void)
{
    MmcGuest g;
    setup(&g, SLOW(""));
    g_assert_cmphex(read_at(&g, 0, 16), ==, 0);
    g_assert_cmphex(read_at(&g, 16, 16), ==, 0);
    const uint64_t ahead = stats(&g)->ahead;
    g_assert_cmpuint(ahead, >, 0);
    mmc_guest_until(stats(&g)->dropped == ahead);
    g_assert_cmphex(read_at(&g, 32, 16), ==, 0);
    check_pattern(&g, 32 * 2048, 16 * 2048);
    mmc_guest_teardown(&g);
}

typedef struct SpeedRow {
    const char *name;
    uint64_t speed;
    uint32_t sectors;
} SpeedRow;

static const SpeedRow speeds[] = {
    {"11MB-32K", 11000000, 16},
    {"11MB-128K", 11000000, 64},
    {"36MB-32K", 36000000, 16},
    {"36MB-128K", 36000000, 64},
};

/* A source of so many bytes a second, read by commands of a size, by a guest that thinks half as long as the
 * source takes for one: from the third command on none goes to the source by itself. How fast that is says
 * ./bench. */
static void test_speed(gconstpointer data)
{
    const SpeedRow *row = data;
    const unsigned pause_us = (unsigned)(row->sectors * 2048ull * 1000000 / row->speed / 2);
    const uint32_t commands = (uint32_t)(row->speed / (row->sectors * 2048));
    g_autofree char *node =
        g_strdup_printf("fault,bps-read=%" G_GUINT64_FORMAT ",file.driver=mem,file.size=%" G_GUINT64_FORMAT
                        ",file.pattern=offset",
                        row->speed, commands * row->sectors * UINT64_C(2048));
    MmcGuest g;
    setup(&g, node);
    const gint64 start = g_get_monotonic_time();
    for (uint32_t i = 0; i < commands; i++) {
        g_assert_cmphex(read_at(&g, i * row->sectors, row->sectors), ==, 0);
        g_assert_cmpuint(load_le64(g.data->data), ==, i * row->sectors * 2048ull);
        g_usleep(pause_us);
    }
    g_test_message("%s: a second's data in %.2f s", row->name,
                   (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC);
    g_assert_cmpuint(stats(&g)->misses, <=, 3);
    g_assert_cmpuint(stats(&g)->hits + stats(&g)->waits + stats(&g)->misses, >=, commands);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/ahead/sequential", test_sequential);
    g_test_add_func("/mmc/ahead/to-the-end", test_to_the_end);
    g_test_add_func("/mmc/ahead/single-flight", test_single_flight);
    g_test_add_func("/mmc/ahead/random-reader", test_random_reader);
    g_test_add_func("/mmc/ahead/fast-source", test_fast_source);
    g_test_add_func("/mmc/ahead/slow-source-found-out", test_slow_source_found_out);
    g_test_add_func("/mmc/ahead/off", test_off);
    g_test_add_func("/mmc/ahead/model", test_model);
    g_test_add_func("/mmc/ahead/error-in-a-span", test_error_in_a_span);
    g_test_add_func("/mmc/ahead/medium-change", test_medium_change);
    g_test_add_func("/mmc/ahead/hung-span", test_hung_span);
    g_test_add_func("/mmc/ahead/idle-gives-memory-back", test_idle_gives_memory_back);
    for (unsigned i = 0; i < G_N_ELEMENTS(speeds); i++) {
        g_autofree char *name = g_strdup_printf("/mmc/ahead/speed/%s", speeds[i].name);
        g_test_add_data_func(name, &speeds[i], test_speed);
    }
    return g_test_run();
}
