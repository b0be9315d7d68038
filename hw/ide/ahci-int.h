/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the AHCI files share. ahci-regs.c decodes register accesses by table and calls the hooks of ahci.c
 * (HBA) and ahci-port.c (port); ahci-command.c carries out one command slot. Register names and clauses are
 * those of AHCI 1.3.1.
 *
 *   port:        ST=1               slot issued                   error (TFES, HBFS, IFS)
 *     STOPPED ---------> IDLE <-------------------> BUSY ------------------------------> ERROR
 *        ^                 |       slot ended         |                                    |
 *        '-----------------'<-------------------------'<-----------------------------------'
 *                    ST=0, COMRESET, HBA reset: every command is abandoned
 *
 * STOPPED: no command; PxCI and PxSACT are 0; PxCMD.CR falls once earlier DMA writes have landed. IDLE: ST=1
 * and no command object. BUSY: `current` is the one that holds the task file, queued ones are only in
 * `slots`. ERROR: no command object; PxCI still shows the failed slot; nothing is issued until ST=0.
 */
#ifndef SPINDLE_HW_IDE_AHCI_INT_H
#define SPINDLE_HW_IDE_AHCI_INT_H

#include "hw/ide/ahci.h"
#include "hw/ide/fis.h"
#include "hw/ide/sgl.h"

#define AHCI_SLOTS       32
#define AHCI_ABAR_SIZE   0x1000
#define AHCI_PORT_BASE   0x100
#define AHCI_PORT_STRIDE 0x80

/* Indices (offset / 4) into the register arrays. */
enum {
    AHCI_CAP = 0x00 / 4,
    AHCI_GHC = 0x04 / 4,
    AHCI_IS = 0x08 / 4,
    AHCI_PI = 0x0c / 4,
    AHCI_VS = 0x10 / 4,
    AHCI_HBA_REGS = AHCI_PORT_BASE / 4
};
enum {
    AHCI_PX_CLB = 0x00 / 4,
    AHCI_PX_CLBU = 0x04 / 4,
    AHCI_PX_FB = 0x08 / 4,
    AHCI_PX_FBU = 0x0c / 4,
    AHCI_PX_IS = 0x10 / 4,
    AHCI_PX_IE = 0x14 / 4,
    AHCI_PX_CMD = 0x18 / 4,
    AHCI_PX_TFD = 0x20 / 4,
    AHCI_PX_SIG = 0x24 / 4,
    AHCI_PX_SSTS = 0x28 / 4,
    AHCI_PX_SCTL = 0x2c / 4,
    AHCI_PX_SERR = 0x30 / 4,
    AHCI_PX_SACT = 0x34 / 4,
    AHCI_PX_CI = 0x38 / 4,
    AHCI_PX_REGS = AHCI_PORT_STRIDE / 4
};

#define AHCI_CAP_SSS (1u << 27)
#define AHCI_GHC_HR  (1u << 0)
#define AHCI_GHC_IE  (1u << 1)
#define AHCI_GHC_AE  (1u << 31)

#define AHCI_PX_IS_DHRS (1u << 0)
#define AHCI_PX_IS_PSS  (1u << 1)
#define AHCI_PX_IS_SDBS (1u << 3)
#define AHCI_PX_IS_PCS  (1u << 6)
#define AHCI_PX_IS_PRCS (1u << 22)
#define AHCI_PX_IS_OFS  (1u << 24)
#define AHCI_PX_IS_IFS  (1u << 27)
#define AHCI_PX_IS_HBFS (1u << 29)
#define AHCI_PX_IS_TFES (1u << 30)

#define AHCI_PX_CMD_ST    (1u << 0)
#define AHCI_PX_CMD_SUD   (1u << 1)
#define AHCI_PX_CMD_POD   (1u << 2)
#define AHCI_PX_CMD_CLO   (1u << 3)
#define AHCI_PX_CMD_FRE   (1u << 4)
#define AHCI_PX_CMD_CCS   (31u << 8)
#define AHCI_PX_CMD_FR    (1u << 14)
#define AHCI_PX_CMD_CR    (1u << 15)
#define AHCI_PX_CMD_HPCP  (1u << 18)
#define AHCI_PX_CMD_ATAPI (1u << 24)
#define AHCI_PX_CMD_DLAE  (1u << 25)

