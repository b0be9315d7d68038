/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reads that go wrong: bad sectors, truncated files, lost networks, hung sources, media that go away under a
 * command; and odd sizes of images.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include "hw/block/sense.h"
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

static void check_pattern(const MmcGuest *g, uint64_t offset, size_t len)
{
    g_assert_cmpuint(g->data->len, ==, len);
    for (size_t at = 0; at < len; at += 8) {
        g_assert_cmpuint(load_le64(g->data->data + at), ==, offset + at);
    }
}

/* The sectors before the bad one, then 03/11/00 with its address. */
static void test_bad_sector(void)
{
    static const unsigned bad[] = {0, 1, 7, 511, 512, 513, 1000, 1499};
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *node = g_strdup_printf(
            "fault,bad-offset=%u,bad-bytes=1,file.driver=mem,file.size=4M,file.pattern=offset",
            bad[i] * 2048 + 100);
        MmcGuest g;
        mmc_guest_setup(&g, node);
        assert_sense(&g, 0x031100, 0x28, 0, 0, 0, 0, 0, 0, 1500 >> 8, 1500 & 255);
        g_assert_true(g.sense.info_valid);
        g_assert_cmpuint(g.sense.info, ==, bad[i]);
        check_pattern(&g, 0, bad[i] * 2048);
        assert_good(&g, 0x03, 0, 0, 0, 18);
        const uint8_t sense[18] = {0xf0, 0, 3, 0, 0,   (uint8_t)(bad[i] >> 8), (uint8_t)bad[i], 10,
                                   0,    0, 0, 0, 0x11};
        g_assert_cmpmem(g.data->data, 18, sense, 18);
        assert_good(&g, 0x28, 0, 0, 0, (bad[i] + 1) >> 8, (bad[i] + 1) & 255, 0, 0,
                    4); /* behind it all is well */
        check_pattern(&g, (bad[i] + 1) * 2048, 4 * 2048);
        assert_sense(&g, 0x031100, 0xbe, 0, 0, 0, 0, 0, 0, 1500 >> 8, 1500 & 255, 0xf8); /* the same raw */
        g_assert_cmpuint(g.data->len, ==, bad[i] * 2352);
        g_assert_cmpuint(g.sense.info, ==, bad[i]);
        assert_sense(&g, 0x031100, 0x2f, 0, 0, 0, 0, 0, 0, 1500 >> 8, 1500 & 255); /* and for VERIFY */
        g_assert_cmpuint(g.sense.info, ==, bad[i]);
        mmc_guest_teardown(&g);
    }
}

/* In units of what the guest counts in. */
static void test_bad_sector_in_blocks_of_512(void)
{
    const uint8_t list[12] = {0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0};
    MmcGuest g;
    mmc_guest_setup(&g, "fault,bad-offset=20480,bad-bytes=1,file.driver=mem,file.pattern=offset");
    g_assert_cmphex(mmc_guest_send(&g, CDB(0x15, 0x10, 0, 0, 12), list, 12), ==, 0);
    assert_sense(&g, 0x031100, 0x28, 0, 0, 0, 0, 2, 0, 0, 100);
    g_assert_cmpuint(g.sense.info, ==, 40);
    check_pattern(&g, 1024, 38 * 512);
    mmc_guest_teardown(&g);
}

/* A fault that is gone at the second try costs nothing. */
static void test_passing_fault(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "fault,fail-read=2,file.driver=mem,file.size=4M,file.pattern=offset");
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0x08, 0);
    check_pattern(&g, 0, 4 << 20);
    mmc_guest_teardown(&g);
}

typedef struct ErrnoRow {
    const char *name;
    int errnum;
    uint32_t sense;
    bool info;
} ErrnoRow;

static const ErrnoRow errnos[] = {
    {"EIO", EIO, 0x031100, true},
    {"EINVAL", EINVAL, 0x031100, true},
    {"ETIMEDOUT", ETIMEDOUT, 0x020401, false},
    {"ENODEV", ENODEV, 0x040800, false},
    {"ENOMEDIUM", ENOMEDIUM, 0x023a01, false},
    {"ENOMEM", ENOMEM, 0x044400, false},
    {"ECANCELED", ECANCELED, 0x0b0000, false},
    {"ESTALE", ESTALE, 0x040800, false},
    {"EACCES", EACCES, 0x040800, false},
};

