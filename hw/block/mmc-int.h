/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the command handlers (mmc-*.c) see of the drive and of a command. Loop thread only.
 *
 * A command runs as a sequence of steps. A step looks at the command and ends in one of: data for the guest
 * (mmc_offer), a wish for data (mmc_want), waiting for I/O, or the end (mmc_good, mmc_fail). The first step
 * is the opcode table's handler, after the gates; a step may name another one to come next.
 */
#ifndef SPINDLE_HW_BLOCK_MMC_INT_H
#define SPINDLE_HW_BLOCK_MMC_INT_H

#include "block/packet.h"
#include "hw/block/disc.h"
#include "hw/block/mmc.h"
#include "hw/block/sense.h"
#include "hw/block/source.h"
#include "hw/block/tray.h"
#include "util/reply.h"

#define MMC_REPLY_ROOM 4096 /* bytes of the small reply buffers */
#define MMC_PARAM_MAX  256  /* bytes of parameter data taken from the guest */

/* What a step came to. */
typedef enum {
    MMC_STEP_DONE,  /* sense is set */
    MMC_STEP_WAIT,  /* mmc_command_continue() will be called */
    MMC_STEP_OFFER, /* data, at and len are set */
    MMC_STEP_WANT,  /* want is set */
    MMC_STEP_AGAIN, /* run the next step at once */
} MmcStep;

typedef MmcStep (*MmcHandler)(MmcCommand *command);

/* Gates of an opcode. */
typedef enum {
    MMC_PASS_ATTENTION = 1 << 0, /* executes with a unit attention pending (SPC-4 5.14, MMC-6 4.1.6.1) */
    MMC_NEED_MEDIUM = 1 << 1,    /* 02/04 or 02/3A without one (MMC-6 4.1.6.2) */
    MMC_KEEP_SENSE = 1 << 2,     /* does not clear the last command's sense (SPC-4 4.5.1) */
} MmcGate;

typedef struct MmcOp {
    const char *name; /* as in the standard */
    MmcHandler handler;
    unsigned gates; /* MmcGate */
    MmcDirection direction;
    /* Allocation length or transfer length in bytes, from the CDB; NULL: none. */
    uint64_t (*length)(const MmcDrive *drive, const uint8_t *cdb);
} MmcOp;

/* NULL for an opcode that the drive has not. */
const MmcOp *mmc_op_find(uint8_t opcode);

#define MMC_PAGE_MAX 32
#define MMC_PAGES    6

typedef struct MmcModePages {
    uint8_t current[MMC_PAGES][MMC_PAGE_MAX];
    uint32_t block_length; /* of READ(10) and READ CAPACITY: 2048, or what MODE SELECT chose */
} MmcModePages;

/* From this address on a block that the guest writes has so many bytes. */
typedef struct MmcCue {
    int32_t start; /* LBA */
    uint32_t bytes;
} MmcCue;

/* What the drive of the host was told about the blocks to be written: mmc-pass-write.c. */
#define MMC_WRITE_BLOCK_MAX 2448
typedef struct MmcWrite {
    uint16_t block; /* bytes */
    bool by_cues;
    GArray *cues; /* of MmcCue, NULL: none */
} MmcWrite;

struct MmcDrive {
    char *id, *vendor, *product, *revision, *serial;
    BlockNode *node; /* what was inserted; may be without a medium if it is removable */
    bool plain;      /* the disc is made from the node's bytes and nothing else */
    Disc *disc;      /* NULL unless a medium is in, tray open or not */
    Tray tray;
    bool no_power_on; /* see MmcDriveConfig */
    bool host_locked; /* the node's own tray was told to be */
    bool tray_apart;  /* the operator opened it, to put another medium in: the node's own stays as it is */
    MmcSense sense;   /* of the last command, for REQUEST SENSE */
    MmcModePages mode;
    Source *source;
    BufferPool *replies;
    GQueue commands; /* those started and not complete */
    MmcPassthrough passthrough;
    MmcWrite write;
    unsigned media;    /* counts the changes of the medium */
    uint32_t position; /* LBA last read or sought */
    uint32_t speed;    /* kB/s chosen, 0: the most that the medium allows */
    uint8_t power;     /* START STOP UNIT's power condition: 1 active, 2 idle, 3 standby */
    bool power_changed;
    MmcTrayMoved moved;
    void *moved_opaque;
    OnError rerror;
    MmcFailed failed;
    void *failed_opaque;
};

