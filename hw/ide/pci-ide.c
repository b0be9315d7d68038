/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * PIIX3 and PIIX4 IDE as a PCI function.
 */
#include "hw/ide/pci-ide-int.h"

#include "hw/ide/ata-regs.h"

#define INTEL            0x8086
#define PIIX3_IDE        0x7010
#define PIIX4_IDE        0x7111
#define CLASS_IDE        0x010180 /* bus master; both channels fixed in compatibility mode */
#define PROG_IF_NATIVE   0x0f     /* both in native mode, and switchable */
#define PCI_STATUS       6
#define BUS_MASTER_BAR   4
#define PIIX_TIMING      0x40 /* IDETIM and its like, up to 4bh: kept, without effect */
#define PIIX_TIMING_SIZE 12
#define DECODE_ENABLE    0x80 /* byte 1 and 3 of IDETIM */

#define CONTROL_OFFSET 2 /* of the alternate status in a native control block BAR */

struct PciIde {
    PciDevice pci;
    bool native;
    bool always_decoded;
    IdeChannel channel[2];
    PciIdeIrq irq;
    void *irq_opaque;
    bool intx;
};

static const uint16_t command_ports[2] = {0x1f0, 0x170};
static const uint16_t control_ports[2] = {0x3f6, 0x376};

static PciIde *ide_of(PciDevice *pci)
{
    return IDE_OWNER(pci, PciIde, pci);
}

static void update_intx(PciIde *ide)
{
    PciHost *host = ide->pci.host;
    bool level = ide->native && (ide->channel[0].line || ide->channel[1].line);

    ide->pci.config[PCI_STATUS] = (ide->pci.config[PCI_STATUS] & (uint8_t)~8) | (level ? 8 : 0);
    level = level && !pci_intx_disabled(&ide->pci);
    if (host && level != ide->intx) {
        ide->intx = level;
        host->ops->intx(host, level);
    }
}

static void line_changed(IdeChannel *channel)
{
    PciIde *ide = ide_of(channel->pci);

    if (ide->native) {
        update_intx(ide);
    } else if (ide->irq) {
        ide->irq(ide, channel->index, channel->line, ide->irq_opaque);
    }
}

/* Only the data port is wider than a byte; other registers take the bytes one after the other. */
static uint32_t command_block_read(IdeChannel *channel, unsigned reg, unsigned size)
{
    uint32_t value = 0;

    if (reg == TASKFILE_DATA) {
        return channel_read(channel, reg, size);
    }
    for (unsigned i = 0; i < size; i++) {
        value |= (reg + i < 8 ? channel_read(channel, reg + i, 1) : 0xff) << (8 * i);
    }
    return value;
}

static void command_block_write(IdeChannel *channel, unsigned reg, unsigned size, uint32_t value)
{
    if (reg == TASKFILE_DATA) {
        channel_write(channel, reg, size, value);
        return;
    }
    for (unsigned i = 0; i < size && reg + i < 8; i++, value >>= 8) {
        channel_write(channel, reg + i, 1, value & 0xff);
    }
}

static uint64_t pci_ide_bar_read(PciDevice *pci, unsigned bar, uint32_t offset, unsigned size)
{
    PciIde *ide = ide_of(pci);
    uint64_t value = 0;

    if (bar == BUS_MASTER_BAR) {
        for (unsigned i = 0; i < size && offset + i < 2 * BMDMA_REGS; i++) {
            unsigned at = offset + i;

            value |= (uint64_t)bmdma_read(&ide->channel[at / BMDMA_REGS], at % BMDMA_REGS) << (8 * i);
        }
        return value;
    }
    if (bar < 4 && bar % 2 == 0) {
        return command_block_read(&ide->channel[bar / 2], offset & 7, MIN(size, 4));
    }
    return bar < 4 && offset == CONTROL_OFFSET ? channel_read_alternate_status(&ide->channel[bar / 2]) : 0xff;
}