static void test_errno(gconstpointer data)
{
    const ErrnoRow *row = data;
    const MmcSense direct = sense_from_errno(-row->errnum, 77);
    g_autofree char *node = g_strdup_printf("fault,fail-every=1,errno=%s,file.driver=mem", row->name);
    MmcGuest g;
    g_assert_cmphex(direct.key << 16 | direct.asc << 8 | direct.ascq, ==, row->sense);
    g_assert_cmpint(direct.info_valid, ==, row->info);
    mmc_guest_setup(&g, node);
    assert_sense(&g, row->sense, 0x28, 0, 0, 0, 0, 5, 0, 0, 100);
    g_assert_cmpint(g.sense.info_valid, ==, row->info);
    g_assert_cmpuint(g.sense.info, ==, row->info ? 5 : 0);
    mmc_guest_teardown(&g);
}

/* A lost network is not searched for a bad sector: that would be a time-out for each try. */
static void test_no_search_without_medium_error(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "fault,fail-every=1,errno=ETIMEDOUT,file.driver=mem");
    assert_sense(&g, 0x020401, 0x28, 0, 0, 0, 0, 0, 0, 1, 0);
    g_assert_cmpuint(block_stats(g.node)->failed[BLOCK_READ], ==, 1);
    mmc_guest_teardown(&g);
}

static char *make_file(const char *folder, size_t size)
{
    char *path = g_build_filename(folder, "disc.iso", NULL);
    g_autofree uint8_t *data = g_malloc(size);
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(i / 2048 + 1);
    }
    g_assert_true(g_file_set_contents(path, (const char *)data, (gssize)size, NULL));
    return path;
}

/* QEMU gives zeroes and GOOD. */
static void test_truncated_file(void)
{
    g_autofree char *folder = g_dir_make_tmp("spindle-mmc-XXXXXX", NULL);
    g_autofree char *path = make_file(folder, 400 * 2048);
    g_autofree char *node = g_strdup_printf("file,filename=%s", path);
    MmcGuest g;
    mmc_guest_setup(&g, node);
    assert_good(&g, 0x28, 0, 0, 0, 0, 200, 0, 0, 100);
    g_assert_cmpint(truncate(path, 250 * 2048 + 1000), ==, 0);
    assert_sense(&g, 0x031100, 0x28, 0, 0, 0, 0, 200, 0, 0, 100);
    g_assert_true(g.sense.info_valid);
    g_assert_cmpuint(g.sense.info, ==, 250);
    g_assert_cmpuint(g.data->len, ==, 50 * 2048);
    for (unsigned i = 0; i < g.data->len; i++) {
        g_assert_cmphex(g.data->data[i], ==, (uint8_t)(200 + i / 2048 + 1));
    }
    mmc_guest_teardown(&g);
    g_unlink(path);
    g_rmdir(folder);
}

static void test_sizes(void)
{
    static const struct {
        size_t size;
        uint32_t last;
    } rows[] = {{1, 0},           {100, 0}, {2047, 0}, {2048, 0}, {2049, 1}, {400 * 2048 + 700, 400},
                {401 * 2048, 400}};
    g_autofree char *folder = g_dir_make_tmp("spindle-mmc-XXXXXX", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = make_file(folder, rows[i].size);
        g_autofree char *node = g_strdup_printf("file,filename=%s", path);
        const uint32_t last = rows[i].last;
        MmcGuest g;
        mmc_guest_setup(&g, node);
        assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, (last + 1) >> 8, (last + 1) & 255); /* dirties the buffer */
        assert_good(&g, 0x25);
        assert_data(&g, 0, 0, last >> 8, last & 255, 0, 0, 8, 0);
        assert_good(&g, 0x28, 0, 0, 0, last >> 8, last & 255, 0, 0, 1);
        g_assert_cmpuint(g.data->len, ==, 2048);
        const unsigned have = rows[i].size - last * 2048u;
        for (unsigned b = 0; b < 2048; b++) {
            g_assert_cmphex(g.data->data[b], ==, b < have ? (uint8_t)(last + 1) : 0);
        }
        assert_sense(&g, 0x052100, 0x28, 0, 0, 0, last >> 8, last & 255, 0, 0, 2);
        mmc_guest_teardown(&g);
        g_unlink(path);
    }
    g_rmdir(folder);
}

