/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * vfio-user: the server's socket, clients that come and go, two servers in one process, adopted descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/lib/vfu-fixture.h"

typedef struct Notes {
    unsigned connects, disconnects;
    unsigned resets_seen; /* at the last disconnect */
    FakePci *fake;
} Notes;

static void note(VfuServer *server, bool connected, void *opaque)
{
    Notes *notes = opaque;

    g_assert_cmpint(vfu_server_is_connected(server), ==, connected);
    if (connected) {
        notes->connects++;
    } else {
        notes->disconnects++;
        notes->resets_seen = notes->fake->resets;
    }
}

/* A new client finds the function as after power-on, and nothing of the old client's. */
static void test_reconnect(void)
{
    VfuFixture f;
    Notes notes = {0};

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    notes.fake = f.fake;
    vfu_server_set_notify(f.server, note, &notes);
    for (unsigned i = 1; i <= 5; i++) {
        vfu_fixture_enable_bus_master(&f);
        vfu_fixture_enable_msi(&f, 0xfee00000, 0x41);
        vfu_client_add_ram(f.client, 0x100000, 0x10000, VFU_CLIENT_RAM_SEALED);
        vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 0, 4, 0x1234);
        vfu_fixture_reconnect(&f);
        g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0);
        g_assert_cmphex(vfu_client_read(f.client, VFU_REGION_CONFIG, 4, 2), ==, 0);
        g_assert_false(pci_msi_enabled(&f.fake->pci));
        g_assert_cmpuint(notes.disconnects, ==, i);
        g_assert_cmpuint(notes.connects, ==, i);
        g_assert_cmpuint(notes.resets_seen, ==, i);
        vfu_client_add_ram(f.client, 0x100000, 0x10000, VFU_CLIENT_RAM_SEALED); /* no EEXIST */
        g_assert_cmpint(vfu_client_remove_ram(f.client, 0x100000), ==, 0);
    }
    vfu_server_set_notify(f.server, NULL, NULL);
    vfu_fixture_teardown(&f);
}

/* A second client at the same time is sent away at once; the first one notices nothing. */
static void test_one_at_a_time(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 0, 4, 0x1234);
    g_autoptr(VfuClient) second = vfu_client_connect(f.path);
    g_assert_true(vfu_client_is_closed(second, true));
    g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0x1234);
    g_clear_pointer(&second, vfu_client_free);
    vfu_fixture_teardown(&f);
}

/* The old client hangs up, the new one connects, and only then does the server get to run. */
static void test_successor_waits(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    for (unsigned i = 0; i < 20; i++) {
        vfu_client_post(f.client, FAKE_PCI_MEM_BAR, 0, 4, i); /* unread when it goes */
        vfu_client_free(f.client);
        f.client = vfu_client_connect(f.path);
        vfu_client_negotiate(f.client);
        g_assert_cmphex(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0);
    }
    vfu_fixture_teardown(&f);
}

