/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drive as an MMC device, seen from a transport (ATAPI today): commands in, data and sense out. No ATA
 * word in here.
 *
 * One MmcCommand per guest command. The transport makes it, starts it, takes data chunk by chunk, and gets
 * `complete` exactly once unless it abandons the command first. Callbacks of MmcTransport never run inside
 * mmc_command_start(), mmc_command_resume() or mmc_command_data_out() except where the answer is at hand:
 * they MAY run inside these three; the transport must be ready before it calls. Loop thread only.
 */
#ifndef SPINDLE_HW_BLOCK_MMC_H
#define SPINDLE_HW_BLOCK_MMC_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "block/block.h"
#include "hw/block/on-error.h"
#include "util/buffer.h"
#include "util/state.h"

#define MMC_CDB_SIZE   16
#define MMC_SENSE_SIZE 18

typedef struct Disc Disc;
typedef struct MmcDrive MmcDrive;
typedef struct MmcCommand MmcCommand;

/* Sense triple; key 0 means GOOD (SPC-4 4.5). `info` is the LBA where `info_valid`. */
typedef struct MmcSense {
    uint8_t key, asc, ascq;
    bool info_valid;
    uint32_t info;
    bool raw; /* a drive of the host said it, all in `bytes`, fixed format */
    uint8_t bytes[MMC_SENSE_SIZE];
} MmcSense;

typedef struct MmcTransport {
    /* `len` (> 0) bytes for the guest in buffer->data[offset…]. The transport refs the buffer if it needs it
     * longer than the call. It answers with mmc_command_resume() when it wants more (inside this call is
     * allowed), or mmc_command_abandon(). */
    void (*data_in)(MmcCommand *command, Buffer *buffer, size_t offset, size_t len);
    /* The drive wants exactly `len` (> 0) bytes from the guest; the transport answers with
     * mmc_command_data_out(). */
    void (*data_out)(MmcCommand *command, size_t len);
    /* The end: sense->key 0 is GOOD. The command is the transport's to free with mmc_command_free(). */
    void (*complete)(MmcCommand *command, const MmcSense *sense);
    /* Where `len` bytes of the next chunk may be read to directly, or NULL to use a buffer: fills iov (room
     * for *niov entries), sets *niov. The memory is valid only inside the call that asked. May be NULL. If
     * data is put there the drive calls data_in with buffer NULL, offset 0. */
    bool (*map_in)(MmcCommand *command, size_t len, struct iovec *iov, int *niov);
} MmcTransport;

typedef enum { MMC_DATA_NONE, MMC_DATA_IN, MMC_DATA_OUT } MmcDirection;

/* Which of the guest's commands go to the drive of the host that the medium lies in (docs/drive.rst). */
typedef enum { MMC_PASSTHROUGH_OFF, MMC_PASSTHROUGH_SAFE, MMC_PASSTHROUGH_BURN } MmcPassthrough;

/* What the drive is told at creation; strings are copied. */
typedef struct MmcDriveConfig {
    const char *id;       /* device id for messages and events, may be NULL */
    const char *vendor;   /* 8 characters at most; NULL: "SPINDLE" */
    const char *product;  /* 16; NULL: "CD/DVD Drive" */
    const char *revision; /* 4; NULL: "1.0" */
    const char *serial;   /* NULL: derived from id */
    bool read_ahead;      /* keep a sequential reader's next span in memory */
    MmcPassthrough passthrough;
    OnError rerror;   /* reads of the disc that fail; ENOSPC is not for these */
    bool no_power_on; /* power-on and hard reset raise no attention (29/00): as if firmware had taken it,
                             for machines that have none */
} MmcDriveConfig;

MmcDrive *mmc_drive_new(const MmcDriveConfig *config);

/* Commands must be gone (abandoned or complete). NULL is allowed. */
void mmc_drive_free(MmcDrive *drive);

/* cdb: MMC_CDB_SIZE bytes, copied. */
MmcCommand *mmc_command_new(MmcDrive *drive, const uint8_t *cdb, const MmcTransport *transport, void *opaque);
void *mmc_command_opaque(const MmcCommand *command);

/* Which way data goes for this CDB, and how many bytes at most, known before it starts (allocation length,
 * block count). */
MmcDirection mmc_command_direction(const MmcCommand *command);
uint64_t mmc_command_length(const MmcCommand *command);

void mmc_command_start(MmcCommand *command);
void mmc_command_resume(MmcCommand *command);
void mmc_command_data_out(MmcCommand *command, const uint8_t *data, size_t len);

/* At any time: no callback will come; the command frees itself when its I/O has ended. */
void mmc_command_abandon(MmcCommand *command);

/* After `complete`. */
void mmc_command_free(MmcCommand *command);

