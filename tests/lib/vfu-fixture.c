/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/vfu-fixture.h"

#include <glib/gstdio.h>

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