#define AHCI_SCTL_DET  0xfu
#define AHCI_DET_NONE  0
#define AHCI_DET_RESET 1 /* PxSCTL: COMRESET is being sent */
#define AHCI_DET_UP    3 /* PxSSTS: device present, communication established */
#define AHCI_DET_OFF   4

#define AHCI_SERR_HANDSHAKE (1u << 22)
#define AHCI_SERR_PHYRDY    (1u << 16) /* DIAG.N */
#define AHCI_SERR_EXCHANGED (1u << 26) /* DIAG.X */

/* Received FIS area (4.2.1). */
#define AHCI_RFIS_PIO_SETUP 0x20
#define AHCI_RFIS_D2H       0x40
#define AHCI_RFIS_SDB       0x58

/* Command header and table (4.2.2, 4.2.3). */
#define AHCI_HEADER_SIZE  32
#define AHCI_HEADER_ATAPI (1u << 5)
#define AHCI_TABLE_ACMD   0x40
#define AHCI_TABLE_PRDT   0x80
#define AHCI_PRD_SIZE     16

/* Bytes of one command that may be on their way to guest memory before its device waits. */
#define AHCI_QUEUE_MAX  (2u * 1024 * 1024)
#define AHCI_QUEUE_COST 512 /* what the shortest write counts for */

typedef struct AhciPort AhciPort;
typedef struct AhciCommand AhciCommand;

typedef enum { AHCI_PORT_STOPPED, AHCI_PORT_IDLE, AHCI_PORT_BUSY, AHCI_PORT_ERROR } AhciPortState;

typedef enum {
    AHCI_STAGE_HEADER, /* reading the command header */
    AHCI_STAGE_TABLE,  /* reading the command table */
    AHCI_STAGE_ACTIVE, /* the device has the command */
    AHCI_STAGE_ENDING  /* waiting for the last writes to land */
} AhciStage;

/* One command slot at work: made when it is issued, gone when PxCI or PxSACT shows its end. */
struct AhciCommand {
    IdeCommand ide;
    AhciPort *port;
    unsigned slot;
    AhciStage stage;
    uint64_t header_addr;
    uint32_t header; /* dword 0 */
    uint8_t header_bytes[AHCI_HEADER_SIZE];
    uint64_t table_addr;
    uint8_t *table; /* this and the runs of `sgl` are kept for the next command */
    uint32_t table_room, table_size, table_have;
    PciDmaRead read;
    bool reading;

    Sgl sgl;
    uint32_t transferred; /* PRD byte count */
    uint32_t written_prdbc;
    uint32_t is; /* PxIS bits that the end will show */
    uint8_t pio_setup[FIS_PIO_SETUP_SIZE];
    bool pio_setup_held; /* goes out with the D2H FIS, in one write */

    /* Data from the guest. */
    Buffer *out;
    size_t out_offset, out_left;

    /* Bytes on their way: up to the fence that is pending, and behind it. */
    PciFence flow;
    size_t fenced, unfenced;
    bool flow_pending, in_flow, waiting;

    PciFence end;
    bool end_pending, in_end, landed;
    bool msi_sent;
    bool failed;  /* ends with ERR: PxCI (queued: PxSACT) keeps the bit */
    bool silent;  /* ends without a FIS (software reset's first half) */
    uint32_t tfd; /* PxTFD at the end */
};

struct AhciPort {
    AhciController *ahci;
    unsigned index;
    uint32_t regs[AHCI_PX_REGS];
    IdeDevice *device;
    AhciPortState state;
    AhciCommand *current;
    AhciCommand *slots[AHCI_SLOTS];
    AhciCommand *spare[AHCI_SLOTS]; /* for reuse */
    unsigned spares;
    unsigned next_slot;
    uint32_t restart; /* queued commands that were accepted before a loaded state: to be fetched again */
    bool in_run, run_again;
    bool in_srst;       /* between the two FISes of a software reset */
    bool signature_due; /* the first D2H FIS waits for PxCMD.FRE */
    bool link_due;      /* the link comes up when the writes of before have landed */
    bool announce;      /* …and PxSERR tells of it */
    bool connected;     /* …for the first time for this device */
    PciFence quiet;
    bool quiet_pending;
};

struct AhciController {
    PciDevice pci;
    unsigned ports;
    uint32_t regs[AHCI_HBA_REGS];
    AhciPort port[AHCI_PORTS_MAX];
    uint32_t index; /* index/data pair in BAR 4 */
    bool staggered;
    bool parked; /* nothing is issued */
    bool irq;    /* GHC.IE and a bit in IS */
    PciFence reset_fence;
    bool reset_pending;
};