/* Which parts of a sector a read gives (READ CD bytes 1, 9 and 10). */
typedef struct MmcFields {
    SectorType expected;
    bool sync, header, subheader, user, edc;
    uint8_t c2;  /* C2 error flags: 0 none, 1 294 bytes, 2 with the block error byte, 296 */
    uint8_t sub; /* sub-channel selection: 0 none, 1 raw, 2 Q, 4 R-W */
} MmcFields;

typedef struct MmcRead {
    Disc *disc;     /* the one that the range was checked against; NULL: no read */
    uint64_t lba;   /* first sector of `present` */
    uint64_t left;  /* sectors to go, those of `present` included */
    uint64_t shown; /* sectors that the offered data covers */
    SourceRead *present, *next;
    Buffer *made;   /* converted sectors of `present` */
    MmcSense after; /* ends the command when the offered data is taken */
    MmcFields fields;
    uint32_t block_size;    /* bytes that each sector must give, else it is of the wrong type; 0: any */
    uint32_t skip, tail;    /* bytes not given of the first and of the last sector (block length 512) */
    bool discard;           /* read, but give nothing */
    bool audio;             /* the first sector was; the others must be of that kind (MMC-6 6.19.2.2) */
    uint64_t suspect_end;   /* a read failed before this LBA: the sector is being searched for… */
    uint64_t chunk_sectors; /* … by reads of at most so many */
    bool kept;              /* it failed and waits for mmc_drive_resume() */
} MmcRead;

/* Whether a command goes to the drive of the host. */
typedef enum {
    MMC_PASS_OWN,   /* no: it is Spindle's, or nobody's */
    MMC_PASS_DRIVE, /* yes, and what it says holds */
    MMC_PASS_FIRST, /* yes; where it refuses, Spindle answers */
    MMC_PASS_DENY,  /* nobody's */
} MmcPassHow;

typedef struct MmcPassRow MmcPassRow;
typedef struct MmcPassRequest MmcPassRequest;

/* A passed command's progress: mmc-pass.c. */
typedef struct MmcPass {
    MmcPassHow how;
    const MmcPassRow *row;      /* NULL: OWN */
    MmcPassRequest *request;    /* the part under way, or being taken by the transport */
    bool begun, waits;          /* waits: the drive has it */
    bool cut;                   /* asked for less than the guest allows */
    unsigned media;             /* drive->media at the start */
    uint32_t bytes;             /* of a command that is not split */
    uint32_t blocks, sent;      /* of one that is */
    uint32_t block_bytes, most; /* blocks in a part, at most */
    MmcSense after;             /* recovered errors are told behind the data */
} MmcPass;

struct MmcCommand {
    MmcDrive *drive;
    const MmcTransport *transport;
    void *opaque;
    uint8_t cdb[MMC_CDB_SIZE];
    const MmcOp *op;
    enum { MMC_NEW, MMC_BUSY, MMC_DATA_TAKEN, MMC_DATA_WANTED, MMC_COMPLETE } state;
    bool running;   /* inside the step loop */
    bool abandoned; /* free it when the loop ends */
    MmcHandler step;
    MmcSense sense;
    Buffer *buffer; /* offered data: NULL if it was put where map_in said */
    size_t at, len;
    Buffer *reply_buffer;
    uint8_t param[MMC_PARAM_MAX];
    size_t want, got;
    MmcPass pass;
    MmcRead read;
    GList link;
};

/* Runs steps until the command waits or ends. The command may be gone afterwards. */
void mmc_command_continue(MmcCommand *command);

static inline MmcStep mmc_good(MmcCommand *command)
{
    command->sense = SENSE_GOOD;
    return MMC_STEP_DONE;
}

