/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which commands go to a drive of the host: every opcode under every policy, and what the drive says back.
 * Needs root.
 */
#include "hw/block/mmc-pass.h"
#include "tests/unit/pass-rig.h"
#include "hw/block/mmc.h"
#include "util/state.h"
#include "util/bytes.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* What goes to the drive, written down a second time. */
static const uint8_t by_class[][40] = {
    [MMC_PASS_READ] = {0x23, 0x42, 0x43, 0x51, 0x52, 0xa7, 0xab, 0xac, 0xad},
    [MMC_PASS_AUDIO] = {0x45, 0x47, 0x48, 0x4b, 0x4e, 0xa5, 0xba},
    [MMC_PASS_EJECT] = {0xa6},
    [MMC_PASS_KEYS] = {0xa3, 0xa4},
    [MMC_PASS_BURN] = {0x04, 0x25, 0x28, 0x2a, 0x2b, 0x2e, 0x2f, 0x35, 0x46, 0x53, 0x54, 0x55, 0x58, 0x5a,
                       0x5b, 0x5c, 0x5d, 0xa1, 0xa8, 0xaa, 0xb6, 0xb9, 0xbb, 0xbe, 0xbf, 0x03, 0x00},
};

static int class_of(unsigned opcode)
{
    for (unsigned class = 0; class < G_N_ELEMENTS(by_class); class ++) {
        for (unsigned i = 0; i < sizeof by_class[class]; i++) {
            if (by_class[class][i] == opcode && (opcode || class == MMC_PASS_BURN)) {
                return (int)class;
            }
        }
    }
    return -1;
}

/* A CDB of the opcode that is passed if any is: a reply of up to 64 bytes, parameters of 16, one block. */
static void make_cdb(unsigned opcode, uint8_t cdb[16])
{
    memset(cdb, 0, 16);
    cdb[0] = (uint8_t)opcode;
    switch (opcode) {
    case 0x03:
        cdb[4] = 64;
        break;
    case 0x43: /* PMA */
        cdb[2] = 3;
        cdb[8] = 64;
        break;
    case 0x04: /* with parameters */
        cdb[1] = 0x11;
        break;
    case 0x54:
    case 0x55:
    case 0x5d:
    case 0x2a:
    case 0x2e:
        cdb[8] = opcode == 0x2a || opcode == 0x2e ? 1 : 16;
        break;
    case 0xa3:
    case 0xbf:
    case 0xa4:
    case 0xad:
    case 0xac:
        cdb[9] = 16;
        break;
    case 0xb6:
        cdb[10] = 16;
        break;
    case 0xab: /* READ MEDIA SERIAL NUMBER */
        cdb[1] = 1;
        cdb[9] = 64;
        break;
    case 0xa8:
    case 0xaa:
        cdb[9] = 1;
        break;
    case 0xbe:
        cdb[8] = 1;
        cdb[9] = 0x10;
        break;
    case 0xb9:
        cdb[4] = cdb[7] = 2;
        cdb[8] = 1;
        cdb[9] = 0x10;
        break;
    case 0x28:
        cdb[8] = 1;
        break;
    default:
        cdb[8] = 64;
    }
}

/* Parameters that pass each check. */
static const void *params_for(unsigned opcode)
{
    static const uint8_t pages[16] = {[8] = 0x05, [9] = 6, [12] = 8},
                         cues[2048] = {0x41, 0, 0, 0x01, [8] = 0x41};
    return opcode == 0x55 ? pages : cues;
}

static MmcPassHow expected(unsigned opcode, MmcPassthrough policy)
{
    const int class = class_of(opcode);
    return class < 0 || policy == MMC_PASSTHROUGH_OFF ||
                   (class == MMC_PASS_BURN && policy != MMC_PASSTHROUGH_BURN)
               ? MMC_PASS_OWN
               : MMC_PASS_DRIVE;
}

