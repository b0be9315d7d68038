/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What becomes of a command whose read fails: rerror=report, ignore and stop.
 */
#include <string.h>
#include "hw/block/sense.h"
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define READ_4_MIB 0x28, 0, 0, 0, 0, 0, 0, 0x08, 0

/* The data is the pattern of node `file.pattern=offset`, but for the zeroes in [bad, bad + bad_bytes). */
static void check_pattern(const MmcGuest *g, size_t len, size_t bad, size_t bad_bytes)
{
    g_assert_cmpuint(g->data->len, ==, len);
    for (size_t at = 0; at < len; at += 8) {
        const uint64_t expect = at >= bad && at < bad + bad_bytes ? 0 : at;
        g_assert_cmpuint(load_le64(g->data->data + at), ==, expect);
    }
}

static void start_and_stop(MmcGuest *g, unsigned stops)
{
    mmc_guest_start(g, CDB(READ_4_MIB));
    mmc_guest_until(g->failures[ON_ERROR_STOP] == stops);
    g_assert_cmpuint(mmc_drive_kept(g->drive), ==, 1);
    g_assert_nonnull(g->command);
}

/* Each chunk fails at its first try: as many stops, then all of the data. */
static void test_stop(void)
{
    static const unsigned rows[][2] = {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 0}}; /* Nth read, MiB before it */
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *node = g_strdup_printf(
            "fault,fail-read=%u,file.driver=mem,file.size=4M,file.pattern=offset", rows[i][0]);
        MmcGuest g;
        mmc_guest_setup_rerror(&g, node, ON_ERROR_STOP);
        if (rows[i][0] == 5) { /* four chunks: it never comes to that */
            assert_good(&g, READ_4_MIB);
            g_assert_cmpuint(g.failures[ON_ERROR_STOP], ==, 0);
        } else {
            start_and_stop(&g, 1);
            g_assert_cmpuint(g.data->len, ==, rows[i][1] << 20);
            mmc_drive_resume(g.drive);
            g_assert_cmpuint(mmc_drive_kept(g.drive), ==, 0);
            mmc_guest_wait(&g);
            g_assert_cmphex(g.sense.key, ==, 0);
        }
        check_pattern(&g, 4 << 20, 0, 0);
        mmc_guest_teardown(&g);
    }
}

/* It fails again as often as it is tried, and each time that is told. */
static void test_stop_again(void)
{
    MmcGuest g;
    mmc_guest_setup_rerror(&g, "fault,fail-every=1,file.driver=mem,file.size=4M", ON_ERROR_STOP);
    start_and_stop(&g, 1);
    for (unsigned n = 2; n < 6; n++) {
        mmc_drive_resume(g.drive);
        mmc_guest_until(g.failures[ON_ERROR_STOP] == n);
        g_assert_cmpuint(mmc_drive_kept(g.drive), ==, 1);
    }
    mmc_guest_abandon(&g); /* the guest resets the drive */
    g_assert_cmpuint(mmc_drive_kept(g.drive), ==, 0);
    mmc_drive_resume(g.drive);
    g_assert_cmpuint(g.ends, ==, 0);
    g_assert_cmpuint(g.failures[ON_ERROR_STOP], ==, 5);
    mmc_guest_teardown(&g);
}

/* Another disc, or none, ends the command as it ends one that waits for a slow source. */
static void test_stop_and_change(gconstpointer data)
{
    MmcGuest g;
    mmc_guest_setup_rerror(&g, "fault,fail-every=1,file.driver=mem,file.size=4M", ON_ERROR_STOP);
    start_and_stop(&g, 1);
    if (!strcmp(data, "open")) {
        g_assert_true(mmc_drive_open_tray(g.drive, true, NULL));
    } else {
        g_assert_true(mmc_drive_insert(g.drive, NULL, true, NULL));
    }
    g_assert_null(g.command);
    g_assert_cmphex(g.sense.key, ==, 2);
    g_assert_cmphex(g.sense.asc, ==, 0x3a);
    g_assert_cmpuint(mmc_drive_kept(g.drive), ==, 0);
    mmc_drive_resume(g.drive);
    mmc_guest_teardown(&g);
}

/* Every kind of error is ignored, and only what cannot be read is missing. */
static void test_ignore(void)
{
    static const struct {
        const char *error;
        size_t bad, bytes; /* read as zeroes */
    } rows[] = {{"EIO", 700 * 2048, 2048}, {"ENODEV", 1 << 20, 1 << 20}};
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *node = g_strdup_printf("fault,bad-offset=%u,bad-bytes=1,errno=%s,file.driver=mem,"
                                                "file.size=4M,file.pattern=offset",
                                                700 * 2048 + 5, rows[i].error);
        MmcGuest g;
        mmc_guest_setup_rerror(&g, node, ON_ERROR_IGNORE);
        assert_good(&g, READ_4_MIB);
        check_pattern(&g, 4 << 20, rows[i].bad, rows[i].bytes);
        g_assert_cmpuint(g.failures[ON_ERROR_IGNORE], ==, 1);
        assert_good(&g, 0x2f, 0, 0, 0, 0, 0, 0, 0x08, 0); /* VERIFY */
        g_assert_cmpuint(g.failures[ON_ERROR_IGNORE], ==, 2);
        mmc_guest_teardown(&g);
    }
}

static void test_report(void)
{
    MmcGuest g;
    mmc_guest_setup_rerror(&g, "fault,bad-offset=4096,bad-bytes=1,file.driver=mem,file.size=4M",
                           ON_ERROR_REPORT);
    assert_sense(&g, 0x031100, READ_4_MIB);
    g_assert_cmpuint(g.failures[ON_ERROR_REPORT], ==, 1);
    g_assert_cmpuint(mmc_drive_kept(g.drive), ==, 0);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/rerror/stop", test_stop);
    g_test_add_func("/mmc/rerror/stop-again", test_stop_again);
    g_test_add_data_func("/mmc/rerror/stop-and-change/open", "open", test_stop_and_change);
    g_test_add_data_func("/mmc/rerror/stop-and-change/remove", "remove", test_stop_and_change);
    g_test_add_func("/mmc/rerror/ignore", test_ignore);
    g_test_add_func("/mmc/rerror/report", test_report);
    return g_test_run();
}