static inline MmcStep mmc_fail(MmcCommand *command, MmcSense sense)
{
    command->sense = sense;
    return MMC_STEP_DONE;
}

/* A zeroed reply in the command's own buffer. `room` up to MMC_REPLY_ROOM comes from a pool. */
void mmc_reply_begin(MmcCommand *command, Reply *reply, size_t room);

/* Gives the guest min(built, allocation length) bytes, then GOOD. */
MmcStep mmc_reply_end(MmcCommand *command, const Reply *reply, uint64_t allocation);

/* Asks for `len` bytes (1 to MMC_PARAM_MAX) of parameter data; `then` runs with param and got set. Of a
 * passed command they go into its request's buffer. */
MmcStep mmc_want(MmcCommand *command, size_t len, MmcHandler then);

/* The medium or the tray changed: reads of the old disc end with what a new command would get. */
void mmc_drive_medium_changed(MmcDrive *drive);
/* Opens the tray, whatever the locks say, and tells. */
void mmc_drive_eject(MmcDrive *drive);
/* The host drive's door is locked while the guest's is. */
void mmc_drive_sync_lock(MmcDrive *drive);
void mmc_drive_tell_moved(MmcDrive *drive, bool open);

/* Profile of the medium that is in and in reach; PROFILE_NONE without one. */
uint16_t mmc_drive_profile(const MmcDrive *drive);
/* The fastest read speed of the present medium, kB/s (1000 bytes), and the one in force. */
uint32_t mmc_drive_max_speed(const MmcDrive *drive);
uint32_t mmc_drive_speed(const MmcDrive *drive);

void mmc_mode_init(MmcModePages *mode);
/* Whether MODE SELECT could have made them. */
bool mmc_mode_valid(const MmcModePages *mode);

/* Handlers, by file. */
/* mmc-inquiry.c */
MmcStep mmc_inquiry(MmcCommand *command);
MmcStep mmc_report_luns(MmcCommand *command);
/* mmc-mode.c */
MmcStep mmc_mode_sense(MmcCommand *command);
MmcStep mmc_mode_select(MmcCommand *command);
/* mmc-config.c */
MmcStep mmc_get_configuration(MmcCommand *command);
/* mmc-status.c */
MmcStep mmc_test_unit_ready(MmcCommand *command);
MmcStep mmc_request_sense(MmcCommand *command);
MmcStep mmc_get_event_status(MmcCommand *command);
MmcStep mmc_mechanism_status(MmcCommand *command);
MmcStep mmc_prevent_allow(MmcCommand *command);
MmcStep mmc_start_stop(MmcCommand *command);
/* mmc-speed.c */
MmcStep mmc_set_cd_speed(MmcCommand *command);
MmcStep mmc_set_streaming(MmcCommand *command);
MmcStep mmc_get_performance(MmcCommand *command);
MmcStep mmc_read_buffer_capacity(MmcCommand *command);
/* mmc-disc.c */
MmcStep mmc_read_toc(MmcCommand *command);
MmcStep mmc_read_disc_information(MmcCommand *command);
MmcStep mmc_read_track_information(MmcCommand *command);
MmcStep mmc_read_disc_structure(MmcCommand *command);
/* mmc-audio.c */
MmcStep mmc_read_sub_channel(MmcCommand *command);
MmcStep mmc_read_header(MmcCommand *command);
MmcStep mmc_play_audio(MmcCommand *command);
MmcStep mmc_pause_resume(MmcCommand *command);
/* mmc-read.c */
MmcStep mmc_read_capacity(MmcCommand *command);
MmcStep mmc_read_blocks(MmcCommand *command);
MmcStep mmc_read_cd(MmcCommand *command);
MmcStep mmc_read_cd_msf(MmcCommand *command);
MmcStep mmc_verify(MmcCommand *command);
MmcStep mmc_seek(MmcCommand *command);
uint64_t mmc_length_read_blocks(const MmcDrive *drive, const uint8_t *cdb);
uint64_t mmc_length_read_cd(const MmcDrive *drive, const uint8_t *cdb);
uint64_t mmc_length_read_cd_msf(const MmcDrive *drive, const uint8_t *cdb);

#endif
