/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands on their way to a drive of the host: long transfers in pieces, drives that hang, go and come back.
 * Needs root.
 */
#include "block/host-cdrom-guard.h"
#include "block/packet.h"
#include "tests/unit/pass-rig.h"
#include "util/bytes.h"
#include <errno.h>
#include <string.h>

/* What is written is cut to what the host passes, block by block. */
static void test_split_writes(void)
{
    static const uint8_t raw_type[16] = {[8] = 0x05, [9] = 6, [10] = 1, [12] = 0},
                         session[16] = {[8] = 0x05, [9] = 6, [10] = 2, [12] = 8};
    /* lead-in with its sub-channel, audio from -150 on, data with a pregap from 100 on, lead-out */
    static const uint8_t cues[] = {0x01, 0, 0, 0x41, 0, 0, 0, 0, 0x01, 1,    0, 0x00, 0, 0, 0, 0,
                                   0x01, 1, 1, 0x00, 0, 0, 2, 0, 0x41, 2,    1, 0x10, 0, 0, 3, 25,
                                   0x02, 0, 0, 0xff, 1, 2, 3, 4, 0x41, 0xaa, 1, 0x14, 0, 1, 0, 0};
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    g_autofree uint8_t *data = g_malloc(40 * 2352);
    for (unsigned i = 0; i < 40 * 2352; i++) {
        data[i] = (uint8_t)(i * 7 + i / 2048);
    }
    for (int later = 0; later <= 1; later++) {
        drive_reset();
        guest->later = later;
        g_assert_cmphex(mmc_guest_send(guest, CDB(0x2a, 0, 0, 0, 1, 0xfc, 0, 0, 20, 0), data, 20 * 2048), ==,
                        0);
        g_assert_cmpuint(drive.parts, ==, 3);
        assert_part(0, 0x2a, 0, 0, 0, 1, 0xfc, 0, 0, 8, 0);
        assert_part(1, 0x2a, 0, 0, 0, 2, 4, 0, 0, 8, 0);
        assert_part(2, 0x2a, 0, 0, 0, 2, 12, 0, 0, 4, 0);
        g_assert_cmpmem(drive.written->data, drive.written->len, data, 20 * 2048);
    }
    guest->later = false;
    drive_reset();
    g_assert_cmphex(mmc_guest_send(guest, CDB(0xaa, 0, 0, 0, 0, 8, 0, 0, 0, 9, 0x80, 0), data, 9 * 2048), ==,
                    0);
    assert_part(1, 0xaa, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0x80, 0);
    g_assert_cmpmem(drive.written->data, drive.written->len, data, 9 * 2048);
    /* blocks as the guest told the drive */
    drive_reset();
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 16, 0), raw_type, 16), ==, 0);
    drive_reset();
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 7, 0), data, 7 * 2352), ==, 0);
    g_assert_cmpuint(drive.parts, ==, 2);
    g_assert_cmpuint(drive.part[0].bytes, ==, 6 * 2352);
    g_assert_cmpuint(drive.part[1].bytes, ==, 2352);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 16, 0), session, 16), ==, 0);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x5d, 0, 0, 0, 0, 0, 0, 0, sizeof cues, 0), cues, sizeof cues),
                    ==, 0);
    static const struct {
        int32_t lba;
        uint32_t bytes;
    } blocks[] = {{-4000, 96}, {-151, 96}, {-150, 2352}, {0, 2352}, {99, 2352}, {100, 2048}, {4000, 2048}};
    for (unsigned i = 0; i < G_N_ELEMENTS(blocks); i++) {
        uint8_t cdb[10] = {0x2a, [8] = 1};
        store_be32(&cdb[2], (uint32_t)blocks[i].lba);
        drive_reset();
        g_assert_cmphex(mmc_guest_send(guest, cdb, 10, data, 4096), ==, 0);
        g_assert_cmpuint(drive.part[0].bytes, ==, blocks[i].bytes);
    }
    rig_free(&rig);
}

