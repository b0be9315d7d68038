/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The packet device as atapi.c (PACKET) and ata-table.c (the other ATA commands) see it.
 *
 *                start(PACKET)              packet here             data_in / data_out of the drive
 *      IDLE ------------------> AWAIT_PACKET ---------> EXECUTING ---------------------------> DATA_IN,
 * DATA_OUT ^                            |                   |  ^                                        | |
 * atapi_end()          |      complete     |  '------------- chunk handed over --------'
 *       '-------- STATUS <-----------'<------------------'
 *
 * IDLE: no command. AWAIT_PACKET: the host owes 12 bytes. EXECUTING: the drive works. DATA_IN/OUT: a block or
 * chunk is with the controller. STATUS: the result is in the registers; lasts only for the call of
 * `complete`. A reset or an abandoned command leads from any state to IDLE. BSY, DRQ and the interrupt reason
 * follow from the state, in atapi_enter() alone.
 */
#ifndef SPINDLE_HW_IDE_ATAPI_INT_H
#define SPINDLE_HW_IDE_ATAPI_INT_H

#include "hw/ide/ata-identify.h"
#include "hw/ide/atapi.h"

typedef enum {
    ATAPI_IDLE,
    ATAPI_AWAIT_PACKET,
    ATAPI_EXECUTING,
    ATAPI_DATA_IN,
    ATAPI_DATA_OUT,
    ATAPI_STATUS
} AtapiState;

/* What atapi_run() does next: answers come inside calls, and a guest must not choose the depth of the stack.
 */
typedef enum {
    ATAPI_NEXT_NONE,
    ATAPI_NEXT_START,
    ATAPI_NEXT_RESUME,
    ATAPI_NEXT_BLOCK,
    ATAPI_NEXT_TAKE
} AtapiNext;

typedef struct AtapiDevice {
    IdeDevice ide;
    MmcDrive *drive;
    char *serial, *model, *firmware;
    uint64_t wwn;
    AtaTransferMode mode;
    uint8_t power; /* CHECK POWER MODE's answer */

    AtapiState state;
    IdeCommand *command; /* NULL in IDLE */
    MmcCommand *mmc;     /* the drive's side of it, from EXECUTING on; NULL for ATA commands */
    bool dma;
    uint16_t limit; /* bytes in a DRQ block, even, > 0 */
    AtapiNext next;
    bool running; /* atapi_run() is on the stack */
    bool parked;  /* loaded in EXECUTING: atapi_go_on() is due */

    Buffer *packet; /* the 12 bytes */
    Buffer *data;   /* the chunk being handed over; NULL in DMA where nobody needs it longer */
    size_t offset, left;
    size_t block; /* with the controller */
    size_t total; /* of a DATA_OUT chunk */
} AtapiDevice;

extern const MmcTransport atapi_transport;

/* atapi-state.c: the functions of IdeDeviceOps. */
extern const StateOps atapi_state;
IdeWait atapi_image_wait(const void *image, size_t *ret_len);
void atapi_adopt(IdeDevice *device, IdeCommand *command);
void atapi_go_on(IdeDevice *device);

/* Runs the ATA command in the registers (not PACKET): ata-table.c. */
void ata_table_run(AtapiDevice *atapi);

void atapi_enter(AtapiDevice *atapi, AtapiState state);

/* Ends the command with the registers as they are; status DRDY, plus ERR if `error` is not 0. */
void atapi_end(AtapiDevice *atapi, uint8_t error, bool interrupt);

/* Sends one block of data by PIO and ends the command; takes the reference. */
void atapi_reply(AtapiDevice *atapi, Buffer *buffer, size_t len);

#endif
