/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=host_cdrom` on loop devices: they have no tray, but their media come and go with the kernel's real
 * events. Each change is followed up to what the guest sees: not ready, then the attention, both once, then
 * the new disc. The times from the change to the node's event are printed. Needs root.
 */
#include "block/host-cdrom-device.h"
#include "block/packet.h"
#include "tests/lib/loop-device.h"
#include "tests/lib/mmc-guest.h"
#include "tests/unit/block-test.h"
#include "util/bytes.h"
#include "util/cleanup.h"
#include "util/uevent.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SECTORS 300
#define BYTES   (SECTORS * UINT64_C(2048))

typedef struct Rig {
    LoopDevice *loop;
    MmcGuest guest;
    char *a, *b; /* media */
    unsigned events[5];
    gint64 last;
} Rig;

static void on_event(BlockNode *node, BlockEvent event, void *opaque)
{
    Rig *rig = opaque;
    rig->events[event]++;
    rig->last = g_get_monotonic_time();
}

/* False: skipped. */
static bool rig_new(Rig *rig, bool loaded, const char *more)
{
    const char *why;
    memset(rig, 0, sizeof *rig);
    rig->loop = loop_device_new(&why);
    if (!rig->loop) {
        g_autofree char *text = g_strdup_printf("needs root and loop devices: %s", why);
        g_test_skip(text);
        return false;
    }
    rig->a = loop_device_make_medium(rig->loop, "a", BYTES);
    rig->b = loop_device_make_medium(rig->loop, "b", BYTES);
    if (loaded) {
        g_assert_cmpint(loop_device_insert(rig->loop, rig->a), ==, 0);
    }
    g_autofree char *options =
        g_strdup_printf("host_cdrom,filename=%s,read-only=on%s", rig->loop->path, more);
    mmc_guest_setup(&rig->guest, options);
    block_listen(rig->guest.node, on_event, rig);
    return true;
}

static void rig_free(Rig *rig)
{
    block_unlisten(rig->guest.node, on_event, rig);
    mmc_guest_teardown(&rig->guest);
    g_assert_true(block_shutdown(10000));
    loop_device_free(rig->loop);
    g_free(rig->a);
    g_free(rig->b);
}

/* Runs the loop for a while: what was going to happen has happened. */
static void rest(unsigned ms)
{
    const gint64 end = g_get_monotonic_time() + ms * 1000;
    while (g_get_monotonic_time() < end) {
        if (!g_main_context_iteration(NULL, FALSE)) {
            g_usleep(1000);
        }
    }
}

/* Waits for the node's event after what was begun at `since`. */
static void wait_event(Rig *rig, BlockEvent event, gint64 since, const char *what)
{
    mmc_guest_until(rig->events[event] > 0);
    g_test_message("%s: told after %.1f ms", what, (double)(rig->last - since) / 1000);
    rig->events[event] = 0;
}

static void assert_reads(Rig *rig, const char *name)
{
    MmcGuest *guest = &rig->guest;
    assert_good(guest, 0x28, 0, 0, 0, 0, 20, 0, 0, 30, 0);
    g_assert_cmpuint(guest->data->len, ==, 30 * 2048);
    for (unsigned i = 0; i < guest->data->len; i++) {
        g_assert_cmphex(guest->data->data[i], ==, loop_device_byte(name, 20 * 2048 + i));
    }
}

/* The sequence that every guest must see, and nothing behind it. */
static void assert_new_disc(Rig *rig, const char *name, uint32_t sectors)
{
    MmcGuest *guest = &rig->guest;
    assert_sense(guest, 0x023a01, 0x00);
    assert_sense(guest, 0x062800, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_good(guest, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    g_assert_cmpuint(load_be32(guest->data->data), ==, sectors - 1);
    assert_good(guest, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0);
    assert_reads(rig, name);
    assert_good(guest, 0x00);
}

static void test_insert(void)
{
    Rig rig;
    if (!rig_new(&rig, false, "")) {
        return;
    }
    const BlockInfo *info = block_info(rig.guest.node);
    g_assert_true(info->removable && info->slow && info->read_only);
    g_assert_false(block_medium_present(rig.guest.node));
    assert_sense(&rig.guest, 0x023a01, 0x00);
    assert_sense(&rig.guest, 0x023a01, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    rest(50);
    gint64 since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_insert(rig.loop, rig.a), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "insert");
    g_assert_cmpuint(info->size, ==, BYTES);
    assert_new_disc(&rig, "a", SECTORS);
    rest(200);
    g_assert_cmpuint(rig.events[BLOCK_EVENT_MEDIUM], ==, 0); /* told once */
    rig_free(&rig);
}

/* Of the same size: only the kernel can tell. */
static void test_change(void)
{
    Rig rig;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    assert_reads(&rig, "a");
    for (int i = 0; i < 6; i++) {
        rest(30);
        gint64 since = g_get_monotonic_time();
        g_assert_cmpint(loop_device_change(rig.loop, i % 2 ? rig.a : rig.b), ==, 0);
        wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "change");
        rest(60);
        g_assert_cmpuint(rig.events[BLOCK_EVENT_MEDIUM], ==, 0); /* however many events the kernel sent */
        assert_new_disc(&rig, i % 2 ? "a" : "b", SECTORS);
    }
    rig_free(&rig);
}

static void test_remove(void)
{
    Rig rig;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    rest(50);
    gint64 since = g_get_monotonic_time();
    g_assert_cmpint(truncate(rig.a, 0), ==, 0);
    g_assert_cmpint(loop_device_resized(rig.loop), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "remove");
    g_assert_false(block_medium_present(guest->node));
    g_assert_cmpint(block_pread(guest->node, 0, guest->memory, 2048), ==, -ENOMEDIUM);
    for (int i = 0; i < 3; i++) {
        assert_sense(guest, 0x023a01, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    }
    assert_good(guest, 0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0);
    g_assert_cmphex(guest->data->data[4], ==, 3); /* removal */
    since = g_get_monotonic_time();
    g_assert_cmpint(truncate(rig.a, BYTES + 2048), ==, 0);
    g_assert_cmpint(loop_device_resized(rig.loop), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "insert a larger one");
    assert_sense(guest, 0x023a01, 0x00);
    assert_sense(guest, 0x062800, 0x00);
    assert_good(guest, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    g_assert_cmpuint(load_be32(guest->data->data), ==, SECTORS);
    rig_free(&rig);
}

static void hear(const Uevent *event, void *opaque)
{
    unsigned *synthetic = opaque;
    *synthetic += event && uevent_get(event, "SYNTH_UUID");
}

/* The kernel tells more of a device than its media: that it became read-only, or what udev has it say again.
 * The drive is looked at, and the guest hears nothing. */
static void test_other_events(void)
{
    Rig rig;
    unsigned heard = 0;
    g_autoptr(GError) error = NULL;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    g_autofree char *path = g_strdup_printf("/sys/block/loop%d/uevent", rig.loop->number);
    UeventListener *listener = uevent_listen(hear, &heard, &error);
    g_assert_no_error(error);
    rest(50);
    auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(write(fd, "change", 6), ==, 6);
    mmc_guest_until(heard > 0);
    rest(100);
    g_assert_cmpuint(rig.events[BLOCK_EVENT_MEDIUM], ==, 0);
    assert_good(&rig.guest, 0x00);
    assert_reads(&rig, "a");
    uevent_unlisten(listener);
    rig_free(&rig);
}

/* Through layers, and with a change while reads are under way. */
static void test_layers(void)
{
    Rig rig;
    const char *why;
    LoopDevice *loop = loop_device_new(&why);
    if (!loop) {
        g_test_skip("needs root and loop devices");
        return;
    }
    memset(&rig, 0, sizeof rig);
    rig.loop = loop;
    rig.a = loop_device_make_medium(loop, "a", BYTES);
    rig.b = loop_device_make_medium(loop, "b", BYTES);
    g_autofree char *options = g_strdup_printf(
        "raw,read-only=on,file.driver=host_cdrom,file.filename=%s,file.cache.direct=on", loop->path);
    mmc_guest_setup(&rig.guest, options);
    block_listen(rig.guest.node, on_event, &rig);
    rest(50);
    gint64 since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_insert(loop, rig.a), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "insert below raw");
    assert_new_disc(&rig, "a", SECTORS);
    mmc_guest_start(&rig.guest, CDB(0x28, 0, 0, 0, 0, 0, 0, 1, 0, 0));
    since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_change(loop, rig.b), ==, 0);
    mmc_guest_wait(&rig.guest);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "change below raw");
    assert_new_disc(&rig, "b", SECTORS);
    rig_free(&rig);
}

/* Unplugged and plugged in again. */
static void test_unplug(void)
{
    Rig rig;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    rest(50);
    loop_device_unplug(rig.loop);
    gint64 since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_change(rig.loop, rig.b), ==, 0); /* any event of the device */
    wait_event(&rig, BLOCK_EVENT_GONE, since, "unplug");
    g_assert_false(block_medium_present(guest->node));
    assert_sense(guest, 0x023a01, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    loop_device_plug(rig.loop);
    since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_change(rig.loop, rig.a), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "plug");
    assert_new_disc(&rig, "a", SECTORS);
    rig_free(&rig);
}

/* A node that dies with a look at the drive under way, or before the loop ever ran. */
static void test_short_lives(void)
{
    Rig rig;
    for (int i = 0; i < 20; i++) {
        if (!rig_new(&rig, i & 1, "")) {
            return;
        }
        if (i & 2) {
            g_main_context_iteration(NULL, FALSE);
        }
        if (i & 4) {
            (void)loop_device_change(rig.loop, rig.b);
            g_main_context_iteration(NULL, FALSE);
        }
        rig_free(&rig);
    }
}

/* Sectors that cannot be read make it look at the drive, and it goes on. */
static void test_read_error(void)
{
    Rig rig;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    MmcGuest *guest = &rig.guest;
    rest(50);
    g_assert_cmpint(truncate(rig.a, 100 * 2048), ==, 0); /* the device keeps its size */
    assert_sense(guest, 0x031100, 0x28, 0, 0, 0, 0, 90, 0, 0, 30, 0);
    g_assert_cmpuint(guest->sense.info, ==, 100);
    g_assert_true(guest->sense.info_valid);
    g_assert_cmpuint(guest->data->len, ==, 10 * 2048); /* what was read is delivered */
    rest(1200);
    g_assert_cmpuint(rig.events[BLOCK_EVENT_MEDIUM], ==, 0);
    assert_reads(&rig, "a");
    rig_free(&rig);
}

static void test_refusals(void)
{
    char *path = make_file("x", 1);
    assert_refused("driver=host_cdrom,filename=%s",
                   "'host_cdrom' driver requires '%s' to be a CD-ROM drive or a block device", path);
    assert_refused("driver=host_cdrom,filename=%s.not", "Could not open '%s.not': No such file or directory",
                   path);
    assert_refused("driver=host_cdrom,filename=%s,tray=maybe", "Parameter 'tray' expects 'on' or 'off'",
                   path);
    g_assert_false(cdrom_device_probe(path));
    assert_refused("driver=host_cdrom,filename=%s",
                   "'host_cdrom' driver requires '%s' to be a CD-ROM drive or a block device", "/dev/null");
    if (geteuid() == 0) { /* nobody: neither by the folder nor by the file */
        g_assert_cmpint(seteuid(65534), ==, 0);
        assert_refused("driver=host_cdrom,filename=%s", "Could not open '%s': Permission denied", path);
        g_assert_cmpint(seteuid(0), ==, 0);
    }
    remove_file(path);
}

/* Nodes of drives that are not there, or are somebody else's. */
static void test_devices(void)
{
    Rig rig;
    g_autoptr(GError) error = NULL;
    if (!rig_new(&rig, true, "")) {
        return;
    }
    g_autofree char *unused = g_strdup_printf("%s/unused", rig.loop->folder);
    g_assert_cmpint(mknod(unused, S_IFBLK | 0600, makedev(11, 200)), ==, 0);
    assert_refused("driver=host_cdrom,filename=%s", "Could not open '%s': No such device or address", unused);
    g_assert_cmpint(unlink(unused), ==, 0);
    /* who may read it need not be who may write it */
    g_assert_true(block_packet_check_write(rig.guest.node, &error));
    g_assert_cmpint(seteuid(65534), ==, 0);
    g_assert_false(block_packet_check_write(rig.guest.node, &error));
    g_assert_cmpint(seteuid(0), ==, 0);
    g_autofree char *text =
        g_strdup_printf("Could not open '%s' for writing: Permission denied", rig.loop->path);
    g_assert_cmpstr(error->message, ==, text);
    rig_free(&rig);
}

/* Under the name of a link, as /dev/cdrom is, and with somebody who has it for himself (O_EXCL). */
static void test_link(void)
{
    Rig rig;
    const char *why;
    memset(&rig, 0, sizeof rig);
    rig.loop = loop_device_new(&why);
    if (!rig.loop) {
        g_test_skip("needs root and loop devices");
        return;
    }
    rig.a = loop_device_make_medium(rig.loop, "a", BYTES);
    rig.b = loop_device_make_medium(rig.loop, "b", BYTES);
    g_assert_cmpint(loop_device_insert(rig.loop, rig.a), ==, 0);
    g_autofree char *link = g_strdup_printf("%s/cdrom", rig.loop->folder);
    g_assert_cmpint(symlink("drive", link), ==, 0);
    const int fd = open(rig.loop->path, O_RDONLY | O_EXCL | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    g_autofree char *options = g_strdup_printf("host_cdrom,filename=%s,read-only=on", link);
    mmc_guest_setup(&rig.guest, options);
    block_listen(rig.guest.node, on_event, &rig);
    assert_reads(&rig, "a");
    rest(50);
    const gint64 since = g_get_monotonic_time();
    g_assert_cmpint(loop_device_change(rig.loop, rig.b), ==, 0);
    wait_event(&rig, BLOCK_EVENT_MEDIUM, since, "change under a link");
    assert_new_disc(&rig, "b", SECTORS);
    close(fd);
    g_assert_cmpint(unlink(link), ==, 0);
    rig_free(&rig);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-cdrom/insert", test_insert);
    g_test_add_func("/host-cdrom/change", test_change);
    g_test_add_func("/host-cdrom/remove", test_remove);
    g_test_add_func("/host-cdrom/other-events", test_other_events);
    g_test_add_func("/host-cdrom/layers", test_layers);
    g_test_add_func("/host-cdrom/unplug", test_unplug);
    g_test_add_func("/host-cdrom/short-lives", test_short_lives);
    g_test_add_func("/host-cdrom/read-error", test_read_error);
    g_test_add_func("/host-cdrom/refusals", test_refusals);
    g_test_add_func("/host-cdrom/devices", test_devices);
    g_test_add_func("/host-cdrom/link", test_link);
    return g_test_run();
}
