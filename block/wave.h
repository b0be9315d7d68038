/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where the samples of a RIFF WAVE file lie. Reads the file through its node; blocking, any thread.
 */
#ifndef SPINDLE_BLOCK_WAVE_H
#define SPINDLE_BLOCK_WAVE_H

#include "block/block-int.h"

/* *ret_offset and *ret_bytes: the data, which must be what a CD holds: PCM, 44100 Hz, 2 channels, 16 bits. */
bool wave_find_data(BlockNode *node, uint64_t *ret_offset, uint64_t *ret_bytes, GError **error);

#endif
