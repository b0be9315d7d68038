/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/fake-pci.h"

#include <string.h>

static uint8_t *fake_register(FakePci *fake, unsigned bar, uint32_t offset, unsigned size)
{
    g_assert_true(size == 1 || size == 2 || size == 4 || size == 8);
    g_assert_true(bar == FAKE_PCI_MEM_BAR || bar == FAKE_PCI_IO_BAR);
    g_assert_cmpuint(offset + size, <=, fake->pci.bars[bar].size);
    return (bar == FAKE_PCI_MEM_BAR ? fake->mem : fake->io) + offset;
}

static uint64_t fake_bar_read(PciDevice *device, unsigned bar, uint32_t offset, unsigned size)
{
    FakePci *fake = (FakePci *)device;
    FakeAccess access = {.bar = bar, .offset = offset, .size = size};

    memcpy(&access.value, fake_register(fake, bar, offset, size), size);
    access.value = GUINT64_FROM_LE(access.value);
    g_array_append_val(fake->log, access);
    return access.value;
}

static void fake_bar_write(PciDevice *device, unsigned bar, uint32_t offset, unsigned size, uint64_t value)
{
    FakePci *fake = (FakePci *)device;
    FakeAccess access = {.write = true, .bar = bar, .offset = offset, .size = size, .value = value};

    value = GUINT64_TO_LE(value);
    memcpy(fake_register(fake, bar, offset, size), &value, size);
    g_array_append_val(fake->log, access);
}

static void fake_config_written(PciDevice *device, unsigned offset, unsigned size)
{
    ((FakePci *)device)->config_writes++;
}

static void fake_reset(PciDevice *device)
{
    FakePci *fake = (FakePci *)device;

    fake->resets++;
    memset(fake->mem, 0, sizeof fake->mem);
    memset(fake->io, 0, sizeof fake->io);
}

static const PciDeviceOps fake_ops = {
    .bar_read = fake_bar_read,
    .bar_write = fake_bar_write,
    .config_written = fake_config_written,
    .reset = fake_reset,
};

FakePci *fake_pci_new(void)
{
    FakePci *fake = g_new0(FakePci, 1);

    fake->pci.ops = &fake_ops;
    fake->log = g_array_new(FALSE, TRUE, sizeof(FakeAccess));
    pci_config_init(&fake->pci, 0x1b36, 0x00fa, 0xff0000, 1, 1);
    pci_config_add_bar(&fake->pci, FAKE_PCI_IO_BAR, FAKE_PCI_IO_SIZE, true);
    pci_config_add_bar(&fake->pci, FAKE_PCI_MEM_BAR, FAKE_PCI_MEM_SIZE, false);
    pci_config_add_msi(&fake->pci, FAKE_PCI_MSI);
    return fake;
}

void fake_pci_free(FakePci *fake)
{
    if (fake) {
        g_array_unref(fake->log);
        g_free(fake);
    }
}

FakeAccess fake_pci_log(FakePci *fake, unsigned i)
{
    g_assert_cmpuint(i, <, fake->log->len);
    return g_array_index(fake->log, FakeAccess, i);
}
