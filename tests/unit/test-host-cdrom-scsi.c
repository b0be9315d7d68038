/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive of the host as it answers MMC commands (tests/lib/fake-sg.h). Tables of contents, whole sectors,
 * sense, tray and lock. Needs root.
 */
#include "block/host-cdrom-toc.h"
#include "tests/lib/fake-sg.h"
#include "tests/lib/loop-device.h"
#include "tests/lib/mmc-guest.h"
#include "tests/unit/block-test.h"
#include "util/bytes.h"
#include <errno.h>
#include <linux/cdrom.h>
#include <string.h>

#define RAW 2352

typedef struct Sense {
    uint8_t key, asc, ascq;
} Sense;

/* What it holds. Written while nothing is under way. */
static struct {
    const uint8_t *toc; /* full TOC */
    size_t toc_bytes;
    Sense raw;        /* READ CD ends with this… */
    uint32_t raw_lba; /* … if it reaches this */
    int prevent_errno;
    gint starts, prevents, allows, raws; /* atomic */
} drive;

static uint16_t profile = 0x08;
static bool without_data; /* the device is empty to the kernel */

static uint8_t raw_byte(uint32_t lba, unsigned i)
{
    return (uint8_t)(lba * 13 + i * 3 + 1);
}

static int check_condition(struct sg_io_hdr *io, Sense sense)
{
    return fake_sg_check(io, sense.key, sense.asc, sense.ascq);
}

static int read_cd(struct sg_io_hdr *io)
{
    const uint32_t lba = load_be32(&io->cmdp[2]), count = load_be24(&io->cmdp[6]);
    uint8_t *to = io->dxferp;
    g_atomic_int_inc(&drive.raws);
    g_assert_cmpuint(io->dxfer_len, ==, count * RAW);
    if (drive.raw.key > 1 && drive.raw_lba >= lba && drive.raw_lba < lba + count) {
        return check_condition(io, drive.raw);
    }
    for (uint32_t s = 0; s < count; s++) {
        for (unsigned i = 0; i < RAW; i++) {
            *to++ = raw_byte(lba + s, i);
        }
    }
    if (drive.raw.key == 1) { /* recovered */
        check_condition(io, drive.raw);
        io->resid = 0;
    }
    return 0;
}

static int sub_channel(struct sg_io_hdr *io)
{
    uint8_t reply[24] = {0, 0x15, 0, 20, io->cmdp[3]};
    reply[8] = 0x80;
    memcpy(&reply[9],
           io->cmdp[3] == 2   ? "1234567890123"
           : io->cmdp[6] == 2 ? "ABCDE0000002"
                              : "ABCDE0000003",
           io->cmdp[3] == 2 ? 13 : 12);
    return fake_sg_answer(io, reply, sizeof reply);
}

static int prevent(struct sg_io_hdr *io)
{
    if (drive.prevent_errno) {
        errno = drive.prevent_errno;
        return -1;
    }
    g_atomic_int_inc(io->cmdp[4] & 1 ? &drive.prevents : &drive.allows);
    return 0;
}

static int send_packet(int fd, struct sg_io_hdr *io)
{
    static const uint8_t inquiry[36] = {5, 0x80};
    const uint8_t configuration[8] = {0, 0, 0, 4, 0, 0, profile >> 8, profile & 0xff};
    static const uint8_t text[4 + 18] = {0, 20, 0, 0, 0x80, 1};
    switch (io->cmdp[0]) {
    case 0x12:
        return fake_sg_answer(io, inquiry, sizeof inquiry);
    case 0x1b:
        g_atomic_int_inc(&drive.starts);
        return 0;
    case 0x1e:
        return prevent(io);
    case 0x42:
        return sub_channel(io);
    case 0x43:
        if (io->cmdp[2] == 5) {
            return fake_sg_answer(io, text, sizeof text);
        }
        return drive.toc && io->cmdp[2] == 2 ? fake_sg_answer(io, drive.toc, drive.toc_bytes)
                                             : check_condition(io, (Sense){5, 0x24, 0});
    case 0x46:
        return fake_sg_answer(io, configuration, sizeof configuration);
    case 0xbe:
        return read_cd(io);
    default:
        return check_condition(io, (Sense){5, 0x20, 0});
    }
}

