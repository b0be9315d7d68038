/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saved machines with Spindle's drives in them. The drives' state stands ahead of QEMU's in the same stream:
 * a header of STATE_HEADER bytes, the state, then what QEMU writes and reads as ever.
 *
 *                     migrate-incoming         MIGRATION completed         load-state, PCI configuration
 *   NONE   EXPECTED ------------------> READING -------> RUNNING -------------> DEVICES ----------> DONE
 *                                          |               |                       |
 *                                          +---------------+-----------------------+-------------> FAILED
 *
 * NONE: nothing is awaited. EXPECTED: -incoming, QEMU waits. READING: of the drives' state, ahead of QEMU's.
 * RUNNING: QEMU loads. DEVICES: the drives get theirs. FAILED: the machine cannot run. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_ROUTER_STATE_H
#define SPINDLE_SYSTEM_ROUTER_STATE_H

#include "system/router-int.h"

typedef enum {
    LOAD_NONE,
    LOAD_EXPECTED,
    LOAD_READING,
    LOAD_RUNNING,
    LOAD_DEVICES,
    LOAD_DONE,
    LOAD_FAILED
} LoadPhase;

struct RouterState {
    Router *router;
    LoadPhase phase;
    bool parked;        /* the drives stand still until `cont` */
    char *failure;      /* FAILED: why */
    char *data;         /* of the drives, in base64, while QEMU loads */
    GPtrArray *waiting; /* RouterCall: `cont`, until it is known whether the machine can run */
    JsonArray *writes;  /* of load-state's answer: what the PCI configuration lacks */
};

/* One way that a state takes: where to or from, and what is ahead of QEMU's. */
typedef struct StateJob {
    RouterState *state;
    RouterCall *call; /* NULL: the command line's */
    char *uri;        /* where to or from */
    int fd;
    int pump;     /* while a file is pumped: the pipe's end */
    bool ours;    /* QEMU does not have the descriptor: it is handed over */
    GBytes *data; /* of the drives */
    void (*done)(struct StateJob *job, GError *error);
} StateJob;

/* router-stream.c: on a thread, since it may wait. */
void router_stream_write(StateJob *job, void (*done)(StateJob *job, GError *error));
void router_stream_read(StateJob *job, void (*done)(StateJob *job, GError *error));
/* router-address.c: the descriptor that an address names; -1 and an error. *ret_ours as in StateJob.
 * Listening waits on the thread. */
int router_stream_open(RouterPort *port, const RouterConfig *config, const char *uri, bool incoming,
                       bool *ret_ours, GError **error);
/* One that takes a while to connect to: it is opened on the thread that writes. */
bool router_stream_connects_late(const char *uri);
int router_stream_connect(const char *uri, GError **error);
/* Runs the command with the rest of the way: a descriptor that is handed over, a file behind the drives'
 * state. */
void router_stream_hand_over(StateJob *job, const char *command, RouterReply *reply);
/* By `fd:` QEMU takes no files: puts a pipe in its place, fed with the rest of it. False: it is no file. */
bool router_stream_from_file(StateJob *job);
void router_job_free(StateJob *job);

/* router-load.c */
void router_load_failed(RouterState *state, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
