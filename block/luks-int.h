/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between luks.c (opening) and luks-io.c (the data path) of `driver=luks`.
 */
#ifndef SPINDLE_BLOCK_LUKS_INT_H
#define SPINDLE_BLOCK_LUKS_INT_H

#include "block/block-int.h"
#include "block/crew.h"
#include "block/luks-crypto.h"
#include "block/range-lock.h"
#include "util/buffer.h"

/* A node's state. All but `busy` is fixed while the node is open; what it points to is safe for any thread.
 */
typedef struct LuksState {
    const LuksCryptoModule *module;
    LuksCipher *cipher;
    uint64_t payload_offset; /* bytes, on the child */
    uint64_t payload_bytes;  /* 0: to the end of the child */
    uint64_t iv_offset;      /* units of LUKS_SECTOR */
    uint32_t sector_size;    /* bytes */
    unsigned width;          /* threads that may cipher at once, the callers' own included */
    gint busy;               /* threads in here now */
    Crew *crew;
    RangeLock ranges; /* of the payload, whole encryption sectors */
    BufferPool *pool; /* BUFFER_MAX each */
} LuksState;

/* As the driver's functions. Several threads. */
int luks_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int luks_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int luks_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int luks_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                 BlockFlags flags);
int luks_discard(BlockNode *node, uint64_t offset, uint64_t bytes);

#endif