#define AHCI_OWNER(pointer, Type, member) ((Type *)(void *)((char *)(pointer)-G_STRUCT_OFFSET(Type, member)))

/* Why the interrupt is looked at again. */
typedef enum {
    AHCI_IRQ_EVENT,  /* an enabled bit of PxIS was set */
    AHCI_IRQ_SENT,   /* the same, and its MSI is already on the way */
    AHCI_IRQ_WRITTEN /* a guest's write: to IS, PxIS, PxIE, GHC, MSI control */
} AhciIrqCause;

/* ahci.c */
void ahci_irq_update(AhciController *ahci, AhciIrqCause cause);
/* True if setting `bits` in PxIS will send an MSI. */
bool ahci_irq_msi_expected(const AhciPort *port, uint32_t bits);
/* Everything under way is abandoned and its unsent writes are dropped; registers stay. */
void ahci_drop(AhciController *ahci);
void ahci_hba_ghc_written(AhciController *ahci, uint32_t old);
void ahci_hba_is_written(AhciController *ahci, uint32_t old);
/* DMA services, also where no host is attached (then nothing is memory). */
int ahci_dma_read(AhciController *ahci, PciDmaRead *read);
void ahci_dma_write_small(AhciController *ahci, uint64_t addr, const void *data, size_t len);
void ahci_fence(AhciController *ahci, PciFence *fence);
bool ahci_others_busy(const AhciController *ahci, const AhciPort *except);

/* ahci-state.c */
extern const StateOps ahci_state;
bool ahci_settled(const AhciController *ahci);

/* ahci-regs.c: dword at a time; bits outside `mask` are not written. */
uint32_t ahci_regs_read(AhciController *ahci, uint32_t offset);
void ahci_regs_write(AhciController *ahci, uint32_t offset, uint32_t value, uint32_t mask);

/* ahci-port.c */
void ahci_port_init(AhciPort *port, AhciController *ahci, unsigned index);
/* Registers as after an HBA reset; `power_on`: also CLB and FB. Commands are abandoned, the link is down. */
void ahci_port_reset(AhciPort *port, bool power_on);
/* The link comes up, if there is a device and it may. `announce`: with PxSERR.DIAG.X and N. */
void ahci_port_link(AhciPort *port, bool announce);
void ahci_port_unplug(AhciPort *port);
/* Abandons the port's commands, and what it waits for, as before a state is loaded over it. */
void ahci_port_drop(AhciPort *port);
void ahci_port_run(AhciPort *port);
/* The command's last writes have landed (or not: fault). Frees it. */
void ahci_port_command_landed(AhciPort *port, AhciCommand *command);
/* A fatal error: PxIS gets `bits`, commands are abandoned, the port waits for ST=0. */
void ahci_port_fail(AhciPort *port, uint32_t bits);
/* Queued command accepted: the task file is free. */
void ahci_port_command_accepted(AhciPort *port, AhciCommand *command);
void ahci_port_write_fis(AhciPort *port, unsigned offset, const void *fis, size_t len);
/* A FIS that writes the control register. True: it ends with a D2H FIS. */
bool ahci_port_control(AhciPort *port, uint8_t control);
uint64_t ahci_port_address(const AhciPort *port, unsigned low_register);
void ahci_port_cmd_written(AhciPort *port, uint32_t old);
void ahci_port_sctl_written(AhciPort *port, uint32_t old);
void ahci_port_serr_written(AhciPort *port, uint32_t old);
void ahci_port_issue_written(AhciPort *port, uint32_t old);
void ahci_port_sact_written(AhciPort *port, uint32_t old);
void ahci_port_irq_written(AhciPort *port, uint32_t old);

/* ahci-command.c */
AhciCommand *ahci_command_new(AhciPort *port, unsigned slot);
/* Starts to fetch it; it may have ended and be gone when this returns. */
void ahci_command_issue(AhciCommand *command);
/* Cancels what it waits for, abandons it at the device, frees it. */
void ahci_command_abandon(AhciCommand *command);
void ahci_command_free(AhciCommand *command);
/* Frees what is kept for reuse. */
void ahci_command_free_spares(AhciPort *port);

#endif
