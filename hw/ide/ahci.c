/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The AHCI host bus adapter as a PCI function: configuration space, register windows, global reset,
 * interrupt.
 */
#include "hw/ide/ahci-int.h"

#include <errno.h>

#include "util/bytes.h"
#include "util/trace.h"

/* Intel ICH9 datasheet, chapter 15 (SATA controller, D31:F2, AHCI mode). */
#define ICH9_VENDOR      0x8086
#define ICH9_AHCI_DEVICE 0x2922
#define ICH9_REVISION    2
#define ICH9_CLASS_AHCI  0x010601
#define ICH9_MSI_CAP     0x80
#define ICH9_MAP         0x90 /* address map: bits 7:6 = 01, AHCI */
#define ICH9_PCS         0x92 /* port control: enable bits, kept but without effect */
#define ICH9_SATA_CAP    0xa8
#define PCI_CAP_ID_SATA  0x12
#define PCI_STATUS       0x06
#define PCI_STATUS_INTX  0x08

#define ABAR            5
#define INDEX_BAR       4 /* 32 bytes of I/O: index at 10h, data at 14h (AHCI 2.4.1) */
#define INDEX_BAR_SIZE  32
#define INDEX_BAR_INDEX 0x10
#define INDEX_BAR_DATA  0x14

#define AHCI_VERSION 0x00010300
/* S64A, SNCQ, SCLO, SAM; interface speed 2 (3 Gb/s); 32 slots */
#define AHCI_CAP_BASE (1u << 31 | 1u << 30 | 1u << 24 | 2u << 20 | 1u << 18 | (AHCI_SLOTS - 1u) << 8)

static AhciController *ahci_of(PciDevice *device)
{
    return AHCI_OWNER(device, AhciController, pci);
}

/* Services of the host. */

int ahci_dma_read(AhciController *ahci, PciDmaRead *read)
{
    PciHost *host = ahci->pci.host;

    return host ? host->ops->dma_read(host, read) : -EFAULT;
}

void ahci_dma_write_small(AhciController *ahci, uint64_t addr, const void *data, size_t len)
{
    PciHost *host = ahci->pci.host;

    if (host) {
        host->ops->dma_write_small(host, addr, data, len);
    }
}

void ahci_fence(AhciController *ahci, PciFence *fence)
{
    PciHost *host = ahci->pci.host;

    if (host) {
        host->ops->fence(host, fence);
    } else {
        fence->done(fence);
    }
}

bool ahci_others_busy(const AhciController *ahci, const AhciPort *except)
{
    for (unsigned i = 0; i < ahci->ports; i++) {
        if (&ahci->port[i] != except && ahci->port[i].state == AHCI_PORT_BUSY) {
            return true;
        }
    }
    return false;
}

/* Interrupts (10.6). IS keeps a bit until the guest clears it, and gets it back at once while its port still
 * has an enabled event: so no event is lost between the guest's reads and writes. */

static bool ahci_any_port_pending(AhciController *ahci)
{
    bool any = false;

    for (unsigned i = 0; i < ahci->ports; i++) {
        if (ahci->port[i].regs[AHCI_PX_IS] & ahci->port[i].regs[AHCI_PX_IE]) {
            ahci->regs[AHCI_IS] |= 1u << i;
            any = true;
        }
    }
    return any;
}

/* MSI is an edge: one for each event, and another one when a write leaves events behind. INTx is the level.
 */
void ahci_irq_update(AhciController *ahci, AhciIrqCause cause)
{
    PciDevice *pci = &ahci->pci;
    bool pending = ahci_any_port_pending(ahci), was = ahci->irq;

    ahci->irq = ahci->regs[AHCI_GHC] & AHCI_GHC_IE && ahci->regs[AHCI_IS];
    if (ahci->irq) {
        pci->config[PCI_STATUS] |= PCI_STATUS_INTX;
    } else {
        pci->config[PCI_STATUS] &= (uint8_t)~PCI_STATUS_INTX;
    }
    if (!pci->host) {
        return;
    }
    if (!pci_msi_enabled(pci)) {
        pci->host->ops->intx(pci->host, ahci->irq && !pci_intx_disabled(pci));
    } else if (ahci->irq && (cause == AHCI_IRQ_EVENT || (cause == AHCI_IRQ_WRITTEN && (pending || !was)))) {
        pci->host->ops->msi(pci->host, 0, false);
    }
}

bool ahci_irq_msi_expected(const AhciPort *port, uint32_t bits)
{
    const AhciController *ahci = port->ahci;

    return ahci->pci.host && bits & port->regs[AHCI_PX_IE] && ahci->regs[AHCI_GHC] & AHCI_GHC_IE &&
           pci_msi_enabled(&ahci->pci);
}