static void test_empty_file(void)
{
    g_autofree char *folder = g_dir_make_tmp("spindle-mmc-XXXXXX", NULL);
    g_autofree char *path = make_file(folder, 0);
    g_autofree char *options = g_strdup_printf("file,filename=%s", path);
    g_autofree char *message = g_strdup_printf("'%s' is empty: a disc needs at least one byte", path);
    g_autoptr(GError) error = NULL;
    MmcGuest g;
    mmc_guest_setup(&g, NULL);
    BlockNode *node = mmc_guest_open(options);
    g_assert_false(mmc_drive_insert(g.drive, node, true, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_null(mmc_drive_node(g.drive));
    assert_sense(&g, 0x023a01, 0x00);
    block_unref(node);
    mmc_guest_teardown(&g);
    g_unlink(path);
    g_rmdir(folder);
}

static void test_too_large(void)
{
    g_autoptr(GError) error = NULL;
    MmcGuest g;
    mmc_guest_setup(&g, NULL);
    BlockNode *node = mmc_guest_open("null-co,size=16T");
    g_assert_false(mmc_drive_insert(g.drive, node, true, &error));
    g_assert_cmpstr(error->message, ==, "'null-co://' is too large for a disc: at most 8 TiB");
    block_unref(node);
    mmc_guest_teardown(&g);
}

/* The profile goes by size: a DVD image on a CD profile is refused by Windows setup ("media driver"). */
static void test_profiles(void)
{
    static const struct {
        uint64_t sectors;
        uint8_t profile;
    } rows[] = {
        {1, 0x08},       {449849, 0x08},  {449850, 0x10},   {2298496, 0x10},
        {4171712, 0x10}, {4171713, 0x40}, {12219392, 0x40}, {4294967295, 0x40},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *node = g_strdup_printf("null-co,size=%" G_GUINT64_FORMAT, rows[i].sectors * 2048);
        MmcGuest g;
        mmc_guest_setup(&g, node);
        assert_good(&g, 0x46, 0, 0, 0, 0, 0, 0, 0, 8);
        g_assert_cmphex(load_be16(g.data->data + 6), ==, rows[i].profile);
        assert_good(&g, 0x25);
        g_assert_cmpuint(load_be32(g.data->data), ==, rows[i].sectors - 1);
        const uint32_t last = (uint32_t)(rows[i].sectors - 1);
        assert_good(&g, 0xa8, 0, last >> 24, last >> 16, last >> 8, last, 0, 0, 0, 1);
        g_assert_cmpuint(g.data->len, ==, 2048);
        assert_sense(&g, 0x052100, 0xa8, 0, last >> 24, last >> 16, last >> 8, last, 0, 0, 0, 2);
        mmc_guest_teardown(&g);
    }
}

#define HANGS "fault,hang-read=1,file.driver=mem,file.size=4M,file.pattern=offset"

/* A hung source: the command can be left at any time, and what comes next works. */
static void test_hang_and_abandon(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, HANGS);
    mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 0, 0, 0x08, 0));
    for (unsigned i = 0; i < 100; i++) {
        g_main_context_iteration(NULL, FALSE);
    }
    g_assert_cmpuint(g.ends, ==, 0);
    const gint64 start = g_get_monotonic_time();
    mmc_guest_abandon(&g);
    mmc_drive_reset(g.drive, true);
    g_assert_cmpint(g_get_monotonic_time() - start, <, G_TIME_SPAN_SECOND / 2);
    assert_sense(&g, 0x062900, 0x00);
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

/* The operator takes the disc out while a command waits for it. */
static void test_change_under_a_hung_read(gconstpointer what)
{
    MmcGuest g;
    mmc_guest_setup(&g, HANGS);
    BlockNode *other = mmc_guest_open("mem,size=2M");
    mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 0, 0, 0x08, 0));
    if (!strcmp(what, "swap")) {
        g_assert_true(mmc_drive_insert(g.drive, other, true, NULL));
        g_assert_cmphex(g.sense.key << 16 | g.sense.asc << 8 | g.sense.ascq, ==, 0x023a01);
        assert_sense(&g, 0x062800, 0x00);
        assert_good(&g, 0x00);
    } else if (!strcmp(what, "remove")) {
        g_assert_true(mmc_drive_insert(g.drive, NULL, true, NULL));
        g_assert_cmphex(g.sense.key << 16 | g.sense.asc << 8 | g.sense.ascq, ==, 0x023a01);
    } else {
        g_assert_true(mmc_drive_open_tray(g.drive, true, NULL));
        g_assert_cmphex(g.sense.key << 16 | g.sense.asc << 8 | g.sense.ascq, ==, 0x023a02);
    }
    g_assert_cmpuint(g.ends, ==, 1); /* at once, not when the source answers */
    g_assert_cmpuint(g.data->len, ==, 0);
    block_unref(other);
    mmc_guest_teardown(&g);
}

