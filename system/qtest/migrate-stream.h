/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A machine on its way over a descriptor: the state of its devices and its memory, in one piece. Blocking
 * calls for a thread of their own, which a GCancellable ends.
 *
 * The bytes: a magic with a version, bytes of memory, bytes of the devices' state, that state (util/state.h),
 * pages that are not all zeroes with their address, an end mark, a SHA-256 of it all.
 */
#ifndef SPINDLE_SYSTEM_QTEST_MIGRATE_STREAM_H
#define SPINDLE_SYSTEM_QTEST_MIGRATE_STREAM_H

#include <gio/gio.h>
#include "system/qtest/ram.h"

/* Bytes sent or received so far, for whoever asks meanwhile: atomic. */
typedef gint64 MigrateCount;

bool migrate_stream_send(int fd, GBytes *state, const Ram *ram, MigrateCount *count,
                         GCancellable *cancellable, GError **error);

/* *ret_ram is new memory of `size` bytes, laid out as `like`. Nothing behind the end is read. */
bool migrate_stream_receive(int fd, const Ram *like, Ram *ret_ram, GBytes **ret_state, MigrateCount *count,
                            GCancellable *cancellable, GError **error);

#endif
