/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Private copies of LUKS headers: from a node into a memfd, and back. Whoever holds a LuksCopy owns it; one
 * thread at a time; all block.
 */
#ifndef SPINDLE_BLOCK_LUKS_HEADER_H
#define SPINDLE_BLOCK_LUKS_HEADER_H

#include "block/luks-crypto.h"

typedef struct LuksCopy {
    const LuksCryptoModule *module;
    BlockNode *node; /* not owned */
    int fd;          /* of the node's size; holds the fixed header and the active slots' key material */
    LuksHeader *header;
} LuksCopy;

/* Copies and loads; messages as QEMU's. Nothing is written to the node. */
bool luks_copy_load(LuksCopy *copy, BlockNode *node, GError **error);

/* Also when luks_copy_load() failed. */
void luks_copy_clear(LuksCopy *copy);

/* Writes what differs from the node: first key material, then the header, its second copy last; a flush after
 * each. */
bool luks_copy_write_back(LuksCopy *copy, GError **error);

/* A memfd of `size` bytes, all zero; -1 and an error. */
int luks_memfd(uint64_t size, GError **error);

/* Copies fd's [offset, offset + bytes) into the node, but only blocks that differ. */
bool luks_write_changes(int fd, BlockNode *node, uint64_t offset, uint64_t bytes, GError **error);

#endif
