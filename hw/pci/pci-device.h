/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A PCI function and the services it gets. The function (hw/ide) knows nothing of the transport (hw/remote,
 * the qtest machine); the transport knows nothing of the function but this table. Loop thread only. No
 * callback blocks; a register access is answered before it returns.
 */
#ifndef SPINDLE_HW_PCI_PCI_DEVICE_H
#define SPINDLE_HW_PCI_PCI_DEVICE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "util/buffer.h"
#include "util/state.h"

#define PCI_CONFIG_SIZE 256
#define PCI_BARS        6

typedef struct PciDevice PciDevice;
typedef struct PciHost PciHost;

/* One BAR: size in bytes (a power of two, at least 16 for memory and 4 for I/O; 0: absent). */
typedef struct PciBar {
    uint32_t size;
    bool io;
} PciBar;

typedef struct PciDeviceOps {
    /* Register access inside BAR `bar`: size is 1, 2, 4 or 8 bytes, offset + size within the BAR, any
     * alignment (the device decides). Memory bars over vfio-user may come in any size. */
    uint64_t (*bar_read)(PciDevice *device, unsigned bar, uint32_t offset, unsigned size);
    void (*bar_write)(PciDevice *device, unsigned bar, uint32_t offset, unsigned size, uint64_t value);
    /* After the config space changed in [offset, offset + size): command register, MSI, BARs, or the device's
     * own registers. May be NULL. */
    void (*config_written)(PciDevice *device, unsigned offset, unsigned size);
    /* Power-on state; whatever is in flight is abandoned (no later DMA). */
    void (*reset)(PciDevice *device);
    /* Saving and loading (util/state.h), of the function with its configuration space. NULL: pci_config_state
     * is all there is. */
    const StateOps *state;
    /* True when nothing is on its way that a saved state would lack: data or the end of a command that has
     * not landed. May be NULL: always. */
    bool (*settled)(const PciDevice *device);
    /* While parked, registers answer but no command starts or goes on that waits for its medium. A loaded
     * state's commands start or go on when it ends. May be NULL. */
    void (*park)(PciDevice *device, bool on);
} PciDeviceOps;

/* Embedded at the start of the function's own struct. */
struct PciDevice {
    const PciDeviceOps *ops;
    PciHost *host;                    /* set by the transport when attached; NULL while nobody is */
    uint8_t config[PCI_CONFIG_SIZE];  /* current values */
    uint8_t wmask[PCI_CONFIG_SIZE];   /* bits the guest may write */
    uint8_t w1cmask[PCI_CONFIG_SIZE]; /* bits cleared by writing 1 */
    PciBar bars[PCI_BARS];
    uint8_t msi_cap; /* offset of the MSI capability, 0: none */
    uint8_t int_pin; /* 1 = INTA, 0: none */
};

/* Called once when all earlier DMA writes of this device have landed in guest memory. Embedded in the
 * caller's object; cancelled by pci_fence_cancel(). */
typedef struct PciFence PciFence;
struct PciFence {
    void (*done)(PciFence *fence);
    bool fault; /* set by the host before `done`: a write since the previous finished fence did not land */
    /* private to the host */
    GList link;
    uint64_t seq;
    bool pending;
};

/* A read of guest memory that may take a message round trip. */
typedef struct PciDmaRead PciDmaRead;
struct PciDmaRead {
    uint64_t addr; /* guest-physical */
    void *buf;     /* the caller's, `len` bytes, alive until done or cancelled */
    uint32_t len;  /* at most 1 MiB */
    void (*done)(
        PciDmaRead *read,
        int result); /* 0 or -EFAULT (not RAM, bus mastering off, our own BAR); never inside pci_dma_read() */
    /* private to the host */
    GList link;
    uint64_t seq;
    bool pending;
};