/* While the guest has a chunk in its hands: the next one never comes from the new disc. */
static void test_change_between_chunks(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "mem,size=4M,pattern=1");
    BlockNode *other = mmc_guest_open("mem,size=4M,pattern=2");
    g.hold = true;
    mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 0, 0, 0x08, 0));
    mmc_guest_until(g.chunks == 1);
    g_assert_true(mmc_drive_insert(g.drive, other, true, NULL));
    g_assert_cmpuint(g.ends, ==, 0); /* the transport has the word */
    mmc_guest_resume(&g);
    mmc_guest_wait(&g);
    g_assert_cmphex(g.sense.key << 16 | g.sense.asc << 8 | g.sense.ascq, ==, 0x023a01);
    g_assert_cmpuint(g.data->len, ==, 1 << 20);
    g_assert_cmphex(g.data->data[(1 << 20) - 1], ==, 1);
    g.hold = false;
    block_unref(other);
    mmc_guest_teardown(&g);
}

/* The new disc is smaller: an address that was right is wrong now. */
static void test_range_after_change(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "mem,size=4M");
    BlockNode *other = mmc_guest_open("mem,size=1M");
    assert_good(&g, 0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 1);
    g_assert_true(mmc_drive_insert(g.drive, other, true, NULL));
    assert_sense(&g, 0x023a01, 0x00);
    assert_sense(&g, 0x062800, 0x00);
    assert_sense(&g, 0x052100, 0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 1);
    block_unref(other);
    mmc_guest_teardown(&g);
}

/* Fail the first, the second, … read until none is left to fail (SQLite's way). */
static void test_fail_nth(void)
{
    unsigned n = 1;
    for (bool failed = true; failed; n++) {
        g_autofree char *node = g_strdup_printf(
            "fault,fail-read=%u,errno=ENODEV,file.driver=mem,file.size=8M,file.pattern=offset", n);
        MmcGuest g;
        mmc_guest_setup(&g, node);
        const uint32_t sense = mmc_guest_run(&g, CDB(0x28, 0, 0, 0, 0, 0, 0, 0x10, 0));
        failed = sense != 0;
        g_assert_true(!failed || sense == 0x040800);
        g_assert_cmpuint(g.data->len, ==, failed ? (n - 1) << 20 : 8 << 20);
        mmc_guest_teardown(&g);
        g_assert_cmpuint(n, <, 20);
    }
    g_assert_cmpuint(n, ==, 10); /* eight chunks */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/errors/bad-sector", test_bad_sector);
    g_test_add_func("/mmc/errors/bad-sector-in-blocks-of-512", test_bad_sector_in_blocks_of_512);
    g_test_add_func("/mmc/errors/passing-fault", test_passing_fault);
    for (unsigned i = 0; i < G_N_ELEMENTS(errnos); i++) {
        g_autofree char *name = g_strdup_printf("/mmc/errors/errno/%s", errnos[i].name);
        g_test_add_data_func(name, &errnos[i], test_errno);
    }
    g_test_add_func("/mmc/errors/no-search-without-medium-error", test_no_search_without_medium_error);
    g_test_add_func("/mmc/errors/truncated-file", test_truncated_file);
    g_test_add_func("/mmc/errors/fail-nth", test_fail_nth);
    g_test_add_func("/mmc/errors/hang-and-abandon", test_hang_and_abandon);
    g_test_add_data_func("/mmc/errors/hung-read/swap", "swap", test_change_under_a_hung_read);
    g_test_add_data_func("/mmc/errors/hung-read/remove", "remove", test_change_under_a_hung_read);
    g_test_add_data_func("/mmc/errors/hung-read/open", "open", test_change_under_a_hung_read);
    g_test_add_func("/mmc/change/between-chunks", test_change_between_chunks);
    g_test_add_func("/mmc/change/range", test_range_after_change);
    g_test_add_func("/mmc/sizes/odd", test_sizes);
    g_test_add_func("/mmc/sizes/empty-file", test_empty_file);
    g_test_add_func("/mmc/sizes/too-large", test_too_large);
    g_test_add_func("/mmc/sizes/profiles", test_profiles);
    return g_test_run();
}