static void pci_ide_bar_write(PciDevice *pci, unsigned bar, uint32_t offset, unsigned size, uint64_t value)
{
    PciIde *ide = ide_of(pci);

    if (bar == BUS_MASTER_BAR && offset < 2 * BMDMA_REGS) {
        bmdma_write(&ide->channel[offset / BMDMA_REGS], offset % BMDMA_REGS, MIN(size, 4), (uint32_t)value);
    } else if (bar < 4 && bar % 2 == 0) {
        command_block_write(&ide->channel[bar / 2], offset & 7, MIN(size, 4), (uint32_t)value);
    } else if (bar < 4 && offset == CONTROL_OFFSET) {
        channel_write_control(&ide->channel[bar / 2], (uint8_t)value);
    }
}

static void pci_ide_config_written(PciDevice *pci, unsigned offset, unsigned size)
{
    update_intx(ide_of(pci));
}

static void pci_ide_reset(PciDevice *pci)
{
    PciIde *ide = ide_of(pci);

    pci_config_reset(pci);
    for (unsigned i = 0; i < 2; i++) {
        channel_reset(&ide->channel[i]);
        pci->config[PIIX_TIMING + 2 * i] = 0;
        pci->config[PIIX_TIMING + 2 * i + 1] = DECODE_ENABLE;
    }
    if (pci->host) {
        pci->host->ops->dma_drop(pci->host);
    }
    update_intx(ide);
}

/* Saving and loading. */

typedef struct PciIdeImage {
    void *config, *channels[2];
} PciIdeImage;

static void pci_ide_capture(void *object, void *image)
{
}

static void pci_ide_visit(void *object, void *data, StateIo *io)
{
    PciIde *ide = ide_of(object);
    PciIdeImage *image = data;

    state_same(io, "the native mode", ide->native);
    state_child(io, &pci_config_state, &ide->pci, &image->config);
    for (unsigned i = 0; i < 2; i++) {
        state_child(io, &channel_state, &ide->channel[i], &image->channels[i]);
    }
}

static void pci_ide_commit(void *object, void *data)
{
    PciIde *ide = ide_of(object);
    PciIdeImage *image = data;

    state_commit(&pci_config_state, &ide->pci, g_steal_pointer(&image->config));
    for (unsigned i = 0; i < 2; i++) {
        state_commit(&channel_state, &ide->channel[i], g_steal_pointer(&image->channels[i]));
    }
    update_intx(ide);
}

static void pci_ide_clear(void *data)
{
    PciIdeImage *image = data;

    state_discard(&pci_config_state, image->config);
    state_discard(&channel_state, image->channels[0]);
    state_discard(&channel_state, image->channels[1]);
}

static const StateOps pci_ide_state = {
    .name = "pci-ide",
    .version = 1,
    .size = sizeof(PciIdeImage),
    .capture = pci_ide_capture,
    .visit = pci_ide_visit,
    .commit = pci_ide_commit,
    .clear = pci_ide_clear,
};

static bool pci_ide_settled(const PciDevice *pci)
{
    const PciIde *ide = (const PciIde *)(const void *)pci;

    return channel_settled(&ide->channel[0]) && channel_settled(&ide->channel[1]);
}

/* Commands through ports are begun by a guest that runs; only those of a loaded state wait. */
static void pci_ide_park(PciDevice *pci, bool on)
{
    PciIde *ide = ide_of(pci);

    for (unsigned i = 0; !on && i < 2; i++) {
        channel_go_on(&ide->channel[i]);
    }
}

static const PciDeviceOps pci_ide_ops = {
    .bar_read = pci_ide_bar_read,
    .bar_write = pci_ide_bar_write,
    .config_written = pci_ide_config_written,
    .reset = pci_ide_reset,
    .state = &pci_ide_state,
    .settled = pci_ide_settled,
    .park = pci_ide_park,
};