static void test_split_reads(void)
{
    static const uint8_t recovered[18] = {0x70, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x17, 1};
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    assert_good(guest, 0x28, 0, 0, 0, 0, 5, 0, 0, 17, 0);
    assert_part(2, 0x28, 0, 0, 0, 0, 21, 0, 0, 1, 0);
    assert_answers(guest, 3);
    drive_reset();
    assert_good(guest, 0xa8, 0, 0, 0, 0, 5, 0, 0, 0, 17, 0, 0);
    assert_part(1, 0xa8, 0, 0, 0, 0, 13, 0, 0, 0, 8, 0, 0);
    assert_answers(guest, 3);
    drive_reset();
    assert_good(guest, 0xbe, 0, 0, 0, 1, 0, 0, 0, 8, 0xf8, 0, 0); /* six whole sectors at once */
    assert_part(0, 0xbe, 0, 0, 0, 1, 0, 0, 0, 6, 0xf8, 0, 0);
    assert_part(1, 0xbe, 0, 0, 0, 1, 6, 0, 0, 2, 0xf8, 0, 0);
    assert_answers(guest, 2);
    drive_reset();
    assert_good(guest, 0xb9, 0, 0, 0, 2, 70, 0, 3, 4, 0xf8, 0, 0); /* from 00:02:70 to before 00:03:04 */
    assert_part(0, 0xb9, 0, 0, 0, 2, 70, 0, 3, 1, 0xf8, 0, 0);
    assert_part(1, 0xb9, 0, 0, 0, 3, 1, 0, 3, 4, 0xf8, 0, 0);
    assert_answers(guest, 2);
    drive_reset();
    assert_good(guest, 0x28, 0, 0, 0, 0, 5, 0, 0, 0, 0); /* nothing: the drive's to say */
    assert_part(0, 0x28, 0, 0, 0, 0, 5, 0, 0, 0, 0);
    /* recovered errors: all of the data, then the word */
    drive_reset();
    drive_says(recovered, sizeof recovered);
    assert_sense(guest, 0x011701, 0x28, 0, 0, 0, 0, 5, 0, 0, 17, 0);
    assert_answers(guest, 3);
    rig_free(&rig);
}

/* A reply that may be longer than the host passes: as long as it is not, good. */
static void test_long_replies(void)
{
    static const uint8_t cue[8] = {0x41, 1, 1};
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    g_autofree uint8_t *data = g_malloc0(65536);
    memcpy(data, cue, sizeof cue);
    drive.most = 100;
    assert_good(guest, 0x51, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0);
    assert_part(0, 0x51, 0, 0, 0, 0, 0, 0, PASS_LIMIT >> 8, PASS_LIMIT & 0xff, 0);
    g_assert_cmpuint(guest->data->len, ==, 100);
    drive_reset();
    assert_sense(guest, 0x052400, 0x51, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0);
    assert_good(guest, 0x51, 0, 0, 0, 0, 0, 0, PASS_LIMIT >> 8, PASS_LIMIT & 0xff, 0);
    g_assert_cmpuint(guest->data->len, ==, PASS_LIMIT);
    drive_reset();
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x5d, 0, 0, 0, 0, 0, 0, 0xff, 0xf8, 0), data, 65536), ==,
                    0x052400);
    g_assert_cmpuint(drive_count(), ==, 0);
    rig_free(&rig);
}

static unsigned count_fds(void)
{
    unsigned count = 0;
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    while (g_dir_read_name(dir)) {
        count++;
    }
    return count;
}

/* Milliseconds since the last call. */
static unsigned lap(void)
{
    static gint64 last;
    const gint64 now = g_get_monotonic_time();
    const unsigned ms = (unsigned)((now - last) / 1000);
    last = now;
    return ms;
}

#define assert_quick() g_assert_cmpuint(lap(), <, 100)