/* Session, ADR and control, POINT and the MSF of it. */
#define ROW(session, control, point, m, s, f) session, 0x10 | (control), 0, point, 0, 0, 0, 0, m, s, f

/* Data 0-299, audio 300-449 and 450-599; a second session with data 12000-12149. */
static const uint8_t mixed[] = {0,
                                2 + 10 * 11,
                                1,
                                2,
                                ROW(1, 4, 0xa0, 1, 0, 0),
                                ROW(1, 0, 0xa1, 3, 0, 0),
                                ROW(1, 0, 0xa2, 0, 10, 0),
                                ROW(1, 4, 1, 0, 2, 0),
                                ROW(1, 0, 2, 0, 6, 0),
                                ROW(1, 2, 3, 0, 8, 0),
                                ROW(2, 4, 0xa0, 4, 0, 0),
                                ROW(2, 4, 0xa1, 4, 0, 0),
                                ROW(2, 4, 0xa2, 2, 44, 0),
                                ROW(2, 4, 4, 2, 42, 0)};

static void test_parse(void)
{
    uint32_t end = 0;
    g_autoptr(BlockToc) toc = cdrom_toc_parse(mixed, sizeof mixed, &end);
    static const struct {
        uint8_t session, control;
        BlockTrackMode mode;
        uint32_t start, sectors;
    } rows[] = {{1, 4, BLOCK_TRACK_MODE1, 0, 300},
                {1, 0, BLOCK_TRACK_AUDIO, 300, 150},
                {1, 2, BLOCK_TRACK_AUDIO, 450, 150},
                {2, 4, BLOCK_TRACK_MODE1, 12000, 150}};
    g_assert_nonnull(toc);
    g_assert_cmpuint(toc->tracks, ==, 4);
    g_assert_cmpuint(end, ==, 12150);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_cmpuint(toc->track[i].session, ==, rows[i].session);
        g_assert_cmpuint(toc->track[i].control, ==, rows[i].control);
        g_assert_cmpuint(toc->track[i].mode, ==, rows[i].mode);
        g_assert_cmpuint(toc->track[i].start, ==, rows[i].start);
        g_assert_cmpuint(toc->track[i].sectors, ==, rows[i].sectors);
    }
}

/* Whatever a drive or a disc may say: no crash, and never tracks that overlap. */
static void test_parse_garbage(void)
{
    for (size_t cut = 0; cut < sizeof mixed; cut++) {
        uint32_t end;
        block_toc_free(cdrom_toc_parse(mixed, cut, &end));
    }
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t bent[sizeof mixed];
        uint32_t end, at = 0;
        memcpy(bent, mixed, sizeof bent);
        for (int i = g_test_rand_int_range(1, 6); i > 0; i--) {
            bent[g_test_rand_int_range(0, sizeof bent)] = (uint8_t)g_test_rand_int_range(0, 256);
        }
        g_autoptr(BlockToc) toc = cdrom_toc_parse(bent, sizeof bent, &end);
        for (unsigned i = 0; toc && i < toc->tracks; i++) {
            g_assert_cmpuint(toc->track[i].start, >=, at);
            g_assert_cmpuint(toc->track[i].sectors, >, 0);
            at = toc->track[i].start + toc->track[i].sectors;
        }
        g_assert_true(!toc || at == end);
    }
}

typedef struct Rig {
    LoopDevice *loop;
    MmcGuest guest;
    char *medium;
} Rig;

