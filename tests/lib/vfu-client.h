/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A vfio-user client for tests: synchronous, with guest memory of its own, a DMA service that behaves as
 * QEMU's does, and interrupts. While it waits it runs the default main context, so that the server may live
 * in the same process and thread; one in another process serves as well. A wait of 10 seconds ends the test
 * program.
 */
#ifndef SPINDLE_TESTS_LIB_VFU_CLIENT_H
#define SPINDLE_TESTS_LIB_VFU_CLIENT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "hw/remote/vfu-protocol.h"

typedef struct VfuClient VfuClient;

/* QEMU's offer, as its VERSION message holds it. */
#define VFU_CLIENT_QEMU_JSON                                                                                 \
    "{\"capabilities\": {\"migration\": {\"max_bitmap_size\": 8589934592, \"pgsize\": 4096}, "               \
    "\"max_msg_fds\": 16, \"max_data_xfer_size\": 1048576, \"pgsizes\": 4096, \"max_dma_maps\": 65535, "     \
    "\"write_multiple\": true}}"

/* Connects, no more. Fails the test if nobody listens. */
VfuClient *vfu_client_connect(const char *path);
/* Takes over a connected socket. */
VfuClient *vfu_client_new(int fd);
void vfu_client_free(VfuClient *client);

/* VERSION with QEMU's offer; must succeed. */
void vfu_client_negotiate(VfuClient *client);
/* connect and negotiate */
VfuClient *vfu_client_start(const char *path);

/* Sends bytes as they are, with descriptors; whatever the socket does not take at once is waited for. */
void vfu_client_send_raw(VfuClient *client, const void *bytes, size_t size, const int *fds, unsigned n_fds);
/* Sends a command; returns its id. */
uint16_t vfu_client_send(VfuClient *client, unsigned command, uint32_t flags, const void *payload,
                         size_t size, const int *fds, unsigned n_fds);
/* Waits for the reply to `id`. Returns its payload size, or the negative errno of an error reply, or
 * -ECONNRESET when the server has closed. At most `room` bytes of payload go to ret_payload (NULL: none). */
int vfu_client_await(VfuClient *client, uint16_t id, void *ret_payload, size_t room);
/* send and await */
int vfu_client_call(VfuClient *client, unsigned command, const void *payload, size_t size, void *ret_payload,
                    size_t room);

/* True when the server has closed the connection and all it sent has been read. Waits for that if `wait`. */
bool vfu_client_is_closed(VfuClient *client, bool wait);

/* Runs the loop and the DMA service until nothing more happens. */
void vfu_client_settle(VfuClient *client);
/* Runs them until *flag. */
void vfu_client_wait_until(VfuClient *client, const bool *flag);

/* Guest memory. */
typedef enum {
    VFU_CLIENT_RAM_SEALED,   /* memfd that cannot shrink, as QEMU's memory-backend-memfd */
    VFU_CLIENT_RAM_UNSEALED, /* memory-backend-file */
    VFU_CLIENT_RAM_NO_FD,    /* not shared: by messages only */
} VfuClientRam;
/* Makes memory and shows it to the server by DMA_MAP, which must succeed. */
void vfu_client_add_ram(VfuClient *client, uint64_t address, uint64_t size, VfuClientRam kind);
/* DMA_UNMAP, and forgets the memory; 0 or a negative errno. */
int vfu_client_remove_ram(VfuClient *client, uint64_t address);
/* Where the test finds it. */
uint8_t *vfu_client_ram(VfuClient *client, uint64_t address);
/* Cuts an unsealed file to `size` bytes. */
void vfu_client_truncate_ram(VfuClient *client, uint64_t address, uint64_t size);

/* Register access; must succeed. Sizes 1, 2, 4, 8. */
uint64_t vfu_client_read(VfuClient *client, unsigned region, uint64_t offset, unsigned size);
void vfu_client_write(VfuClient *client, unsigned region, uint64_t offset, unsigned size, uint64_t value);
/* Posted, as QEMU writes memory BARs. */
void vfu_client_post(VfuClient *client, unsigned region, uint64_t offset, unsigned size, uint64_t value);

/* SET_IRQS with an eventfd as the trigger. */
void vfu_client_enable_irq(VfuClient *client, unsigned index);
/* Takes and returns the events so far. */
uint64_t vfu_client_take_irqs(VfuClient *client, unsigned index);
/* SET_IRQS DATA_NONE with `action`, on sub-index 0. Returns 0 or a negative errno. */
int vfu_client_irq_action(VfuClient *client, unsigned index, uint32_t action);
/* The general form; fds NULL for none. */
int vfu_client_set_irqs(VfuClient *client, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
                        const void *data, size_t size, const int *fds, unsigned n_fds);

/* What the DMA service saw, oldest first. */
typedef struct VfuClientDma {
    bool write;
    bool posted; /* NO_REPLY */
    bool msi;    /* a write to the interrupt window; `data` is its value */
    uint64_t address;
    uint64_t bytes;
    uint32_t data;
} VfuClientDma;
const VfuClientDma *vfu_client_dma_log(VfuClient *client, unsigned *ret_count);
void vfu_client_clear_dma_log(VfuClient *client);
/* Leaves requests unanswered and undone until it is switched off, as QEMU does while its big lock is taken.
 */
void vfu_client_hold_dma(VfuClient *client, bool hold);
/* Answers requests that touch this address with an error; UINT64_MAX: none. */
void vfu_client_fail_dma_at(VfuClient *client, uint64_t address);
/* The next DMA_READ is answered with `bytes` bytes less. */
void vfu_client_shorten_read(VfuClient *client, unsigned bytes);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(VfuClient, vfu_client_free)

#endif
