/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the machine without its memory and its PCI functions: clock, real-time clock's
 * memory, selected firmware item, PCI address register.
 */
#include "system/qtest/pc-state.h"

typedef struct PcImage {
    uint8_t cmos[CMOS_SIZE], cmos_index;
    int64_t boot_time, clock;
    uint16_t fw_item;
    uint32_t fw_offset, config_address;
} PcImage;

static void pc_capture(void *object, void *data)
{
    Pc *pc = object;
    const Board *board = pc_board(pc);
    PcImage *image = data;

    memcpy(image->cmos, board->cmos, CMOS_SIZE);
    image->cmos_index = board->cmos_index;
    image->boot_time = board->boot_time;
    image->clock = pc_clock(pc);
    image->fw_item = board->fw_item;
    image->fw_offset = board->fw_offset;
    image->config_address = pci_bus_address(pc_pci_bus(pc));
}

static void pc_visit(void *object, void *data, StateIo *io)
{
    Pc *pc = object;
    PcImage *image = data;

    state_same(io, "the machine type", pc_model(pc));
    state_same(io, "the size of its memory", pc_ram(pc)->size);
    state_bytes(io, image->cmos, CMOS_SIZE);
    STATE_NUMBER(io, image->cmos_index, 0, CMOS_SIZE - 1);
    STATE_NUMBER(io, image->boot_time, 0, INT64_MAX / 2000000000);
    STATE_NUMBER(io, image->clock, 0, INT64_MAX / 2);
    state_u16(io, &image->fw_item);
    state_u32(io, &image->fw_offset);
    state_u32(io, &image->config_address);
}

static void pc_commit(void *object, void *data)
{
    Pc *pc = object;
    Board *board = pc_board(pc);
    const PcImage *image = data;

    memcpy(board->cmos, image->cmos, CMOS_SIZE);
    board->cmos_index = image->cmos_index;
    board->boot_time = image->boot_time;
    board->fw_item = image->fw_item;
    board->fw_offset = image->fw_offset;
    pc_clock_load(pc, image->clock);
    pci_bus_set_address(pc_pci_bus(pc), image->config_address);
}

const StateOps pc_state = {
    .name = "pc",
    .version = 1,
    .size = sizeof(PcImage),
    .capture = pc_capture,
    .visit = pc_visit,
    .commit = pc_commit,
};
