/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The configuration space: what it looks like, what a guest can change, what a reset brings back.
 */
#include "hw/pci/pci-device.h"

#include "util/bytes.h"
#include <string.h>

#define MSI 0x80
#define CAP 0xa8

typedef struct Function {
    PciDevice pci;
    unsigned written, offset, size;
} Function;

static void function_written(PciDevice *device, unsigned offset, unsigned size)
{
    Function *f = (Function *)device;
    f->written++;
    f->offset = offset;
    f->size = size;
}

static const PciDeviceOps ops = {.config_written = function_written};
static const PciDeviceOps silent_ops = {0};

static void function_setup(Function *f)
{
    memset(f, 0xee, sizeof *f);
    f->pci.ops = &ops;
    pci_config_init(&f->pci, 0x8086, 0x2922, 0x010601, 2, 1);
    pci_config_set_subsystem(&f->pci, 0x1af4, 0x1100);
    pci_config_add_bar(&f->pci, 4, 0x20, true);
    pci_config_add_bar(&f->pci, 5, 0x1000, false);
    pci_config_add_msi(&f->pci, MSI);
    pci_config_add_capability(&f->pci, 0x12, CAP, 8);
    f->written = 0;
}

static void test_layout(void)
{
    static const struct {
        unsigned offset, size;
        uint32_t value;
    } rows[] = {
        {0x00, 4, 0x29228086}, {0x04, 2, 0x0000}, {0x06, 2, 0x0010}, {0x08, 4, 0x01060102},
        {0x0c, 4, 0x00000000}, {0x10, 4, 0},      {0x20, 4, 1},      {0x24, 4, 0},
        {0x2c, 4, 0x11001af4}, {0x34, 1, MSI},    {0x3c, 2, 0x0100}, {MSI, 4, 0x0080a805},
        {CAP, 2, 0x0012},      {0x40, 4, 0},      {0xfc, 4, 0},      {0x09, 3, 0x010601},
    };
    Function f;
    function_setup(&f);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmphex(pci_config_read(&f.pci, rows[i].offset, rows[i].size), ==, rows[i].value);
    }
    g_assert_cmpuint(f.written, ==, 0);
}

static void test_writable_bits(void)
{
    static const struct {
        unsigned offset, size;
        uint32_t write, read;
    } rows[] = {
        {0x00, 4, 0xffffffff, 0x29228086},
        {0x08, 4, 0xffffffff, 0x01060102},
        {0x04, 2, 0xffff, 0x0547},
        {0x04, 1, 0x00, 0x00},
        {0x05, 1, 0x04, 0x04},
        {0x0c, 4, 0xffffffff, 0xff},
        {0x10, 4, 0xffffffff, 0},
        {0x20, 4, 0xffffffff, 0xffffffe1},
        {0x24, 4, 0xffffffff, 0xfffff000},
        {0x2c, 4, 0, 0x11001af4},
        {0x34, 4, 0, MSI},
        {0x3c, 4, 0xffffffff, 0x01ff},
        {MSI, 4, 0xffffffff, 0x0081a805},
        {MSI + 4, 4, 0xffffffff, 0xfffffffc},
        {MSI + 8, 4, 0x12345678, 0x12345678},
        {MSI + 12, 4, 0xffffffff, 0x0000ffff},
        {CAP, 4, 0xffffffff, 0x12},
    };
    Function f;
    function_setup(&f);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        pci_config_write(&f.pci, rows[i].offset, rows[i].size, rows[i].write);
        g_assert_cmpuint(f.written, ==, i + 1);
        g_assert_cmpuint(f.offset, ==, rows[i].offset);
        g_assert_cmpuint(f.size, ==, rows[i].size);
        g_assert_cmphex(pci_config_read(&f.pci, rows[i].offset, rows[i].size), ==, rows[i].read);
    }
}

static void test_status_clears_by_one(void)
{
    Function f;
    function_setup(&f);
    store_le16(f.pci.config + 6, 0xf910);
    pci_config_write(&f.pci, 6, 2, 0x2010);
    g_assert_cmphex(pci_config_read(&f.pci, 6, 2), ==, 0xd910);
    pci_config_write(&f.pci, 4, 4, 0xffff0000);
    g_assert_cmphex(pci_config_read(&f.pci, 6, 2), ==, 0x0010);
}

static void test_access_outside(void)
{
    static const struct {
        unsigned offset, size;
    } rows[] = {{256, 1}, {255, 2}, {253, 4}, {0, 0}, {0, 5}, {0, 8}, {UINT32_MAX, 4}, {UINT32_MAX - 1, 2}};
    Function f;
    function_setup(&f);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmphex(pci_config_read(&f.pci, rows[i].offset, rows[i].size), ==, 0xffffffff);
        pci_config_write(&f.pci, rows[i].offset, rows[i].size, 0xffffffff);
    }
    g_assert_cmpuint(f.written, ==, 0);
    g_assert_cmphex(pci_config_read(&f.pci, 4, 2), ==, 0);
}

