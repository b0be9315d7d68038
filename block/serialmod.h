/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * For modules whose library does one call after the other on one connection and blocks in it (libssh, libnfs,
 * libiscsi): the lock, the connection that is made anew, the call that takes too long. What interrupts a
 * library that waits is that its socket is shut down.
 */
#ifndef SPINDLE_BLOCK_SERIALMOD_H
#define SPINDLE_BLOCK_SERIALMOD_H

#include <pthread.h>

#include "block/remote.h"

typedef struct SerialSource SerialSource;

typedef struct SerialOps {
    /* Connects, tells what is there; says the descriptor by serialmod_set_fd() as soon as it has one. False
     * and why; `final` as in CacheFailure. */
    bool (*connect)(SerialSource *s, RemoteInfo *ret, CacheFailure *failure);
    /* Also of what a failed connect() left. */
    void (*disconnect)(SerialSource *s);
    /* 0, -EHOSTUNREACH when the connection is of no use, or what the server said. */
    int (*run)(SerialSource *s, const RemoteCall *call, CacheFailure *failure);
    void (*free)(SerialSource *s); /* what is the module's in it */
} SerialOps;

/* The first member of a module's own. */
struct SerialSource {
    const SerialOps *ops;
    unsigned wait_s; /* to connect */
    bool write;

    pthread_mutex_t lock; /* of the library */
    bool connected;
    RemoteInfo info; /* of the first connection */

    pthread_mutex_t watch_lock;
    pthread_cond_t watch_change; /* monotonic clock */
    pthread_t watch;
    bool watching, ended, stopped;
    int fd;           /* or -1 */
    int64_t deadline; /* us; 0: no call is under way */
};

/* Opens: fills *ret. False and an error that begins with `prefix`; then the source is freed. */
bool serialmod_start(SerialSource *s, const SerialOps *ops, const char *prefix, RemoteInfo *ret,
                     GError **error);

/* The functions of RemoteModule. */
int serialmod_call(void *source, const RemoteCall *call, CacheFailure *ret);
void serialmod_interrupt(void *source, bool for_good);
void serialmod_close(void *source);

/* Inside connect(): -1 before it is closed. */
void serialmod_set_fd(SerialSource *s, int fd);
/* The server gave a sign: its time begins anew. */
void serialmod_alive(SerialSource *s, unsigned wait_s);

/* -EHOSTUNREACH and the text. */
int serialmod_lost(CacheFailure *failure, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
