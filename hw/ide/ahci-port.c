/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * An AHCI port: its state machine (drawn in ahci-int.h), its link and its registers' hooks.
 */
#include "hw/ide/ahci-int.h"

#include "hw/ide/ata-regs.h"
#include "util/trace.h"

#define PX_TFD_NONE 0x7f       /* before the first D2H FIS (3.3.8) */
#define PX_SIG_NONE 0xffffffff /* 3.3.9 */

uint64_t ahci_port_address(const AhciPort *port, unsigned low_register)
{
    return (uint64_t)port->regs[low_register + 1] << 32 | port->regs[low_register];
}

void ahci_port_write_fis(AhciPort *port, unsigned offset, const void *fis, size_t len)
{
    if (port->regs[AHCI_PX_CMD] & AHCI_PX_CMD_FRE) {
        ahci_dma_write_small(port->ahci, ahci_port_address(port, AHCI_PX_FB) + offset, fis, len);
    }
}

/* PCS and PRCS only mirror PxSERR (3.3.5). */
static void port_mirror_serr(AhciPort *port)
{
    uint32_t *is = &port->regs[AHCI_PX_IS], serr = port->regs[AHCI_PX_SERR];

    *is &= ~(AHCI_PX_IS_PCS | AHCI_PX_IS_PRCS);
    *is |= serr & AHCI_SERR_EXCHANGED ? AHCI_PX_IS_PCS : 0;
    *is |= serr & AHCI_SERR_PHYRDY ? AHCI_PX_IS_PRCS : 0;
}

static void port_event(AhciPort *port, uint32_t bits, bool msi_sent)
{
    port->regs[AHCI_PX_IS] |= bits;
    port_mirror_serr(port);
    if (port->regs[AHCI_PX_IS] & port->regs[AHCI_PX_IE]) {
        ahci_irq_update(port->ahci, msi_sent ? AHCI_IRQ_SENT : AHCI_IRQ_EVENT);
    }
}

/* Commands. */

static bool port_has_commands(const AhciPort *port)
{
    for (unsigned i = 0; i < AHCI_SLOTS; i++) {
        if (port->slots[i]) {
            return true;
        }
    }
    return false;
}

static void port_update_state(AhciPort *port)
{
    if (port->state == AHCI_PORT_IDLE || port->state == AHCI_PORT_BUSY) {
        port->state = port_has_commands(port) ? AHCI_PORT_BUSY : AHCI_PORT_IDLE;
    }
}

static void port_abandon_all(AhciPort *port)
{
    port->current = NULL;
    port->restart = 0;
    for (unsigned i = 0; i < AHCI_SLOTS; i++) {
        AhciCommand *command = g_steal_pointer(&port->slots[i]);

        if (command) {
            ahci_command_abandon(command);
        }
    }
    port_update_state(port);
}

static bool port_can_issue(const AhciPort *port)
{
    return (port->state == AHCI_PORT_IDLE || port->state == AHCI_PORT_BUSY) && !port->current &&
           port->device && !port->quiet_pending && !port->ahci->reset_pending && !port->ahci->parked &&
           (port->regs[AHCI_PX_SSTS] & 0xf) == AHCI_DET_UP;
}

/* The next issued slot behind the last one (5.3.?, "pSlotLoc"), or -1. A slot whose queued command still runs
 * waits. */
static int port_pick(const AhciPort *port)
{
    for (unsigned i = 0; i < AHCI_SLOTS; i++) {
        unsigned slot = (port->next_slot + i) % AHCI_SLOTS;
        uint32_t issued = port->restart ? port->restart : port->regs[AHCI_PX_CI];

        if (issued & 1u << slot && !port->slots[slot]) {
            return (int)slot;
        }
    }
    return -1;
}

