/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every opcode in every state of the medium: who may pass a pending attention, who needs a medium, who is not
 * there at all; and the order in which a change of the medium is told.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"

#define DISC "mem,size=1M"

typedef enum {
    ABSENT,       /* 05/20 */
    ANY,          /* works without a medium */
    MEDIUM,       /* needs one */
    MEDIUM_LATER, /* needs one for what the CDB asks, found out by itself */
} Kind;

typedef struct Row {
    uint8_t cdb[12];
    Kind kind;
    bool passes;     /* an attention */
    uint32_t loaded; /* what it gives with a medium in */
} Row;

/* CDBs that are right by themselves with this disc, or whose loaded sense says what is wrong. */
static const Row rows[] = {
    {{0x00}, MEDIUM},
    {{0x03, 0, 0, 0, 18}, ANY, true},
    {{0x12, 0, 0, 0, 36}, ANY, true},
    {{0x15}, ANY},
    {{0x1a, 0, 0x3f, 0, 255}, ANY},
    {{0x1b, 0, 0, 0, 0x10}, ANY}, /* power condition active */
    {{0x1b, 0, 0, 0, 0x01}, MEDIUM_LATER},
    {{0x1e}, ANY},
    {{0x25}, MEDIUM},
    {{0x28, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM},
    {{0x2b}, MEDIUM},
    {{0x2f, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM},
    {{0x35}, MEDIUM},
    {{0x42, 0, 0x40, 1, 0, 0, 0, 0, 16}, MEDIUM},
    {{0x43, 0, 0, 0, 0, 0, 0, 0, 20}, MEDIUM},
    {{0x44, 0, 0, 0, 0, 0, 0, 0, 8}, MEDIUM},
    {{0x45, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM, false, 0x056400},
    {{0x46, 0, 0, 0, 0, 0, 0, 0, 255}, ANY, true},
    {{0x47, 0, 0, 0, 2, 0, 0, 2, 1}, MEDIUM, false, 0x056400},
    {{0x48, 0, 0, 0, 1, 0, 0, 1, 1}, MEDIUM, false, 0x056400},
    {{0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8}, ANY, true},
    {{0x4b}, MEDIUM, false, 0x052c00},
    {{0x4e}, MEDIUM},
    {{0x51, 0, 0, 0, 0, 0, 0, 0, 34}, MEDIUM},
    {{0x52, 1, 0, 0, 0, 1, 0, 0, 36}, MEDIUM},
    {{0x55}, ANY},
    {{0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 255}, ANY},
    {{0x5c, 0, 0, 0, 0, 0, 0, 0, 12}, MEDIUM},
    {{0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16}, ANY, true},
    {{0xa5, 0, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM, false, 0x056400},
    {{0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM},
    {{0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1}, MEDIUM_LATER},
    {{0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 255}, ANY},
    {{0xad, 0, 0, 0, 0, 0, 0, 0, 0, 255}, MEDIUM_LATER, false, 0x053002},
    {{0xb6}, ANY},
    {{0xb9, 0, 0, 0, 2, 0, 0, 2, 1, 0x10}, MEDIUM},
    {{0xba}, MEDIUM, false, 0x056400},
    {{0xbb, 0, 0xff, 0xff}, ANY},
    {{0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8}, ANY},
    {{0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10}, MEDIUM},
};

static bool is_listed(uint8_t opcode)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].cdb[0] == opcode) {
            return true;
        }
    }
    return false;
}

static uint32_t run(MmcGuest *g, const Row *row)
{
    return mmc_guest_run(g, row->cdb, sizeof row->cdb);
}

static void test_opcode(gconstpointer data)
{
    const Row *row = data;
    MmcGuest g;

    mmc_guest_setup_raw(&g, DISC, false); /* power-on attention */
    g_assert_cmphex(run(&g, row), ==, row->passes ? 0 : 0x062900);
    mmc_guest_teardown(&g);

    mmc_guest_setup(&g, DISC);
    g_assert_cmphex(run(&g, row), ==, row->loaded);
    mmc_guest_teardown(&g);

    mmc_guest_setup(&g, NULL);
    g_assert_cmphex(run(&g, row), ==, row->kind == ANY ? 0 : 0x023a01);
    g_assert_true(mmc_drive_open_tray(g.drive, false, NULL));
    g_assert_cmphex(run(&g, row), ==, row->kind == ANY ? 0 : 0x023a02);
    mmc_guest_teardown(&g);
}

/* The same for a medium that came while the machine ran: the steps, and that the ones who need no medium do
 * not take them. */
static void test_opcode_at_change(gconstpointer data)
{
    const Row *row = data;
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    g_assert_true(mmc_drive_insert(g.drive, g.node, true, NULL));
    if (row->kind == ANY) {
        g_assert_cmphex(run(&g, row), ==, 0);
        assert_sense(&g, 0x023a01, 0x00);
    } else {
        g_assert_cmphex(run(&g, row), ==, 0x023a01);
    }
    if (row->passes && row->cdb[0] != 0x03) {
        g_assert_cmphex(run(&g, row), ==, 0);
        assert_sense(&g, 0x062800, 0x00);
    } else if (row->cdb[0] == 0x03) { /* it reports, and takes, what is pending once the sense is read */
        g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0x023a01);
        g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0x062800);
    } else {
        g_assert_cmphex(run(&g, row), ==, 0x062800);
    }
    g_assert_cmphex(run(&g, row), ==, row->loaded);
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

