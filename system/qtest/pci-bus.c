/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The address register keeps the low two bits that a real bridge hardwires to 0: test programs put the byte
 * offset there and always use port cfch (see pci_bus_config_read).
 */
#include "system/qtest/pci-bus.h"
#include <errno.h>
#include <string.h>
#include "util/bytes.h"

#define SLOTS          32
#define FUNCTIONS      8
#define CONFIG_ENABLE  0x80000000u
#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA    0xcfc

typedef struct Function {
    PciHost host;
    PciBus *bus;
    PciDevice *device;
    unsigned devfn;
    bool dummy;
    bool fault;
} Function;

struct PciBus {
    const Ram *ram;
    PciBusIntx intx;
    void *opaque;
    uint32_t address;
    Function *functions[SLOTS * FUNCTIONS];
};

static uint8_t *dma_memory(PciHost *host, uint64_t addr, uint64_t len)
{
    Function *function = (Function *)host;

    return pci_bus_master(function->device) ? ram_span(function->bus->ram, addr, len) : NULL;
}

static int host_dma_read(PciHost *host, PciDmaRead *read)
{
    const uint8_t *memory = dma_memory(host, read->addr, read->len);

    if (!memory) {
        return -EFAULT;
    }
    memcpy(read->buf, memory, read->len);
    return 0;
}

static void host_dma_read_cancel(PciHost *host, PciDmaRead *read)
{
}

static void host_dma_write_small(PciHost *host, uint64_t addr, const void *data, size_t len)
{
    uint8_t *memory = dma_memory(host, addr, len);

    if (memory) {
        memcpy(memory, data, len);
    } else if (len) {
        ((Function *)host)->fault = true;
    }
}

static void host_dma_write(PciHost *host, uint64_t addr, Buffer *buffer, size_t offset, size_t len)
{
    host_dma_write_small(host, addr, buffer->data + offset, len);
}

static void *host_dma_map_write(PciHost *host, uint64_t addr, size_t len)
{
    return dma_memory(host, addr, len);
}

static void host_fence(PciHost *host, PciFence *fence)
{
    Function *function = (Function *)host;

    fence->fault = function->fault;
    fence->pending = false;
    function->fault = false;
    fence->done(fence);
}

static void host_fence_cancel(PciHost *host, PciFence *fence)
{
}

static void host_dma_drop(PciHost *host)
{
    ((Function *)host)->fault = false;
}

/* A message is a write of memory; where there is none, as at the APIC's address, it has no effect here. */
static bool host_msi(PciHost *host, unsigned vector, bool ordered)
{
    Function *function = (Function *)host;
    uint8_t *memory = dma_memory(host, pci_msi_address(function->device), 4);

    if (memory) {
        store_le32(memory, pci_msi_data(function->device) + vector);
    }
    return true;
}

static void host_intx(PciHost *host, bool level)
{
    Function *function = (Function *)host;
    PciBus *bus = function->bus;

    bus->intx(function->devfn, function->device->int_pin, level, bus->opaque);
}

static const PciHostOps host_ops = {
    .dma_read = host_dma_read,
    .dma_read_cancel = host_dma_read_cancel,
    .dma_write = host_dma_write,
    .dma_write_small = host_dma_write_small,
    .dma_map_write = host_dma_map_write,
    .fence = host_fence,
    .fence_cancel = host_fence_cancel,
    .dma_drop = host_dma_drop,
    .msi = host_msi,
    .intx = host_intx,
};

PciBus *pci_bus_new(const Ram *ram, PciBusIntx intx, void *opaque)
{
    PciBus *bus = g_new0(PciBus, 1);

    bus->ram = ram;
    bus->intx = intx;
    bus->opaque = opaque;
    return bus;
}

void pci_bus_free(PciBus *bus)
{
    if (!bus) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->functions); i++) {
        Function *function = bus->functions[i];
        if (function) {
            function->device->host = NULL;
            if (function->dummy) {
                g_free(function->device);
            }
            g_free(function);
        }
    }
    g_free(bus);
}

