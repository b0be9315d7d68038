/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's device events: taking messages apart, and real ones from a loop device.
 */
#include "util/uevent.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MESSAGE(s) s, sizeof(s) /* with the last string's NUL */

typedef struct Case {
    const char *name, *message;
    size_t size;
    const char *action, *devname, *media; /* action NULL: refused */
} Case;

static const Case cases[] = {
    {"media-change",
     MESSAGE("change@/devices/x/block/sr0\0ACTION=change\0DEVPATH=/devices/x/block/sr0\0SUBSYSTEM=block\0"
             "DISK_MEDIA_CHANGE=1\0DEVNAME=sr0\0SEQNUM=7"),
     "change", "sr0", "1"},
    {"no-node", MESSAGE("add@/d\0ACTION=add\0SUBSYSTEM=block"), "add", "", NULL},
    {"other-subsystem", MESSAGE("add@/d\0ACTION=add\0SUBSYSTEM=net"), NULL, NULL, NULL},
    {"no-subsystem", MESSAGE("add@/d\0ACTION=add"), NULL, NULL, NULL},
    {"no-action", MESSAGE("add@/d\0SUBSYSTEM=block"), NULL, NULL, NULL},
    {"udev's own", MESSAGE("libudev\0ACTION=add\0SUBSYSTEM=block"), NULL, NULL, NULL},
    {"header only", MESSAGE("add@/d"), NULL, NULL, NULL},
    {"empty", "", 0, NULL, NULL, NULL},
    {"longer key is another", MESSAGE("add@/d\0ACTION=add\0SUBSYSTEM=block\0DEVNAMES=x"), "add", "", NULL},
    {"unended", "add@/d\0ACTION=add\0SUBSYSTEM=block", 33, "add", "", NULL},
};

static void test_parse(gconstpointer data)
{
    const Case *c = data;
    g_autofree char *copy = g_malloc0(c->size + 1); /* exact, so that a sanitizer sees a step outside */
    memcpy(copy, c->message, c->size);
    Uevent event;
    bool good = uevent_parse(copy, c->size, &event);
    g_assert_cmpint(good, ==, c->action != NULL);
    if (good) {
        g_assert_cmpstr(event.action, ==, c->action);
        g_assert_cmpstr(event.devname, ==, c->devname);
        g_assert_cmpstr(uevent_get(&event, "DISK_MEDIA_CHANGE"), ==, c->media);
    }
}

typedef struct Seen {
    char devname[32];
    unsigned media_changes;
    UeventListener *self; /* unlistens from inside */
} Seen;

static void count_changes(const Uevent *event, void *opaque)
{
    Seen *seen = opaque;
    if (event && !strcmp(event->devname, seen->devname) && uevent_get(event, "DISK_MEDIA_CHANGE")) {
        seen->media_changes++;
        if (seen->self) {
            uevent_unlisten(seen->self);
            seen->self = NULL;
        }
    }
}

static void run_until(unsigned *counter, unsigned wanted)
{
    gint64 end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
    while (*counter < wanted && g_get_monotonic_time() < end) {
        g_main_context_iteration(NULL, FALSE);
        g_usleep(1000);
    }
}

/* Puts a file of `size` bytes into a free loop device; -1 with a skip when there is none to be had. */
static int loop_with_file(char *ret_devname, size_t length, off_t size)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
    if (control >= 0) {
        close(control);
    }
    if (number < 0) {
        g_test_skip("no loop device: /dev/loop-control is missing or not permitted");
        return -1;
    }
    g_snprintf(ret_devname, length, "loop%d", number);
    g_autofree char *path = g_strdup_printf("/dev/%s", ret_devname);
    int loop = open(path, O_RDWR | O_CLOEXEC);
    int file = memfd_create("medium", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(file, size), ==, 0);
    if (loop < 0 || ioctl(loop, LOOP_SET_FD, file) < 0) {
        g_test_skip("the loop device cannot be set up");
        close(file);
        return -1;
    }
    close(file);
    return loop;
}

static void test_loop_device(void)
{
    Seen seen = {0}, once = {0};
    g_autoptr(GError) error = NULL;
    UeventListener *listener = uevent_listen(count_changes, &seen, &error);
    g_assert_no_error(error);
    once.self = uevent_listen(count_changes, &once, &error);
    int loop = loop_with_file(seen.devname, sizeof seen.devname, 1 << 20);
    if (loop >= 0) {
        g_strlcpy(once.devname, seen.devname, sizeof once.devname);
        g_assert_cmpint(ioctl(loop, LOOP_CLR_FD), ==, 0);
        close(loop); /* the last close takes the medium out */
        run_until(&seen.media_changes, 1);
        g_assert_cmpuint(seen.media_changes, >=, 1);
        g_assert_cmpuint(once.media_changes, ==, 1);
    }
    uevent_unlisten(once.self);
    uevent_unlisten(listener);
    uevent_unlisten(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/uevent/parse/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_parse);
    }
    g_test_add_func("/uevent/loop-device", test_loop_device);
    return g_test_run();
}