static void test_two_devices(void)
{
    VfuFixture a, b;
    uint32_t value = 5;
    unsigned n;

    vfu_fixture_setup(&a, VFU_DMA_MODE_MESSAGE, true);
    vfu_client_add_ram(a.client, 0x1000, 0x1000, VFU_CLIENT_RAM_SEALED);
    vfu_fixture_setup(&b, VFU_DMA_MODE_MMAP, true);
    vfu_fixture_enable_bus_master(&a);
    vfu_fixture_enable_bus_master(&b);
    vfu_client_add_ram(b.client, 0x1000, 0x1000, VFU_CLIENT_RAM_SEALED);
    vfu_client_write(a.client, FAKE_PCI_MEM_BAR, 0, 4, 1);
    vfu_client_write(b.client, FAKE_PCI_MEM_BAR, 0, 4, 2);
    g_assert_cmpuint(vfu_client_read(a.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 1);
    g_assert_cmpuint(vfu_client_read(b.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 2);
    a.fake->pci.host->ops->dma_write_small(a.fake->pci.host, 0x1000, &value, 4);
    vfu_client_settle(a.client);
    g_assert_cmpuint(*vfu_client_ram(a.client, 0x1000), ==, 5);
    g_assert_cmpuint(*vfu_client_ram(b.client, 0x1000), ==, 0);
    b.fake->pci.host->ops->dma_write_small(b.fake->pci.host, 0x1004, &value, 4);
    g_assert_cmpuint(*vfu_client_ram(b.client, 0x1004), ==, 5);
    vfu_client_dma_log(b.client, &n);
    g_assert_cmpuint(n, ==, 0);
    g_assert_cmpint(vfu_client_call(a.client, VFU_DEVICE_RESET, NULL, 0, NULL, 0), ==, 0);
    g_assert_cmpuint(vfu_client_read(b.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 2);
    g_assert_cmpuint(a.fake->resets, ==, 1);
    g_assert_cmpuint(b.fake->resets, ==, 0);
    vfu_fixture_teardown(&b);
    g_assert_cmpuint(vfu_client_read(a.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0);
    vfu_fixture_teardown(&a);
}

static VfuServer *server_fails(FakePci *fake, const char *path, const char *why)
{
    g_autoptr(GError) error = NULL;
    VfuServer *server = vfu_server_new(&fake->pci, path, VFU_DMA_MODE_AUTO, &error);

    g_assert_null(server);
    g_assert_nonnull(error);
    if (!strstr(error->message, why) || !strstr(error->message, path)) {
        g_error("'%s' does not name '%s' and '%s'", error->message, path, why);
    }
    return server;
}

static void test_live_socket(void)
{
    VfuFixture f;
    g_autoptr(FakePci) fake = fake_pci_new();

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    server_fails(fake, f.path, "Address already in use");
    g_assert_cmpuint(vfu_client_read(f.client, VFU_REGION_CONFIG, 0, 2), ==, 0x1b36);
    vfu_fixture_teardown(&f);
}

static void bind_and_forget(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    close(fd);
}

static void test_stale_socket(void)
{
    VfuFixture f;
    g_autoptr(GError) error = NULL;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_autofree char *stale = g_build_filename(f.folder, "stale", NULL);
    bind_and_forget(stale);
    g_autoptr(FakePci) fake = fake_pci_new();
    VfuServer *server = vfu_server_new(&fake->pci, stale, VFU_DMA_MODE_MESSAGE, &error);
    g_assert_no_error(error);
    g_autoptr(VfuClient) client = vfu_client_start(stale);
    g_assert_cmphex(vfu_client_read(client, VFU_REGION_CONFIG, 0, 2), ==, 0x1b36);
    g_clear_pointer(&client, vfu_client_free);
    vfu_server_free(server);
    g_assert_false(g_file_test(stale, G_FILE_TEST_EXISTS));
    vfu_fixture_teardown(&f);
}

/* What is no socket is nobody's to remove. */
static void test_other_files(void)
{
    VfuFixture f;
    g_autoptr(FakePci) fake = fake_pci_new();

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_autofree char *file = g_build_filename(f.folder, "file", NULL);
    g_autofree char *link = g_build_filename(f.folder, "link", NULL);
    g_autofree char *deep = g_build_filename(f.folder, "no-such", "sock", NULL);
    g_autofree char *length = g_strnfill(200, 'x');
    g_assert_true(g_file_set_contents(file, "precious", -1, NULL));
    g_assert_cmpint(symlink("nowhere", link), ==, 0);
    server_fails(fake, file, "Address already in use");
    server_fails(fake, link, "Address already in use");
    server_fails(fake, f.folder, "Address already in use");
    server_fails(fake, deep, "No such file or directory");
    server_fails(fake, length, "too long");
    server_fails(fake, "", "empty");
    g_autofree char *content = NULL;
    g_assert_true(g_file_get_contents(file, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "precious");
    g_unlink(file);
    g_unlink(link);
    vfu_fixture_teardown(&f);
}

/* A socket file that another server has put there since is left alone. */
static void test_free_leaves_successor(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_unlink(f.path);
    bind_and_forget(f.path);
    vfu_server_free(g_steal_pointer(&f.server));
    g_assert_true(g_file_test(f.path, G_FILE_TEST_EXISTS));
    g_unlink(f.path);
    vfu_fixture_teardown(&f);
}

static void test_adopt_listening(void)
{
    g_autoptr(FakePci) fake = fake_pci_new();
    g_autoptr(GError) error = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    /* autobind: an abstract address */
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &size), ==, 0);
    g_autoptr(VfuServer) server = vfu_server_new_listening(&fake->pci, fd, VFU_DMA_MODE_MESSAGE, &error);
    g_assert_no_error(error);
    for (unsigned i = 0; i < 2; i++) {
        int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        g_assert_cmpint(connect(own, (struct sockaddr *)&address, size), ==, 0);
        g_autoptr(VfuClient) client = vfu_client_new(own);
        vfu_client_negotiate(client);
        g_assert_cmphex(vfu_client_read(client, VFU_REGION_CONFIG, 0, 2), ==, 0x1b36);
    }
    g_clear_pointer(&server, vfu_server_free);
    g_assert_null(fake->pci.host);
}

static void test_adopt_connected(void)
{
    g_autoptr(FakePci) fake = fake_pci_new();
    g_autoptr(GError) error = NULL;
    Notes notes = {.fake = fake};
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), ==, 0);
    g_autoptr(VfuServer) server = vfu_server_new_connected(&fake->pci, pair[0], VFU_DMA_MODE_AUTO, &error);
    g_assert_no_error(error);
    vfu_server_set_notify(server, note, &notes);
    g_assert_cmpint(vfu_server_dma_mode(server), ==,
                    VFU_DMA_MODE_MESSAGE); /* this process runs no KVM guest */
    VfuClient *client = vfu_client_new(pair[1]);
    vfu_client_negotiate(client);
    g_assert_cmphex(vfu_client_read(client, VFU_REGION_CONFIG, 0, 2), ==, 0x1b36);
    vfu_client_free(client);
    while (g_main_context_iteration(NULL, FALSE)) {
    }
    g_assert_cmpuint(notes.disconnects, ==, 1);
    g_assert_cmpint(vfu_server_dma_mode(server), ==, VFU_DMA_MODE_AUTO);
    g_clear_pointer(&server, vfu_server_free);
}

static void test_adopt_wrong(void)
{
    g_autoptr(FakePci) fake = fake_pci_new();
    int pair[2];

    for (unsigned i = 0; i < 6; i++) {
        g_autoptr(GError) error = NULL;
        int fd = -1;
        VfuServer *server;
        switch (i / 2) {
        case 0:
            fd = open("/dev/null", O_RDWR | O_CLOEXEC);
            break;
        case 1:
            fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            break;
        case 2:
            g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
            fd = pair[0];
            break;
        }
        server = i % 2 ? vfu_server_new_listening(&fake->pci, fd, VFU_DMA_MODE_AUTO, &error)
                       : vfu_server_new_connected(&fake->pci, fd, VFU_DMA_MODE_AUTO, &error);
        g_assert_null(server);
        g_assert_nonnull(error);
        g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1); /* closed */
        if (i / 2 == 2) {
            close(pair[1]);
        }
    }
    g_assert_null(fake->pci.host);
}

