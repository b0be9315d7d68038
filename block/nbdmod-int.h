/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the nbd module: nbdmod-connection.c (one connection for all threads), nbdmod.c (commands).
 *
 * libnbd calls back with its own lock held, so ours is never held when it is called. Of the threads that wait
 * for an answer one polls for all; the others sleep.
 */
#ifndef SPINDLE_BLOCK_NBDMOD_INT_H
#define SPINDLE_BLOCK_NBDMOD_INT_H

#include <libnbd.h>
#include <pthread.h>

#include "block/nbd.h"

#define NBDMOD_CONTEXT LIBNBD_CONTEXT_BASE_ALLOCATION

typedef struct NbdConnection {
    struct nbd_handle *handle;
    unsigned refs;
    bool dead;
    int64_t progress; /* us: when the server last did something */
} NbdConnection;

typedef struct NbdSource {
    char *host, *port, *path, *export_name;
    TlsCreds *tls; /* or NULL */
    unsigned timeout_s;
    bool write;
    RemoteInfo info; /* of the first connection */
    int kick;        /* eventfd: wakes the one that polls */

    pthread_mutex_t lock;
    pthread_cond_t change; /* monotonic clock */
    NbdConnection *connection;
    unsigned interrupts;
    bool connecting, polling, stopped;
} NbdSource;

/* All but the last two: with the lock held. */

/* The connection, with a reference; makes it if there is none. NULL and why. */
NbdConnection *nbdmod_connection_get(NbdSource *s, CacheFailure *failure);
/* Opens the lock for a moment. */
void nbdmod_connection_unref(NbdSource *s, NbdConnection *c);
void nbdmod_connection_kill(NbdSource *s, NbdConnection *c);

/* Waits until *done: 0. -EHOSTUNREACH: the connection is of no use, or silent for wait_s; -ECANCELED. */
int nbdmod_wait(NbdSource *s, NbdConnection *c, const bool *done, unsigned wait_s, bool interruptible);

/* A new command is to be sent. */
void nbdmod_kick(NbdSource *s);
const char *nbdmod_message(void);

#endif
