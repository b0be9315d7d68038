/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The file behind a cache: sparse, the same bytes at the same places behind a header and a table with a
 * checksum for each granule. A granule counts only if its sum fits, so a crash, a full disk or another
 * process at work on the same file can only make it look absent. Several processes may share the file as long
 * as they cache the same thing. Any thread.
 */
#ifndef SPINDLE_BLOCK_CACHE_FILE_H
#define SPINDLE_BLOCK_CACHE_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct CacheFile CacheFile;

/* Opens or makes it for `size` bytes of what `identity` names. Another content is thrown away if nobody is
 * using it, else it is an error. */
CacheFile *cache_file_open(const char *path, const char *identity, uint64_t size, GError **error);
void cache_file_close(CacheFile *file);

/* Which granules of the chunk at `offset` (a multiple of CACHE_CHUNK) may be there, a bit each. */
uint16_t cache_file_look(CacheFile *file, uint64_t offset);

/* Reads those in `mask` into `data` (CACHE_CHUNK bytes); returns the ones that are good. */
uint16_t cache_file_load(CacheFile *file, uint64_t offset, uint16_t mask, uint8_t *data);

/* Keeps those in `mask`. 0, or -errno once when the disk fails: nothing more is kept then. */
int cache_file_store(CacheFile *file, uint64_t offset, uint16_t mask, const uint8_t *data);

#endif