static void test_no_hook(void)
{
    Function f;
    function_setup(&f);
    f.pci.ops = &silent_ops;
    pci_config_write(&f.pci, 4, 2, 4);
    g_assert_true(pci_bus_master(&f.pci));
}

static void test_command_bits(void)
{
    Function f;
    function_setup(&f);
    g_assert_false(pci_bus_master(&f.pci));
    g_assert_false(pci_intx_disabled(&f.pci));
    pci_config_write(&f.pci, 4, 2, 0x0004);
    g_assert_true(pci_bus_master(&f.pci));
    g_assert_false(pci_intx_disabled(&f.pci));
    pci_config_write(&f.pci, 4, 2, 0x0400);
    g_assert_false(pci_bus_master(&f.pci));
    g_assert_true(pci_intx_disabled(&f.pci));
}

static void test_bar_address(void)
{
    Function f;
    function_setup(&f);
    pci_config_write(&f.pci, 0x20, 4, 0xc041);
    pci_config_write(&f.pci, 0x24, 4, 0xfebf1000);
    for (uint32_t command = 0; command < 4; command++) {
        pci_config_write(&f.pci, 4, 2, command);
        g_assert_cmphex(pci_bar_address(&f.pci, 4), ==, command & 1 ? 0xc040 : UINT64_MAX);
        g_assert_cmphex(pci_bar_address(&f.pci, 5), ==, command & 2 ? 0xfebf1000 : UINT64_MAX);
        g_assert_cmphex(pci_bar_address(&f.pci, 0), ==, UINT64_MAX);
        g_assert_cmphex(pci_bar_address(&f.pci, 6), ==, UINT64_MAX);
    }
}

static void test_msi(void)
{
    Function f;
    function_setup(&f);
    g_assert_false(pci_msi_enabled(&f.pci));
    pci_config_write(&f.pci, MSI + 4, 4, 0xfee01004);
    pci_config_write(&f.pci, MSI + 8, 4, 0x1);
    pci_config_write(&f.pci, MSI + 12, 2, 0x4021);
    pci_config_write(&f.pci, MSI + 2, 2, 0x0071); /* asks for 8 vectors, of which there is one */
    g_assert_true(pci_msi_enabled(&f.pci));
    g_assert_cmphex(pci_config_read(&f.pci, MSI + 2, 2), ==, 0x0081);
    g_assert_cmphex(pci_msi_address(&f.pci), ==, UINT64_C(0x1fee01004));
    g_assert_cmphex(pci_msi_data(&f.pci), ==, 0x4021);
}

static void test_msi_absent(void)
{
    Function f;
    function_setup(&f);
    pci_config_init(&f.pci, 0x8086, 0x7010, 0x010180, 0, 0);
    memset(f.pci.config, 0xff, 16);
    g_assert_false(pci_msi_enabled(&f.pci));
    g_assert_cmphex(pci_msi_address(&f.pci), ==, 0);
    g_assert_cmphex(pci_msi_data(&f.pci), ==, 0);
}

static void test_reset(void)
{
    Function f, fresh;
    function_setup(&f);
    function_setup(&fresh);
    for (unsigned i = 0; i < PCI_CONFIG_SIZE; i += 4) {
        pci_config_write(&f.pci, i, 4, 0xffffffff);
    }
    f.pci.config[7] = 0xf9;
    pci_config_reset(&f.pci);
    g_assert_cmpmem(f.pci.config, PCI_CONFIG_SIZE, fresh.pci.config, PCI_CONFIG_SIZE);
}

static void test_init_forgets(void)
{
    Function f;
    function_setup(&f);
    pci_config_init(&f.pci, 1, 2, 3, 4, 0);
    g_assert_cmpuint(f.pci.msi_cap, ==, 0);
    g_assert_cmpuint(f.pci.bars[5].size, ==, 0);
    pci_config_write(&f.pci, 0x24, 4, 0xffffffff);
    g_assert_cmphex(pci_config_read(&f.pci, 0x24, 4), ==, 0);
    g_assert_cmphex(pci_config_read(&f.pci, 0x34, 1), ==, 0);
    g_assert_cmphex(pci_config_read(&f.pci, 0x3d, 1), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pci-config/layout", test_layout);
    g_test_add_func("/pci-config/writable-bits", test_writable_bits);
    g_test_add_func("/pci-config/status-clears-by-one", test_status_clears_by_one);
    g_test_add_func("/pci-config/access-outside", test_access_outside);
    g_test_add_func("/pci-config/no-hook", test_no_hook);
    g_test_add_func("/pci-config/command-bits", test_command_bits);
    g_test_add_func("/pci-config/bar-address", test_bar_address);
    g_test_add_func("/pci-config/msi", test_msi);
    g_test_add_func("/pci-config/msi-absent", test_msi_absent);
    g_test_add_func("/pci-config/reset", test_reset);
    g_test_add_func("/pci-config/init-forgets", test_init_forgets);
    return g_test_run();
}
