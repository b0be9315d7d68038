/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A PciHost for tests: guest RAM from address 0, and either everything at once (as memory-mapped DMA does) or
 * everything queued until the test lets it happen (as messages do). Writes, fences and ordered MSIs form one
 * stream, in order; reads are answered in the order the test chooses. Checks what a device may not do:
 * changing a buffer before its write has landed, DMA after fake_host_forbid_dma().
 */
#ifndef SPINDLE_TESTS_FAKE_HOST_H
#define SPINDLE_TESTS_FAKE_HOST_H

#include "hw/pci/pci-device.h"

#define FAKE_RAM_SIZE (16u * 1024 * 1024)

typedef struct FakeHost {
    PciHost host;
    PciDevice *device;
    uint8_t *ram;
    bool delayed;
    bool map_ok;      /* offers dma_map_write */
    bool ordered_msi; /* can send an MSI behind writes */
    bool forbid_dma;  /* any DMA operation is a failure */
    bool fault;
    bool intx;
    unsigned msi; /* MSIs that arrived */
    unsigned msi_ordered;
    unsigned reads, writes, small_writes, maps, fences;
    GQueue stream; /* FakeOp: writes, fences, MSIs */
    GQueue waiting_reads;
    uint64_t seq;
    unsigned intx_edges;
} FakeHost;

FakeHost *fake_host_new(PciDevice *device, bool delayed);
void fake_host_free(FakeHost *host);

/* Lets the first operation of the stream happen. False if it is empty. */
bool fake_host_step(FakeHost *host);
/* Answers a waiting read, the n-th from the oldest. False if there is none. */
bool fake_host_answer(FakeHost *host, unsigned n);
/* What is now in the stream is on the wire: dma_drop does not take it back. */
void fake_host_send(FakeHost *host);
/* Reads and stream until both are empty. */
void fake_host_drain(FakeHost *host);
bool fake_host_idle(const FakeHost *host);

uint32_t fake_read32(FakeHost *host, uint64_t addr);
void fake_write32(FakeHost *host, uint64_t addr, uint32_t value);

#endif
