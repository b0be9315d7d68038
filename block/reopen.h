/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Other options for a node that is open (QMP's blockdev-reopen). What the node's driver has opened stays
 * open: the options that may change are `read-only` (back to `off` only if the node was opened so),
 * `auto-read-only`, `discard`, `detect-zeroes`, `cache.no-flush`, and what the driver itself allows (the
 * `throttle-group` of `throttle`). Loop thread.
 */
#ifndef SPINDLE_BLOCK_REOPEN_H
#define SPINDLE_BLOCK_REOPEN_H

#include "block/block.h"

/* `options` as of block_open(): all of the node's, those left out mean their defaults. A child may be named,
 * or described as it was. Without `apply` only looks whether it can be done. Requests under way end by the
 * options that they began with, or by the new ones. False with "Cannot change the option 'x'". */
bool block_reopen(BlockNode *node, Options *options, bool apply, GError **error);

#endif
