/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A parallel ATA controller as a PCI function: Intel's PIIX3 and PIIX4, two channels of two devices,
 * bus-master DMA in BAR 4. Loop thread only.
 *
 * In compatibility mode, which is all that the real chips have, the command blocks lie at the ISA ports
 * 1f0h/3f6h and 170h/376h with IRQ 14 and 15: the machine calls pci_ide_port_read() and _write() and is told
 * of the IRQ lines. In native mode (PCI IDE Controller Specification 1.0) they are BARs 0 to 3 and the
 * interrupt is INTA: for transports that have only BARs.
 */
#ifndef SPINDLE_HW_IDE_PCI_IDE_H
#define SPINDLE_HW_IDE_PCI_IDE_H

#include "hw/ide/ide-device.h"
#include "hw/pci/pci-device.h"

typedef struct PciIde PciIde;

typedef enum { PCI_IDE_PIIX3, PCI_IDE_PIIX4 } PciIdeModel;

PciIde *pci_ide_new(PciIdeModel model, bool native);

/* The devices stay their owners'. NULL is allowed. */
void pci_ide_free(PciIde *ide);

PciDevice *pci_ide_pci(PciIde *ide);

/* `channel` and `unit` are 0 or 1 (unit 1: slave). The device stays the caller's; detach before freeing it.
 * False if the place is taken or does not exist. Parallel ATA has no hot-plug: a guest looks when it boots.
 */
bool pci_ide_attach(PciIde *ide, unsigned channel, unsigned unit, IdeDevice *device);
IdeDevice *pci_ide_detach(PciIde *ide, unsigned channel, unsigned unit);

/* Compatibility mode: true for the ports of a channel while the function decodes I/O. */
bool pci_ide_owns_port(const PciIde *ide, uint16_t port);
/* For a machine without firmware that would enable I/O: its ports answer whatever the command register says.
 */
void pci_ide_set_always_decoded(PciIde *ide, bool on);
/* size is 1, 2 or 4 bytes; a port that is not owned reads as ones. */
uint32_t pci_ide_port_read(PciIde *ide, uint16_t port, unsigned size);
void pci_ide_port_write(PciIde *ide, uint16_t port, unsigned size, uint32_t value);

/* Compatibility mode: told whenever channel's INTRQ (ISA IRQ 14 + channel) changes. */
typedef void (*PciIdeIrq)(PciIde *ide, unsigned channel, bool level, void *opaque);
void pci_ide_on_irq(PciIde *ide, PciIdeIrq irq, void *opaque);

#endif