static bool rig_new_more(Rig *rig, const uint8_t *toc, size_t toc_bytes, const char *more)
{
    const char *why;
    memset(&drive, 0, sizeof drive);
    fake_sg = (FakeSg){.packet = send_packet};
    rig->loop = loop_device_new(&why);
    if (!rig->loop) {
        g_test_skip("needs root and loop devices");
        return false;
    }
    rig->medium = loop_device_make_medium(rig->loop, "m", 12150 * 2048);
    if (!without_data) {
        g_assert_cmpint(loop_device_insert(rig->loop, rig->medium), ==, 0);
    }
    fake_sg.status = CDS_DISC_OK;
    fake_sg.max_sectors = 32; /* six whole sectors */
    drive.toc = toc;
    drive.toc_bytes = toc_bytes;
    fake_sg.on = true;
    g_autofree char *options =
        g_strdup_printf("host_cdrom,filename=%s,read-only=on%s", rig->loop->path, more);
    mmc_guest_setup(&rig->guest, options);
    return true;
}

static bool rig_new(Rig *rig, const uint8_t *toc, size_t toc_bytes)
{
    return rig_new_more(rig, toc, toc_bytes, "");
}

static void rig_free(Rig *rig)
{
    mmc_guest_teardown(&rig->guest);
    g_assert_true(block_shutdown(10000));
    fake_sg.on = false;
    loop_device_free(rig->loop);
    g_free(rig->medium);
}

static void test_disc(void)
{
    Rig rig;
    if (!rig_new(&rig, mixed, sizeof mixed)) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    assert_good(guest, 0x43, 0, 0, 0, 0, 0, 0, 0, 44, 0);
    assert_data(guest, 0, 42, 1, 4, 0, 0x14, 1, 0, 0, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 1, 44, 0, 0x12, 3, 0, 0,
                0, 1, 194, 0, 0x14, 4, 0, 0, 0, 46, 224, 0, 0x14, 0xaa, 0, 0, 0, 47, 118);
    assert_good(guest, 0x43, 0, 1, 0, 0, 0, 0, 0, 12, 0); /* the last session begins with track 4 */
    assert_data(guest, 0, 10, 1, 2, 0, 0x14, 4, 0, 0, 0, 46, 224);
    assert_good(guest, 0x42, 2, 0x40, 2, 0, 0, 0, 0, 24, 0);
    g_assert_cmpmem(guest->data->data + 9, 13, "1234567890123", 13);
    assert_good(guest, 0x42, 2, 0x40, 3, 0, 0, 3, 0, 24, 0);
    g_assert_cmpmem(guest->data->data + 9, 12, "ABCDE0000003", 12);
    assert_good(guest, 0x43, 0, 5, 0, 0, 0, 0, 0, 22, 0);
    g_assert_cmphex(guest->data->data[4], ==, 0x80);
    rig_free(&rig);
}

