/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where a monitor or a test program is connected, in QEMU's forms: `-chardev socket,id=…,path=…`,
 * `unix:PATH[,server=on][,wait=off]`, `tcp:HOST:PORT[,…]`, `stdio`, `null`, `fd`. A server takes one client
 * at a time. Owns what it listens on; connections are handed over. Loop thread.
 */
#ifndef SPINDLE_MONITOR_CHARDEV_H
#define SPINDLE_MONITOR_CHARDEV_H

#include <glib.h>
#include <stdbool.h>
#include "util/options.h"

typedef struct Chardev Chardev;

/* A connection: the descriptors are the callee's. */
typedef void (*ChardevConnected)(int in, int out, void *opaque);

/* The options of -chardev without `id`, its implied key being `backend`. */
Chardev *chardev_new(Options *options, GError **error);

/* `unix:…`, `tcp:…`, `stdio`, `null`: as after -qtest, -qmp, -monitor. */
Chardev *chardev_new_from_text(const char *text, GError **error);

/* The options that such a text stands for. */
Options *chardev_options_from_text(const char *text, GError **error);

/* What a connection is made of, for another process: descriptors of the caller's. */
typedef struct ChardevEnds {
    int in, out;  /* the same for a socket; -1: none */
    bool server;  /* it listens */
    char *remove; /* file to remove at the end, or NULL; the caller's */
} ChardevEnds;

/* Instead of chardev_open(): binds and listens, or connects, and lets go of it. */
bool chardev_detach(Chardev *chardev, ChardevEnds *ret, GError **error);

/* Connects now (a client, or a server that waits for its first client), or listens. `connected` may run
 * inside. */
bool chardev_open(Chardev *chardev, ChardevConnected connected, void *opaque, GError **error);

/* The connection has ended: a server listens again. */
void chardev_disconnected(Chardev *chardev);

void chardev_free(Chardev *chardev); /* NULL is allowed */

#endif