bool pci_bus_add(PciBus *bus, unsigned slot, unsigned number, PciDevice *device)
{
    if (slot >= SLOTS || number >= FUNCTIONS || bus->functions[slot * FUNCTIONS + number]) {
        return false;
    }
    Function *function = g_new0(Function, 1);
    function->host.ops = &host_ops;
    function->bus = bus;
    function->device = device;
    function->devfn = slot * FUNCTIONS + number;
    device->host = &function->host;
    bus->functions[function->devfn] = function;
    return true;
}

PciDevice *pci_bus_find(const PciBus *bus, unsigned slot, unsigned number)
{
    const Function *function =
        slot < SLOTS && number < FUNCTIONS ? bus->functions[slot * FUNCTIONS + number] : NULL;

    return function ? function->device : NULL;
}

static uint64_t dummy_read(PciDevice *device, unsigned bar, uint32_t offset, unsigned size)
{
    return UINT64_MAX;
}

static void dummy_write(PciDevice *device, unsigned bar, uint32_t offset, unsigned size, uint64_t value)
{
}

static const PciDeviceOps dummy_ops = {
    .bar_read = dummy_read,
    .bar_write = dummy_write,
    .reset = pci_config_reset,
};

PciDevice *pci_bus_add_dummy(PciBus *bus, unsigned slot, unsigned number, uint16_t vendor, uint16_t id,
                             uint32_t class_code)
{
    PciDevice *device = g_new0(PciDevice, 1);

    device->ops = &dummy_ops;
    pci_config_init(device, vendor, id, class_code, 0, 0);
    if (!pci_bus_add(bus, slot, number, device)) {
        g_free(device);
        return NULL;
    }
    bus->functions[slot * FUNCTIONS + number]->dummy = true;
    return device;
}

void pci_bus_reset(PciBus *bus)
{
    bus->address = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->functions); i++) {
        if (bus->functions[i]) {
            bus->functions[i]->device->ops->reset(bus->functions[i]->device);
        }
    }
}

void pci_bus_each(PciBus *bus, void (*call)(const char *place, PciDevice *device, void *opaque), void *opaque)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->functions); i++) {
        if (bus->functions[i]) {
            g_autofree char *place = g_strdup_printf("%02x.%x", i / FUNCTIONS, i % FUNCTIONS);
            call(place, bus->functions[i]->device, opaque);
        }
    }
}

uint32_t pci_bus_address(const PciBus *bus)
{
    return bus->address;
}

void pci_bus_set_address(PciBus *bus, uint32_t address)
{
    bus->address = address;
}

/* What the address register and the data port select: NULL when there is nothing. */
static PciDevice *config_target(PciBus *bus, uint16_t port, unsigned *ret_offset)
{
    uint32_t address = bus->address | (port & 3);
    unsigned bus_number = address >> 16 & 0xff;
    const Function *function = bus->functions[address >> 8 & 0xff];

    if (port < CONFIG_DATA || !(address & CONFIG_ENABLE) || bus_number != 0 || !function) {
        return NULL;
    }
    *ret_offset = address & 0xff;
    return function->device;
}

uint32_t pci_bus_config_read(PciBus *bus, uint16_t port, unsigned size)
{
    unsigned offset;

    if (port == CONFIG_ADDRESS && size == 4) {
        return bus->address;
    }
    PciDevice *device = config_target(bus, port, &offset);
    return device ? pci_config_read(device, offset, size) : UINT32_MAX;
}

void pci_bus_config_write(PciBus *bus, uint16_t port, unsigned size, uint32_t value)
{
    unsigned offset;

    if (port == CONFIG_ADDRESS && size == 4) {
        bus->address = value;
        return;
    }
    PciDevice *device = config_target(bus, port, &offset);
    if (device) {
        pci_config_write(device, offset, size, value);
    }
}

PciDevice *pci_bus_decode(PciBus *bus, bool io, uint64_t addr, unsigned *ret_bar, uint32_t *ret_offset)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->functions); i++) {
        PciDevice *device = bus->functions[i] ? bus->functions[i]->device : NULL;
        for (unsigned bar = 0; device && bar < PCI_BARS; bar++) {
            uint64_t base = device->bars[bar].io == io ? pci_bar_address(device, bar) : UINT64_MAX;
            if (base != UINT64_MAX && base != 0 && addr >= base && addr - base < device->bars[bar].size) {
                *ret_bar = bar;
                *ret_offset = (uint32_t)(addr - base);
                return device;
            }
        }
    }
    return NULL;
}