void ahci_hba_is_written(AhciController *ahci, uint32_t old)
{
    ahci_irq_update(ahci, AHCI_IRQ_WRITTEN);
}

/* Reset. */

static void ahci_hba_reset_done(PciFence *fence)
{
    AhciController *ahci = AHCI_OWNER(fence, AhciController, reset_fence);

    ahci->reset_pending = false;
    ahci->regs[AHCI_GHC] &= ~AHCI_GHC_HR;
    for (unsigned i = 0; i < ahci->ports; i++) {
        ahci_port_link(&ahci->port[i], false);
    }
}

static void ahci_cancel_reset(AhciController *ahci)
{
    if (ahci->reset_pending && ahci->pci.host) {
        ahci->pci.host->ops->fence_cancel(ahci->pci.host, &ahci->reset_fence);
    }
    ahci->reset_pending = false;
}

void ahci_drop(AhciController *ahci)
{
    ahci_cancel_reset(ahci);
    for (unsigned i = 0; i < ahci->ports; i++) {
        ahci_port_drop(&ahci->port[i]);
    }
    if (ahci->pci.host) {
        ahci->pci.host->ops->dma_drop(ahci->pci.host);
    }
}

static void ahci_reset_registers(AhciController *ahci, bool power_on)
{
    ahci_drop(ahci);
    for (unsigned i = 0; i < ahci->ports; i++) {
        ahci_port_reset(&ahci->port[i], power_on);
    }
    ahci->regs[AHCI_CAP] = AHCI_CAP_BASE | (ahci->ports - 1) | (ahci->staggered ? AHCI_CAP_SSS : 0);
    ahci->regs[AHCI_GHC] = AHCI_GHC_AE;
    ahci->regs[AHCI_IS] = 0;
    ahci->regs[AHCI_PI] = (1u << ahci->ports) - 1;
    ahci->regs[AHCI_VS] = AHCI_VERSION;
}

/* 10.4.3: GHC.HR falls when the reset is complete, which is when no earlier write can land any more. */
void ahci_hba_ghc_written(AhciController *ahci, uint32_t old)
{
    if (ahci->regs[AHCI_GHC] & AHCI_GHC_HR && !ahci->reset_pending) {
        trace(ahci_hba_reset);
        ahci_reset_registers(ahci, false);
        ahci->regs[AHCI_GHC] |= AHCI_GHC_HR;
        ahci->reset_fence = (PciFence){.done = ahci_hba_reset_done};
        ahci->reset_pending = true;
        ahci_fence(ahci, &ahci->reset_fence);
    }
    ahci_irq_update(ahci, AHCI_IRQ_WRITTEN);
}

static void ahci_pci_reset(PciDevice *pci)
{
    AhciController *ahci = ahci_of(pci);

    pci_config_reset(pci);
    pci->config[ICH9_PCS] = 0;
    ahci->index = 0;
    ahci_reset_registers(ahci, true);
    ahci_irq_update(ahci, AHCI_IRQ_WRITTEN);
    for (unsigned i = 0; i < ahci->ports; i++) {
        ahci_port_link(&ahci->port[i], false);
    }
}

/* Register windows. */

/* Any size and alignment: the bytes of each dword that is touched. */
static uint64_t abar_read(AhciController *ahci, uint32_t offset, unsigned size)
{
    uint64_t value = 0;

    for (unsigned done = 0; done < size;) {
        uint32_t at = offset + done, skip = at % 4, n = MIN(4 - skip, size - done);
        uint64_t dword = ahci_regs_read(ahci, at - skip) >> (8 * skip);

        if (n < 4) {
            dword &= (UINT64_C(1) << (8 * n)) - 1;
        }
        value |= dword << (8 * done);
        done += n;
    }
    return value;
}

static void abar_write(AhciController *ahci, uint32_t offset, unsigned size, uint64_t value)
{
    for (unsigned done = 0; done < size;) {
        uint32_t at = offset + done, skip = at % 4, n = MIN(4 - skip, size - done);
        uint32_t mask = (uint32_t)((UINT64_C(1) << (8 * n)) - 1) << (8 * skip);

        ahci_regs_write(ahci, at - skip, (uint32_t)(value >> (8 * done)) << (8 * skip), mask);
        done += n;
    }
}

static uint64_t ahci_bar_read(PciDevice *pci, unsigned bar, uint32_t offset, unsigned size)
{
    AhciController *ahci = ahci_of(pci);

    if (bar == ABAR) {
        return abar_read(ahci, offset, size);
    }
    if (bar == INDEX_BAR && size == 4) {
        return offset == INDEX_BAR_INDEX  ? ahci->index
               : offset == INDEX_BAR_DATA ? ahci_regs_read(ahci, ahci->index)
                                          : 0;
    }
    return 0;
}