/* Nothing but music: the kernel gives the device no size. */
static void test_audio(void)
{
    static const uint8_t audio[] = {0,
                                    2 + 5 * 11,
                                    1,
                                    1,
                                    ROW(1, 0, 0xa0, 1, 0, 0),
                                    ROW(1, 0, 0xa1, 2, 0, 0),
                                    ROW(1, 0, 0xa2, 0, 10, 0),
                                    ROW(1, 0, 1, 0, 2, 0),
                                    ROW(1, 0, 2, 0, 6, 0)};
    Rig rig;
    without_data = true;
    const bool good = rig_new(&rig, audio, sizeof audio);
    without_data = false;
    if (!good) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    assert_good(guest, 0x00);
    assert_good(guest, 0x43, 0, 0, 0, 0, 0, 0, 0, 28, 0);
    assert_data(guest, 0, 26, 1, 2, 0, 0x10, 1, 0, 0, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 1, 44, 0, 0x10, 0xaa, 0,
                0, 0, 2, 88);
    assert_sense(guest, 0x056400, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    assert_good(guest, 0xbe, 0, 0, 0, 2, 40, 0, 0, 20, 0x10, 0, 0);
    g_assert_cmpuint(guest->data->len, ==, 20 * RAW);
    for (unsigned i = 0; i < guest->data->len; i++) {
        g_assert_cmphex(guest->data->data[i], ==, raw_byte(552 + i / RAW, i % RAW));
    }
    rig_free(&rig);
}

static void test_sectors(void)
{
    Rig rig;
    if (!rig_new(&rig, mixed, sizeof mixed)) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    assert_good(guest, 0xbe, 0, 0, 0, 1, 44, 0, 0, 100, 0x10, 0, 0); /* audio */
    g_assert_cmpuint(guest->data->len, ==, 100 * RAW);
    for (unsigned i = 0; i < guest->data->len; i++) {
        g_assert_cmphex(guest->data->data[i], ==, raw_byte(300 + i / RAW, i % RAW));
    }
    g_assert_cmpint(g_atomic_int_get(&drive.raws), >=, 17);
    g_assert_cmpint(g_atomic_int_get(&fake_sg.too_large), ==, 0);
    assert_good(guest, 0x28, 0, 0, 0, 46, 230, 0, 0, 5, 0); /* data of the second session */
    for (unsigned i = 0; i < guest->data->len; i++) {
        g_assert_cmphex(guest->data->data[i], ==, loop_device_byte("m", 12006 * 2048 + i));
    }
    assert_sense(guest, 0x056400, 0x28, 0, 0, 0, 1, 44, 0, 0, 1, 0); /* READ(10) of audio */
    rig_free(&rig);
}

static void test_sense(void)
{
    static const struct {
        Sense drive;
        uint32_t guest;
        bool lba;
    } rows[] = {{{3, 0x11, 0}, 0x031100, true},
                {{4, 0x09, 0}, 0x044400, false},
                {{0xb, 0, 0}, 0x0b0000, false},
                {{2, 0x3a, 0}, 0x023a01, false},
                {{1, 0x17, 0}, 0, false}};
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Rig rig;
        if (!rig_new(&rig, mixed, sizeof mixed)) {
            return;
        }
        drive.raw = rows[i].drive;
        drive.raw_lba = 320;
        const uint32_t sense = mmc_guest_run(&rig.guest, CDB(0xbe, 0, 0, 0, 1, 44, 0, 0, 30, 0x10, 0, 0));
        g_assert_cmphex(sense, ==, rows[i].guest);
        if (rows[i].lba) {
            g_assert_true(rig.guest.sense.info_valid);
            g_assert_cmpuint(rig.guest.sense.info, ==, 320);
            g_assert_cmpuint(rig.guest.data->len, ==, 20 * RAW); /* what lies before it */
        }
        rig_free(&rig);
    }
}

static void rest(unsigned ms)
{
    const gint64 end = g_get_monotonic_time() + ms * 1000;
    while (g_get_monotonic_time() < end) {
        if (!g_main_context_iteration(NULL, FALSE)) {
            g_usleep(1000);
        }
    }
}

static void test_tray(void)
{
    Rig rig;
    if (!rig_new(&rig, NULL, 0)) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    assert_good(guest, 0x1e, 0, 0, 0, 1, 0);
    mmc_guest_until(g_atomic_int_get(&drive.prevents) == 1);
    assert_sense(guest, 0x055302, 0x1b, 0, 0, 0, 2, 0);
    g_assert_cmpint(g_atomic_int_get(&fake_sg.ejects), ==, 0);
    assert_good(guest, 0x1e, 0, 0, 0, 0, 0);
    mmc_guest_until(g_atomic_int_get(&drive.allows) == 1);
    fake_sg.status = CDS_TRAY_OPEN;
    assert_good(guest, 0x1b, 0, 0, 0, 2, 0);
    mmc_guest_until(g_atomic_int_get(&fake_sg.ejects) == 1 && block_tray(guest->node) == BLOCK_TRAY_OPEN);
    assert_sense(guest, 0x023a02, 0x00);
    rest(50); /* looks that are under way see it open too */
    fake_sg.status = CDS_DISC_OK;
    assert_good(guest, 0x1b, 0, 0, 0, 3, 0);
    mmc_guest_until(!mmc_drive_tray_open(guest->drive));
    g_assert_cmpint(g_atomic_int_get(&fake_sg.closes), ==, 1);
    /* It was not there, it comes, it is there: as from the drive itself. */
    assert_sense(guest, 0x020401, 0x00);
    assert_sense(guest, 0x062800, 0x00);
    assert_good(guest, 0x00);
    /* Another program has it open: the guest's eject is done all the same. */
    fake_sg.eject_errno = EBUSY;
    assert_good(guest, 0x1b, 0, 0, 0, 2, 0);
    mmc_guest_until(g_atomic_int_get(&drive.starts) == 1);
    rig_free(&rig);
    g_assert_cmpint(g_atomic_int_get(&fake_sg.lockdoors), ==, 0);
}

