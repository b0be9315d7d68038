/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/pc.h"
#include <string.h>
#include "block/block.h"
#include "block/throttle.h"
#include "util/bytes.h"
#include "util/error.h"

#define GIB          (UINT64_C(1) << 30)
#define IRQ_CHANNEL0 14
#define IRQ_PIRQ_A   16
#define RESET_PORT   0xcf9
#define SECOND_NS    INT64_C(1000000000)
#define DRAIN_TURNS  16
#define SETTLE_MS    100 /* for what the workers are at, before and after time moves */
#define ONES(size)   (UINT32_MAX >> (32 - 8 * (size)))

#define CLASS_HOST_BRIDGE 0x060000
#define CLASS_ISA_BRIDGE  0x060100
#define CLASS_BRIDGE      0x068000
#define CLASS_SMBUS       0x0c0500
#define HEADER_TYPE       0x0e
#define MULTIFUNCTION     0x80

struct Pc {
    PcModel model;
    Ram ram;
    Board board;
    PciBus *bus;
    PciIde *ide;
    AhciController *ahci;
    PcIrq irq;
    void *irq_opaque;
    int64_t clock;
};

static void raise_irq(Pc *pc, unsigned line, bool level)
{
    if (pc->irq) {
        pc->irq(line, level, pc->irq_opaque);
    }
}

static void on_ide_irq(PciIde *ide, unsigned channel, bool level, void *opaque)
{
    raise_irq(opaque, IRQ_CHANNEL0 + channel, level);
}

/* ICH9 and the like: INTA of a device goes to PIRQA, INTB to PIRQB… unless routed otherwise, and PIRQA to
 * input 16. */
static void on_intx(unsigned devfn, unsigned pin, bool level, void *opaque)
{
    raise_irq(opaque, IRQ_PIRQ_A + pin - 1, level);
}

/* With the subsystem ids of QEMU's machines. */
static void add_function(Pc *pc, unsigned slot, unsigned function, PciDevice *device)
{
    pci_config_set_subsystem(device, 0x1af4, 0x1100);
    pci_bus_add(pc->bus, slot, function, device);
}

static void build_i440fx(Pc *pc)
{
    PciDevice *isa;

    pci_bus_add_dummy(pc->bus, 0, 0, 0x8086, 0x1237, CLASS_HOST_BRIDGE);
    isa = pci_bus_add_dummy(pc->bus, 1, 0, 0x8086, 0x7000, CLASS_ISA_BRIDGE);
    isa->config[HEADER_TYPE] = MULTIFUNCTION;
    pc->ide = pci_ide_new(PCI_IDE_PIIX3, false);
    pci_ide_on_irq(pc->ide, on_ide_irq, pc);
    pci_ide_set_always_decoded(pc->ide, true);
    add_function(pc, 1, 1, pci_ide_pci(pc->ide));
    pci_bus_add_dummy(pc->bus, 1, 3, 0x8086, 0x7113, CLASS_BRIDGE);
}

static void build_q35(Pc *pc)
{
    PciDevice *isa;

    pci_bus_add_dummy(pc->bus, 0, 0, 0x8086, 0x29c0, CLASS_HOST_BRIDGE);
    isa = pci_bus_add_dummy(pc->bus, 31, 0, 0x8086, 0x2918, CLASS_ISA_BRIDGE);
    isa->config[HEADER_TYPE] = MULTIFUNCTION;
    pc->ahci = ahci_new(AHCI_PORTS_MAX);
    ahci_pci(pc->ahci)->config[HEADER_TYPE] = MULTIFUNCTION;
    add_function(pc, 31, 2, ahci_pci(pc->ahci));
    pci_bus_add_dummy(pc->bus, 31, 3, 0x8086, 0x2930, CLASS_SMBUS);
}

/* Where the hole for devices begins, as QEMU's machines have it: lower when there is memory for above. */
static uint64_t hole_begin(PcModel model, uint64_t size)
{
    if (model == PC_Q35) {
        return size >= 11 * (GIB / 4) ? 2 * GIB : 11 * (GIB / 4);
    }
    return size >= 14 * (GIB / 4) ? 3 * GIB : 14 * (GIB / 4);
}

Pc *pc_new(PcModel model, uint64_t ram_size, GError **error)
{
    Pc *pc = g_new0(Pc, 1);

    pc->model = model;
    if (!ram_init(&pc->ram, ram_size, hole_begin(model, ram_size), error)) {
        g_free(pc);
        return NULL;
    }
    board_init(&pc->board, ram_size, pc->ram.below);
    pc->bus = pci_bus_new(&pc->ram, on_intx, pc);
    if (model == PC_I440FX) {
        build_i440fx(pc);
    } else if (model == PC_Q35) {
        build_q35(pc);
    }
    return pc;
}

void pc_free(Pc *pc)
{
    if (pc) {
        pc->irq = NULL;
        pci_bus_free(pc->bus);
        pci_ide_free(pc->ide);
        ahci_free(pc->ahci);
        ram_clear(&pc->ram);
        g_free(pc);
    }
}

PcModel pc_model(const Pc *pc)
{
    return pc->model;
}

PciIde *pc_ide(const Pc *pc)
{
    return pc->ide;
}

AhciController *pc_ahci(const Pc *pc)
{
    return pc->ahci;
}

Board *pc_board(Pc *pc)
{
    return &pc->board;
}

PciBus *pc_pci_bus(Pc *pc)
{
    return pc->bus;
}

Ram *pc_ram(Pc *pc)
{
    return &pc->ram;
}

void pc_on_irq(Pc *pc, PcIrq irq, void *opaque)
{
    pc->irq = irq;
    pc->irq_opaque = opaque;
}

