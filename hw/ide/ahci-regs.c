/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The AHCI registers as a table: which bits a guest may write, clear or set, and what follows. A dword
 * without a row is reserved: it reads as 0 and takes no writes.
 */
#include "hw/ide/ahci-int.h"

typedef struct AhciReg {
    const char *name;
    uint16_t index; /* offset / 4 */
    uint32_t rw, w1c, w1s;
    void (*hba_hook)(AhciController *ahci, uint32_t old);
    void (*port_hook)(AhciPort *port, uint32_t old);
} AhciReg;

/* AHCI 1.3.1 section 3.1 */
static const AhciReg hba_regs[] = {
    {.name = "CAP", .index = AHCI_CAP},
    {.name = "GHC",
     .index = AHCI_GHC,
     .rw = AHCI_GHC_IE,
     .w1s = AHCI_GHC_HR,
     .hba_hook = ahci_hba_ghc_written},
    {.name = "IS", .index = AHCI_IS, .w1c = ~0u, .hba_hook = ahci_hba_is_written},
    {.name = "PI", .index = AHCI_PI},
    {.name = "VS", .index = AHCI_VS},
};

/* Section 3.3. Interrupt bits without a source here (UFS, DSS, DPS, DMPS, IPMS, CPDS) can be enabled all the
 * same. */
static const AhciReg port_regs[] = {
    {.name = "CLB", .index = AHCI_PX_CLB, .rw = 0xfffffc00},
    {.name = "CLBU", .index = AHCI_PX_CLBU, .rw = ~0u},
    {.name = "FB", .index = AHCI_PX_FB, .rw = 0xffffff00},
    {.name = "FBU", .index = AHCI_PX_FBU, .rw = ~0u},
    {.name = "IS", .index = AHCI_PX_IS, .w1c = 0xfd8000af, .port_hook = ahci_port_irq_written},
    {.name = "IE", .index = AHCI_PX_IE, .rw = 0xfdc000ff, .port_hook = ahci_port_irq_written},
    {.name = "CMD",
     .index = AHCI_PX_CMD,
     .rw = AHCI_PX_CMD_ST | AHCI_PX_CMD_SUD | AHCI_PX_CMD_FRE | AHCI_PX_CMD_ATAPI | AHCI_PX_CMD_DLAE,
     .w1s = AHCI_PX_CMD_CLO,
     .port_hook = ahci_port_cmd_written},
    {.name = "TFD", .index = AHCI_PX_TFD},
    {.name = "SIG", .index = AHCI_PX_SIG},
    {.name = "SSTS", .index = AHCI_PX_SSTS},
    {.name = "SCTL", .index = AHCI_PX_SCTL, .rw = 0xfff, .port_hook = ahci_port_sctl_written},
    {.name = "SERR", .index = AHCI_PX_SERR, .w1c = ~0u, .port_hook = ahci_port_serr_written},
    {.name = "SACT", .index = AHCI_PX_SACT, .w1s = ~0u, .port_hook = ahci_port_sact_written},
    {.name = "CI", .index = AHCI_PX_CI, .w1s = ~0u, .port_hook = ahci_port_issue_written},
};

static const AhciReg *find_reg(const AhciReg *regs, unsigned count, unsigned index)
{
    for (unsigned i = 0; i < count; i++) {
        if (regs[i].index == index) {
            return &regs[i];
        }
    }
    return NULL;
}

/* The port whose registers `offset` is in, or NULL. */
static AhciPort *port_at(AhciController *ahci, uint32_t offset)
{
    uint32_t port = (offset - AHCI_PORT_BASE) / AHCI_PORT_STRIDE;

    return offset >= AHCI_PORT_BASE && port < ahci->ports ? &ahci->port[port] : NULL;
}

uint32_t ahci_regs_read(AhciController *ahci, uint32_t offset)
{
    const AhciPort *port = port_at(ahci, offset);

    if (port) {
        return port->regs[offset % AHCI_PORT_STRIDE / 4];
    }
    return offset < AHCI_PORT_BASE ? ahci->regs[offset / 4] : 0;
}

/* The new value of a register; returns the old one. */
static uint32_t reg_store(const AhciReg *reg, uint32_t *value, uint32_t written, uint32_t mask)
{
    uint32_t old = *value, rw = reg->rw & mask;

    *value = (old & ~rw) | (written & rw);
    *value &= ~(written & mask & reg->w1c);
    *value |= written & mask & reg->w1s;
    return old;
}

void ahci_regs_write(AhciController *ahci, uint32_t offset, uint32_t value, uint32_t mask)
{
    AhciPort *port = port_at(ahci, offset);
    const AhciReg *reg;
    uint32_t old;

    if (port) {
        reg = find_reg(port_regs, G_N_ELEMENTS(port_regs), offset % AHCI_PORT_STRIDE / 4);
        if (reg) {
            old = reg_store(reg, &port->regs[reg->index], value, mask);
            if (reg->port_hook) {
                reg->port_hook(port, old);
            }
        }
    } else if (offset < AHCI_PORT_BASE) {
        reg = find_reg(hba_regs, G_N_ELEMENTS(hba_regs), offset / 4);
        if (reg) {
            old = reg_store(reg, &ahci->regs[reg->index], value, mask);
            if (reg->hba_hook) {
                reg->hba_hook(ahci, old);
            }
        }
    }
}
