/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * An AHCI controller on a FakeHost, and the guest's driver for it, for device tests. Guest memory: command
 * list of port n at 0x1000 * (n + 1), received FISes at 0x10000 + 0x100 * n, command table of slot s of port
 * n at 0x100000 * (n + 1) + 0x8000 * s (2040 PRDs), data where the test wants it from 0x800000 on.
 */
#ifndef SPINDLE_TESTS_AHCI_RIG_H
#define SPINDLE_TESTS_AHCI_RIG_H

#include "hw/ide/ahci-int.h"
#include "hw/ide/atapi.h"
#include "tests/qtest/fake-host.h"
#include "tests/qtest/fake-mmc.h"

#define RIG_DATA UINT64_C(0x800000)

typedef struct AhciRig {
    FakeHost *host;
    AhciController *ahci;
    PciDevice *pci;
    IdeDevice *device; /* on port 0; the rig frees it */
    bool (*step)(
        struct AhciRig *rig); /* lets something beside DMA happen; false: nothing to do. May be NULL */
    void *opaque;
    MmcDrive *drive;
    void (*free_drive)(MmcDrive *drive); /* may be NULL */
    FakeMmc *mmc;                        /* NULL unless made by ahci_rig_new() */
} AhciRig;

typedef struct RigPrd {
    uint64_t addr;
    uint32_t bytes; /* as the guest means it; 0 ends the list */
} RigPrd;

/* Memory space and bus mastering on, MSI on, ports not started. */
AhciRig *ahci_rig_new_device(bool delayed, IdeDevice *device);
/* The same with a packet device on a FakeMmc (ahci-rig-fake.c). */
AhciRig *ahci_rig_new(bool delayed);
void ahci_rig_free(AhciRig *rig);

uint32_t rig_read(AhciRig *rig, uint32_t offset);
void rig_write(AhciRig *rig, uint32_t offset, uint32_t value);
uint32_t rig_port_read(AhciRig *rig, unsigned port, unsigned reg);
void rig_port_write(AhciRig *rig, unsigned port, unsigned reg, uint32_t value);

uint64_t rig_list(unsigned port);
uint64_t rig_fis(unsigned port);
uint64_t rig_table(unsigned port, unsigned slot);

/* Lists, FRE, interrupts, ST: as an operating system's driver does. */
void rig_port_up(AhciRig *rig, unsigned port);

/* Puts a command into a slot: header, a register FIS with `tf`, packet (may be NULL), PRDs. Does not issue.
 */
void rig_slot(AhciRig *rig, unsigned port, unsigned slot, const Taskfile *tf, const uint8_t *packet,
              const RigPrd *prds);
void rig_issue(AhciRig *rig, unsigned port, uint32_t slots);

/* PACKET with features `features`, byte count limit `limit`. */
void rig_packet(AhciRig *rig, unsigned port, unsigned slot, const uint8_t *packet, uint8_t features,
                uint16_t limit, const RigPrd *prds);

/* An ATA command with these registers. */
void rig_ata(AhciRig *rig, unsigned port, unsigned slot, uint8_t command, uint8_t features, uint16_t count,
             const RigPrd *prds);

/* Lets everything happen until nothing is left to do. */
void rig_settle(AhciRig *rig);

/* Made-up CDB of fake-mmc. */
void rig_cdb(uint8_t *cdb, uint8_t op, uint32_t start, uint32_t len);

/* The pattern that starts at `start` lies at addr. */
void rig_check_pattern(AhciRig *rig, uint64_t addr, uint32_t start, uint64_t from, size_t len);

/* PxIS is `is`, TFD `tfd`, the slot is free; clears PxIS and IS. */
void rig_check_done(AhciRig *rig, unsigned port, unsigned slot, uint32_t is, uint32_t tfd);

/* ST off, waits for CR, clears PxIS and PxSERR, ST on. */
void rig_recover(AhciRig *rig, unsigned port);

#endif
