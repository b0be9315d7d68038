/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The configuration space of a type 0 PCI function: building it, the guest's accesses, reset.
 * Offsets and bits: PCI Local Bus Specification 3.0, chapter 6.
 */
#include "hw/pci/pci-device.h"

#include "util/bytes.h"
#include "util/checked.h"

enum {
    CFG_VENDOR = 0x00,
    CFG_DEVICE = 0x02,
    CFG_COMMAND = 0x04,
    CFG_STATUS = 0x06,
    CFG_REVISION = 0x08,
    CFG_PROG_IF = 0x09,
    CFG_SUB_CLASS = 0x0a,
    CFG_BASE_CLASS = 0x0b,
    CFG_CACHE_LINE = 0x0c,
    CFG_BAR0 = 0x10,
    CFG_SUBSYSTEM_VENDOR = 0x2c,
    CFG_SUBSYSTEM_ID = 0x2e,
    CFG_CAP_POINTER = 0x34,
    CFG_INT_LINE = 0x3c,
    CFG_INT_PIN = 0x3d,
    CFG_HEADER_END = 0x40,
};

#define COMMAND_IO           0x0001
#define COMMAND_MEMORY       0x0002
#define COMMAND_BUS_MASTER   0x0004
#define COMMAND_INTX_DISABLE 0x0400
/* and parity error response, SERR# enable */
#define COMMAND_WRITABLE                                                                                     \
    (COMMAND_IO | COMMAND_MEMORY | COMMAND_BUS_MASTER | 0x0040 | 0x0100 | COMMAND_INTX_DISABLE)
#define STATUS_CAP_LIST 0x0010
#define STATUS_W1C      0xf900

#define CAP_ID_MSI     0x05
#define MSI_CONTROL    2 /* offsets within the capability, 6.8.1 */
#define MSI_ADDRESS_LO 4
#define MSI_ADDRESS_HI 8
#define MSI_DATA       12
#define MSI_SIZE       14
#define MSI_ENABLE     0x0001
#define MSI_64BIT      0x0080

void pci_config_init(PciDevice *device, uint16_t vendor, uint16_t device_id, uint32_t class_code,
                     uint8_t revision, uint8_t int_pin)
{
    uint8_t *config = device->config;

    memset(device->config, 0, sizeof device->config);
    memset(device->wmask, 0, sizeof device->wmask);
    memset(device->w1cmask, 0, sizeof device->w1cmask);
    memset(device->bars, 0, sizeof device->bars);
    device->msi_cap = 0;
    device->int_pin = int_pin;

    store_le16(config + CFG_VENDOR, vendor);
    store_le16(config + CFG_DEVICE, device_id);
    config[CFG_REVISION] = revision;
    config[CFG_PROG_IF] = class_code;
    config[CFG_SUB_CLASS] = class_code >> 8;
    config[CFG_BASE_CLASS] = class_code >> 16;
    config[CFG_INT_PIN] = int_pin;

    store_le16(device->wmask + CFG_COMMAND, COMMAND_WRITABLE);
    store_le16(device->w1cmask + CFG_STATUS, STATUS_W1C);
    device->wmask[CFG_CACHE_LINE] = 0xff;
    device->wmask[CFG_INT_LINE] = 0xff;
}

void pci_config_set_subsystem(PciDevice *device, uint16_t vendor, uint16_t id)
{
    store_le16(device->config + CFG_SUBSYSTEM_VENDOR, vendor);
    store_le16(device->config + CFG_SUBSYSTEM_ID, id);
}

void pci_config_add_bar(PciDevice *device, unsigned bar, uint32_t size, bool io)
{
    g_assert(bar < PCI_BARS);
    g_assert(is_power_of_2(size) && size >= (io ? 4 : 16));

    unsigned offset = CFG_BAR0 + 4 * bar;
    device->bars[bar] = (PciBar){.size = size, .io = io};
    store_le32(device->config + offset, io ? 1 : 0);
    store_le32(device->wmask + offset, ~(size - 1));
}

