/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What broke other drives, by name, as far as the drive itself is concerned: the right behaviour, not merely
 * survival.
 */
#include <string.h>
#include "tests/lib/mmc-guest.h"
#include "util/bytes.h"

#define DISC "mem,size=1M,pattern=238"

static void setup(MmcGuest *g)
{
    mmc_guest_setup(g, DISC);
}

/* CVE-2015-5154: START STOP UNIT with a power condition never ended. */
static void test_2015_5154(void)
{
    MmcGuest g;
    setup(&g);
    for (unsigned flags = 0; flags < 256; flags++) {
        mmc_guest_run(&g, CDB(0x1b, 0, 0, 0, flags));
        g_assert_cmpuint(g.ends, ==, 1);
        g_assert_cmpuint(g.data->len, ==, 0);
        const unsigned power = flags >> 4;
        if (power) {
            const bool known = (power >= 1 && power <= 3) || power == 5;
            g_assert_cmphex(g.sense.key, ==, known && !(flags & 4) ? 0 : 5);
            g_assert_false(mmc_drive_tray_open(g.drive)); /* START and LOEJ do not count then */
        } else if (mmc_drive_tray_open(g.drive)) {
            mmc_drive_close_tray(g.drive);
            mmc_guest_run(&g, CDB(0x00));
            mmc_guest_run(&g, CDB(0x00));
        }
    }
    mmc_guest_teardown(&g);
}

/* CVE-2015-5158: CDBs of the groups without a length. */
static void test_2015_5158(void)
{
    MmcGuest g;
    setup(&g);
    for (unsigned opcode = 0x60; opcode < 0x100; opcode += opcode == 0x7f ? 0x41 : 1) {
        assert_sense(&g, 0x052000, opcode, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                     0xff, 0xff, 0xff, 0xff);
    }
    mmc_guest_teardown(&g);
}

/* CVE-2020-29443: LBA -1, beyond the end, counts that run over it. */
static void test_2020_29443(void)
{
    static const struct {
        uint32_t lba, count;
    } rows[] = {
        {0xffffffff, 1},          {0xffffffff, 0xffffffff}, {512, 1},        {511, 2},          {0, 513},
        {0x80000000, 1},          {1, 0xffffffff},          {0x7fffffff, 2}, {511, 0xffffffff}, {512, 0},
        {0xffffffff, 0x00000000}, {256, 0x80000000},
    };
    MmcGuest g;
    setup(&g);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint8_t cdb[12] = {0xa8};
        store_be32(cdb + 2, rows[i].lba);
        store_be32(cdb + 6, rows[i].count);
        g_assert_cmphex(mmc_guest_run(&g, cdb, 12), ==, 0x052100);
        g_assert_cmpuint(g.data->len, ==, 0);
        if (rows[i].count <= 0xffff) {
            uint8_t ten[10] = {0x28};
            store_be32(ten + 2, rows[i].lba);
            store_be16(ten + 7, (uint16_t)rows[i].count);
            g_assert_cmphex(mmc_guest_run(&g, ten, 10), ==, 0x052100);
        }
        uint8_t cd[12] = {0xbe, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8};
        store_be32(cd + 2, rows[i].lba);
        store_be24(cd + 6, MIN(rows[i].count, 0xffffff));
        g_assert_cmphex(mmc_guest_run(&g, cd, 12), ==, rows[i].count ? 0x052100 : 0);
        g_assert_cmpuint(g.data->len, ==, 0);
    }
    mmc_guest_teardown(&g);
}

/* bhyve: length times 2048 in 32 bits. */
static void test_length_in_64_bits(void)
{
    MmcGuest g;
    const uint8_t cdb[16] = {0xa8, 0, 0, 0, 0, 0, 0x00, 0x20, 0x00, 0x01}; /* 200001h blocks: 4 GiB + 2048 */
    mmc_guest_setup(&g, "null-co,size=8G");
    MmcCommand *command = mmc_command_new(g.drive, cdb, &(MmcTransport){0}, NULL);
    g_assert_cmpuint(mmc_command_length(command), ==, 0x200001ull * 2048);
    mmc_command_free(command);
    const uint8_t raw[16] = {0xbe, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 1};
    command = mmc_command_new(g.drive, raw, &(MmcTransport){0}, NULL);
    g_assert_cmpuint(mmc_command_length(command), ==, 0xffffffull * 2448);
    mmc_command_free(command);
    mmc_guest_teardown(&g);
}

/* CVE-2011-3346, CVE-2013-4344: replies longer than the room. */
static void test_allocation_length(void)
{
    MmcGuest g;
    setup(&g);
    assert_good(&g, 0xa0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff);
    g_assert_cmpuint(g.data->len, ==, 16);
    assert_good(&g, 0x25, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff);
    g_assert_cmpuint(g.data->len, ==, 8);
    assert_sense(&g, 0x052000, 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff);
    mmc_guest_teardown(&g);
}

/* CVE-2024-42416, -8178 and the serial number of QEMU's guests: what the drive has not, it refuses. */
static void test_absent_commands(void)
{
    MmcGuest g;
    setup(&g);
    for (unsigned mode = 0; mode < 32; mode++) {
        assert_sense(&g, 0x052000, 0x3b, mode, 0, 0, 0, 0, 0, 0xff, 0xff); /* WRITE BUFFER */
        assert_sense(&g, 0x052000, 0x3c, mode, 0, 0, 0, 0, 0, 0xff, 0xff); /* READ BUFFER */
        assert_sense(&g, 0x052000, 0xa3, mode, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff);
    }
    mmc_guest_teardown(&g);
}

