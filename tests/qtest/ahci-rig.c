/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/ahci-rig.h"

#include <string.h>

#include "hw/ide/ata-regs.h"
#include "util/bytes.h"

#define TABLE_PRDS 2040

AhciRig *ahci_rig_new_device(bool delayed, IdeDevice *device)
{
    AhciRig *rig = g_new0(AhciRig, 1);

    rig->ahci = ahci_new(6);
    rig->pci = ahci_pci(rig->ahci);
    rig->device = device;
    g_assert_true(ahci_attach(rig->ahci, 0, rig->device));
    rig->host = fake_host_new(rig->pci, delayed);
    pci_config_write(rig->pci, 4, 2, 6);
    pci_config_write(rig->pci, rig->pci->msi_cap + 4, 4, 0xfee00000);
    pci_config_write(rig->pci, rig->pci->msi_cap + 2, 2, 1);
    return rig;
}

void ahci_rig_free(AhciRig *rig)
{
    rig->pci->ops->reset(rig->pci); /* as the transport does when the client goes */
    fake_host_free(rig->host);
    ahci_free(rig->ahci);
    ide_device_free(rig->device);
    if (rig->free_drive) {
        rig->free_drive(rig->drive);
    }
    g_free(rig);
}

uint32_t rig_read(AhciRig *rig, uint32_t offset)
{
    return (uint32_t)rig->pci->ops->bar_read(rig->pci, 5, offset, 4);
}

void rig_write(AhciRig *rig, uint32_t offset, uint32_t value)
{
    rig->pci->ops->bar_write(rig->pci, 5, offset, 4, value);
}

uint32_t rig_port_read(AhciRig *rig, unsigned port, unsigned reg)
{
    return rig_read(rig, AHCI_PORT_BASE + port * AHCI_PORT_STRIDE + reg * 4);
}

void rig_port_write(AhciRig *rig, unsigned port, unsigned reg, uint32_t value)
{
    rig_write(rig, AHCI_PORT_BASE + port * AHCI_PORT_STRIDE + reg * 4, value);
}

uint64_t rig_list(unsigned port)
{
    return UINT64_C(0x1000) * (port + 1);
}

uint64_t rig_fis(unsigned port)
{
    return UINT64_C(0x10000) + UINT64_C(0x100) * port;
}

uint64_t rig_table(unsigned port, unsigned slot)
{
    return UINT64_C(0x100000) * (port + 1) + UINT64_C(0x8000) * slot;
}

void rig_port_up(AhciRig *rig, unsigned port)
{
    uint32_t cmd = rig_port_read(rig, port, AHCI_PX_CMD);

    rig_port_write(rig, port, AHCI_PX_CLB, (uint32_t)rig_list(port));
    rig_port_write(rig, port, AHCI_PX_FB, (uint32_t)rig_fis(port));
    rig_port_write(rig, port, AHCI_PX_SERR, ~0u);
    rig_port_write(rig, port, AHCI_PX_IS, ~0u);
    rig_port_write(rig, port, AHCI_PX_IE, ~0u);
    rig_port_write(rig, port, AHCI_PX_CMD, cmd | AHCI_PX_CMD_FRE);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_TFD) & (ATA_STATUS_BSY | ATA_STATUS_DRQ), ==, 0);
    rig_port_write(rig, port, AHCI_PX_CMD, cmd | AHCI_PX_CMD_FRE | AHCI_PX_CMD_ST);
    rig_write(rig, AHCI_GHC * 4, AHCI_GHC_AE | AHCI_GHC_IE);
    rig->host->msi = 0;
}

void rig_slot(AhciRig *rig, unsigned port, unsigned slot, const Taskfile *tf, const uint8_t *packet,
              const RigPrd *prds)
{
    uint64_t header = rig_list(port) + slot * 32, table = rig_table(port, slot);
    uint8_t *fis = rig->host->ram + table;
    unsigned count = 0;

    memset(fis, 0, AHCI_TABLE_PRDT);
    fis[0] = FIS_TYPE_H2D;
    fis[1] = 0x80;
    fis[2] = tf->command;
    fis[3] = tf->features & 0xff;
    fis[11] = tf->features >> 8;
    memcpy(fis + 4, tf->lba, 3);
    memcpy(fis + 8, tf->lba + 3, 3);
    fis[7] = tf->device;
    store_le16(fis + 12, tf->count);
    if (packet) {
        memcpy(fis + AHCI_TABLE_ACMD, packet, 12);
    }
    for (; prds && prds[count].bytes; count++) {
        uint64_t prd = table + AHCI_TABLE_PRDT + count * 16;

        g_assert_cmpuint(count, <, TABLE_PRDS);
        store_le64(rig->host->ram + prd, prds[count].addr);
        store_le64(rig->host->ram + prd + 8, (uint64_t)(prds[count].bytes - 1) << 32);
    }
    fake_write32(rig->host, header, 5 | (packet ? AHCI_HEADER_ATAPI : 0) | count << 16);
    fake_write32(rig->host, header + 4, 0);
    fake_write32(rig->host, header + 8, (uint32_t)table);
    fake_write32(rig->host, header + 12, 0);
}

void rig_issue(AhciRig *rig, unsigned port, uint32_t slots)
{
    rig_port_write(rig, port, AHCI_PX_CI, slots);
}

void rig_packet(AhciRig *rig, unsigned port, unsigned slot, const uint8_t *packet, uint8_t features,
                uint16_t limit, const RigPrd *prds)
{
    Taskfile tf = {.command = ATA_CMD_PACKET, .features = features};

    taskfile_set_byte_count(&tf, limit);
    rig_slot(rig, port, slot, &tf, packet, prds);
    rig_issue(rig, port, 1u << slot);
}

void rig_ata(AhciRig *rig, unsigned port, unsigned slot, uint8_t command, uint8_t features, uint16_t count,
             const RigPrd *prds)
{
    Taskfile tf = {.command = command, .features = features, .count = count};

    rig_slot(rig, port, slot, &tf, NULL, prds);
    rig_issue(rig, port, 1u << slot);
}

void rig_settle(AhciRig *rig)
{
    do {
        fake_host_drain(rig->host);
    } while ((rig->step && rig->step(rig)) || !fake_host_idle(rig->host));
}

void rig_check_done(AhciRig *rig, unsigned port, unsigned slot, uint32_t is, uint32_t tfd)
{
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_IS), ==, is);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_TFD), ==, tfd);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_CI) >> slot & 1, ==, 0);
    rig_port_write(rig, port, AHCI_PX_IS, is);
    rig_write(rig, AHCI_IS * 4, 1u << port);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_IS), ==, 0);
}

void rig_recover(AhciRig *rig, unsigned port)
{
    uint32_t cmd = rig_port_read(rig, port, AHCI_PX_CMD);

    rig_port_write(rig, port, AHCI_PX_CMD, cmd & ~AHCI_PX_CMD_ST);
    rig_settle(rig);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_CMD) & AHCI_PX_CMD_CR, ==, 0);
    g_assert_cmphex(rig_port_read(rig, port, AHCI_PX_CI), ==, 0);
    rig_port_write(rig, port, AHCI_PX_SERR, ~0u);
    rig_port_write(rig, port, AHCI_PX_IS, ~0u);
    rig_write(rig, AHCI_IS * 4, 1u << port);
    rig_port_write(rig, port, AHCI_PX_CMD, cmd | AHCI_PX_CMD_ST);
}
