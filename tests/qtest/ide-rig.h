/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A PIIX3 in compatibility mode on a FakeHost, driven through the ISA ports of the primary channel (and the
 * bus-master BAR) as an operating system's driver does.
 */
#ifndef SPINDLE_TESTS_IDE_RIG_H
#define SPINDLE_TESTS_IDE_RIG_H

#include "hw/ide/ata-regs.h"
#include "hw/ide/pci-ide-int.h"
#include "tests/qtest/fake-host.h"

#define IDE_RIG_TABLE 0x20000u
#define IDE_RIG_DATA  0x100000u

typedef struct IdeRig {
    PciIde *ide;
    PciDevice *pci;
    FakeHost *host;
    bool irq[2];
    unsigned irqs;                    /* rising edges */
    bool (*step)(struct IdeRig *rig); /* as AhciRig's */
    void *opaque;
} IdeRig;

typedef struct IdePrd {
    uint32_t addr;
    uint32_t bytes; /* as the guest means it, 65536 at most; 0 ends the list */
} IdePrd;

IdeRig *ide_rig_new(bool delayed);
void ide_rig_free(IdeRig *rig);

uint8_t ide_in(IdeRig *rig, unsigned reg);
void ide_out(IdeRig *rig, unsigned reg, uint8_t value);
uint8_t ide_alt(IdeRig *rig);
void ide_control(IdeRig *rig, uint8_t value);
uint16_t ide_in_data(IdeRig *rig);
void ide_out_data(IdeRig *rig, uint16_t value);
uint8_t bm_in(IdeRig *rig, unsigned reg);
void bm_out(IdeRig *rig, unsigned reg, uint8_t value);

/* The PRD table (`last` gets the end mark) and its address register; status bits cleared. */
void bm_table(IdeRig *rig, const IdePrd *prds);

/* Lets everything happen until nothing is left to do. */
void ide_settle(IdeRig *rig);

/* Polls until BSY is clear; the status by the register that clears the interrupt. */
uint8_t ide_wait(IdeRig *rig);

#endif
