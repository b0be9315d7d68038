/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * PCI bus 0 of the machine: configuration by ports cf8h and cfch, decoding of BARs, and the services that a
 * function gets. DMA is done inside the call that asks for it. Functions stay their owners'. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_PCI_BUS_H
#define SPINDLE_SYSTEM_QTEST_PCI_BUS_H

#include "hw/pci/pci-device.h"
#include "system/qtest/ram.h"

typedef struct PciBus PciBus;

/* INTx of a function changed. */
typedef void (*PciBusIntx)(unsigned devfn, unsigned pin, bool level, void *opaque);

PciBus *pci_bus_new(const Ram *ram, PciBusIntx intx, void *opaque);
void pci_bus_free(PciBus *bus); /* NULL is allowed */

/* False when the place is taken or no place. */
bool pci_bus_add(PciBus *bus, unsigned slot, unsigned function, PciDevice *device);

/* The function at a place, or NULL. */
PciDevice *pci_bus_find(const PciBus *bus, unsigned slot, unsigned function);

/* A function that is there to be seen: ids, class and nothing behind them. The bus owns it. */
PciDevice *pci_bus_add_dummy(PciBus *bus, unsigned slot, unsigned function, uint16_t vendor, uint16_t id,
                             uint32_t class_code);

void pci_bus_reset(PciBus *bus);

/* Every function, by its place: "1f.2". */
void pci_bus_each(PciBus *bus, void (*call)(const char *place, PciDevice *device, void *opaque),
                  void *opaque);

/* The address register. */
uint32_t pci_bus_address(const PciBus *bus);
void pci_bus_set_address(PciBus *bus, uint32_t address);

/* Ports cf8h to cffh; `size` 1, 2 or 4. */
uint32_t pci_bus_config_read(PciBus *bus, uint16_t port, unsigned size);
void pci_bus_config_write(PciBus *bus, uint16_t port, unsigned size, uint32_t value);

/* The function and BAR that decode an address, or NULL. */
PciDevice *pci_bus_decode(PciBus *bus, bool io, uint64_t addr, unsigned *ret_bar, uint32_t *ret_offset);

#endif
