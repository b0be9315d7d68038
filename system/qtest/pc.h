/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A PC without a CPU: memory, ports, PCI bus, the controllers and their drives, a clock that stands still
 * unless it is moved. Whoever drives it (the test protocol) reads and writes memory and ports. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_PC_H
#define SPINDLE_SYSTEM_QTEST_PC_H

#include "hw/ide/ahci.h"
#include "hw/ide/pci-ide.h"
#include "system/qtest/board.h"
#include "system/qtest/pci-bus.h"
#include "system/qtest/ram.h"

typedef enum { PC_NONE, PC_I440FX, PC_Q35 } PcModel;

typedef struct Pc Pc;

/* An ISA IRQ line, or an input of the I/O APIC from 16, changed. */
typedef void (*PcIrq)(unsigned line, bool level, void *opaque);

Pc *pc_new(PcModel model, uint64_t ram_size, GError **error);

/* Drives must be detached. NULL is allowed. */
void pc_free(Pc *pc);

PcModel pc_model(const Pc *pc);
PciIde *pc_ide(const Pc *pc);          /* NULL but for PC_I440FX */
AhciController *pc_ahci(const Pc *pc); /* NULL but for PC_Q35 */
Board *pc_board(Pc *pc);
PciBus *pc_pci_bus(Pc *pc);
Ram *pc_ram(Pc *pc);

void pc_on_irq(Pc *pc, PcIrq irq, void *opaque);

/* As the reset button. */
void pc_reset(Pc *pc);

/* Size 1, 2 or 4; nothing there reads as ones. */
uint32_t pc_port_read(Pc *pc, uint16_t port, unsigned size);
void pc_port_write(Pc *pc, uint16_t port, unsigned size, uint32_t value);

/* Memory and memory-mapped registers, any length; nothing there reads as zeroes and takes writes. */
void pc_memory_read(Pc *pc, uint64_t addr, void *buf, uint64_t len);
void pc_memory_write(Pc *pc, uint64_t addr, const void *buf, uint64_t len);

/* Virtual time in nanoseconds since the start. */
int64_t pc_clock(const Pc *pc);
/* For a loaded state: any time; memory of the same size and layout, taken over. */
void pc_clock_load(Pc *pc, int64_t to);
void pc_take_memory(Pc *pc, Ram *ram);
/* When the next thing happens by itself: the real-time clock's second, or a request that waits for a limit.
 */
int64_t pc_clock_next(const Pc *pc);
/* Through all that happens until then. False when `to` lies in the past. */
bool pc_clock_set(Pc *pc, int64_t to);
/* Requests that wait for a limit end without it, as when QEMU stops a machine. */
void pc_drain(Pc *pc);

#endif
