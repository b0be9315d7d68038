/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/loop-device.h"
#include "util/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOOP_MAJOR   7
#define NUMBER_FIRST 1000 /* out of the way of `losetup --find` */
#define NUMBER_LAST  60000

void loop_device_plug(LoopDevice *loop)
{
    g_assert_cmpint(mknod(loop->path, S_IFBLK | 0600, makedev(LOOP_MAJOR, loop->number)), ==, 0);
}

void loop_device_unplug(LoopDevice *loop)
{
    g_assert_cmpint(unlink(loop->path), ==, 0);
}

/* A number that nobody has, or -errno. */
static int add_device(int control)
{
    for (int tries = 0; tries < 100; tries++) {
        const int number = g_random_int_range(NUMBER_FIRST, NUMBER_LAST);
        if (ioctl(control, LOOP_CTL_ADD, number) == number) {
            return number;
        }
        if (errno != EEXIST) {
            return -errno;
        }
    }
    return -EEXIST;
}

LoopDevice *loop_device_new(const char **ret_why)
{
    auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int number = control < 0 ? -errno : add_device(control);
    if (number < 0) {
        *ret_why = g_strerror(-number);
        return NULL;
    }
    LoopDevice *loop = g_new0(LoopDevice, 1);
    loop->number = number;
    loop->folder = g_dir_make_tmp("spindle-loop-XXXXXX", NULL);
    g_assert_nonnull(loop->folder);
    loop->path = g_build_filename(loop->folder, "drive", NULL);
    loop_device_plug(loop);
    return loop;
}

static int open_loop(LoopDevice *loop)
{
    g_autofree char *path = g_strdup_printf("/dev/loop%d", loop->number);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

void loop_device_free(LoopDevice *loop)
{
    auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int fd = open_loop(loop);
    (void)ioctl(fd, LOOP_CLR_FD);
    close(fd);
    /* The kernel may be about to let go of it. */
    for (int i = 0; ioctl(control, LOOP_CTL_REMOVE, loop->number) < 0 && i < 200; i++) {
        g_usleep(10000);
    }
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", loop->folder);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(loop->folder);
    g_free(loop->path);
    g_free(loop);
}

uint8_t loop_device_byte(const char *name, uint64_t at)
{
    return (uint8_t)(name[0] * 31 + at * 7 + at / 2048 * 3 + at / 65521);
}

char *loop_device_make_medium(LoopDevice *loop, const char *name, uint64_t bytes)
{
    g_autofree char *data = g_malloc(bytes);
    for (uint64_t at = 0; at < bytes; at++) {
        data[at] = (char)loop_device_byte(name, at);
    }
    char *path = g_build_filename(loop->folder, name, NULL);
    g_assert_true(g_file_set_contents(path, data, (gssize)bytes, NULL));
    return path;
}

int loop_device_insert(LoopDevice *loop, const char *path)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    auto_fd fd = open_loop(loop);
    struct loop_config config = {.fd = (unsigned)file, .info.lo_flags = LO_FLAGS_READ_ONLY};
    g_assert_cmpint(file, >=, 0);
    return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

int loop_device_change(LoopDevice *loop, const char *path)
{
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC);
    auto_fd fd = open_loop(loop);
    g_assert_cmpint(file, >=, 0);
    return ioctl(fd, LOOP_CHANGE_FD, file) < 0 ? -errno : 0;
}

int loop_device_resized(LoopDevice *loop)
{
    auto_fd fd = open_loop(loop);
    return ioctl(fd, LOOP_SET_CAPACITY, 0) < 0 ? -errno : 0;
}