/* Hard reset or power-on (attention 29/00), and the weaker ATAPI DEVICE RESET (no attention, MMC-6 and
 * ATA8-ACS 7.8). Tray and medium stay; the prevent lock goes. */
void mmc_drive_reset(MmcDrive *drive, bool power_on);

/* What INQUIRY says, for IDENTIFY PACKET DEVICE. */
const char *mmc_drive_serial(const MmcDrive *drive);
const char *mmc_drive_id(const MmcDrive *drive);

/* The last command's sense, encoded fixed format (SPC-4 4.5.3), as REQUEST SENSE would give it. */
void mmc_sense_encode(const MmcSense *sense, uint8_t out[MMC_SENSE_SIZE]);

/* Saving and loading (util/state.h). */

/* The drive without its commands; object: MmcDrive. What the guest saw of the medium is part of it: another
 * one here, or none, is told as a change when the state is taken. */
extern const StateOps mmc_drive_state;

/* No command of the guest is with the drive of the host: such a one cannot be done anew. */
bool mmc_drive_settled(const MmcDrive *drive);

/* A command that has started and not ended. */
typedef enum { MMC_PHASE_READING, MMC_PHASE_TAKEN, MMC_PHASE_WANTED } MmcPhase;
typedef struct MmcCommandImage {
    uint8_t cdb[MMC_CDB_SIZE];
    MmcPhase phase; /* waits for the medium; the transport has data; the transport is to give some */
    bool transfer;  /* it reads sectors */
    uint64_t lba, left, shown; /* of a transfer: first sector not done, sectors from there, those taken */
    MmcSense after;            /* ends the command when the data is taken */
    uint64_t want;
} MmcCommandImage;
void mmc_command_capture(const MmcCommand *command, MmcCommandImage *image);
void mmc_command_visit(MmcCommandImage *image, StateIo *io);
/* Makes the command anew; the drive's own state is in place. Nothing happens before mmc_command_go_on() (in
 * READING) or the transport's answer. A command that cannot be carried on with the present medium ends with
 * the sense for it then. */
MmcCommand *mmc_command_restore(MmcDrive *drive, const MmcCommandImage *image, const MmcTransport *transport,
                                void *opaque);
void mmc_command_go_on(MmcCommand *command);

/* The operator's side: the monitor, the command line. */

/* Puts a medium in: as at power-on (`announce` false; the tray is closed then), or live: a closed tray shows
 * 02/3A first, then 06/28 (see tray.h), and loses the guest's lock; an open one stays open with the disc in
 * it until it is closed. NULL node: empties the drive. Takes its own reference. A node that cannot be a disc
 * (no bytes) is refused with an error. */
bool mmc_drive_insert(MmcDrive *drive, BlockNode *node, bool announce, GError **error);

/* The same for a disc that is more than one data track (disc.h), whose nodes may be several; `node` is the
 * one to be named to users. Takes its own references. */
void mmc_drive_insert_disc(MmcDrive *drive, BlockNode *node, Disc *disc, bool announce);

/* Another node with the same bytes in place of the one that was inserted: limits were put in front of it, or
 * taken off. The guest sees nothing of it. Takes its own reference. */
void mmc_drive_replace_node(MmcDrive *drive, BlockNode *node);

BlockNode *mmc_drive_node(const MmcDrive *drive); /* NULL when empty; no reference */
bool mmc_drive_tray_open(const MmcDrive *drive);
bool mmc_drive_locked(const MmcDrive *drive); /* the guest's PREVENT is in force */

/* Opens the tray. If the guest has locked it and not `force`: an eject request is put to the guest and the
 * call is false, with QEMU's error
 * ("Device 'x' is locked and force was not specified, wait for tray to open and try again"). */
bool mmc_drive_open_tray(MmcDrive *drive, bool force, GError **error);
void mmc_drive_close_tray(MmcDrive *drive);
void mmc_drive_eject_request(MmcDrive *drive);

/* Told on every movement of the tray, by whomever (guest included): for DEVICE_TRAY_MOVED. */
typedef void (*MmcTrayMoved)(MmcDrive *drive, bool open, void *opaque);
void mmc_drive_on_tray_moved(MmcDrive *drive, MmcTrayMoved moved, void *opaque);

/* Told when a read of the disc failed (negative errno): for BLOCK_IO_ERROR. `action` is what the policy made
 * of it: REPORT (the guest gets the sense for it), IGNORE (the sector reads as zeroes) or STOP: the command
 * is kept, and whoever is told stops the machine. */
typedef void (*MmcFailed)(MmcDrive *drive, int error, OnError action, void *opaque);
void mmc_drive_on_failed(MmcDrive *drive, MmcFailed failed, void *opaque);

/* Commands that are kept. */
unsigned mmc_drive_kept(const MmcDrive *drive);
/* The machine runs again: they read anew what they could not. */
void mmc_drive_resume(MmcDrive *drive);

#endif