/* CVE-2024-43110: bytes of the heap behind the sense. */
static void test_2024_43110(void)
{
    MmcGuest g;
    setup(&g);
    for (unsigned length = 0; length < 256; length++) {
        assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0, 4); /* EEh into what buffers there are */
        assert_sense(&g, 0x052000, 0xff);
        assert_good(&g, 0x03, 0, 0, 0, length);
        const uint8_t sense[18] = {0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20};
        g_assert_cmpmem(g.data->data, g.data->len, sense, MIN(length, 18));
    }
    mmc_guest_teardown(&g);
}

/* QEMU's page 0E: 8 bytes of an earlier reply at its end. */
static void test_stale_mode_page(void)
{
    MmcGuest g;
    setup(&g);
    assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0, 4);
    assert_good(&g, 0x5a, 0, 0x0e, 0, 0, 0, 0, 0, 255);
    for (unsigned i = 8 + 12; i < g.data->len; i++) {
        g_assert_cmphex(g.data->data[i], ==, 0);
    }
    mmc_guest_teardown(&g);
}

/* CVE-2020-1711's kin: SET STREAMING and MODE SELECT lists with lengths of their own. */
static void test_parameter_lists(void)
{
    uint8_t list[256];
    MmcGuest g;
    setup(&g);
    memset(list, 0xff, sizeof list);
    for (unsigned length = 0; length < 256; length++) {
        mmc_guest_send(&g, CDB(0x15, 0x10, 0, 0, length), list, length);
        g_assert_cmphex(g.sense.key, ==, length ? 5 : 0);
        mmc_guest_send(&g, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 1, length), list, sizeof list);
        g_assert_cmphex(g.sense.key, ==, 5);
        mmc_guest_send(&g, CDB(0xb6, 0, 0, 0, 0, 0, 0, 0, 0, 0, length), list, length);
        g_assert_cmpuint(g.ends, ==, 1);
    }
    assert_good(&g, 0x25);
    assert_data(&g, 0, 0, 1, 0xff, 0, 0, 8, 0);
    mmc_guest_teardown(&g);
}

/* CVE-2023-5088's kin: a reset while data is under way; nothing late ever comes. */
static void test_late_completion(void)
{
    MmcGuest g;
    mmc_guest_setup(&g, "fault,delay-read-ns=20000000,file.driver=mem,file.size=8M,file.pattern=offset");
    for (unsigned i = 0; i < 5; i++) {
        mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 100, 0, 0, 64));
        mmc_guest_abandon(&g); /* a callback from now on would be for a command that is not there */
        mmc_drive_reset(g.drive, i % 2);
        if (i % 2) {
            assert_sense(&g, 0x062900, 0x00);
        }
        assert_good(&g, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
        g_assert_cmpuint(load_le64(g.data->data + 8), ==, 8);
    }
    mmc_guest_teardown(&g);
}

/* In every state that a command can be in. */
static void test_abandon_anywhere(void)
{
    MmcGuest g;
    setup(&g);
    MmcCommand *never = mmc_command_new(g.drive, (const uint8_t[16]){0x28}, &(MmcTransport){0}, NULL);
    mmc_command_abandon(never);
    g.hold = true;
    mmc_guest_start(&g, CDB(0x12, 0, 0, 0, 36)); /* reply in the guest's hands */
    g_assert_cmpuint(g.chunks, ==, 1);
    mmc_guest_abandon(&g);
    mmc_guest_start(&g, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 8));
    mmc_guest_until(g.chunks == 1);
    mmc_guest_abandon(&g);
    g.hold = false;
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

static void abandon_inside(MmcCommand *command, Buffer *buffer, size_t offset, size_t len)
{
    unsigned *calls = mmc_command_opaque(command);
    ++*calls;
    mmc_command_abandon(command);
}

static void never(MmcCommand *command, const MmcSense *sense)
{
    g_assert_not_reached();
}

static void test_abandon_inside_data_in(void)
{
    const MmcTransport transport = {.data_in = abandon_inside, .complete = never};
    unsigned calls = 0;
    MmcGuest g;
    setup(&g);
    mmc_command_start(mmc_command_new(g.drive, (const uint8_t[16]){0x12, 0, 0, 0, 36}, &transport, &calls));
    g_assert_cmpuint(calls, ==, 1);
    mmc_command_start(
        mmc_command_new(g.drive, (const uint8_t[16]){0x28, 0, 0, 0, 0, 0, 0, 0, 8}, &transport, &calls));
    mmc_guest_until(calls == 2);
    assert_good(&g, 0x00);
    mmc_guest_teardown(&g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc/cve/2015-5154-power-condition", test_2015_5154);
    g_test_add_func("/mmc/cve/2015-5158-group-codes", test_2015_5158);
    g_test_add_func("/mmc/cve/2020-29443-ranges", test_2020_29443);
    g_test_add_func("/mmc/cve/length-in-64-bits", test_length_in_64_bits);
    g_test_add_func("/mmc/cve/2011-3346-2013-4344-allocation-length", test_allocation_length);
    g_test_add_func("/mmc/cve/2024-42416-2024-8178-absent-commands", test_absent_commands);
    g_test_add_func("/mmc/cve/2024-43110-sense", test_2024_43110);
    g_test_add_func("/mmc/cve/stale-mode-page", test_stale_mode_page);
    g_test_add_func("/mmc/cve/parameter-lists", test_parameter_lists);
    g_test_add_func("/mmc/cve/2023-5088-late-completion", test_late_completion);
    g_test_add_func("/mmc/cve/abandon-anywhere", test_abandon_anywhere);
    g_test_add_func("/mmc/cve/abandon-inside-data-in", test_abandon_inside_data_in);
    return g_test_run();
}
