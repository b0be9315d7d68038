/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Aligned buffers from a pool, with reference counts: the data of one guest command travels from the block
 * layer to the transport in one Buffer without a copy. No malloc per request: a pool keeps freed buffers of
 * its size for reuse. Reference counts are atomic and a pool is thread-safe; a buffer's content belongs to
 * whoever is filling it.
 */
#ifndef SPINDLE_UTIL_BUFFER_H
#define SPINDLE_UTIL_BUFFER_H

#include <glib.h>
#include <stdint.h>

#define BUFFER_ALIGN 4096          /* the least alignment of every buffer, bytes */
#define BUFFER_MAX   (1024 * 1024) /* bytes in one bulk I/O request */

typedef struct BufferPool BufferPool;

typedef struct Buffer {
    uint8_t *data; /* aligned; `size` bytes */
    size_t size;
    /* private */
    gint refs;
    BufferPool *pool;
    struct Buffer *next;
} Buffer;

/* A pool of buffers of `size` bytes each, aligned to `align` (a power of two, raised to BUFFER_ALIGN), which
 * keeps at most `keep` free ones. */
BufferPool *buffer_pool_new(size_t size, size_t align, unsigned keep);

/* Gives up the owner's hold: buffers still out are freed as they come back. NULL is allowed. */
void buffer_pool_free(BufferPool *pool);

/* A buffer with one reference; its content is undefined. Never NULL (aborts like g_malloc when memory is
 * out). */
Buffer *buffer_pool_get(BufferPool *pool);

/* A zeroed buffer outside any pool, for odd sizes. */
Buffer *buffer_new(size_t size, size_t align);

Buffer *buffer_ref(Buffer *buffer);

/* Drops a reference; the last one returns the buffer to its pool. NULL is allowed. */
void buffer_unref(Buffer *buffer);

/* Returns the memory of the pool's free buffers to the system, as after some idle time. */
void buffer_pool_trim(BufferPool *pool);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Buffer, buffer_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BufferPool, buffer_pool_free)

#endif
