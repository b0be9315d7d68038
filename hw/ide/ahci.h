/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A Serial ATA controller: AHCI 1.3, with the PCI ids and registers of Intel's ICH9 (8086:2922). Up to
 * AHCI_PORTS_MAX ports, one IdeDevice each; devices come and go while the guest runs (hot-plug as in
 * AHCI 7.3). Loop thread only.
 */
#ifndef SPINDLE_HW_IDE_AHCI_H
#define SPINDLE_HW_IDE_AHCI_H

#include "hw/ide/ide-device.h"
#include "hw/pci/pci-device.h"

#define AHCI_PORTS_MAX 6

typedef struct AhciController AhciController;

/* `ports` is 1 to AHCI_PORTS_MAX. */
AhciController *ahci_new(unsigned ports);

/* The devices stay their owners'. Whatever is in flight is abandoned. NULL is allowed. */
void ahci_free(AhciController *ahci);

/* The PCI function, for the transport; part of the controller. */
PciDevice *ahci_pci(AhciController *ahci);

/* CAP.SSS: ports stay off after a reset until the guest sets PxCMD.SUD. Off by default. Before attach. */
void ahci_set_staggered_spin_up(AhciController *ahci, bool on);

/* Connects the device (the caller's; detach before freeing it) to an empty port; a running guest sees it
 * come. False if the port is taken or there is none. */
bool ahci_attach(AhciController *ahci, unsigned port, IdeDevice *device);

/* Takes the device off; a running guest sees it go. Its commands are abandoned. NULL if there was none. */
IdeDevice *ahci_detach(AhciController *ahci, unsigned port);

#endif
