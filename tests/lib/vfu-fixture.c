/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/vfu-fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned vfu_fixture_count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;

    g_assert_nonnull(dir);
    while (g_dir_read_name(dir)) {
        n++;
    }
    return n;
}

void vfu_fixture_setup(VfuFixture *f, VfuDmaMode mode, bool negotiate)
{
    g_autoptr(GError) error = NULL;

    g_main_context_iteration(NULL, FALSE); /* the context's own descriptors are open from here on */
    f->fds = vfu_fixture_count_fds();
    f->folder = g_dir_make_tmp("vfu-XXXXXX", &error);
    g_assert_no_error(error);
    f->path = g_build_filename(f->folder, "sock", NULL);
    f->fake = fake_pci_new();
    f->server = vfu_server_new(&f->fake->pci, f->path, mode, &error);
    g_assert_no_error(error);
    f->client = negotiate ? vfu_client_start(f->path) : vfu_client_connect(f->path);
}

void vfu_fixture_teardown(VfuFixture *f)
{
    vfu_client_free(f->client);
    vfu_server_free(f->server);
    fake_pci_free(f->fake);
    g_assert_false(g_file_test(f->path, G_FILE_TEST_EXISTS));
    g_assert_cmpint(g_rmdir(f->folder), ==, 0);
    g_free(f->path);
    g_free(f->folder);
    g_assert_cmpuint(vfu_fixture_count_fds(), ==, f->fds);
}

void vfu_fixture_reconnect(VfuFixture *f)
{
    vfu_client_free(f->client);
    f->client = vfu_client_start(f->path);
}

void vfu_fixture_enable_bus_master(VfuFixture *f)
{
    vfu_client_write(f->client, VFU_REGION_CONFIG, 0x04, 2, 0x0006);
}

void vfu_fixture_enable_msi(VfuFixture *f, uint64_t address, uint16_t data)
{
    vfu_client_write(f->client, VFU_REGION_CONFIG, FAKE_PCI_MSI + 4, 4, (uint32_t)address);
    vfu_client_write(f->client, VFU_REGION_CONFIG, FAKE_PCI_MSI + 8, 4, address >> 32);
    vfu_client_write(f->client, VFU_REGION_CONFIG, FAKE_PCI_MSI + 12, 2, data);
    vfu_client_write(f->client, VFU_REGION_CONFIG, FAKE_PCI_MSI + 2, 2, 0x0081);
    vfu_client_enable_irq(f->client, VFU_IRQ_MSI);
}

void vfu_fixture_check_alive(VfuFixture *f)
{
    vfu_client_write(f->client, FAKE_PCI_MEM_BAR, 0, 4, 0xabcd);
    g_assert_cmphex(vfu_client_read(f->client, FAKE_PCI_MEM_BAR, 0, 4), ==, 0xabcd);
}

int vfu_fixture_file(VfuFixtureFile file)
{
    int fd = memfd_create("test", MFD_CLOEXEC), again;
    char path[64];

    g_assert_cmpint(ftruncate(fd, 1 << 20), ==, 0);
    switch (file) {
    case VFU_FILE_MEMFD_READ_ONLY:
        g_snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        break;
    case VFU_FILE_EVENTFD:
        again = eventfd(0, EFD_CLOEXEC);
        break;
    case VFU_FILE_DIRECTORY:
        again = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        break;
    case VFU_FILE_NULL:
        again = open("/dev/null", O_RDWR | O_CLOEXEC);
        break;
    default:
        return fd;
    }
    close(fd);
    return again;
}
