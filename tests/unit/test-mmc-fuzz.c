/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Random CDBs, random parameter data, a drive that is tampered with meanwhile, sources that fail: whatever
 * comes, each command ends once, with sense or data, never with more than it announced (the test guest checks
 * that of every command), and afterwards the drive still works. A seed is printed by g_test_init.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"

#define ROUNDS 20000

/* Mostly opcodes that exist, with fields that are mostly small, so that deep paths are reached. */
static void random_cdb(uint8_t *cdb)
{
    static const uint8_t known[] = {0x00, 0x03, 0x12, 0x15, 0x1a, 0x1b, 0x1e, 0x25, 0x28, 0x2b,
                                    0x2f, 0x35, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x4a,
                                    0x4b, 0x4e, 0x51, 0x52, 0x55, 0x5a, 0x5c, 0xa0, 0xa5, 0xa8,
                                    0xac, 0xad, 0xb6, 0xb9, 0xba, 0xbb, 0xbd, 0xbe};
    for (unsigned i = 0; i < MMC_CDB_SIZE; i++) {
        const int kind = g_test_rand_int_range(0, 8);
        cdb[i] = (uint8_t)(kind < 4   ? 0
                           : kind < 6 ? 1 << g_test_rand_int_range(0, 8)
                                      : g_test_rand_int_range(0, 256));
    }
    if (g_test_rand_int_range(0, 10)) {
        cdb[0] = known[g_test_rand_int_range(0, G_N_ELEMENTS(known))];
    } else {
        cdb[0] = (uint8_t)g_test_rand_int_range(0, 256);
    }
    /* keep the amount within what a test may take: 2047 sectors, or a minute and a bit */
    if (cdb[0] == 0xa8) {
        cdb[6] = cdb[7] = 0;
        cdb[8] &= 7;
    } else if (cdb[0] == 0xbe || cdb[0] == 0x28 || cdb[0] == 0x2f) {
        cdb[6] = 0;
        cdb[7] &= 7;
    } else if (cdb[0] == 0xb9) {
        cdb[6] = cdb[3];
    }
}

static void tamper(MmcGuest *g)
{
    switch (g_test_rand_int_range(0, 2000)) {
    case 0:
        mmc_drive_open_tray(g->drive, true, NULL);
        break;
    case 1:
    case 2:
        mmc_drive_close_tray(g->drive);
        break;
    case 3:
    case 8:
        mmc_drive_insert(g->drive, g->node, true, NULL);
        break;
    case 4:
        mmc_drive_insert(g->drive, NULL, g_test_rand_int_range(0, 2), NULL);
        break;
    case 5:
    case 9:
    case 10:
        mmc_drive_insert(g->drive, g->node, false, NULL);
        break;
    case 6:
        mmc_drive_reset(g->drive, g_test_rand_int_range(0, 2));
        break;
    case 7:
        mmc_drive_eject_request(g->drive);
        break;
    default:
        break;
    }
}

/* A guest that sometimes loses patience. */
static void play(MmcGuest *g, const uint8_t *cdb, unsigned patience)
{
    mmc_guest_start(g, cdb, MMC_CDB_SIZE);
    for (unsigned i = 0; i < patience && g->command; i++) {
        if (!g_main_context_iteration(NULL, FALSE)) {
            g_usleep(50);
        }
        tamper(g);
    }
    if (g->command && g_test_rand_int_range(0, 2)) {
        mmc_guest_abandon(g);
        while (g_main_context_iteration(NULL, FALSE)) {
        }
        return;
    }
    mmc_guest_wait(g);
    g_assert_true(g->sense.key < 0x10);
}

static void check_still_works(MmcGuest *g)
{
    mmc_drive_insert(g->drive, g->node, false, NULL);
    mmc_drive_reset(g->drive, true);
    assert_sense(g, 0x062900, 0x00);
    assert_good(g, 0x12, 0, 0, 0, 36);
    if (g->node) {
        assert_good(g, 0x00);
        assert_good(g, 0x25);
        g_assert_cmpuint(g->data->len, ==, 8);
    } else {
        assert_sense(g, 0x023a01, 0x00);
    }
}

static void test_random(gconstpointer node)
{
    uint8_t cdb[MMC_CDB_SIZE], param[256];
    unsigned with_data = 0;
    MmcGuest g;
    mmc_guest_setup_raw(&g, node, true);
    g.out = param;
    for (unsigned i = 0; i < ROUNDS; i++) {
        random_cdb(cdb);
        for (unsigned b = 0; b < sizeof param; b++) {
            param[b] = (uint8_t)(g_test_rand_int_range(0, 3) ? 0 : g_test_rand_int_range(0, 256));
        }
        g.out_len = (size_t)g_test_rand_int_range(0, sizeof param);
        g.later = g_test_rand_int_range(0, 2);
        play(&g, cdb, (unsigned)g_test_rand_int_range(0, 20));
        with_data += g.data->len > 0;
        if (g_test_rand_int_range(0, 8) == 0) { /* as a guest does whose tray was opened */
            mmc_guest_run(&g, CDB(0x1b, 0, 0, 0, 3));
        }
        tamper(&g);
    }
    g.later = false;
    g_assert_cmpuint(with_data, >, ROUNDS / 20); /* it was not all refused at the gate */
    check_still_works(&g);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/mmc/fuzz/cd", "mem,size=600k,pattern=offset", test_random);
    g_test_add_data_func("/mmc/fuzz/dvd", "null-co,size=4G", test_random);
    g_test_add_data_func("/mmc/fuzz/bd", "null-co,size=9G", test_random);
    g_test_add_data_func("/mmc/fuzz/empty", NULL, test_random);
    g_test_add_data_func("/mmc/fuzz/failing", "fault,fail-every=3,file.driver=mem,file.size=600k",
                         test_random);
    g_test_add_data_func("/mmc/fuzz/failing-network",
                         "fault,slow=on,fail-every=5,errno=ETIMEDOUT,file.driver=mem,file.size=600k",
                         test_random);
    g_test_add_data_func("/mmc/fuzz/slow",
                         "fault,slow=on,delay-read-ns=100000,file.driver=mem,file.size=600k", test_random);
    return g_test_run();
}
