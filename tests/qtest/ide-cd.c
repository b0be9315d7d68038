/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/ide-cd.h"
#include "hw/ide/atapi.h"
#include "util/bytes.h"

bool ide_cd_step(IdeRig *rig)
{
    IdeCd *cd = rig->opaque;

    return fake_mmc_step(cd->mmc[0]) || (cd->mmc[1] && fake_mmc_step(cd->mmc[1]));
}

void ide_cd_add_device(IdeCd *cd, unsigned unit)
{
    IdeIdentity identity = {.serial = unit ? "SLAVE" : "MASTER"};

    cd->drive[unit] = fake_mmc_new(&cd->mmc[unit]);
    cd->device[unit] = atapi_new(cd->drive[unit], &identity);
    g_assert_true(pci_ide_attach(cd->rig->ide, 0, unit, cd->device[unit]));
    g_assert_false(pci_ide_attach(cd->rig->ide, 0, unit, cd->device[unit]));
}

void ide_cd_new(IdeCd *cd, bool delayed)
{
    *cd = (IdeCd){.rig = ide_rig_new(delayed)};
    cd->rig->opaque = cd;
    cd->rig->step = ide_cd_step;
    ide_cd_add_device(cd, 0);
}

void ide_cd_free(IdeCd *cd)
{
    ide_rig_free(cd->rig);
    for (unsigned i = 0; i < 2; i++) {
        ide_device_free(cd->device[i]);
        if (cd->drive[i]) {
            fake_mmc_free(cd->drive[i]);
        }
    }
}

void ide_cd_send_packet(IdeRig *rig, uint8_t op, uint32_t start, uint32_t len, uint8_t features,
                        uint16_t limit)
{
    uint8_t cdb[12] = {op};
    unsigned irqs = rig->irqs;

    store_be32(cdb + 2, start);
    store_be32(cdb + 6, len);
    ide_out(rig, TASKFILE_FEATURES, features);
    ide_out(rig, TASKFILE_LBA_MID, limit & 0xff);
    ide_out(rig, TASKFILE_LBA_HIGH, limit >> 8);
    ide_out(rig, TASKFILE_COMMAND, ATA_CMD_PACKET);
    g_assert_cmphex(ide_alt(rig), ==, IDE_CD_OK | ATA_STATUS_DRQ);
    g_assert_cmphex(ide_in(rig, TASKFILE_COUNT), ==, ATAPI_REASON_CD);
    g_assert_cmpuint(rig->irqs, ==, irqs);
    for (unsigned i = 0; i < 12; i += 2) {
        ide_out_data(rig, load_le16(cdb + i));
    }
}