void ahci_port_run(AhciPort *port)
{
    int slot;

    port->run_again = true;
    if (port->in_run) {
        return; /* the loop further up the stack goes round again */
    }
    port->in_run = true;
    while (port->run_again) {
        port->run_again = false;
        while (port_can_issue(port) && (slot = port_pick(port)) >= 0) {
            AhciCommand *command = ahci_command_new(port, (unsigned)slot);

            if (port->restart) {
                port->restart &= ~(1u << slot);
            } else {
                port->next_slot = ((unsigned)slot + 1) % AHCI_SLOTS;
            }
            port->regs[AHCI_PX_CMD] = (port->regs[AHCI_PX_CMD] & ~AHCI_PX_CMD_CCS) | (uint32_t)slot << 8;
            port->slots[slot] = command;
            port->current = command;
            port->state = AHCI_PORT_BUSY;
            ahci_command_issue(command);
        }
    }
    port->in_run = false;
}

void ahci_port_command_accepted(AhciPort *port, AhciCommand *command)
{
    port->regs[AHCI_PX_TFD] = (uint32_t)port->device->tf.error << 8 | port->device->tf.status;
    port->regs[AHCI_PX_CI] &= ~(1u << command->slot);
    port->current = NULL;
    ahci_port_run(port);
}

/* SDB FISes carry only some of the status bits (SATA 3 10.5.7). */
static void port_take_status(AhciPort *port, const AhciCommand *command)
{
    uint32_t keep = command->ide.queued ? 0x88 : 0;

    port->regs[AHCI_PX_TFD] = (port->regs[AHCI_PX_TFD] & keep) | (command->tfd & (0xff00 | (0xff & ~keep)));
}

void ahci_port_command_landed(AhciPort *port, AhciCommand *command)
{
    uint32_t bits = command->silent ? 0 : command->is;
    bool msi_sent = command->msi_sent, failed = command->failed;

    if (command->end.fault) {
        ahci_port_fail(port, AHCI_PX_IS_HBFS);
        return;
    }
    port_take_status(port, command);
    if (!failed) {
        port->regs[command->ide.queued ? AHCI_PX_SACT : AHCI_PX_CI] &=
            ~(1u << (command->ide.queued ? command->ide.tag : command->slot));
    }
    port->slots[command->slot] = NULL;
    if (port->current == command) {
        port->current = NULL;
    }
    ahci_command_free(command);
    if (failed) {
        port_abandon_all(port);
        port->state = AHCI_PORT_ERROR;
    } else {
        port_update_state(port);
    }
    port_event(port, bits, msi_sent);
    ahci_port_run(port);
}

void ahci_port_fail(AhciPort *port, uint32_t bits)
{
    trace(ahci_port_fail, port->index, bits);
    port_abandon_all(port);
    port->state = AHCI_PORT_ERROR;
    port_event(port, bits, false);
}

bool ahci_port_control(AhciPort *port, uint8_t control)
{
    bool srst = control & ATA_CONTROL_SRST, ends = port->in_srst && !srst;

    port->in_srst = srst;
    port->device->tf.control = control;
    if (ends) {
        ide_device_reset(port->device, IDE_RESET_SOFT);
        port->regs[AHCI_PX_SIG] = taskfile_signature_word(port->device->signature);
    }
    return ends;
}

/* Link and reset. */

static void port_arm_quiet(AhciPort *port);

/* The device's first D2H FIS, as soon as the guest lets FISes in (10.1.1): no interrupt bit. */
static void port_deliver_signature(AhciPort *port)
{
    uint8_t fis[FIS_D2H_SIZE];

    if (!port->signature_due || !(port->regs[AHCI_PX_CMD] & AHCI_PX_CMD_FRE)) {
        return;
    }
    port->signature_due = false;
    port->regs[AHCI_PX_TFD] = (uint32_t)port->device->tf.error << 8 | port->device->tf.status;
    fis_encode_d2h(fis, &port->device->tf, false);
    ahci_port_write_fis(port, AHCI_RFIS_D2H, fis, sizeof fis);
    port_arm_quiet(port);
}

static void port_link_down(AhciPort *port)
{
    port->regs[AHCI_PX_SSTS] = AHCI_DET_NONE;
    port->regs[AHCI_PX_TFD] = PX_TFD_NONE;
    port->regs[AHCI_PX_SIG] = PX_SIG_NONE;
    port->signature_due = false;
    port->in_srst = false;
}

