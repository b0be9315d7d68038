/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the AHCI controller. Commands are not part of the state: guest memory holds them, and
 * they change nothing before their end that they would not change again. So PxCI says what is to be issued
 * anew, and `restart` which queued commands, accepted before, are to be fetched again.
 */
#include "hw/ide/ahci-int.h"

#include <string.h>

typedef struct PortImage {
    const StateOps *ops; /* of the device */
    void *device;
    uint32_t regs[AHCI_PX_REGS];
    AhciPortState state; /* not BUSY */
    uint32_t next_slot, restart;
    bool in_srst, signature_due, connected;
} PortImage;

typedef struct AhciImage {
    void *config;
    uint32_t ghc, is, index;
    PortImage port[AHCI_PORTS_MAX];
} AhciImage;

/* The device has given something that the guest has not got, or its end. A command that is being fetched, or
 * whose medium is at work, can be had again. */
static bool command_settled(const AhciCommand *command)
{
    return command->stage != AHCI_STAGE_ENDING && !command->waiting;
}

bool ahci_settled(const AhciController *ahci)
{
    if (ahci->reset_pending) {
        return false;
    }
    for (unsigned i = 0; i < ahci->ports; i++) {
        const AhciPort *port = &ahci->port[i];

        if (port->quiet_pending) {
            return false;
        }
        for (unsigned slot = 0; slot < AHCI_SLOTS; slot++) {
            if (port->slots[slot] && !command_settled(port->slots[slot])) {
                return false;
            }
        }
    }
    return true;
}

static void capture_port(const AhciPort *port, PortImage *image)
{
    const AhciCommand *current = port->current;

    memcpy(image->regs, port->regs, sizeof image->regs);
    image->state = port->state == AHCI_PORT_BUSY ? AHCI_PORT_IDLE : port->state;
    image->restart = port->restart;
    for (unsigned slot = 0; slot < AHCI_SLOTS; slot++) {
        if (port->slots[slot] && !(port->regs[AHCI_PX_CI] & 1u << slot)) {
            image->restart |= 1u << slot;
        }
    }
    image->next_slot = current && !(image->restart & 1u << current->slot) ? current->slot : port->next_slot;
    image->in_srst = port->in_srst;
    image->signature_due = port->signature_due;
    image->connected = port->connected;
}

static void ahci_capture(void *object, void *data)
{
    const AhciController *ahci = object;
    AhciImage *image = data;

    image->ghc = ahci->regs[AHCI_GHC];
    image->is = ahci->regs[AHCI_IS];
    image->index = ahci->index;
    for (unsigned i = 0; i < ahci->ports; i++) {
        capture_port(&ahci->port[i], &image->port[i]);
    }
}

/* Bits that there are. */
static const uint32_t port_bits[AHCI_PX_REGS] = {
    [AHCI_PX_CLB] = 0xfffffc00,
    [AHCI_PX_CLBU] = ~0u,
    [AHCI_PX_FB] = 0xffffff00,
    [AHCI_PX_FBU] = ~0u,
    [AHCI_PX_IS] = 0xfdc000ff,
    [AHCI_PX_IE] = 0xfdc000ff,
    [AHCI_PX_CMD] = AHCI_PX_CMD_ST | AHCI_PX_CMD_SUD | AHCI_PX_CMD_POD | AHCI_PX_CMD_FRE | AHCI_PX_CMD_CCS |
                    AHCI_PX_CMD_FR | AHCI_PX_CMD_CR | AHCI_PX_CMD_HPCP | AHCI_PX_CMD_ATAPI | AHCI_PX_CMD_DLAE,
    [AHCI_PX_TFD] = 0xffff,
    [AHCI_PX_SIG] = ~0u,
    [AHCI_PX_SSTS] = 0xfff,
    [AHCI_PX_SCTL] = 0xfff,
    [AHCI_PX_SERR] = ~0u,
    [AHCI_PX_SACT] = ~0u,
    [AHCI_PX_CI] = ~0u,
};