void pci_config_add_capability(PciDevice *device, uint8_t id, uint8_t offset, uint8_t size)
{
    g_assert(offset >= CFG_HEADER_END && offset % 4 == 0 && size >= 2 && offset + size <= PCI_CONFIG_SIZE);

    unsigned link = CFG_CAP_POINTER;
    while (device->config[link]) {
        link = device->config[link] + 1;
    }
    device->config[link] = offset;
    device->config[offset] = id;
    device->config[offset + 1] = 0;
    device->config[CFG_STATUS] |= STATUS_CAP_LIST;
}

void pci_config_add_msi(PciDevice *device, uint8_t offset)
{
    pci_config_add_capability(device, CAP_ID_MSI, offset, MSI_SIZE);
    store_le16(device->config + offset + MSI_CONTROL, MSI_64BIT);
    store_le16(device->wmask + offset + MSI_CONTROL, MSI_ENABLE);
    store_le32(device->wmask + offset + MSI_ADDRESS_LO, 0xfffffffc);
    store_le32(device->wmask + offset + MSI_ADDRESS_HI, 0xffffffff);
    store_le16(device->wmask + offset + MSI_DATA, 0xffff);
    device->msi_cap = offset;
}

static bool config_access_valid(unsigned offset, unsigned size)
{
    return size >= 1 && size <= 4 && range_inside(offset, size, PCI_CONFIG_SIZE);
}

uint32_t pci_config_read(PciDevice *device, unsigned offset, unsigned size)
{
    if (!config_access_valid(offset, size)) {
        return 0xffffffff;
    }
    uint32_t value = 0;
    for (unsigned i = 0; i < size; i++) {
        value |= (uint32_t)device->config[offset + i] << (8 * i);
    }
    return value;
}

void pci_config_write(PciDevice *device, unsigned offset, unsigned size, uint32_t value)
{
    if (!config_access_valid(offset, size)) {
        return;
    }
    for (unsigned i = 0; i < size; i++) {
        uint8_t v = value >> (8 * i);
        uint8_t writable = device->wmask[offset + i];
        uint8_t *reg = &device->config[offset + i];
        *reg = (*reg & ~writable) | (v & writable);
        *reg &= ~(v & device->w1cmask[offset + i]);
    }
    if (device->ops->config_written) {
        device->ops->config_written(device, offset, size);
    }
}

static void config_clear(PciDevice *device, unsigned offset, unsigned size)
{
    for (unsigned i = offset; i < offset + size; i++) {
        device->config[i] &= ~(device->wmask[i] | device->w1cmask[i]);
    }
}

void pci_config_reset(PciDevice *device)
{
    config_clear(device, 0, CFG_HEADER_END);
    if (device->msi_cap) {
        config_clear(device, device->msi_cap, MSI_SIZE);
    }
}

bool pci_msi_enabled(const PciDevice *device)
{
    return device->msi_cap && (load_le16(device->config + device->msi_cap + MSI_CONTROL) & MSI_ENABLE);
}

uint64_t pci_msi_address(const PciDevice *device)
{
    const uint8_t *cap = device->config + device->msi_cap;
    return device->msi_cap ? load_le32(cap + MSI_ADDRESS_LO) | (uint64_t)load_le32(cap + MSI_ADDRESS_HI) << 32
                           : 0;
}

uint32_t pci_msi_data(const PciDevice *device)
{
    return device->msi_cap ? load_le16(device->config + device->msi_cap + MSI_DATA) : 0;
}

bool pci_bus_master(const PciDevice *device)
{
    return load_le16(device->config + CFG_COMMAND) & COMMAND_BUS_MASTER;
}

bool pci_intx_disabled(const PciDevice *device)
{
    return load_le16(device->config + CFG_COMMAND) & COMMAND_INTX_DISABLE;
}

uint64_t pci_bar_address(const PciDevice *device, unsigned bar)
{
    if (bar >= PCI_BARS || !device->bars[bar].size) {
        return UINT64_MAX;
    }
    uint16_t decode = device->bars[bar].io ? COMMAND_IO : COMMAND_MEMORY;
    if (!(load_le16(device->config + CFG_COMMAND) & decode)) {
        return UINT64_MAX;
    }
    return load_le32(device->config + CFG_BAR0 + 4 * bar) & ~(device->bars[bar].size - 1);
}