static void port_link_up(AhciPort *port)
{
    uint32_t limit = port->regs[AHCI_PX_SCTL] >> 4 & 0xf, speed = limit == 1 ? 1 : 2;

    port->link_due = false;
    if (!port->device || !(port->regs[AHCI_PX_CMD] & AHCI_PX_CMD_SUD) ||
        (port->regs[AHCI_PX_SCTL] & AHCI_SCTL_DET) != AHCI_DET_NONE) {
        return;
    }
    ide_device_reset(port->device, port->connected ? IDE_RESET_POWER_ON : IDE_RESET_HARD);
    port->connected = false;
    port->regs[AHCI_PX_SSTS] = 1u << 8 | speed << 4 | AHCI_DET_UP; /* interface active */
    port->regs[AHCI_PX_SIG] = taskfile_signature_word(port->device->signature);
    port->signature_due = true;
    port_deliver_signature(port);
    if (port->announce) {
        port->regs[AHCI_PX_SERR] |= AHCI_SERR_EXCHANGED | AHCI_SERR_PHYRDY;
        port_event(port, 0, false);
    }
}

static void port_settled(AhciPort *port)
{
    uint32_t *cmd = &port->regs[AHCI_PX_CMD];

    port->quiet_pending = false;
    if (!(*cmd & AHCI_PX_CMD_ST)) {
        *cmd &= ~(AHCI_PX_CMD_CR | AHCI_PX_CMD_CCS);
    }
    if (!(*cmd & AHCI_PX_CMD_FRE)) {
        *cmd &= ~AHCI_PX_CMD_FR;
    }
    if ((port->regs[AHCI_PX_SCTL] & AHCI_SCTL_DET) == AHCI_DET_OFF) {
        port->regs[AHCI_PX_SSTS] = AHCI_DET_OFF;
    }
    if (port->link_due) {
        port_link_up(port);
    }
    ahci_port_run(port);
}

static void port_quiet_done(PciFence *fence)
{
    port_settled(AHCI_OWNER(fence, AhciPort, quiet));
}

static void port_cancel_quiet(AhciPort *port)
{
    PciHost *host = port->ahci->pci.host;

    if (port->quiet_pending && host) {
        host->ops->fence_cancel(host, &port->quiet);
    }
    port->quiet_pending = false;
}

/* The port issues nothing until everything written so far has landed; a write that failed is then no longer
 * laid at the next command's door. */
static void port_arm_quiet(AhciPort *port)
{
    port_cancel_quiet(port);
    port->quiet = (PciFence){.done = port_quiet_done};
    port->quiet_pending = true;
    ahci_fence(port->ahci, &port->quiet);
}

/* After commands were abandoned: what the registers show of it (CR, FR, DET) changes when no write of theirs
 * can land any more. */
static void port_quiesce(AhciPort *port)
{
    PciHost *host = port->ahci->pci.host;

    if (host && !ahci_others_busy(port->ahci, port)) {
        host->ops->dma_drop(host);
    }
    port_arm_quiet(port);
}

void ahci_port_link(AhciPort *port, bool announce)
{
    port->link_due = true;
    port->announce = announce;
    if (!port->quiet_pending && !port->ahci->reset_pending) {
        port_link_up(port);
    }
}

/* What was issued to a device that has gone is not for the next one: the guest has to clear ST. */
void ahci_port_unplug(AhciPort *port)
{
    port_abandon_all(port);
    if (port->state != AHCI_PORT_STOPPED) {
        port->state = AHCI_PORT_ERROR;
    }
    port_link_down(port);
    port->link_due = false;
    port->device = NULL;
    port->regs[AHCI_PX_SERR] |= AHCI_SERR_PHYRDY;
    port_event(port, 0, false);
}

void ahci_port_drop(AhciPort *port)
{
    port->state = AHCI_PORT_STOPPED;
    port_abandon_all(port);
    port_cancel_quiet(port);
    port->link_due = false;
}

void ahci_port_reset(AhciPort *port, bool power_on)
{
    uint32_t *regs = port->regs;

    trace(ahci_port_reset, port->index);
    ahci_port_drop(port);
    for (unsigned i = power_on ? AHCI_PX_CLB : AHCI_PX_IS; i < AHCI_PX_REGS; i++) {
        regs[i] = 0;
    }
    regs[AHCI_PX_CMD] = AHCI_PX_CMD_POD | AHCI_PX_CMD_HPCP | (port->ahci->staggered ? 0 : AHCI_PX_CMD_SUD);
    port->next_slot = 0;
    port_link_down(port);
}

