/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Packet devices with made-up drives on the primary channel of an IdeRig.
 */
#ifndef SPINDLE_TESTS_IDE_CD_H
#define SPINDLE_TESTS_IDE_CD_H

#include "tests/qtest/fake-mmc.h"
#include "tests/qtest/ide-rig.h"

#define IDE_CD_OK (ATA_STATUS_DRDY | ATA_STATUS_DSC)

typedef struct IdeCd {
    IdeRig *rig;
    MmcDrive *drive[2];
    FakeMmc *mmc[2];
    IdeDevice *device[2];
} IdeCd;

/* With the master; `delayed`: DMA by message. */
void ide_cd_new(IdeCd *cd, bool delayed);
void ide_cd_free(IdeCd *cd);
void ide_cd_add_device(IdeCd *cd, unsigned unit);

/* Lets one thing happen in the drives; false: there was nothing to do. */
bool ide_cd_step(IdeRig *rig);

/* PACKET of the fake drive's, by its command registers and the data port. */
void ide_cd_send_packet(IdeRig *rig, uint8_t op, uint32_t start, uint32_t len, uint8_t features,
                        uint16_t limit);

#endif
