/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where a machine goes to or comes from, in QEMU's words: `unix:PATH`, `tcp:HOST:PORT`, `exec:COMMAND`,
 * `file:PATH[,offset=N]`, `fd:NUMBER` or `fd:NAME` (of getfd).
 */
#ifndef SPINDLE_SYSTEM_QTEST_MIGRATE_URI_H
#define SPINDLE_SYSTEM_QTEST_MIGRATE_URI_H

#include <gio/gio.h>
#include "monitor/monitor.h"

typedef enum { MIGRATE_UNIX, MIGRATE_TCP, MIGRATE_EXEC, MIGRATE_FILE, MIGRATE_FD } MigrateKind;

typedef struct MigrateUri {
    MigrateKind kind;
    char *text; /* path, HOST:PORT or command */
    uint64_t offset;
    int fd; /* -1: none (any more) */
    GSocketListener *listener;
    GPid child; /* 0: none */
} MigrateUri;

/* On the loop: also takes the monitor's descriptor, or begins to listen (`incoming`). NULL and an error. */
MigrateUri *migrate_uri_new(const char *text, bool incoming, Monitor *monitor, GError **error);
void migrate_uri_free(MigrateUri *uri); /* NULL is allowed */

/* On a thread: the descriptor of the connection, which becomes the caller's, or -1 and an error. */
int migrate_uri_open(MigrateUri *uri, bool incoming, GCancellable *cancellable, GError **error);

/* On the thread, when the descriptor is closed: a command must have ended well. */
bool migrate_uri_finish(MigrateUri *uri, GCancellable *cancellable, GError **error);

/* On the thread, when it has failed: ends a command and all that it started, at the latest after a second. */
void migrate_uri_abort(MigrateUri *uri);

#endif