/* The drive's own way from an open tray to a disc, by hand, with the time that it takes; and a swap that the
 * guest had no occasion to see. */
static void test_spinning(void)
{
    Rig rig;
    if (!rig_new(&rig, NULL, 0)) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    const uint8_t ask = 0x00;
    rest(50);
    fake_sg.status = CDS_TRAY_OPEN;
    mmc_guest_until(mmc_guest_run(guest, &ask, 1) == 0x023a02);
    fake_sg.status = CDS_DRIVE_NOT_READY;
    mmc_guest_until(mmc_guest_run(guest, &ask, 1) == 0x020401);
    g_assert_false(mmc_drive_tray_open(guest->drive));
    rest(700);
    assert_sense(guest, 0x020401, 0x00); /* as long as it takes */
    fake_sg.status = CDS_DISC_OK;
    uint32_t sense;
    while ((sense = mmc_guest_run(guest, &ask, 1)) == 0x020401) {
        rest(10);
    }
    g_assert_cmphex(sense, ==, 0x062800);
    assert_good(guest, 0x00);
    /* out, and in again, empty meanwhile */
    fake_sg.status = CDS_NO_DISC;
    mmc_guest_until(mmc_guest_run(guest, &ask, 1) == 0x023a01);
    fake_sg.status = CDS_DISC_OK;
    mmc_guest_until(mmc_guest_run(guest, &ask, 1) == 0x020401);
    assert_sense(guest, 0x062800, 0x00);
    assert_good(guest, 0x00);
    g_assert_cmpint(loop_device_change(rig.loop, rig.medium), ==, 0);
    mmc_guest_until(mmc_guest_run(guest, &ask, 1) == 0x023a01);
    assert_sense(guest, 0x062800, 0x00);
    assert_good(guest, 0x00);
    rig_free(&rig);
}

/* A disc is of the kind that the drive says, not of the one that its size would make it. */
static void test_profile(void)
{
    static const struct {
        uint16_t drive, guest;
        uint8_t medium;
    } rows[] = {{0x10, 0x10, 0}, {0x1b, 0x10, 0}, {0x2b, 0x10, 0}, {0x40, 0x40, 1},
                {0x43, 0x40, 1}, {0x51, 0x10, 0}, {0x09, 0x08, 0}};
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Rig rig;
        profile = rows[i].drive;
        if (!rig_new(&rig, NULL, 0)) {
            return;
        }
        assert_good(&rig.guest, 0x46, 2, 0, 0, 0, 0, 0, 0, 8, 0);
        g_assert_cmphex(load_be16(&rig.guest.data->data[6]), ==, rows[i].guest);
        assert_good(&rig.guest, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        g_assert_cmpuint(load_be32(rig.guest.data->data), ==, 12150 - 1);
        assert_sense(&rig.guest, rows[i].guest == 0x08 ? 0x053002 : 0, 0xad, rows[i].medium, 0, 0, 0, 0, 0, 0,
                     0, 64, 0);
        rig_free(&rig);
    }
    profile = 0x08;
}

