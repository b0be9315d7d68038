/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Requests that note what happens to them, and loops to wait for it. Loop thread.
 */
#ifndef SPINDLE_TESTS_UNIT_BLOCK_PROBE_H
#define SPINDLE_TESTS_UNIT_BLOCK_PROBE_H

#include "tests/unit/block-test.h"

#define HANGS "driver=fault,hang-read=1,file.driver=mem,file.pattern=170"
#define SLOW  "delay-read-ns=60000000000,file.driver=mem" /* a minute: until interrupted */

/* A request that notes what happened to it. */
typedef struct Probe {
    BlockRequest request;
    uint8_t data[4096];
    int dones, result;
    unsigned order; /* of all probes, from 1 */
    GThread *thread;
    void (*in_done)(struct Probe *probe);
    void *opaque;
} Probe;

static unsigned probe_clock; /* counts all probes' `done`s */

static inline void probe_done(BlockRequest *request)
{
    Probe *probe = request->opaque;
    probe->dones++;
    probe->result = request->result;
    probe->order = ++probe_clock;
    probe->thread = g_thread_self();
    if (probe->in_done) {
        probe->in_done(probe);
    }
}

static inline Probe *probe_new(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes)
{
    Probe *probe = g_new0(Probe, 1);
    block_request_init(&probe->request, node, op, offset, probe->data, bytes, probe_done, probe);
    return probe;
}

static inline Probe *probe_read(BlockNode *node)
{
    Probe *probe = probe_new(node, BLOCK_READ, 0, sizeof probe->data);
    block_submit(&probe->request);
    return probe;
}

/* Runs the loop until the condition holds; fails after ten seconds. */
#define wait_for(condition)                                                                                  \
    do {                                                                                                     \
        guint tick_ = g_timeout_add(10, tick, NULL);                                                         \
        gint64 end_ = g_get_monotonic_time() + 10 * G_TIME_SPAN_SECOND;                                      \
        while (!(condition) && g_get_monotonic_time() < end_) {                                              \
            g_main_context_iteration(NULL, TRUE);                                                            \
        }                                                                                                    \
        g_source_remove(tick_);                                                                              \
        g_assert_true(condition);                                                                            \
    } while (0)

static inline gboolean tick(gpointer opaque)
{
    return G_SOURCE_CONTINUE;
}

static inline void run_loop_for(unsigned ms)
{
    guint id = g_timeout_add(1, tick, NULL);
    gint64 end = g_get_monotonic_time() + ms * 1000;
    while (g_get_monotonic_time() < end) {
        g_main_context_iteration(NULL, TRUE);
    }
    g_source_remove(id);
}

#endif