static void check_port(StateIo *io, const AhciPort *port, const PortImage *image)
{
    const uint32_t *regs = image->regs;
    uint32_t det = regs[AHCI_PX_SSTS] & 0xf;
    bool started = regs[AHCI_PX_CMD] & AHCI_PX_CMD_ST;

    for (unsigned i = 0; i < AHCI_PX_REGS; i++) {
        if (regs[i] & ~port_bits[i]) {
            state_fail(io, "register 0x%02x of port %u has bits that it has not: 0x%08x", i * 4, port->index,
                       regs[i]);
        }
    }
    if (started != (image->state != AHCI_PORT_STOPPED)) {
        state_fail(io, "port %u is in state %d with ST %s", port->index, (int)image->state,
                   started ? "set" : "clear");
    } else if (!started && (regs[AHCI_PX_CI] | regs[AHCI_PX_SACT] | image->restart)) {
        state_fail(io, "port %u is stopped and has commands", port->index);
    } else if (det != AHCI_DET_NONE && det != AHCI_DET_UP && det != AHCI_DET_OFF) {
        state_fail(io, "the link of port %u is in state %u", port->index, det);
    } else if (!port->device &&
               (det == AHCI_DET_UP || image->restart || image->in_srst || image->signature_due)) {
        state_fail(io, "port %u has a link and no device", port->index);
    } else if (image->restart & regs[AHCI_PX_CI] || (image->restart && image->state != AHCI_PORT_IDLE)) {
        state_fail(io, "port %u has commands that were issued and accepted", port->index);
    }
}

static void visit_port(StateIo *io, AhciPort *port, PortImage *image)
{
    IdeDevice *device = port->device;
    g_autofree char *what = g_strdup_printf("a device on port %u", port->index);

    image->ops = device ? device->ops->state : NULL;
    state_optional(io, what, image->ops, device, &image->device);
    for (unsigned i = 0; i < AHCI_PX_REGS; i++) {
        state_u32(io, &image->regs[i]);
    }
    STATE_NUMBER(io, image->state, AHCI_PORT_STOPPED, AHCI_PORT_ERROR);
    STATE_NUMBER(io, image->next_slot, 0, AHCI_SLOTS - 1);
    state_u32(io, &image->restart);
    state_bool(io, &image->in_srst);
    state_bool(io, &image->signature_due);
    state_bool(io, &image->connected);
    if (image->state == AHCI_PORT_BUSY) {
        state_fail(io, "port %u is busy, and its commands are to be issued anew", port->index);
    }
    if (state_loading(io) && !state_failed(io)) {
        check_port(io, port, image);
    }
}

static void ahci_visit(void *object, void *data, StateIo *io)
{
    AhciController *ahci = object;
    AhciImage *image = data;

    state_same(io, "the number of ports", ahci->ports);
    state_same(io, "staggered spin-up", ahci->staggered);
    state_child(io, &pci_config_state, &ahci->pci, &image->config);
    state_u32(io, &image->ghc);
    state_u32(io, &image->is);
    state_u32(io, &image->index);
    if ((image->ghc & ~AHCI_GHC_IE) != AHCI_GHC_AE || image->is & ~ahci->regs[AHCI_PI] ||
        image->index & ~(AHCI_ABAR_SIZE - 4u)) {
        state_fail(io, "a register of the controller has bits that it has not");
    }
    for (unsigned i = 0; i < ahci->ports; i++) {
        visit_port(io, &ahci->port[i], &image->port[i]);
    }
}

static void commit_port(AhciPort *port, PortImage *image)
{
    if (port->device) {
        state_commit(image->ops, port->device, g_steal_pointer(&image->device));
    }
    memcpy(port->regs, image->regs, sizeof port->regs);
    port->state = image->state;
    port->next_slot = image->next_slot;
    port->restart = image->restart;
    port->in_srst = image->in_srst;
    port->signature_due = image->signature_due;
    port->connected = image->connected;
}

static void ahci_commit(void *object, void *data)
{
    AhciController *ahci = object;
    AhciImage *image = data;

    ahci_drop(ahci);
    state_commit(&pci_config_state, &ahci->pci, g_steal_pointer(&image->config));
    ahci->regs[AHCI_GHC] = image->ghc;
    ahci->regs[AHCI_IS] = image->is;
    ahci->index = image->index;
    for (unsigned i = 0; i < ahci->ports; i++) {
        commit_port(&ahci->port[i], &image->port[i]);
    }
    ahci_irq_update(ahci, AHCI_IRQ_SENT);
}

static void ahci_clear(void *data)
{
    AhciImage *image = data;

    state_discard(&pci_config_state, image->config);
    for (unsigned i = 0; i < AHCI_PORTS_MAX; i++) {
        if (image->port[i].device) {
            state_discard(image->port[i].ops, image->port[i].device);
        }
    }
}

const StateOps ahci_state = {
    .name = "ahci",
    .version = 1,
    .size = sizeof(AhciImage),
    .capture = ahci_capture,
    .visit = ahci_visit,
    .commit = ahci_commit,
    .clear = ahci_clear,
};