void pc_reset(Pc *pc)
{
    board_reset(&pc->board);
    pci_bus_reset(pc->bus);
}

/* A BAR's registers, byte by byte where an access goes over its end. */
static uint32_t bar_read(Pc *pc, bool io, uint64_t addr, unsigned size, uint32_t nothing)
{
    unsigned bar;
    uint32_t offset;
    PciDevice *device = pci_bus_decode(pc->bus, io, addr, &bar, &offset);

    if (!device) {
        return nothing & ONES(size);
    }
    if (size > device->bars[bar].size - offset) {
        size = 1;
    }
    return (uint32_t)device->ops->bar_read(device, bar, offset, size) & ONES(size);
}

static void bar_write(Pc *pc, bool io, uint64_t addr, unsigned size, uint32_t value)
{
    unsigned bar;
    uint32_t offset;
    PciDevice *device = pci_bus_decode(pc->bus, io, addr, &bar, &offset);

    if (device && size <= device->bars[bar].size - offset) {
        device->ops->bar_write(device, bar, offset, size, value & ONES(size));
    }
}

static bool is_config_port(const Pc *pc, uint16_t port)
{
    return pc->model != PC_NONE && port >= 0xcf8 && port < 0xd00;
}

uint32_t pc_port_read(Pc *pc, uint16_t port, unsigned size)
{
    uint32_t value;

    if (pc->ide && pci_ide_owns_port(pc->ide, port)) {
        return pci_ide_port_read(pc->ide, port, size) & ONES(size);
    }
    if (is_config_port(pc, port)) {
        return pci_bus_config_read(pc->bus, port, size) & ONES(size);
    }
    if (pc->model != PC_NONE && board_port_read(&pc->board, port, size, pc->clock, &value)) {
        return value;
    }
    return bar_read(pc, true, port, size, UINT32_MAX);
}

void pc_port_write(Pc *pc, uint16_t port, unsigned size, uint32_t value)
{
    value &= ONES(size);
    if (pc->ide && pci_ide_owns_port(pc->ide, port)) {
        pci_ide_port_write(pc->ide, port, size, value);
    } else if (pc->model != PC_NONE && port == RESET_PORT && size == 1) {
        if (value & 4) {
            pc_reset(pc);
        }
    } else if (is_config_port(pc, port)) {
        pci_bus_config_write(pc->bus, port, size, value);
    } else if (pc->model == PC_NONE || !board_port_write(&pc->board, port, size, value)) {
        bar_write(pc, true, port, size, value);
    }
}

/* How much of an access to registers goes in one: at most a dword, aligned to its size. */
static unsigned register_piece(uint64_t addr, uint64_t len)
{
    unsigned size = len >= 4 ? 4 : len >= 2 ? 2 : 1;

    while (addr & (size - 1)) {
        size /= 2;
    }
    return size;
}

void pc_memory_read(Pc *pc, uint64_t addr, void *buf, uint64_t len)
{
    uint8_t *at = buf;
    uint64_t piece;

    for (; len; at += piece, addr += piece, len -= piece) {
        const uint8_t *memory = ram_at(&pc->ram, addr, len, &piece);
        if (memory) {
            memcpy(at, memory, piece);
            continue;
        }
        uint8_t value[4];
        piece = register_piece(addr, len);
        store_le32(value, bar_read(pc, false, addr, (unsigned)piece, 0));
        memcpy(at, value, piece);
    }
}

void pc_memory_write(Pc *pc, uint64_t addr, const void *buf, uint64_t len)
{
    const uint8_t *at = buf;
    uint64_t piece;

    for (; len; at += piece, addr += piece, len -= piece) {
        uint8_t *memory = ram_at(&pc->ram, addr, len, &piece);
        if (memory) {
            memcpy(memory, at, piece);
            continue;
        }
        uint8_t value[4] = {0};
        piece = register_piece(addr, len);
        memcpy(value, at, piece);
        bar_write(pc, false, addr, (unsigned)piece, load_le32(value));
    }
}

int64_t pc_clock(const Pc *pc)
{
    return pc->clock;
}

int64_t pc_clock_next(const Pc *pc)
{
    int64_t tick = pc->clock - pc->clock % SECOND_NS + SECOND_NS;

    block_settle(SETTLE_MS);
    return MIN(tick, throttle_clock_next());
}

/* Requests whose turn has come go to their end, which takes none of this time. */
static void clock_put(Pc *pc, int64_t to)
{
    pc->clock = to;
    throttle_clock_set(to);
    throttle_clock_next();
    block_settle(SETTLE_MS);
}

bool pc_clock_set(Pc *pc, int64_t to)
{
    if (to < pc->clock) {
        return false;
    }
    block_settle(SETTLE_MS);
    for (int64_t next; (next = throttle_clock_next()) < to;) {
        clock_put(pc, MAX(next, pc->clock));
    }
    clock_put(pc, to);
    return true;
}

/* Each turn lets go of who waits; more may come behind them. */
void pc_drain(Pc *pc)
{
    g_autoptr(GList) nodes = block_list();

    for (int turn = 0; turn < DRAIN_TURNS; turn++) {
        block_settle(SETTLE_MS);
        if (throttle_clock_next() == INT64_MAX) {
            break;
        }
        for (GList *l = nodes; l; l = l->next) {
            block_unlimit(l->data, false);
        }
        throttle_clock_next();
    }
}

void pc_clock_load(Pc *pc, int64_t to)
{
    pc->clock = to;
    throttle_clock_set(to);
}

void pc_take_memory(Pc *pc, Ram *ram)
{
    ram_clear(&pc->ram);
    pc->ram = *ram;
    *ram = (Ram){0};
}
