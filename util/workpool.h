/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A fixed set of worker threads for blocking calls, with completions on the loop thread.
 *
 * The caller embeds a Work in its own object and keeps it alive until `done` has run (or work_pool_cancel()
 * returned true). `run` executes on a worker; `done` exactly once, on the thread that iterates the pool's
 * GMainContext, never inside work_pool_submit(). Threads start when first needed and end after some idle
 * seconds. Submit and cancel: loop thread only.
 */
#ifndef SPINDLE_UTIL_WORKPOOL_H
#define SPINDLE_UTIL_WORKPOOL_H

#include <glib.h>
#include <stdbool.h>

typedef struct WorkPool WorkPool;
typedef struct Work Work;

struct Work {
    void (*run)(Work *work);  /* worker thread; may block */
    void (*done)(Work *work); /* loop thread */
    /* private */
    GList link;
    int state;
};

/* `context` NULL means the default one. At most `max_threads` workers (at least 2: one is kept back for
 * work_pool_submit_urgent, so that a hung source never blocks an open or a close). */
WorkPool *work_pool_new(GMainContext *context, unsigned max_threads);

/* Waits for running work, runs every outstanding `done`, frees. NULL is allowed. */
void work_pool_free(WorkPool *pool);

void work_pool_submit(WorkPool *pool, Work *work);

/* As submit, but may use the thread kept back. For opening, closing and media confirmation. */
void work_pool_submit_urgent(WorkPool *pool, Work *work);

/* Takes back work that no worker has started: true, and neither `run` nor `done` will be called. False: it
 * runs or has run, and `done` will come. */
bool work_pool_cancel(WorkPool *pool, Work *work);

/* Runs the `done` of work that has ended; where there is none, waits up to `timeout_ms` for some. Loop
 * thread. */
void work_pool_poll(WorkPool *pool, int timeout_ms);

/* The pool that the process shares, made at first use on the default main context (8 threads). Loop thread.
 */
WorkPool *work_pool_default(void);

#endif
