/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What stands between an ATA device (packet drive, hard disk) and a controller (AHCI port, legacy channel).
 *
 * The device owns its registers (`tf`) and decides what data goes which way; the controller knows where in
 * guest memory (or at which port) it goes and how an interrupt is raised. The controller makes an IdeCommand
 * per guest command (embedded in its own object), writes the registers of `tf`, and starts it. The device
 * then drives it with the callbacks of IdeCommandOps, one data callback at a time, and ends it with exactly
 * one `complete`, unless the controller abandons it first. Any callback may run inside any call the other
 * way: whoever calls must be ready for the answer before it calls. Loop thread only.
 *
 *   controller                                   device
 *   ide_device_start(command)            ->
 *                                        <-      data_out(PACKET) / data_in / data_out / accepted
 *   ide_command_data_done(command, res)  ->
 *                                        <-      complete
 */
#ifndef SPINDLE_HW_IDE_IDE_DEVICE_H
#define SPINDLE_HW_IDE_IDE_DEVICE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "hw/ide/taskfile.h"
#include "util/buffer.h"
#include "util/state.h"

typedef struct IdeDevice IdeDevice;
typedef struct IdeCommand IdeCommand;

typedef enum {
    IDE_PHASE_PACKET, /* the command packet: host to device, always by PIO */
    IDE_PHASE_PIO,    /* one DRQ block, at most 64 KiB */
    IDE_PHASE_DMA
} IdePhase;

typedef enum {
    IDE_RESET_POWER_ON, /* just connected: only the registers, the medium side is as it was made */
    IDE_RESET_HARD,     /* COMRESET, PCI reset, RESET- */
    IDE_RESET_SOFT      /* SRST */
} IdeReset;

/* The controller's side. */
typedef struct IdeCommandOps {
    /* buffer->data[offset, offset + len) is for the host; `tf` shows the state of the phase. Answered by
     * ide_command_data_done(): 0 (all of it is placed or queued; the device may offer more), -EOVERFLOW (the
     * host's memory list ended first, the rest is dropped). The controller takes a reference if it needs the
     * buffer after the call; its content stays unchanged until the last reference goes. `buffer` NULL after
     * map_in: the data is there already. `interrupt`: a PIO block is announced by an interrupt. */
    void (*data_in)(IdeCommand *command, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                    bool interrupt);
    /* The device wants exactly `len` bytes in buffer->data[offset…]. Answered with 0 or -EOVERFLOW (the
     * host's list holds fewer; content undefined). */
    void (*data_out)(IdeCommand *command, IdePhase phase, Buffer *buffer, size_t offset, size_t len,
                     bool interrupt);
    /* Where the next `len` bytes of data_in(IDE_PHASE_DMA) may be put directly: as MmcTransport.map_in. */
    bool (*map_in)(IdeCommand *command, size_t len, struct iovec *iov, int *niov);
    /* A queued command is taken in: the registers are free for the next one. At most once, before any data.
     */
    void (*accepted)(IdeCommand *command);
    /* The end; the device's `tf` (queued: `status`, `error` of the command) tells how. The device forgets the
     * command before it calls. */
    void (*complete)(IdeCommand *command, bool interrupt);
} IdeCommandOps;

struct IdeCommand {
    const IdeCommandOps *ops;
    IdeDevice *device; /* set by ide_device_start() */
    bool queued;       /* set by the device before `accepted` */
    uint8_t tag;       /* of a queued command */
    uint8_t status, error;
    void *priv; /* the device's */
};

/* What a command of a saved device waits for. */
typedef enum {
    IDE_WAIT_NONE, /* there is no command */
    IDE_WAIT_IO,   /* the medium */
    IDE_WAIT_PIO_IN,
    IDE_WAIT_PIO_OUT,
    IDE_WAIT_DMA_IN,
    IDE_WAIT_DMA_OUT
} IdeWait;

typedef struct IdeDeviceOps {
    /* The command is in device->tf. */
    void (*start)(IdeDevice *device, IdeCommand *command);
    void (*data_done)(IdeDevice *device, IdeCommand *command, int result);
    /* No callback of this command after this; registers go to idle. Nothing waits. */
    void (*abandon)(IdeDevice *device, IdeCommand *command);
    /* After the commands were abandoned: registers take the signature. */
    void (*reset)(IdeDevice *device, IdeReset reset);
    void (*free)(IdeDevice *device);

    /* Saving and loading (util/state.h). On a parallel channel the running command is part of the state: it
     * goes on where it was. On a serial link it is not; the controller starts it anew. */
    const StateOps *state;
    /* What the command in an image waits for; *ret_len: bytes with the controller (not for IDE_WAIT_IO). */
    IdeWait (*image_wait)(const void *image, size_t *ret_len);
    /* After the image was committed: its command has this object from now on. What the device waits to be
     * given is asked for again (data_out, inside the call, without an interrupt); what it was giving the
     * controller has itself. */
    void (*adopt)(IdeDevice *device, IdeCommand *command);
    /* The medium's side of an adopted command, if it waited for that, goes on. */
    void (*go_on)(IdeDevice *device);
} IdeDeviceOps;

/* Embedded at the start of the device's own struct. */
struct IdeDevice {
    const IdeDeviceOps *ops;
    TaskfileSignature signature;
    Taskfile tf;
    bool serial_link; /* set by the controller: SATA, not parallel ATA (IDENTIFY words 76, 93, 222) */
    bool slave;       /* device 1 of a parallel channel */
};

/* The registers (all but status) are in device->tf; sets BSY and hands the command over. */
void ide_device_start(IdeDevice *device, IdeCommand *command);

/* The controller's answer to data_in and data_out. */
void ide_command_data_done(IdeCommand *command, int result);

void ide_command_abandon(IdeCommand *command);
void ide_device_reset(IdeDevice *device, IdeReset reset);

/* The device must be off its controller. NULL is allowed. */
void ide_device_free(IdeDevice *device);

/* What IDENTIFY says of a device; strings are copied by whoever takes an IdeIdentity, NULL means a default.
 */
typedef struct IdeIdentity {
    const char *serial;   /* at most 20 characters */
    const char *model;    /* 40 */
    const char *firmware; /* 8 */
    uint64_t wwn;         /* NAA name, 0: none */
} IdeIdentity;

#endif
