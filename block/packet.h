/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands for the drive of the host behind a node, as they are: a command block, data one way, the status
 * and the sense that came back. What may be sent is for the caller to know.
 *
 * A BlockPacket and its data are the caller's, untouched and alive until `done`, which runs exactly once and
 * never inside block_packet_submit(). A drive does one at a time, in the order of their submission, on a
 * thread of its own: one that hangs keeps nobody waiting but those behind it. Loop thread, unless said
 * otherwise.
 */
#ifndef SPINDLE_BLOCK_PACKET_H
#define SPINDLE_BLOCK_PACKET_H

#include "block/block.h"

#define BLOCK_PACKET_CDB   16
#define BLOCK_PACKET_SENSE 64

typedef enum { BLOCK_PACKET_NONE, BLOCK_PACKET_IN, BLOCK_PACKET_OUT } BlockPacketDirection;

typedef struct BlockPacket BlockPacket;
struct BlockPacket {
    uint8_t cdb[BLOCK_PACKET_CDB];
    uint8_t cdb_bytes;
    BlockPacketDirection direction;
    void *data;
    size_t bytes; /* at most block_packet_max() */
    unsigned timeout_ms;
    bool write; /* through a descriptor that is open for writing: the kernel asks for that where the user is
                   not privileged */
    void (*done)(BlockPacket *packet);
    void *opaque;
    /* valid in `done` */
    int result;     /* 0: the drive has answered. -errno: why it was not asked, or did not answer; -ECANCELED:
                       abandoned in time */
    uint8_t status; /* SAM-5 5.3.1: 00 GOOD, 02 CHECK CONDITION, … */
    uint8_t sense_bytes;
    uint8_t sense[BLOCK_PACKET_SENSE]; /* as the drive gave it */
    size_t received;                   /* bytes of data that came in */
    /* private */
    void (*abandon)(BlockPacket *packet);
    void *device, *queue;
    GList link;
};

/* The most bytes of one packet's data, or 0: there is no drive that takes commands at or below `node`, or it
 * is unplugged. A variable, no system call. */
uint32_t block_packet_max(const BlockNode *node);

void block_packet_submit(BlockNode *node, BlockPacket *packet);

/* Nobody waits for it any more: one that the drive has not seen yet will not reach it. */
void block_packet_abandon(BlockPacket *packet);

/* False and an error when packets with `write` could not be sent, as far as file permissions tell. True where
 * there is no such drive. Does not ask the drive. Any thread. */
bool block_packet_check_write(const BlockNode *node, GError **error);

#endif