static void ahci_bar_write(PciDevice *pci, unsigned bar, uint32_t offset, unsigned size, uint64_t value)
{
    AhciController *ahci = ahci_of(pci);

    if (bar == ABAR) {
        abar_write(ahci, offset, size, value);
    } else if (bar == INDEX_BAR && size == 4 && offset == INDEX_BAR_INDEX) {
        ahci->index = (uint32_t)value & (AHCI_ABAR_SIZE - 4);
    } else if (bar == INDEX_BAR && size == 4 && offset == INDEX_BAR_DATA) {
        ahci_regs_write(ahci, ahci->index, (uint32_t)value, ~0u);
    }
}

/* Command register (INTx disable) and MSI control decide which way an interrupt goes. */
static void ahci_config_written(PciDevice *pci, unsigned offset, unsigned size)
{
    AhciController *ahci = ahci_of(pci);

    if (pci->host && pci_msi_enabled(pci)) {
        pci->host->ops->intx(pci->host, false);
    }
    if (offset < 6 || (offset + size > ICH9_MSI_CAP && offset < ICH9_MSI_CAP + 4)) {
        ahci_irq_update(ahci, AHCI_IRQ_WRITTEN);
    }
}

/* Parked, the ports take in what the guest issues. */
static void ahci_park(PciDevice *pci, bool on)
{
    AhciController *ahci = ahci_of(pci);

    ahci->parked = on;
    for (unsigned i = 0; !on && i < ahci->ports; i++) {
        ahci_port_run(&ahci->port[i]);
    }
}

static bool ahci_pci_settled(const PciDevice *pci)
{
    return ahci_settled((const AhciController *)(const void *)pci);
}

static const PciDeviceOps ahci_pci_ops = {
    .bar_read = ahci_bar_read,
    .bar_write = ahci_bar_write,
    .config_written = ahci_config_written,
    .reset = ahci_pci_reset,
    .state = &ahci_state,
    .settled = ahci_pci_settled,
    .park = ahci_park,
};

static void ahci_init_config(PciDevice *pci)
{
    pci_config_init(pci, ICH9_VENDOR, ICH9_AHCI_DEVICE, ICH9_CLASS_AHCI, ICH9_REVISION, 1);
    pci_config_set_subsystem(pci, ICH9_VENDOR, ICH9_AHCI_DEVICE);
    pci_config_add_bar(pci, INDEX_BAR, INDEX_BAR_SIZE, true);
    pci_config_add_bar(pci, ABAR, AHCI_ABAR_SIZE, false);
    pci_config_add_msi(pci, ICH9_MSI_CAP);
    pci_config_add_capability(pci, PCI_CAP_ID_SATA, ICH9_SATA_CAP, 8);
    pci->config[ICH9_SATA_CAP + 2] = 0x10;                                       /* revision 1.0 */
    store_le32(pci->config + ICH9_SATA_CAP + 4, 8 | (INDEX_BAR_INDEX / 4) << 4); /* BAR 4, dword offset */
    pci->config[ICH9_MAP] = 0x40;
    pci->wmask[ICH9_PCS] = (1u << AHCI_PORTS_MAX) - 1;
}

AhciController *ahci_new(unsigned ports)
{
    AhciController *ahci = g_new0(AhciController, 1);

    ahci->ports = CLAMP(ports, 1, AHCI_PORTS_MAX);
    ahci->pci.ops = &ahci_pci_ops;
    ahci_init_config(&ahci->pci);
    for (unsigned i = 0; i < ahci->ports; i++) {
        ahci_port_init(&ahci->port[i], ahci, i);
    }
    ahci_reset_registers(ahci, true);
    return ahci;
}

void ahci_free(AhciController *ahci)
{
    if (ahci) {
        ahci_reset_registers(ahci, true);
        for (unsigned i = 0; i < ahci->ports; i++) {
            ahci_command_free_spares(&ahci->port[i]);
        }
        g_free(ahci);
    }
}

PciDevice *ahci_pci(AhciController *ahci)
{
    return &ahci->pci;
}

void ahci_set_staggered_spin_up(AhciController *ahci, bool on)
{
    ahci->staggered = on;
    ahci_reset_registers(ahci, true);
}

bool ahci_attach(AhciController *ahci, unsigned port, IdeDevice *device)
{
    if (port >= ahci->ports || ahci->port[port].device) {
        return false;
    }
    device->serial_link = true;
    ahci->port[port].device = device;
    ahci->port[port].connected = true;
    ahci_port_link(&ahci->port[port], ahci->pci.host != NULL);
    return true;
}

IdeDevice *ahci_detach(AhciController *ahci, unsigned port)
{
    IdeDevice *device = port < ahci->ports ? ahci->port[port].device : NULL;

    if (device) {
        ahci_port_unplug(&ahci->port[port]);
    }
    return device;
}