/* With no client the services refuse, and nothing crashes. */
static void test_nobody_there(void)
{
    VfuFixture f;
    uint32_t value = 0;
    g_autoptr(Buffer) buffer = buffer_new(4096, 4096);

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_clear_pointer(&f.client, vfu_client_free);
    while (vfu_server_is_connected(f.server)) {
        g_main_context_iteration(NULL, FALSE);
    }
    PciHost *host = f.fake->pci.host;
    PciDmaRead read = {.addr = 0x1000, .buf = &value, .len = 4};
    g_assert_cmpint(host->ops->dma_read(host, &read), ==, -EFAULT);
    host->ops->dma_read_cancel(host, &read);
    host->ops->dma_write(host, 0x1000, buffer, 0, 4096);
    host->ops->dma_write_small(host, 0x1000, &value, 4);
    g_assert_null(host->ops->dma_map_write(host, 0x1000, 4));
    host->ops->dma_drop(host);
    host->ops->intx(host, true);
    g_assert_true(host->ops->msi(host, 0, true));
    g_assert_true(host->ops->msi(host, 0, false));
    vfu_fixture_teardown(&f);
}

static void test_tuning(void)
{
    VfuFixture f;
    VfuTuning tuning;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_server_get_tuning(f.server, &tuning);
    g_assert_cmpuint(tuning.dma_chunk, >=, 4096);
    tuning = (VfuTuning){.poll_us = UINT_MAX, .dma_chunk = 1, .send_buffer = UINT_MAX};
    vfu_server_set_tuning(f.server, &tuning);
    vfu_server_get_tuning(f.server, &tuning);
    g_assert_cmpuint(tuning.poll_us, ==, 1000);
    g_assert_cmpuint(tuning.dma_chunk, ==, 4096);
    g_assert_cmpuint(tuning.send_buffer, ==, 64 * 1024 * 1024);
    tuning.poll_us = 50;
    vfu_server_set_tuning(f.server, &tuning);
    vfu_fixture_reconnect(&f); /* works with all of that */
    for (unsigned i = 0; i < 100; i++) {
        vfu_client_write(f.client, FAKE_PCI_MEM_BAR, 0, 4, i);
    }
    vfu_fixture_teardown(&f);
}

/* AUTO writes by mmap exactly when the client's process has a KVM virtual machine open. */
static void test_kvm_client(void)
{
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
    VfuFixture f;

    if (vm < 0) {
        g_test_skip("no KVM here");
    } else {
        vfu_fixture_setup(&f, VFU_DMA_MODE_AUTO, true);
        g_assert_cmpint(vfu_server_dma_mode(f.server), ==, VFU_DMA_MODE_MMAP);
        close(vm);
        vfu_fixture_reconnect(&f);
        g_assert_cmpint(vfu_server_dma_mode(f.server), ==, VFU_DMA_MODE_MESSAGE);
        f.fds--; /* vm is closed */
        vfu_fixture_teardown(&f);
    }
    if (kvm >= 0) {
        close(kvm);
    }
}