typedef struct PciHostOps {
    /* Returns 0: buf is filled now and `done` will not run. -EFAULT: not memory (nothing will run).
     * -EINPROGRESS: `done` will run. */
    int (*dma_read)(PciHost *host, PciDmaRead *read);
    void (*dma_read_cancel)(PciHost *host, PciDmaRead *read);
    /* Writes buffer->data[offset, offset + len) to guest memory at addr, in order with the other writes. The
     * host takes a reference for as long as it needs one; the content must not change before a later fence is
     * done. A failing address sets the host's fault flag for the next fence. */
    void (*dma_write)(PciHost *host, uint64_t addr, Buffer *buffer, size_t offset, size_t len);
    /* The same for at most 256 bytes, copied inside the call (FIS, byte counts). */
    void (*dma_write_small)(PciHost *host, uint64_t addr, const void *data, size_t len);
    /* Directly usable memory for [addr, addr + len) when the transport is right to write there by itself,
     * else NULL; valid until the caller returns to the loop. For read_now straight into guest memory. */
    void *(*dma_map_write)(PciHost *host, uint64_t addr, size_t len);
    /* `done` runs when every earlier write has landed; inside the call when there is nothing to wait for
     * (mmap DMA). */
    void (*fence)(PciHost *host, PciFence *fence);
    void (*fence_cancel)(PciHost *host, PciFence *fence);
    /* Drops writes that are queued but not yet sent; those on the wire are waited for by a fence. For resets.
     */
    void (*dma_drop)(PciHost *host);
    /* Sends the MSI message (the function has checked that MSI is enabled). `ordered`: it must not overtake
     * earlier DMA writes; the host then sends it behind them on the same stream and returns true, or returns
     * false when it cannot (the caller then waits for a fence and calls again with ordered=false). With
     * ordered=false it goes at once and returns true. */
    bool (*msi)(PciHost *host, unsigned vector, bool ordered);
    /* The level of INTx. */
    void (*intx)(PciHost *host, bool level);
} PciHostOps;

struct PciHost {
    const PciHostOps *ops;
};

/* Config space helpers (pci-config.c). */

/* Zeroes the struct's config and sets ids, class (24 bits: base, sub, prog-if), revision, header type 0,
 * write masks of command, BARs and interrupt line. */
void pci_config_init(PciDevice *device, uint16_t vendor, uint16_t device_id, uint32_t class_code,
                     uint8_t revision, uint8_t int_pin);
void pci_config_set_subsystem(PciDevice *device, uint16_t vendor, uint16_t id);
/* Adds a BAR: its register and write mask. */
void pci_config_add_bar(PciDevice *device, unsigned bar, uint32_t size, bool io);
/* Adds a capability of `size` bytes at `offset` (inside the 192 free bytes) behind those already there. */
void pci_config_add_capability(PciDevice *device, uint8_t id, uint8_t offset, uint8_t size);
/* One-vector MSI, 64-bit address, no masking, at `offset`. */
void pci_config_add_msi(PciDevice *device, uint8_t offset);

/* Guest access: any size 1..4, bounds checked (outside reads as ones, writes are ignored); calls
 * ops->config_written. */
uint32_t pci_config_read(PciDevice *device, unsigned offset, unsigned size);
void pci_config_write(PciDevice *device, unsigned offset, unsigned size, uint32_t value);

/* State of the configuration space; object: PciDevice. Bits that the guest cannot write must be as here. */
extern const StateOps pci_config_state;

/* Config state after reset: command 0, BARs 0, MSI off; ids and capabilities stay. */
void pci_config_reset(PciDevice *device);

bool pci_msi_enabled(const PciDevice *device);
uint64_t pci_msi_address(const PciDevice *device);
uint32_t pci_msi_data(const PciDevice *device);
bool pci_bus_master(const PciDevice *device);    /* command bit 2 */
bool pci_intx_disabled(const PciDevice *device); /* command bit 10 */
/* Base address as the guest programmed it, or UINT64_MAX while that kind of decoding is off. */
uint64_t pci_bar_address(const PciDevice *device, unsigned bar);

#endif
