/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A PCI function for testing a transport: BARs that remember, a log of accesses, MSI and INTx. Loop thread.
 */
#ifndef SPINDLE_TESTS_LIB_FAKE_PCI_H
#define SPINDLE_TESTS_LIB_FAKE_PCI_H

#include "hw/pci/pci-device.h"

#define FAKE_PCI_MSI      0x80
#define FAKE_PCI_MEM_BAR  5
#define FAKE_PCI_MEM_SIZE 0x1000
#define FAKE_PCI_IO_BAR   4
#define FAKE_PCI_IO_SIZE  0x20

typedef struct FakeAccess {
    bool write;
    unsigned bar, offset, size;
    uint64_t value;
} FakeAccess;

typedef struct FakePci {
    PciDevice pci;
    uint8_t mem[FAKE_PCI_MEM_SIZE];
    uint8_t io[FAKE_PCI_IO_SIZE];
    GArray *log; /* of FakeAccess */
    unsigned resets, config_writes;
} FakePci;

FakePci *fake_pci_new(void);
void fake_pci_free(FakePci *fake);
FakeAccess fake_pci_log(FakePci *fake, unsigned i);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(FakePci, fake_pci_free)

#endif