static void test_absent_opcodes(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (!is_listed((uint8_t)opcode)) {
            assert_sense(&g, 0x052000, (uint8_t)opcode, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
            g_assert_cmpuint(g.data->len, ==, 0);
        }
    }
    mmc_guest_teardown(&g);
}

/* FreeBSD 2.2, DOS and Windows XP keep the old directory unless they see exactly this (LP 1895602). */
static void test_change_sequence(gconstpointer data)
{
    const Row *row = data;
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    BlockNode *other = mmc_guest_open("mem,size=2M");
    g_assert_true(mmc_drive_insert(g.drive, other, true, NULL));
    g_assert_cmphex(run(&g, row), ==, 0x023a01);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0x023a01);
    g_assert_cmphex(run(&g, row), ==, 0x062800);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0x062800);
    g_assert_cmphex(run(&g, row), ==, row->loaded);
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 3, 0xff, 0, 0, 8, 0); /* and it is the new disc */
    block_unref(other);
    mmc_guest_teardown(&g);
}

static void test_guest_eject_and_load(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1b, 0, 0, 0, 2);
    g_assert_true(mmc_drive_tray_open(g.drive));
    g_assert_cmpuint(g.moves, ==, 1);
    g_assert_true(g.moved_open);
    assert_sense(&g, 0x023a02, 0x00);
    assert_good(&g, 0x1b, 0, 0, 0, 2); /* again: no error, no movement */
    g_assert_cmpuint(g.moves, ==, 1);
    assert_good(&g, 0x1b, 1, 0, 0, 3); /* IMMED */
    g_assert_cmpuint(g.moves, ==, 2);
    g_assert_false(g.moved_open);
    assert_sense(&g, 0x020401, 0x00);
    assert_sense(&g, 0x062800, 0x00);
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

static void test_removal_while_locked(void)
{
    MmcGuest g;
    g_autoptr(GError) error = NULL;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1e, 0, 0, 0, 1);
    g_assert_true(mmc_drive_locked(g.drive));
    assert_sense(&g, 0x055302, 0x1b, 0, 0, 0, 2); /* illegal request, not not-ready */
    g_assert_false(mmc_drive_open_tray(g.drive, false, &error));
    g_assert_cmpstr(
        error->message, ==,
        "Device 'cd0' is locked and force was not specified, wait for tray to open and try again");
    assert_good(&g, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 1, 2, 0, 0); /* eject request, medium still in */
    assert_good(&g, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 0, 2, 0, 0); /* once */
    g_assert_true(mmc_drive_open_tray(g.drive, true, NULL));
    g_assert_false(mmc_drive_locked(g.drive)); /* so the next one needs no force */
    assert_good(&g, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8);
    assert_data(&g, 0, 6, 4, 0x5e, 3, 1, 0, 0); /* removal, door open */
    mmc_guest_teardown(&g);
}

