/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/pass-rig.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/cdrom.h>
#include <string.h>
#include <sys/prctl.h>

PassDrive drive = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* On the thread of the packets, not of the looks at the medium. */
static bool is_passed(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return !strcmp(name, "host-cdrom");
}

uint8_t drive_byte(const uint8_t *cdb, unsigned i)
{
    return (uint8_t)(cdb[0] + cdb[5] + i / 2048 + i);
}

static int look_at_medium(struct sg_io_hdr *io)
{
    static const uint8_t profile[8] = {0, 0, 0, 4, 0, 0, 0, 8};
    const uint8_t inquiry[36] = {drive.type ? drive.type - 1 : 5, 0x80};
    switch (io->cmdp[0]) {
    case 0x12:
        return fake_sg_answer(io, inquiry, sizeof inquiry);
    case 0x46:
        return fake_sg_answer(io, profile, sizeof profile);
    case 0x1e:
        return 0;
    default:
        return fake_sg_check(io, 5, 0x20, 0);
    }
}

static void record(int fd, const struct sg_io_hdr *io)
{
    Part *part = &drive.part[drive.parts++ % PASS_PARTS];
    memset(part, 0, sizeof *part);
    memcpy(part->cdb, io->cmdp, io->cmd_len);
    part->cdb_bytes = io->cmd_len;
    part->direction = io->dxfer_direction;
    part->bytes = io->dxfer_len;
    part->timeout = io->timeout;
    part->flags = fcntl(fd, F_GETFL);
}

/* Under the lock. */
static int answer(struct sg_io_hdr *io)
{
    if (drive.error) {
        errno = drive.error;
        return -1;
    }
    io->host_status = (unsigned short)drive.host_status;
    io->status = drive.status;
    if (drive.sense_bytes) {
        memcpy(io->sbp, drive.sense, drive.sense_bytes);
        io->sb_len_wr = (unsigned char)drive.sense_bytes;
        io->driver_status = 8;
    }
    if (io->dxfer_direction == SG_DXFER_TO_DEV) {
        g_byte_array_append(drive.written, io->dxferp, io->dxfer_len);
    }
    if (io->dxfer_direction == SG_DXFER_FROM_DEV) {
        const unsigned given = drive.status > 2 ? 0 : MIN(io->dxfer_len, drive.most);
        for (unsigned i = 0; i < given; i++) {
            ((uint8_t *)io->dxferp)[i] = drive_byte(io->cmdp, i);
        }
        io->resid = (int)(io->dxfer_len - given);
    }
    return 0;
}

static int packet(int fd, struct sg_io_hdr *io)
{
    if (!is_passed()) {
        return look_at_medium(io);
    }
    pthread_mutex_lock(&drive.lock);
    record(fd, io);
    while (drive.hang) {
        pthread_cond_wait(&drive.wake, &drive.lock);
    }
    const int ret = answer(io);
    pthread_mutex_unlock(&drive.lock);
    return ret;
}

/* How many commands came; from now on it counts anew. */
unsigned drive_count(void)
{
    pthread_mutex_lock(&drive.lock);
    const unsigned count = drive.parts;
    pthread_mutex_unlock(&drive.lock);
    return count;
}

void drive_reset(void)
{
    pthread_mutex_lock(&drive.lock);
    drive.parts = 0;
    drive.most = UINT_MAX;
    drive.status = 0;
    drive.sense_bytes = 0;
    drive.host_status = drive.error = 0;
    drive.hang = false;
    g_clear_pointer(&drive.written, g_byte_array_unref);
    drive.written = g_byte_array_new();
    pthread_cond_broadcast(&drive.wake);
    pthread_mutex_unlock(&drive.lock);
}

void drive_says(const void *sense, unsigned bytes)
{
    pthread_mutex_lock(&drive.lock);
    drive.status = 2;
    drive.sense_bytes = bytes;
    memcpy(drive.sense, sense, bytes);
    pthread_mutex_unlock(&drive.lock);
}

void drive_hangs(bool hang)
{
    pthread_mutex_lock(&drive.lock);
    drive.hang = hang;
    pthread_cond_broadcast(&drive.wake);
    pthread_mutex_unlock(&drive.lock);
}

void rig_rest(unsigned ms)
{
    const gint64 end = g_get_monotonic_time() + ms * 1000;
    while (g_get_monotonic_time() < end) {
        if (!g_main_context_iteration(NULL, FALSE)) {
            g_usleep(1000);
        }
    }
}

bool rig_new(Rig *rig, MmcPassthrough policy, const char *more)
{
    const char *why;
    fake_sg = (FakeSg){.packet = packet, .status = CDS_DISC_OK, .max_sectors = PASS_LIMIT / 512};
    drive_reset();
    rig->loop = loop_device_new(&why);
    if (!rig->loop) {
        g_test_skip("needs root and loop devices");
        return false;
    }
    rig->medium = loop_device_make_medium(rig->loop, "m", PASS_SECTORS * 2048);
    g_assert_cmpint(loop_device_insert(rig->loop, rig->medium), ==, 0);
    fake_sg.on = true;
    g_autofree char *options =
        g_strdup_printf("host_cdrom,filename=%s,read-only=on%s", rig->loop->path, more);
    mmc_guest_setup_pass(&rig->guest, options, policy);
    drive_reset();
    return true;
}

void rig_free(Rig *rig)
{
    mmc_guest_teardown(&rig->guest);
    g_assert_true(block_shutdown(10000));
    fake_sg.on = false;
    g_assert_cmpint(g_atomic_int_get(&fake_sg.too_large), ==, 0);
    loop_device_free(rig->loop);
    g_free(rig->medium);
    g_clear_pointer(&drive.written, g_byte_array_unref);
}

void assert_answers(const MmcGuest *guest, unsigned parts)
{
    unsigned at = 0;
    g_assert_cmpuint(drive.parts, ==, parts);
    for (unsigned p = 0; p < parts; p++) {
        for (unsigned i = 0; i < drive.part[p].bytes; i++) {
            g_assert_cmphex(guest->data->data[at++], ==, drive_byte(drive.part[p].cdb, i));
        }
    }
    g_assert_cmpuint(guest->data->len, ==, at);
}