static void check_opcode(MmcGuest *guest, unsigned opcode, MmcPassthrough policy)
{
    uint8_t cdb[16];
    make_cdb(opcode, cdb);
    assert_good(guest, 0x12, 0, 0, 0, 36); /* the last one's sense is gone */
    drive_reset();
    const uint32_t sense = mmc_guest_send(guest, cdb, 12, params_for(opcode), 2048);
    g_test_message("opcode %02x policy %d: sense %06x, %u to the drive", opcode, policy, sense, drive.parts);
    if (expected(opcode, policy) == MMC_PASS_OWN) {
        g_assert_cmpuint(drive_count(), ==, 0);
        if (!mmc_op_find((uint8_t)opcode)) {
            g_assert_cmphex(sense, ==, 0x052000);
        }
        return;
    }
    const Part *part = &drive.part[0];
    const MmcPassRow *row = mmc_pass_find((uint8_t)opcode);
    g_assert_cmphex(sense, ==, 0);
    g_assert_cmpuint(drive_count(), ==, 1);
    g_assert_cmpuint(part->cdb_bytes, ==, opcode < 0x20 ? 6 : opcode < 0x60 ? 10 : 12);
    g_assert_cmpmem(part->cdb, part->cdb_bytes, cdb, part->cdb_bytes);
    g_assert_cmpint(row->class, ==, class_of(opcode));
    g_assert_cmpint(part->direction, ==,
                    part->bytes == 0                 ? SG_DXFER_NONE
                    : row->direction == MMC_DATA_OUT ? SG_DXFER_TO_DEV
                                                     : SG_DXFER_FROM_DEV);
    g_assert_cmpint(part->flags & O_ACCMODE, ==, policy == MMC_PASSTHROUGH_BURN ? O_RDWR : O_RDONLY);
    g_assert_cmpuint(part->timeout, >=, 30000);
    for (unsigned i = 0; i < guest->data->len; i++) {
        g_assert_cmphex(guest->data->data[i], ==, drive_byte(cdb, i));
    }
    if (row->direction == MMC_DATA_OUT) {
        g_assert_cmpmem(drive.written->data, drive.written->len, params_for(opcode), part->bytes);
    }
}

static void test_opcodes(void)
{
    for (MmcPassthrough policy = MMC_PASSTHROUGH_OFF; policy <= MMC_PASSTHROUGH_BURN; policy++) {
        Rig rig;
        if (!rig_new(&rig, policy, "")) {
            return;
        }
        for (unsigned opcode = 0; opcode < 256; opcode++) {
            if (opcode == 0x1b || opcode == 0x1e) { /* Spindle's, with consequences */
                g_assert_null(mmc_pass_find((uint8_t)opcode));
                continue;
            }
            check_opcode(&rig.guest, opcode, policy);
        }
        rig_free(&rig);
    }
    for (unsigned opcode = 0; opcode < 256; opcode++) { /* nothing but what is written down */
        g_assert_cmpint(mmc_pass_find((uint8_t)opcode) != NULL, ==, class_of(opcode) >= 0);
    }
}

/* Microcode and vendors' opcodes, and the forms of a command that the table does not let through. */
static void test_denied(void)
{
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    for (unsigned mode = 0; mode < 16; mode++) {
        assert_sense(guest, 0x052000, 0x3b, (uint8_t)mode, 0, 0, 0, 0, 0, 2, 0, 0);
        assert_sense(guest, 0x052000, 0x3c, (uint8_t)mode, 0, 0, 0, 0, 0, 2, 0, 0);
    }
    assert_sense(guest, 0x052000, 0xab, 2, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0);
    assert_sense(guest, 0x052400, 0x2f, 2, 0, 0, 0, 0, 0, 0, 1, 0); /* BYTCHK */
    static const uint8_t vendor[16] = {[8] = 0x00, [9] = 6}, short_list[16] = {[8] = 0x05, [9] = 9},
                         odd_type[16] = {[8] = 0x05, [9] = 6, [12] = 7}, audio[16] = {[8] = 0x41};
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 16, 0), vendor, 16), ==,
                    0x052600);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 16, 0), short_list, 16), ==,
                    0x051a00);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 16, 0), odd_type, 16), ==,
                    0x052600);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 4, 0), vendor, 4), ==, 0x051a00);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x55, 0x11, 0, 0, 0, 0, 0, 0, 16, 0), vendor, 16), ==,
                    0x052400);
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x5d, 0, 0, 0, 0, 0, 0, 0, 15, 0), audio, 15), ==, 0x051a00);
    static const uint8_t form[8] = {0x41, 1, 1, 0x8f};
    g_assert_cmphex(mmc_guest_send(guest, CDB(0x5d, 0, 0, 0, 0, 0, 0, 0, 8, 0), form, 8), ==, 0x052600);
    g_assert_cmpuint(drive_count(), ==, 0);
    /* the region code is the drive's for ever */
    assert_good(guest, 0xa3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0);
    rig_free(&rig);
    g_assert_true(rig_new(&rig, MMC_PASSTHROUGH_SAFE, ""));
    assert_sense(&rig.guest, 0x052000, 0xa3, 0, 0, 0, 0, 0, 0, 0, 0, 12, 6, 0);
    g_assert_cmpuint(drive_count(), ==, 0);
    rig_free(&rig);
    /* nor does a guest that may not move the tray have discs changed */
    g_assert_true(rig_new(&rig, MMC_PASSTHROUGH_BURN, ",tray=off"));
    assert_sense(&rig.guest, 0x052000, 0xa6, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0);
    g_assert_cmpuint(drive_count(), ==, 0);
    rig_free(&rig);
}