/* An eject and a load at once, again and again: what was asked last holds. */
static void test_tray_quickly(void)
{
    Rig rig;
    if (!rig_new(&rig, NULL, 0)) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    for (int i = 0; i < 50; i++) {
        assert_good(guest, 0x1b, 0, 0, 0, 2, 0);
        for (int k = 0; k < i % 7; k++) {
            g_main_context_iteration(NULL, FALSE);
            g_usleep(100);
        }
        assert_good(guest, 0x1b, 0, 0, 0, 3, 0);
        mmc_guest_until(!mmc_drive_tray_open(guest->drive));
    }
    rig_free(&rig);
}

/* A tray that does not move: the guest, which believes that it did, learns better. */
static void test_tray_stuck(void)
{
    Rig rig;
    if (!rig_new(&rig, NULL, 0)) {
        return;
    }
    fake_sg.eject_errno = EIO;
    assert_good(&rig.guest, 0x1b, 0, 0, 0, 2, 0);
    g_assert_true(mmc_drive_tray_open(rig.guest.drive));
    mmc_guest_until(!mmc_drive_tray_open(rig.guest.drive));
    assert_sense(&rig.guest, 0x020401, 0x00);
    assert_sense(&rig.guest, 0x062800, 0x00);
    assert_good(&rig.guest, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    rig_free(&rig);
}

/* `tray=off`: the host's is left alone. */
static void test_tray_off(void)
{
    Rig rig;
    if (!rig_new_more(&rig, NULL, 0, ",tray=off")) {
        return;
    }
    assert_good(&rig.guest, 0x1e, 0, 0, 0, 1, 0);
    assert_good(&rig.guest, 0x1e, 0, 0, 0, 0, 0);
    assert_good(&rig.guest, 0x1b, 0, 0, 0, 2, 0);
    assert_sense(&rig.guest, 0x023a02, 0x00);
    rest(50);
    assert_good(&rig.guest, 0x1b, 0, 0, 0, 3, 0);
    assert_sense(&rig.guest, 0x020401, 0x00);
    assert_sense(&rig.guest, 0x062800, 0x00);
    assert_good(&rig.guest, 0x00);
    rig_free(&rig);
    g_assert_cmpint(fake_sg.ejects + fake_sg.closes + drive.prevents + drive.allows + fake_sg.lockdoors, ==,
                    0);
}

/* Without the right to send PREVENT: the kernel's way. */
static void test_lock_refused(void)
{
    Rig rig;
    if (!rig_new(&rig, NULL, 0)) {
        return;
    }
    drive.prevent_errno = EPERM;
    assert_good(&rig.guest, 0x1e, 0, 0, 0, 1, 0);
    mmc_guest_until(g_atomic_int_get(&fake_sg.lockdoors) == 1);
    rig_free(&rig);
    g_assert_cmpint(g_atomic_int_get(&fake_sg.lockdoors), >=, 2); /* and unlocked when it was closed */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-cdrom/toc", test_parse);
    g_test_add_func("/host-cdrom/toc-garbage", test_parse_garbage);
    g_test_add_func("/host-cdrom/disc", test_disc);
    g_test_add_func("/host-cdrom/audio", test_audio);
    g_test_add_func("/host-cdrom/sectors", test_sectors);
    g_test_add_func("/host-cdrom/sense", test_sense);
    g_test_add_func("/host-cdrom/tray", test_tray);
    g_test_add_func("/host-cdrom/spinning", test_spinning);
    g_test_add_func("/host-cdrom/profile", test_profile);
    g_test_add_func("/host-cdrom/tray-quickly", test_tray_quickly);
    g_test_add_func("/host-cdrom/tray-stuck", test_tray_stuck);
    g_test_add_func("/host-cdrom/tray-off", test_tray_off);
    g_test_add_func("/host-cdrom/lock-refused", test_lock_refused);
    return g_test_run();
}
