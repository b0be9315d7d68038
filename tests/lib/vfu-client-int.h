/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the test client: vfu-client.c (the connection) and vfu-client-guest.c (memory, DMA service,
 * interrupts).
 */
#ifndef SPINDLE_TESTS_LIB_VFU_CLIENT_INT_H
#define SPINDLE_TESTS_LIB_VFU_CLIENT_INT_H

#include "tests/lib/vfu-client.h"

typedef struct ClientRam {
    uint64_t address, size;
    int fd; /* also of memory that the server gets no descriptor of */
    uint8_t *memory;
} ClientRam;

struct VfuClient {
    int fd;
    bool closed;
    uint16_t next_id;
    GByteArray *in;
    GPtrArray *replies;  /* of GBytes, whole messages */
    GPtrArray *requests; /* the server's, not yet served */
    GArray *ram;         /* of ClientRam */
    int irq_fd[VFU_IRQS];
    GArray *dma_log; /* of VfuClientDma */
    bool hold_dma;
    uint64_t fail_at;
    unsigned shorten;
};

void client_guest_init(VfuClient *client);
void client_guest_clear(VfuClient *client);
/* Reads what has arrived; false: nothing. */
bool client_receive(VfuClient *client);
void client_serve_requests(VfuClient *client);
void client_reply(VfuClient *client, const VfuHeader *request, uint32_t error, const void *payload,
                  size_t size);

#endif