void ahci_port_init(AhciPort *port, AhciController *ahci, unsigned index)
{
    port->ahci = ahci;
    port->index = index;
    ahci_port_reset(port, true);
}

/* Hooks of the register table. */

static void port_stop(AhciPort *port)
{
    port->state = AHCI_PORT_STOPPED;
    port_abandon_all(port);
    port->regs[AHCI_PX_CI] = 0;
    port->regs[AHCI_PX_SACT] = 0;
    port->next_slot = 0;
}

void ahci_port_cmd_written(AhciPort *port, uint32_t old)
{
    uint32_t *cmd = &port->regs[AHCI_PX_CMD], changed = old ^ *cmd;

    if (*cmd & AHCI_PX_CMD_CLO) {
        *cmd &= ~AHCI_PX_CMD_CLO;
        if (!(*cmd & AHCI_PX_CMD_ST)) {
            port->regs[AHCI_PX_TFD] &= ~(uint32_t)(ATA_STATUS_BSY | ATA_STATUS_DRQ);
        }
    }
    if (!port->ahci->staggered) {
        *cmd |= AHCI_PX_CMD_SUD;
    } else if (changed & *cmd & AHCI_PX_CMD_SUD) {
        ahci_port_link(port, true);
    }
    if (*cmd & AHCI_PX_CMD_FRE) {
        *cmd |= AHCI_PX_CMD_FR;
        port_deliver_signature(port);
    }
    if (changed & *cmd & AHCI_PX_CMD_ST) {
        *cmd |= AHCI_PX_CMD_CR;
        port->state = AHCI_PORT_IDLE;
    }
    if (changed & old & AHCI_PX_CMD_ST) {
        port_stop(port);
    }
    if (changed & old & (AHCI_PX_CMD_ST | AHCI_PX_CMD_FRE)) {
        port_quiesce(port);
    }
    ahci_port_run(port);
}

/* DET 1 holds COMRESET, 0 lets the link train again, 4 switches the phy off (3.3.11, 10.4.2). */
void ahci_port_sctl_written(AhciPort *port, uint32_t old)
{
    uint32_t det = port->regs[AHCI_PX_SCTL] & AHCI_SCTL_DET, was = old & AHCI_SCTL_DET;

    if (det == was) {
        return;
    }
    if (det == AHCI_DET_RESET || det == AHCI_DET_OFF) {
        trace(ahci_port_comreset, port->index);
        port_abandon_all(port);
        if (port->state != AHCI_PORT_STOPPED) {
            port->state = AHCI_PORT_IDLE;
        }
        port->regs[AHCI_PX_CI] = 0;
        port->regs[AHCI_PX_SACT] = 0;
        port->link_due = false;
        port_link_down(port);
        port_quiesce(port);
    } else if (det == AHCI_DET_NONE) {
        ahci_port_link(port, true);
    }
}

void ahci_port_serr_written(AhciPort *port, uint32_t old)
{
    port_mirror_serr(port);
    ahci_irq_update(port->ahci, AHCI_IRQ_WRITTEN);
}

/* PxCI and PxSACT take bits only while ST is set (3.3.13, 3.3.14). */
void ahci_port_issue_written(AhciPort *port, uint32_t old)
{
    if (!(port->regs[AHCI_PX_CMD] & AHCI_PX_CMD_ST)) {
        port->regs[AHCI_PX_CI] = old;
        return;
    }
    ahci_port_run(port);
}

void ahci_port_sact_written(AhciPort *port, uint32_t old)
{
    if (!(port->regs[AHCI_PX_CMD] & AHCI_PX_CMD_ST)) {
        port->regs[AHCI_PX_SACT] = old;
    }
}

void ahci_port_irq_written(AhciPort *port, uint32_t old)
{
    port_mirror_serr(port);
    ahci_irq_update(port->ahci, AHCI_IRQ_WRITTEN);
}