static void init_config(PciIde *ide, PciIdeModel model)
{
    PciDevice *pci = &ide->pci;

    pci_config_init(pci, INTEL, model == PCI_IDE_PIIX3 ? PIIX3_IDE : PIIX4_IDE,
                    CLASS_IDE | (ide->native ? PROG_IF_NATIVE : 0), model == PCI_IDE_PIIX3 ? 0 : 1,
                    ide->native ? 1 : 0);
    if (ide->native) {
        for (unsigned i = 0; i < 2; i++) {
            pci_config_add_bar(pci, 2 * i, 8, true);
            pci_config_add_bar(pci, 2 * i + 1, 4, true);
        }
    }
    pci->config[PCI_STATUS] = 0x80; /* fast back-to-back, medium DEVSEL#: 82371SB 2.3.4 */
    pci->config[PCI_STATUS + 1] = 0x02;
    pci_config_add_bar(pci, BUS_MASTER_BAR, 2 * BMDMA_REGS, true);
    for (unsigned i = 0; i < PIIX_TIMING_SIZE; i++) {
        pci->wmask[PIIX_TIMING + i] = 0xff;
    }
}

PciIde *pci_ide_new(PciIdeModel model, bool native)
{
    PciIde *ide = g_new0(PciIde, 1);

    ide->pci.ops = &pci_ide_ops;
    ide->native = native;
    init_config(ide, model);
    for (unsigned i = 0; i < 2; i++) {
        channel_init(&ide->channel[i], &ide->pci, i, &ide->channel[1 - i]);
        ide->channel[i].line_changed = line_changed;
    }
    pci_ide_reset(&ide->pci);
    return ide;
}

void pci_ide_free(PciIde *ide)
{
    if (ide) {
        pci_ide_reset(&ide->pci);
        g_free(ide);
    }
}

PciDevice *pci_ide_pci(PciIde *ide)
{
    return &ide->pci;
}

bool pci_ide_attach(PciIde *ide, unsigned channel, unsigned unit, IdeDevice *device)
{
    if (channel > 1 || unit > 1 || ide->channel[channel].device[unit]) {
        return false;
    }
    device->serial_link = false;
    device->slave = unit == 1;
    device->tf.device = ide->channel[channel].select;
    ide->channel[channel].device[unit] = device;
    return true;
}

IdeDevice *pci_ide_detach(PciIde *ide, unsigned channel, unsigned unit)
{
    IdeDevice *device = channel < 2 && unit < 2 ? ide->channel[channel].device[unit] : NULL;

    if (device) {
        if (ide->channel[channel].busy && ide->channel[channel].command.device == device) {
            channel_abandon(&ide->channel[channel]);
        }
        ide->channel[channel].device[unit] = NULL;
    }
    return device;
}

/* The channel a compatibility port belongs to, or -1; *ret_control: it is the control block's. */
static int port_channel(const PciIde *ide, uint16_t port, bool *ret_control)
{
    if (ide->native || (!ide->always_decoded && !(ide->pci.config[4] & 1))) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (!(ide->pci.config[PIIX_TIMING + 2 * i + 1] & DECODE_ENABLE)) {
            continue;
        }
        if (port >= command_ports[i] && port < command_ports[i] + 8) {
            *ret_control = false;
            return i;
        }
        if (port == control_ports[i]) {
            *ret_control = true;
            return i;
        }
    }
    return -1;
}

bool pci_ide_owns_port(const PciIde *ide, uint16_t port)
{
    bool control;

    return port_channel(ide, port, &control) >= 0;
}

uint32_t pci_ide_port_read(PciIde *ide, uint16_t port, unsigned size)
{
    bool control;
    int i = port_channel(ide, port, &control);

    if (i < 0) {
        return 0xffffffffu >> (32 - 8 * MIN(size, 4));
    }
    return control ? channel_read_alternate_status(&ide->channel[i])
                   : command_block_read(&ide->channel[i], port & 7, MIN(size, 4));
}

void pci_ide_port_write(PciIde *ide, uint16_t port, unsigned size, uint32_t value)
{
    bool control;
    int i = port_channel(ide, port, &control);

    if (i >= 0 && control) {
        channel_write_control(&ide->channel[i], (uint8_t)value);
    } else if (i >= 0) {
        command_block_write(&ide->channel[i], port & 7, MIN(size, 4), value);
    }
}

void pci_ide_set_always_decoded(PciIde *ide, bool on)
{
    ide->always_decoded = on;
}

void pci_ide_on_irq(PciIde *ide, PciIdeIrq irq, void *opaque)
{
    ide->irq = irq;
    ide->irq_opaque = opaque;
}
