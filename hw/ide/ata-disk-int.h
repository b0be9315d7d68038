/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the hard disk's files share: ata-disk.c (command table, registers), ata-disk-io.c (reads and writes,
 * PIO, DMA and queued), ata-disk-identify.c, ata-disk-smart.c (SMART and logs).
 *
 *   a transfer:        (write)                      data here             written
 *     IDLE --start--> TAKE -----------------------------> STORE ----------------------> TAKE, or the end
 *            '------> FETCH ------> GIVE --------------------------> FETCH, or the end
 *             (read)        read         taken by the controller
 *
 * TAKE and GIVE: the controller has the buffer. FETCH and STORE: the HardDisk has it. The command that holds
 * the registers has one transfer (`current`), each queued command one of its own (`queued`).
 */
#ifndef SPINDLE_HW_IDE_ATA_DISK_INT_H
#define SPINDLE_HW_IDE_ATA_DISK_INT_H

#include "hw/ide/ata-disk.h"
#include "hw/ide/ata-identify.h"
#include "hw/ide/ata-regs.h"

#define ATA_QUEUE_DEPTH 32
#define ATA_BLOCK_MAX   8192                 /* bytes in a DRQ block of READ/WRITE MULTIPLE */
#define ATA_CHUNK       (256 * 1024)         /* bytes a transfer moves at a time */
#define ATA_MAX_LBA28   UINT64_C(0x0fffffff) /* sectors that 28-bit commands reach */
#define ATA_MAX_LBA48   (UINT64_C(1) << 48)
#define LOG_NO_TAG      0x80
#define ATA_DSM_BLOCKS  8 /* 512-byte blocks of ranges that TRIM takes */

typedef struct AtaDisk AtaDisk;

typedef enum { ATA_XFER_IDLE, ATA_XFER_TAKE, ATA_XFER_STORE, ATA_XFER_FETCH, ATA_XFER_GIVE } AtaXferState;

typedef enum { ATA_NEXT_NONE, ATA_NEXT_CHUNK, ATA_NEXT_BLOCK, ATA_NEXT_STORE } AtaNext;

typedef struct AtaXfer {
    AtaDisk *disk;
    IdeCommand *command; /* NULL: free */
    AtaXferState state;
    AtaNext next; /* for ata_xfer_run(): answers come inside calls */
    bool running;
    bool write, dma, fua, verify, trim;
    uint32_t block;  /* bytes of a DRQ block */
    bool first;      /* no DRQ block was offered yet */
    uint64_t offset; /* bytes on the disk: of the chunk */
    uint64_t left;   /* bytes from there on */
    Buffer *buffer;  /* the chunk */
    size_t chunk;    /* its bytes… */
    size_t at, part; /* …those given or taken, and those with the controller now */
    HardDiskRequest *io;
} AtaXfer;

struct AtaDisk {
    IdeDevice ide;
    HardDisk *disk;
    char *serial, *model, *firmware;
    uint64_t wwn;
    AtaGeometry geometry;         /* as IDENTIFY says */
    uint32_t cur_heads, cur_secs; /* INITIALIZE DEVICE PARAMETERS */
    uint32_t logical, physical;   /* bytes in a sector */
    uint16_t rotation_rate;
    AtaTransferMode mode;
    uint8_t multiple; /* sectors, 0: READ/WRITE MULTIPLE abort */
    bool read_ahead, smart, smart_autosave;
    uint8_t power;
    BufferPool *pool;

    AtaXfer current;
    HardDiskRequest *io; /* of a command without a transfer: flush, trim */
    Buffer *ranges;      /* of TRIM */
    uint32_t ranges_len, ranges_at;
    AtaXfer queued[ATA_QUEUE_DEPTH];
    uint8_t log_tag; /* NCQ error log (log 10h): tag, or LOG_NO_TAG; then its registers */
    Taskfile log_tf;
    bool parked; /* `current` was loaded waiting for the disk: ata_disk_go_on() is due */
};

/* A flush or the next range of TRIM has ended: ends the command or goes on. */
void ata_disk_trim_next(AtaDisk *disk);
/* Ends the command that holds the registers. */
void ata_disk_end(AtaDisk *disk, uint8_t error, bool interrupt);
/* By one PIO block; takes the reference. The command ends with it. */
void ata_disk_reply(AtaDisk *disk, Buffer *buffer, size_t len);
void ata_disk_abort(AtaDisk *disk);
/* Sectors in the largest DRQ block of READ/WRITE MULTIPLE. */
/* Logical sectors now: the image may be resized while the guest runs, which looks again when it wants to
 * know. */
uint64_t ata_disk_sectors(const AtaDisk *disk);
uint8_t ata_disk_multiple_max(const AtaDisk *disk);

/* The count of a command that by the standard has eight bits of it, or of one that not all hosts write whole:
 * 16 bits where a FIS brings it, as on QEMU (SATA 3 10.5.5 has the others reserved, zero). Through ports its
 * previous byte may be left over from another command and does not count. */
uint32_t ata_disk_count16(const AtaDisk *disk);

/* ata-disk-io.c */
typedef struct AtaIoKind {
    bool write, dma, ext, multiple, fua, verify;
} AtaIoKind;
void ata_disk_start_io(AtaDisk *disk, const AtaIoKind *kind);
void ata_disk_start_queued(AtaDisk *disk, IdeCommand *command, bool write);
/* LBA and sectors of the command in the registers. False: outside the disk, or no such address. */
bool ata_disk_address(const AtaDisk *disk, bool ext, uint64_t *ret_lba, uint32_t *ret_count);
void ata_xfer_data_done(AtaXfer *xfer, int result);
void ata_xfer_abandon(AtaXfer *xfer);
bool ata_disk_any_queued(const AtaDisk *disk);
/* Takes the ranges of TRIM: `blocks` of 512 bytes. */
void ata_disk_start_trim(AtaDisk *disk, uint32_t blocks);

/* A loaded transfer that waits for the disk: reads or writes its chunk (again). */
void ata_xfer_go_on(AtaXfer *xfer);

/* ata-disk-state.c, ata-disk.c: functions of IdeDeviceOps. */
extern const StateOps ata_disk_state;
IdeWait ata_disk_image_wait(const void *image, size_t *ret_len);
void ata_disk_adopt(IdeDevice *device, IdeCommand *command);
void ata_disk_go_on(IdeDevice *device);

/* ata-disk-identify.c */
void ata_disk_identify(const AtaDisk *disk, uint8_t out[ATA_IDENTIFY_SIZE]);

/* ata-disk-smart.c */
void ata_disk_smart(AtaDisk *disk);
void ata_disk_read_log(AtaDisk *disk);

#endif
