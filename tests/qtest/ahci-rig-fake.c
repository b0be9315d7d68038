/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "tests/qtest/ahci-rig.h"
#include "util/bytes.h"

static bool step(AhciRig *rig)
{
    return fake_mmc_step(rig->mmc);
}

AhciRig *ahci_rig_new(bool delayed)
{
    IdeIdentity identity = {.serial = "QM00001", .model = "RIG DVD", .firmware = "2.5+"};
    FakeMmc *mmc;
    MmcDrive *drive = fake_mmc_new(&mmc);
    AhciRig *rig = ahci_rig_new_device(delayed, atapi_new(drive, &identity));

    rig->drive = drive;
    rig->mmc = mmc;
    rig->step = step;
    rig->free_drive = fake_mmc_free;
    return rig;
}

void rig_cdb(uint8_t *cdb, uint8_t op, uint32_t start, uint32_t len)
{
    memset(cdb, 0, MMC_CDB_SIZE);
    cdb[0] = op;
    store_be32(cdb + 2, start);
    store_be32(cdb + 6, len);
}

void rig_check_pattern(AhciRig *rig, uint64_t addr, uint32_t start, uint64_t from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (rig->host->ram[addr + i] != fake_mmc_pattern(start, from + i)) {
            g_error("byte %zu of %zu at %#" G_GINT64_MODIFIER "x differs", i, len, addr);
        }
    }
}
