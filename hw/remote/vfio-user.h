/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A vfio-user server: one PCI function behind one UNIX socket, for a client such as QEMU's vfio-user-pci. It
 * runs on the thread-default GMainContext of whoever creates it and belongs to that thread; several servers
 * live in one process. It serves one client at a time. When the client goes away, the function is reset and
 * the next client can connect.
 *
 * The server is the function's PciHost from creation to destruction. The PciDevice stays the caller's and
 * outlives the server. A server must not be freed from inside one of its own callbacks.
 */
#ifndef SPINDLE_HW_REMOTE_VFIO_USER_H
#define SPINDLE_HW_REMOTE_VFIO_USER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include "hw/pci/pci-device.h"

typedef struct VfuServer VfuServer;

/* How guest memory is written. It is read through the client's file descriptors, where there are any, in
 * each. */
typedef enum {
    VFU_DMA_MODE_AUTO,    /* MMAP if the client process has a KVM virtual machine open, else MESSAGE */
    VFU_DMA_MODE_MMAP,    /* straight into the mapped memory: right under KVM */
    VFU_DMA_MODE_MESSAGE, /* by DMA_WRITE messages: right under TCG too, which must see the write */
} VfuDmaMode;

/* Listens on `path`. A socket file that nobody listens on any more is replaced; a live one, or a file that is
 * no socket, is an error. NULL and *error on failure. The socket file is removed by vfu_server_free(). */
VfuServer *vfu_server_new(PciDevice *device, const char *path, VfuDmaMode mode, GError **error);

/* Takes over a UNIX stream socket that listens already (socket activation). The descriptor is the server's
 * also on failure. */
VfuServer *vfu_server_new_listening(PciDevice *device, int fd, VfuDmaMode mode, GError **error);

/* Takes over a connected UNIX stream socket; there will be no other client after this one. The descriptor is
 * the server's also on failure. */
VfuServer *vfu_server_new_connected(PciDevice *device, int fd, VfuDmaMode mode, GError **error);

/* Closes everything and resets the function if a client was there. NULL is allowed. */
void vfu_server_free(VfuServer *server);

/* Runs after a client has connected (true) or has gone and the function is reset (false), on the loop. The
 * callback may not free the server. */
typedef void (*VfuNotify)(VfuServer *server, bool connected, void *opaque);
void vfu_server_set_notify(VfuServer *server, VfuNotify notify, void *opaque);

/* Runs on the loop when a batch of messages has been handled and before its answers leave. What can be
 * completed by then (a read from the page cache) saves the guest a turn of the loop. NULL: nothing. */
void vfu_server_set_deliver(VfuServer *server, void (*deliver)(void));

bool vfu_server_is_connected(const VfuServer *server);

/* The client's process, as it was when it connected; 0: no client, or the kernel does not tell. */
pid_t vfu_server_client_pid(const VfuServer *server);

/* The way of writing guest memory in use with the present client: MMAP or MESSAGE (as asked for, or AUTO,
 * while there is none). */
VfuDmaMode vfu_server_dma_mode(const VfuServer *server);

/* "auto", "mmap", "message" to the mode; false: none of them. */
bool vfu_dma_mode_parse(const char *text, VfuDmaMode *ret_mode);

typedef struct VfuTuning {
    /* After traffic, look at the socket for this long before sleeping; 0, the default: never. It takes the
     * CPU that QEMU's threads want, so it is for hosts with CPUs to spare. */
    unsigned poll_us;
    size_t dma_chunk;     /* most payload bytes of one DMA_WRITE message; 4 KiB to 1 MiB */
    unsigned send_buffer; /* SO_SNDBUF in bytes, 0: the system's */
} VfuTuning;

void vfu_server_get_tuning(const VfuServer *server, VfuTuning *ret_tuning);
/* Values outside their range are brought into it. Takes effect with the next client for send_buffer, else at
 * once. */
void vfu_server_set_tuning(VfuServer *server, const VfuTuning *tuning);

/* Counts since the server was made, for measurements and tests. */
typedef struct VfuStats {
    guint64 commands;   /* messages from the client */
    guint64 receives;   /* recvmsg calls that returned data */
    guint64 sends;      /* sendmsg calls that took data */
    guint64 dma_writes; /* DMA_WRITE messages */
    guint64 dma_bytes;  /* bytes written to guest memory, either way */
    guint64 wakeups;    /* turns of the loop in which the socket was ready */
    guint64 polled;     /* of these, found by looking at the socket before sleeping */
} VfuStats;

void vfu_server_get_stats(const VfuServer *server, VfuStats *ret_stats);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(VfuServer, vfu_server_free)

#endif
