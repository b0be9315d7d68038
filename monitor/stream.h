/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A connection of the loop's: bytes come by callback, bytes go out when the other side takes them. Owns its
 * descriptors. A side that does not read costs no more than what its owner queues: see stream_pending().
 * Loop thread.
 */
#ifndef SPINDLE_MONITOR_STREAM_H
#define SPINDLE_MONITOR_STREAM_H

#include <glib.h>
#include <stdbool.h>

typedef struct Stream Stream;

#define STREAM_FDS_MAX 16 /* with one message; the kernel closes more */

typedef struct StreamOps {
    /* `size` (> 0) more bytes. */
    void (*data)(const char *bytes, size_t size, void *opaque);
    /* Descriptors that came with the bytes which the next data call brings; the callee's. NULL: they are
     * closed. */
    void (*fds)(const int *fds, unsigned count, void *opaque);
    /* The queue for output went empty, also because nobody takes it any more. May be NULL. */
    void (*drained)(void *opaque);
    /* The other side is gone; the owner frees the stream, in this call or later. Once. */
    void (*closed)(void *opaque);
} StreamOps;

/* `in` and `out` may be the same descriptor; both become the stream's. `priority` is that of its sources. */
Stream *stream_new(int in, int out, int priority, const StreamOps *ops, void *opaque);

/* What is queued is tried once more and then lost. Allowed inside any callback. NULL is allowed. */
void stream_free(Stream *stream);

void stream_write(Stream *stream, const void *bytes, size_t size);

/* The same with `count` (to STREAM_FDS_MAX) descriptors, which go along with the first byte; they become the
 * stream's. Lost where the stream is no UNIX socket. */
void stream_write_fds(Stream *stream, const void *bytes, size_t size, const int *fds, unsigned count);

/* Bytes that the other side has not taken yet. */
size_t stream_pending(const Stream *stream);

/* No data callback while paused; the other side then waits. */
void stream_pause(Stream *stream, bool paused);

#endif
