/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A hard disk behind the AHCI controller or a parallel channel, each with memory-mapped or with message DMA,
 * and one way to run a command on any of them. Guest memory for data: from 0x800000 on (small things also at
 * IDE_RIG_DATA).
 */
#ifndef SPINDLE_TESTS_DISK_RIG_H
#define SPINDLE_TESTS_DISK_RIG_H

#include "hw/ide/ata-disk.h"
#include "hw/ide/ata-regs.h"
#include "tests/qtest/ahci-rig.h"
#include "tests/qtest/ide-rig.h"

#define DISK_SIZE    (16u << 20)
#define DISK_SECTORS (DISK_SIZE / 512)
#define DISK_OK      (ATA_STATUS_DRDY | ATA_STATUS_DSC)

typedef struct Disk {
    BlockNode *node;
    HardDisk *disk;
    IdeDevice *device;
    AhciRig *ahci; /* one of these two */
    IdeRig *ide;
    unsigned failed;
    OnError last_action;
} Disk;

typedef enum { AHCI_MMAP, AHCI_MESSAGE, IDE_MMAP, IDE_MESSAGE, KINDS } Kind;

typedef enum { NODATA, PIO_IN, PIO_OUT, DMA_IN, DMA_OUT } Way;

/* A disk on the node that `options` name. */
void disk_rig_make(Disk *d, const char *options, const AtaDiskConfig *ata, OnError policy);
void disk_rig_connect(Disk *d, Kind kind);
/* 16 MiB in memory, errors reported, connected. */
void disk_rig_new(Disk *d, Kind kind);
void disk_rig_free(Disk *d);

uint8_t *disk_rig_ram(Disk *d, uint64_t addr);

/* Runs a command and waits: error and status registers at its end (error in the high byte). `ext`: the
 * registers take two values each; `block`: bytes of a DRQ block. Recovers an AHCI port after an error. */
uint16_t disk_rig_run(Disk *d, const Taskfile *tf, bool ext, Way way, uint64_t addr, uint32_t len,
                      uint32_t block);
uint16_t disk_rig_run_ahci(Disk *d, const Taskfile *tf, uint64_t addr, uint32_t len, unsigned slot);
uint16_t disk_rig_simple(Disk *d, uint8_t command, uint8_t features, uint8_t count);
void disk_rig_identify(Disk *d, uint8_t *id);
void disk_rig_registers(Disk *d, const Taskfile *tf, bool ext);

void disk_rig_tf(Taskfile *tf, uint8_t command, bool ext, uint64_t lba, uint32_t count);
void disk_rig_queued_tf(Taskfile *tf, bool write, uint64_t lba, uint32_t count, unsigned tag);

/* Adds a test per kind from `first` to `last`, its data the kind. */
void disk_rig_add(const char *name, GTestDataFunc func, Kind first, Kind last);

#endif