/* Byte for byte what the drive said, then nothing. */
static void assert_told(MmcGuest *guest, const uint8_t *sense)
{
    assert_good(guest, 0x03, 0, 0, 0, 18);
    g_assert_cmpmem(guest->data->data, guest->data->len, sense, 18);
}

static void test_sense(void)
{
    static const uint8_t medium[18] = {0xf0, 0, 3, 0, 1, 2, 3, 10, 9, 8, 7, 6, 0x11, 0x05, 1, 0xc0, 2, 3},
                         progress[18] = {0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 8, 0, 0x80, 0x12, 0x34},
                         refusal[18] = {0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x30, 0x02},
                         descriptor[16] = {0x72, 3, 0x11, 5},
                         tail[32] = {0x70, 0, 4, 0, 0, 0, 0, 24, [12] = 9};
    for (MmcPassthrough policy = MMC_PASSTHROUGH_SAFE; policy <= MMC_PASSTHROUGH_BURN; policy++) {
        Rig rig;
        if (!rig_new(&rig, policy, "")) {
            return;
        }
        MmcGuest *guest = &rig.guest;
        for (unsigned opcode = 4; opcode < 256; opcode++) {
            uint8_t cdb[16];
            make_cdb(opcode, cdb);
            if (expected(opcode, policy) != MMC_PASS_DRIVE) {
                continue;
            }
            drive_reset();
            drive_says(medium, sizeof medium);
            g_assert_cmphex(mmc_guest_send(guest, cdb, 12, params_for(opcode), 2048), ==, 0x031105);
            g_assert_cmpuint(guest->sense.info, ==, 0x00010203);
            g_assert_cmpuint(guest->data->len, ==, 0);
            drive_reset();
            assert_told(guest, medium);
        }
        drive_says(progress, sizeof progress);
        assert_sense(guest, 0x020408, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
        drive_reset();
        assert_told(guest, progress);
        drive_says(descriptor, sizeof descriptor);
        assert_sense(guest, 0x031105, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
        drive_says(tail, sizeof tail); /* what is too long for the answer says how long it is here */
        assert_sense(guest, 0x040900, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
        g_assert_cmphex(guest->sense.bytes[7], ==, 10);
        drive_says(refusal, sizeof refusal);
        assert_sense(guest, 0x053002, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0);
        rig_free(&rig);
    }
}

static GBytes *save(MmcDrive *mmc)
{
    StateIo *io = state_writer_new();
    state_save(io, &mmc_drive_state, mmc);
    GBytes *bytes = state_writer_finish(io, NULL);
    g_assert_nonnull(bytes);
    return bytes;
}

static bool load(MmcDrive *mmc, GBytes *bytes)
{
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    StateIo *io = state_reader_new(data, size, NULL);
    g_assert_nonnull(io);
    void *image = state_load(io, &mmc_drive_state, mmc);
    if (state_reader_finish(io, NULL)) {
        state_commit(&mmc_drive_state, mmc, image);
        return true;
    }
    state_discard(&mmc_drive_state, image);
    return false;
}

/* What the drive said stays to be told, byte for byte, in a machine that is saved in between. */
static void test_sense_is_saved(void)
{
    static const uint8_t medium[18] = {0xf0, 0, 3, 0, 1, 2, 3, 10, 9, 8, 7, 6, 0x11, 0x05, 1, 0xc0, 2, 3};
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_SAFE, "")) {
        return;
    }
    drive_says(medium, sizeof medium);
    assert_sense(&rig.guest, 0x031105, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
    drive_reset();
    g_autoptr(GBytes) state = save(rig.guest.drive);
    assert_told(&rig.guest, medium);
    g_assert_true(load(rig.guest.drive, state));
    g_autoptr(GBytes) again = save(rig.guest.drive);
    g_assert_true(g_bytes_equal(state, again));
    assert_told(&rig.guest, medium);
    rig_free(&rig);
}

/* Where the drive refuses, Spindle's own answer; where it fails, its failure. */
static void test_first(void)
{
    static const uint8_t refusal[18] = {0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24},
                         failure[18] = {0x70, 0, 4, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x44};
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_SAFE, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    drive_says(refusal, sizeof refusal);
    assert_good(guest, 0x51, 0, 0, 0, 0, 0, 0, 0, 34, 0);
    g_assert_cmpuint(guest->data->len, ==, 34);
    g_assert_cmphex(guest->data->data[2], ==, 0x0e);
    assert_good(guest, 0x52, 1, 0, 0, 0, 1, 0, 0, 36, 0);
    g_assert_cmpuint(load_be32(&guest->data->data[24]), ==, PASS_SECTORS);
    assert_good(guest, 0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 64, 0, 0);
    g_assert_cmphex(guest->data->data[4 + 12], ==, 0xff);
    assert_good(guest, 0x42, 2, 0, 0, 0, 0, 0, 0, 4, 0);
    assert_data(guest, 0, 0x15, 0, 0);
    g_assert_cmpuint(drive_count(), ==, 4);
    drive_says(failure, sizeof failure);
    assert_sense(guest, 0x044400, 0x51, 0, 0, 0, 0, 0, 0, 0, 34, 0);
    drive_reset();
    pthread_mutex_lock(&drive.lock);
    drive.error = EPERM; /* the kernel's table */
    pthread_mutex_unlock(&drive.lock);
    assert_good(guest, 0x51, 0, 0, 0, 0, 0, 0, 0, 34, 0);
    assert_sense(guest, 0x052000, 0xa7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    rig_free(&rig);
}

/* It never got there, or never came back. */
static void test_failures(void)
{
    static const struct {
        int error, host_status;
        uint8_t status;
        uint32_t sense;
    } rows[] = {
        {ENODEV, 0, 0, 0x023a01}, {ENXIO, 0, 0, 0x023a01}, {EIO, 0, 0, 0x0b0800},
        {ENOMEM, 0, 0, 0x0b0800}, {EPERM, 0, 0, 0x052000}, {EINVAL, 0, 0, 0x052000},
        {EACCES, 0, 0, 0x072700}, {EROFS, 0, 0, 0x072700}, {0, 1, 0, 0x023a01},
        {0, 3, 0, 0x0b0801},      {0, 7, 0, 0x0b0800},     {0, 0, 8, 0x020401},
        {0, 0, 0x18, 0x0b0000},   {0, 0, 2, 0x0b0000},
    };
    Rig rig;
    if (!rig_new(&rig, MMC_PASSTHROUGH_SAFE, "")) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        drive_reset();
        pthread_mutex_lock(&drive.lock);
        drive.error = rows[i].error;
        drive.host_status = rows[i].host_status;
        drive.status = rows[i].status;
        pthread_mutex_unlock(&drive.lock);
        assert_sense(&rig.guest, rows[i].sense, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
    }
    rig_free(&rig);
}

static void random_drive(void)
{
    const int kind = g_test_rand_int_range(0, 8);
    drive_reset();
    pthread_mutex_lock(&drive.lock);
    drive.most = kind == 0 ? (unsigned)g_test_rand_int_range(0, 9000) : UINT_MAX;
    drive.status = kind == 1 ? (uint8_t)g_test_rand_int_range(0, 32) : kind == 2 ? 2 : 0;
    drive.sense_bytes = kind == 2 ? (unsigned)g_test_rand_int_range(0, 33) : 0;
    drive.host_status = kind == 3 ? g_test_rand_int_range(0, 16) : 0;
    drive.error = kind == 4 ? g_test_rand_int_range(1, 130) : 0;
    for (unsigned i = 0; i < sizeof drive.sense; i++) {
        drive.sense[i] = (uint8_t)g_test_rand_int_range(0, 256);
    }
    pthread_mutex_unlock(&drive.lock);
}

/* Whatever guest and drive come up with: one end each, no more data than announced (the test's guest looks),
 * nothing but the table's opcodes. */
static void test_random(void)
{
    Rig rig;
    g_autofree uint8_t *data = g_malloc0(4 << 20);
    if (!rig_new(&rig, MMC_PASSTHROUGH_BURN, "")) {
        return;
    }
    for (unsigned round = 0; round < 5000; round++) {
        uint8_t cdb[16];
        const unsigned opcode = (unsigned)g_test_rand_int_range(0, 256);
        make_cdb(opcode, cdb);
        for (int i = g_test_rand_int_range(0, 4); i > 0; i--) {
            cdb[g_test_rand_int_range(1, 12)] = (uint8_t)g_test_rand_int_range(0, 256);
        }
        if (opcode == 0x1b || opcode == 0xa8 || opcode == 0xaa || opcode == 0xbe) {
            cdb[4] &= 1; /* the tray stays; a few hundred sectors */
            cdb[6] = cdb[7] = 0;
        } else if (opcode == 0xb9) {
            cdb[6] = cdb[3];
            cdb[7] = MIN(cdb[7], cdb[4] + 4);
        } else if (opcode == 0x28 || opcode == 0x2a || opcode == 0x2e) {
            cdb[7] &= 1;
        }
        random_drive();
        for (int i = 0; i < 64; i++) {
            data[i] = (uint8_t)(g_test_rand_int_range(0, 4) ? 0 : g_test_rand_int_range(0, 256));
        }
        mmc_guest_send(&rig.guest, cdb, 12, data, 4 << 20);
        g_assert_true(drive_count() == 0 || class_of(opcode) >= 0);
    }
    drive_reset();
    assert_good(&rig.guest, 0x12, 0, 0, 0, 36);
    rig_free(&rig);
}

/* Not a CD drive, or no drive of the host at all: nothing is passed. */
/* A device that answers the kernel's CD-ROM ioctls and is none by INQUIRY gets no commands. */
static void test_other_type(void)
{
    static const uint8_t types[] = {0x00, 0x01, 0x04, 0x07, 0x0e, 0x1f};
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        Rig rig;
        drive.type = types[i] + 1;
        const bool good = rig_new(&rig, MMC_PASSTHROUGH_BURN, "");
        drive.type = 0;
        if (!good) {
            return;
        }
        drive_reset();
        g_assert_cmpuint(block_packet_max(rig.guest.node), ==, 0);
        assert_sense(&rig.guest, 0x052000, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
        assert_sense(&rig.guest, 0x052000, 0xa1, 0);
        assert_good(&rig.guest, 0x28, 0, 0, 0, 0, 5, 0, 0, 17, 0); /* its data is there all the same */
        g_assert_cmpuint(drive_count(), ==, 0);
        rig_free(&rig);
    }
}

static void test_no_drive(void)
{
    MmcGuest guest;
    mmc_guest_setup_pass(&guest, "mem,size=614400", MMC_PASSTHROUGH_BURN);
    assert_sense(&guest, 0x052000, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
    assert_good(&guest, 0x28, 0, 0, 0, 0, 5, 0, 0, 17, 0);
    mmc_guest_teardown(&guest);
    mmc_guest_setup_pass(&guest, NULL, MMC_PASSTHROUGH_BURN);
    assert_sense(&guest, 0x052000, 0x23, 0, 0, 0, 0, 0, 0, 0, 64, 0);
    assert_sense(&guest, 0x023a01, 0x28, 0, 0, 0, 0, 5, 0, 0, 17, 0);
    mmc_guest_teardown(&guest);
    g_assert_true(block_shutdown(10000));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mmc-pass/opcodes", test_opcodes);
    g_test_add_func("/mmc-pass/denied", test_denied);
    g_test_add_func("/mmc-pass/sense", test_sense);
    g_test_add_func("/mmc-pass/sense-is-saved", test_sense_is_saved);
    g_test_add_func("/mmc-pass/first", test_first);
    g_test_add_func("/mmc-pass/failures", test_failures);
    g_test_add_func("/mmc-pass/random", test_random);
    g_test_add_func("/mmc-pass/other-type", test_other_type);
    g_test_add_func("/mmc-pass/no-drive", test_no_drive);
    return g_test_run();
}