/* A command that hangs in the drive: everything but what is behind it goes on. */
static void test_hang(void)
{
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    static const uint8_t block[2048];
    assert_good(guest, 0xa1, 0); /* its descriptor for writing is there */
    rig_rest(50);
    drive_reset();
    g_assert_true(cdrom_guard_start()); /* the lock would */
    const unsigned fds = count_fds();
    drive_hangs(true);
    lap();
    mmc_guest_start(guest, CDB(0xa1, 0));
    mmc_guest_until(drive_count() == 1);
    lap();
    for (int i = 0; i < 200;
         i++) { /* a guest that resets and tries again: nothing piles up, nothing is sent */
        mmc_guest_abandon(guest);
        mmc_drive_reset(guest->drive, false);
        guest->out = block;
        guest->out_len = sizeof block;
        mmc_guest_start(guest, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0));
    }
    mmc_guest_abandon(guest);
    assert_quick();
    assert_good(guest, 0x12, 0, 0, 0, 36);
    assert_good(guest, 0x1e, 0, 0, 0, 1, 0);
    assert_good(guest, 0x1e, 0, 0, 0, 0, 0);
    assert_quick();
    rig_rest(20);
    g_assert_cmpuint(drive_count(), ==, 1);
    lap();
    assert_good(guest, 0x1b, 0, 0, 0, 2, 0);
    g_assert_true(mmc_drive_tray_open(guest->drive));
    assert_quick();
    g_assert_cmpuint(count_fds(), <=, fds + 4); /* of looks that are under way */
    g_assert_false(block_shutdown(20));
    g_assert_true(block_drives_hang());
    lap();
    drive_hangs(false);
    mmc_guest_until(!block_drives_hang());
    rig_rest(100);
    g_assert_cmpuint(count_fds(), ==, fds);
    assert_good(guest, 0x1b, 0, 0, 0, 3, 0);
    rig_free(&rig);
}

/* It goes away with a command in it, and comes back. */
static void test_gone(void)
{
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    rig_rest(50);
    const unsigned fds = count_fds();
    drive_hangs(true);
    mmc_guest_start(guest, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 17, 0));
    mmc_guest_until(drive_count() == 1);
    loop_device_unplug(rig.loop);
    g_assert_cmpint(loop_device_resized(rig.loop), ==, 0); /* any event of the device */
    lap();
    mmc_guest_wait(guest); /* though the drive still does not say anything */
    g_assert_cmphex(guest->sense.key << 16 | guest->sense.asc << 8, ==, 0x023a00);
    g_assert_cmpuint(block_packet_max(guest->node), ==, 0);
    assert_sense(guest, 0x052000, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
    drive_hangs(false);
    loop_device_plug(rig.loop);
    g_assert_cmpint(loop_device_resized(rig.loop), ==, 0);
    mmc_guest_until(block_packet_max(guest->node) > 0);
    while (mmc_guest_run(guest, CDB(0x00)) != 0) {
        g_main_context_iteration(NULL, TRUE);
    }
    drive_reset();
    assert_good(guest, 0x28, 0, 0, 0, 0, 0, 0, 0, 17, 0);
    assert_answers(guest, 3);
    /* in the middle of a transfer: what came is given */
    g_atomic_int_set(&fake_sg.gone, ENODEV);
    assert_sense(guest, 0x023a01, 0x28, 0, 0, 0, 0, 0, 0, 0, 17, 0);
    g_atomic_int_set(&fake_sg.gone, 0);
    rig_rest(1500); /* the look that this was reason for */
    g_assert_cmpuint(count_fds(), <=, fds + 1);
    rig_free(&rig);
}

/* Another disc while a command hangs: it ends as the disc does. */
static void test_changed(void)
{
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_SAFE, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    rig_rest(50);
    drive_hangs(true);
    mmc_guest_start(guest, CDB(0xa7, 0));
    mmc_guest_until(drive_count() == 1);
    g_assert_cmpint(loop_device_change(rig.loop, rig.medium), ==, 0);
    mmc_guest_wait(guest);
    g_assert_cmphex(guest->sense.key << 16 | guest->sense.asc << 8, ==, 0x023a00);
    assert_sense(guest, 0x062800, 0x00);
    assert_good(guest, 0x00);
    drive_hangs(false);
    assert_good(guest, 0xa7, 0);
    rig_free(&rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc-pass/split-writes", test_split_writes);
    g_test_add_func("/mmc-pass/split-reads", test_split_reads);
    g_test_add_func("/mmc-pass/long-replies", test_long_replies);
    g_test_add_func("/mmc-pass/hang", test_hang);
    g_test_add_func("/mmc-pass/gone", test_gone);
    g_test_add_func("/mmc-pass/changed", test_changed);
    return g_test_run();
}
