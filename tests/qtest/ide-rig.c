/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/ide-rig.h"

static void irq_changed(PciIde *ide, unsigned channel, bool level, void *opaque)
{
    IdeRig *rig = opaque;

    g_assert_true(rig->irq[channel] != level);
    rig->irq[channel] = level;
    rig->irqs += level;
}

IdeRig *ide_rig_new(bool delayed)
{
    IdeRig *rig = g_new0(IdeRig, 1);

    rig->ide = pci_ide_new(PCI_IDE_PIIX3, false);
    rig->pci = pci_ide_pci(rig->ide);
    rig->host = fake_host_new(rig->pci, delayed);
    pci_ide_on_irq(rig->ide, irq_changed, rig);
    pci_config_write(rig->pci, 4, 2, 5);
    return rig;
}

void ide_rig_free(IdeRig *rig)
{
    rig->pci->ops->reset(rig->pci);
    fake_host_free(rig->host);
    pci_ide_free(rig->ide);
    g_free(rig);
}

uint8_t ide_in(IdeRig *rig, unsigned reg)
{
    return (uint8_t)pci_ide_port_read(rig->ide, (uint16_t)(0x1f0 + reg), 1);
}

void ide_out(IdeRig *rig, unsigned reg, uint8_t value)
{
    pci_ide_port_write(rig->ide, (uint16_t)(0x1f0 + reg), 1, value);
}

uint8_t ide_alt(IdeRig *rig)
{
    return (uint8_t)pci_ide_port_read(rig->ide, 0x3f6, 1);
}

void ide_control(IdeRig *rig, uint8_t value)
{
    pci_ide_port_write(rig->ide, 0x3f6, 1, value);
}

uint16_t ide_in_data(IdeRig *rig)
{
    return (uint16_t)pci_ide_port_read(rig->ide, 0x1f0, 2);
}

void ide_out_data(IdeRig *rig, uint16_t value)
{
    pci_ide_port_write(rig->ide, 0x1f0, 2, value);
}

uint8_t bm_in(IdeRig *rig, unsigned reg)
{
    return (uint8_t)rig->pci->ops->bar_read(rig->pci, 4, reg, 1);
}

void bm_out(IdeRig *rig, unsigned reg, uint8_t value)
{
    rig->pci->ops->bar_write(rig->pci, 4, reg, 1, value);
}

void bm_table(IdeRig *rig, const IdePrd *prds)
{
    for (unsigned i = 0; prds[i].bytes; i++) {
        fake_write32(rig->host, IDE_RIG_TABLE + 8 * i, prds[i].addr);
        fake_write32(rig->host, IDE_RIG_TABLE + 8 * i + 4,
                     (prds[i].bytes & 0xffff) | (prds[i + 1].bytes ? 0 : 0x80000000));
    }
    bm_out(rig, 0, 0);
    bm_out(rig, 2, 6);
    rig->pci->ops->bar_write(rig->pci, 4, 4, 4, IDE_RIG_TABLE);
}

void ide_settle(IdeRig *rig)
{
    do {
        fake_host_drain(rig->host);
    } while ((rig->step && rig->step(rig)) || !fake_host_idle(rig->host));
}

uint8_t ide_wait(IdeRig *rig)
{
    for (unsigned i = 0; ide_alt(rig) & ATA_STATUS_BSY; i++) {
        g_assert_cmpuint(i, <, 1000);
        ide_settle(rig);
    }
    return ide_in(rig, TASKFILE_COMMAND);
}
