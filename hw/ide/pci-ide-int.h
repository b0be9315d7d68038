/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the parallel ATA files share: channel.c (command block, PIO port, device selection), bmdma.c
 * (bus-master registers, PRD tables), pci-ide.c (the function).
 *
 *   channel:       command written              complete, overflow, reset
 *      FREE -----------------------> BUSY ------------------------------> FREE
 *
 * FREE: no command; the registers are the guest's to write. BUSY: one command runs on one of the two devices;
 * writes to the command block are ignored (ATA6 6.2), except DEVICE RESET. In BUSY at most one of these waits
 * for the guest: a PIO block (`pio`) or a DMA chunk (`dma.data`).
 */
#ifndef SPINDLE_HW_IDE_PCI_IDE_INT_H
#define SPINDLE_HW_IDE_PCI_IDE_INT_H

#include "hw/ide/pci-ide.h"
#include "hw/ide/sgl.h"

#define BMDMA_REGS  8   /* bytes of registers per channel */
#define BMDMA_BLOCK 512 /* bytes of a PRD table read at a time */

typedef struct IdeChannel IdeChannel;

typedef struct Bmdma {
    /* registers */
    uint8_t command, status;
    uint32_t table;

    bool engaged;        /* started; stays until the running command ends, also if the guest clears Start */
    uint32_t next;       /* address of the next PRD to fetch… */
    uint32_t table_left; /* …and the bytes until the 64 KiB boundary */
    bool end_of_table;
    uint32_t fetching; /* bytes asked for */
    uint8_t prds[BMDMA_BLOCK];
    Sgl sgl;
    PciDmaRead read;
    bool reading;

    /* the device's chunk */
    bool pending, out;
    Buffer *data;
    size_t offset, left;
    PciFence fence; /* a chunk for the guest has landed */
    bool fencing, too_short;
} Bmdma;

struct IdeChannel {
    PciDevice *pci;
    unsigned index;
    IdeDevice *device[2];
    uint8_t select; /* device register */
    uint8_t control;
    bool intrq; /* of the selected device */
    bool line;  /* what was last told: intrq and not nIEN */
    void (*line_changed)(IdeChannel *channel);

    bool busy;
    IdeCommand command;
    const IdeChannel *other;
    PciFence settle; /* after a reset: BSY until no write of before can land any more */
    bool settling;
    bool tell_broken,
        told_broken; /* the interrupt of a DMA command that SRST broke off: when settled, done */
    Buffer *pio;     /* block at the data port */
    size_t pio_at, pio_end;
    bool pio_out;
    Bmdma dma;
};

#define IDE_OWNER(pointer, Type, member) ((Type *)(void *)((char *)(pointer)-G_STRUCT_OFFSET(Type, member)))

/* channel.c */
void channel_init(IdeChannel *channel, PciDevice *pci, unsigned index, const IdeChannel *other);
/* Command block register 0 to 7; size 1, or 2 and 4 at the data port. */
uint32_t channel_read(IdeChannel *channel, unsigned reg, unsigned size);
void channel_write(IdeChannel *channel, unsigned reg, unsigned size, uint32_t value);
uint8_t channel_read_alternate_status(const IdeChannel *channel);
void channel_write_control(IdeChannel *channel, uint8_t value);
/* Hard reset of both devices; commands are abandoned. */
void channel_reset(IdeChannel *channel);
/* Ends the running command without an interrupt, as if the device had never had it. */
void channel_abandon(IdeChannel *channel);
/* Ends it with ABRT and an interrupt: the bus failed. */
void channel_fail(IdeChannel *channel);
void channel_set_intrq(IdeChannel *channel, bool level);

/* channel-state.c; object: IdeChannel, whose devices' states are part of it. */
extern const StateOps channel_state;
bool channel_settled(const IdeChannel *channel);
void channel_go_on(IdeChannel *channel);
/* The line of `intrq`, which no edge led to. */
void channel_show_line(IdeChannel *channel);
/* `channel` has a command that the device at hand is to work on: for a loaded state. */
void channel_take_command(IdeChannel *channel, IdeDevice *device);

/* bmdma.c: offsets 0 to 7 within the channel's registers. */
uint8_t bmdma_read(const IdeChannel *channel, unsigned offset);
void bmdma_write(IdeChannel *channel, unsigned offset, unsigned size, uint32_t value);
/* A chunk of the running command; answered with ide_command_data_done(). */
void bmdma_transfer(IdeChannel *channel, Buffer *buffer, size_t offset, size_t len, bool out);
/* Room for `len` bytes that may be written to directly. */
bool bmdma_map(IdeChannel *channel, size_t len, struct iovec *iov, int *niov);
/* The running command is over. */
void bmdma_end(IdeChannel *channel);
void bmdma_reset(IdeChannel *channel);

#endif