/* Persistent prevent keeps the operator out, not the guest itself. */
static void test_persistent_prevent(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1e, 0, 0, 0, 3);
    g_assert_false(mmc_drive_open_tray(g.drive, false, NULL));
    assert_good(&g, 0x1b, 0, 0, 0, 2);
    g_assert_true(mmc_drive_tray_open(g.drive));
    g_assert_true(mmc_drive_locked(g.drive)); /* until allowed */
    assert_good(&g, 0x1e, 0, 0, 0, 2);
    g_assert_false(mmc_drive_locked(g.drive));
    mmc_guest_teardown(&g);
}

static void test_reset_unlocks(gconstpointer power_on)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1e, 0, 0, 0, 1);
    mmc_drive_reset(g.drive, power_on != NULL);
    g_assert_false(mmc_drive_locked(g.drive));
    if (power_on) {
        assert_sense(&g, 0x062900, 0x00);
    }
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

/* An installer ejects before it reboots, and must not find its disc in again. */
static void test_open_tray_survives_reset(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_good(&g, 0x1b, 0, 0, 0, 2);
    mmc_drive_reset(g.drive, true);
    assert_sense(&g, 0x062900, 0x00);
    assert_sense(&g, 0x023a02, 0x00);
    mmc_guest_teardown(&g);
}

static void test_insert_into_open_tray(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, NULL);
    BlockNode *node = mmc_guest_open(DISC);
    g_assert_true(mmc_drive_open_tray(g.drive, false, NULL));
    g_assert_true(mmc_drive_insert(g.drive, node, true, NULL));
    g_assert_true(mmc_drive_tray_open(g.drive));
    g_assert_true(mmc_drive_node(g.drive) == node);
    assert_sense(&g, 0x023a02, 0x00);
    mmc_drive_close_tray(g.drive);
    assert_sense(&g, 0x023a01, 0x00);
    assert_sense(&g, 0x062800, 0x00);
    assert_good(&g, 0x00);
    block_unref(node);
    mmc_guest_teardown(&g);
}

static void test_sense_is_for_the_next_command_only(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, DISC);
    assert_sense(&g, 0x052000, 0xff);
    assert_good(&g, 0x00);
    g_assert_cmphex(mmc_guest_request_sense(&g), ==, 0);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *state = g_strdup_printf("/mmc/gates/opcode-%02x-%u", rows[i].cdb[0], i);
        g_test_add_data_func(state, &rows[i], test_opcode);
        g_autofree char *change = g_strdup_printf("/mmc/gates/at-change/opcode-%02x-%u", rows[i].cdb[0], i);
        g_test_add_data_func(change, &rows[i], test_opcode_at_change);
        if (rows[i].kind == MEDIUM) {
            g_autofree char *name =
                g_strdup_printf("/mmc/gates/change-sequence/opcode-%02x-%u", rows[i].cdb[0], i);
            g_test_add_data_func(name, &rows[i], test_change_sequence);
        }
    }
    g_test_add_func("/mmc/gates/absent-opcodes", test_absent_opcodes);
    g_test_add_func("/mmc/tray/guest-eject-and-load", test_guest_eject_and_load);
    g_test_add_func("/mmc/tray/removal-while-locked", test_removal_while_locked);
    g_test_add_func("/mmc/tray/persistent-prevent", test_persistent_prevent);
    g_test_add_data_func("/mmc/tray/device-reset-unlocks", NULL, test_reset_unlocks);
    g_test_add_data_func("/mmc/tray/power-on-unlocks", "power-on", test_reset_unlocks);
    g_test_add_func("/mmc/tray/open-survives-reset", test_open_tray_survives_reset);
    g_test_add_func("/mmc/tray/insert-into-open", test_insert_into_open_tray);
    g_test_add_func("/mmc/gates/sense-lifetime", test_sense_is_for_the_next_command_only);
    return g_test_run();
}