static unsigned delivered;

static void count_delivery(void)
{
    delivered++;
}

/* Once for all the messages of a turn, before their answers leave. */
static void test_deliver(void)
{
    VfuFixture f;

    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    vfu_server_set_deliver(f.server, count_delivery);
    vfu_client_settle(f.client);
    delivered = 0;
    for (unsigned i = 0; i < 5; i++) {
        vfu_client_post(f.client, FAKE_PCI_MEM_BAR, 0, 4, i);
    }
    g_assert_cmpuint(vfu_client_read(f.client, FAKE_PCI_MEM_BAR, 0, 4), ==, 4);
    g_assert_cmpuint(delivered, ==, 1);
    vfu_fixture_teardown(&f);
}

static gboolean nothing(void *opaque)
{
    return G_SOURCE_REMOVE;
}

/* With no descriptor left a client waits; the loop does not spin; it is served when there is one. */
static void test_out_of_descriptors(void)
{
    VfuFixture f;
    struct rlimit old, none;
    int held[64];
    unsigned n = 0, turns = 0;
    const char *preload = g_getenv("LD_PRELOAD");

    if (preload && strstr(preload, "vgpreload")) {
        g_test_skip("valgrind accepts such a client itself, and closes it");
        return;
    }
    vfu_fixture_setup(&f, VFU_DMA_MODE_MESSAGE, true);
    g_clear_pointer(&f.client, vfu_client_free);
    while (vfu_server_is_connected(f.server)) {
        g_main_context_iteration(NULL, FALSE);
    }
    f.client = vfu_client_connect(f.path);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &old), ==, 0);
    none = (struct rlimit){vfu_fixture_count_fds() + 8, old.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    while (n < G_N_ELEMENTS(held) && (held[n] = dup(0)) >= 0) {
        n++;
    }
    for (gint64 end = g_get_monotonic_time() + 250000; g_get_monotonic_time() < end; turns++) {
        g_timeout_add(50, nothing, NULL);
        g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpuint(turns, <, 100);
    g_assert_false(vfu_server_is_connected(f.server));
    while (n) {
        close(held[--n]);
    }
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &old), ==, 0);
    vfu_client_negotiate(f.client);
    vfu_fixture_teardown(&f);
}

static void test_mode_names(void)
{
    VfuDmaMode mode = VFU_DMA_MODE_MMAP;

    g_assert_true(vfu_dma_mode_parse("auto", &mode));
    g_assert_cmpint(mode, ==, VFU_DMA_MODE_AUTO);
    g_assert_true(vfu_dma_mode_parse("message", &mode));
    g_assert_cmpint(mode, ==, VFU_DMA_MODE_MESSAGE);
    g_assert_true(vfu_dma_mode_parse("mmap", &mode));
    g_assert_cmpint(mode, ==, VFU_DMA_MODE_MMAP);
    g_assert_false(vfu_dma_mode_parse("MMAP", &mode));
    g_assert_false(vfu_dma_mode_parse("", &mode));
    g_assert_cmpint(mode, ==, VFU_DMA_MODE_MMAP);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vfu-server/reconnect", test_reconnect);
    g_test_add_func("/vfu-server/one-at-a-time", test_one_at_a_time);
    g_test_add_func("/vfu-server/successor-waits", test_successor_waits);
    g_test_add_func("/vfu-server/two-devices", test_two_devices);
    g_test_add_func("/vfu-server/live-socket", test_live_socket);
    g_test_add_func("/vfu-server/stale-socket", test_stale_socket);
    g_test_add_func("/vfu-server/other-files", test_other_files);
    g_test_add_func("/vfu-server/free-leaves-successor", test_free_leaves_successor);
    g_test_add_func("/vfu-server/adopt-listening", test_adopt_listening);
    g_test_add_func("/vfu-server/adopt-connected", test_adopt_connected);
    g_test_add_func("/vfu-server/adopt-wrong", test_adopt_wrong);
    g_test_add_func("/vfu-server/nobody-there", test_nobody_there);
    g_test_add_func("/vfu-server/tuning", test_tuning);
    g_test_add_func("/vfu-server/kvm-client", test_kvm_client);
    g_test_add_func("/vfu-server/deliver", test_deliver);
    g_test_add_func("/vfu-server/out-of-descriptors", test_out_of_descriptors);
    g_test_add_func("/vfu-server/mode-names", test_mode_names);
    return g_test_run();
}
