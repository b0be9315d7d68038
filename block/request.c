/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The request boundary. See the contract in block.h.
 *
 *            submit                     worker free           driver returned
 *   NEW ───────────────► QUEUED ──────────────────► RUNNING ──────────────────► done, NEW
 *    │                     │ cancel, abandon            │ abandon: flag, interrupt
 *    │ answered at once    ▼                            ▼
 *    └──────────────────► READY ── loop's next turn ──► done, NEW
 *
 *   NEW      the owner's: not known here
 *   QUEUED   in its queue, or handed to the pool and not started: may be taken back
 *   RUNNING  a worker may be in the driver; the worker writes `result`
 *   READY    `result` is final; in the ready list
 *
 * A queue belongs to the topmost node of the chain that takes one call at a time, else to the node itself, so
 * requests wait here and not on a worker. Foreground requests go first, background ones never take the last
 * places. One node cannot take all workers: with half of them busy each node gets one.
 */
#include "block/core.h"
#include "block/host-cdrom-guard.h"
#include "util/iov.h"
#include "util/trace.h"
#include <errno.h>
#include <string.h>

#define POOL_THREADS     32
#define NODE_RUNNING     8  /* workers for one parallel node */
#define NODE_BACKGROUND  4  /* of which background */
#define TOTAL_BACKGROUND 8  /* of POOL_THREADS */
#define DELIVER_MAX      64 /* completions per turn of the loop */

/* Loop thread, but `pending`. */
static struct {
    WorkPool *pool;
    GSource *source;
    GQueue ready;   /* of requests in READY */
    GQueue waiting; /* of nodes whose queue holds requests */
    unsigned running, running_background;
    bool delivering;
    gint parked;                        /* atomic: workers that wait for a word of this process */
    gint pending;                       /* atomic: requests, opens and closes that are not done */
    gint drive_work[BLOCK_DRIVE_KINDS]; /* atomic: of these, what may hang in a drive of the host */
} boundary;

G_STATIC_ASSERT(sizeof(Work) <= sizeof(((BlockRequest *)0)->priv.work));

static Work *request_work(BlockRequest *request)
{
    return (Work *)request->priv.work;
}

static BlockRequest *work_request(Work *work)
{
    return (BlockRequest *)((char *)work - offsetof(BlockRequest, priv.work));
}

static WorkPool *boundary_pool(void)
{
    if (!boundary.pool) {
        boundary.pool = work_pool_new(NULL, POOL_THREADS);
    }
    return boundary.pool;
}

void boundary_submit_urgent(Work *work)
{
    work_pool_submit_urgent(boundary_pool(), work);
}

void boundary_pending_begin(void)
{
    g_atomic_int_inc(&boundary.pending);
}

void boundary_pending_done(void)
{
    g_atomic_int_add(&boundary.pending, -1);
}

void boundary_drive_work(BlockDriveWork kind, int more)
{
    g_atomic_int_add(&boundary.drive_work[kind], more);
}

/* Hands the request back to its owner, who may free it. */
static void request_deliver(BlockRequest *request, int result)
{
    BlockNode *node = request->priv.held;
    request->priv.held = NULL;
    request->priv.state = STATE_NEW;
    request->result = result;
    trace(block_request_done, (void *)request, result);
    boundary_pending_done();
    request->done(request);
    block_unref(node);
}

void block_deliver_ready(void)
{
    if (boundary.delivering) {
        return;
    }
    boundary.delivering = true;
    for (int n = 0; n < DELIVER_MAX && boundary.ready.head; n++) {
        BlockRequest *request = g_queue_pop_head_link(&boundary.ready)->data;
        request_deliver(request, request->result);
    }
    boundary.delivering = false;
}

static gboolean ready_prepare(GSource *source, gint *timeout)
{
    *timeout = -1;
    return boundary.ready.head != NULL;
}

static gboolean ready_check(GSource *source)
{
    return boundary.ready.head != NULL;
}

static gboolean ready_dispatch(GSource *source, GSourceFunc callback, gpointer opaque)
{
    boundary.delivering = false; /* a loop inside of a `done` */
    block_deliver_ready();
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs ready_funcs = {
    .prepare = ready_prepare,
    .check = ready_check,
    .dispatch = ready_dispatch,
};

/* Completes on the loop's next turn. */
static void request_ready(BlockRequest *request, int result)
{
    if (!boundary.source) {
        boundary.source = g_source_new(&ready_funcs, sizeof(GSource));
        g_source_set_can_recurse(boundary.source, TRUE);
        g_source_set_static_name(boundary.source, "block completions");
        g_source_attach(boundary.source, NULL);
    }
    request->priv.state = STATE_READY;
    request->result = result;
    g_queue_push_tail_link(&boundary.ready, &request->priv.link);
}

/* The node whose queue the request waits in. */
static BlockNode *request_gate(BlockRequest *request)
{
    for (BlockNode *node = request->priv.held; node; node = node->child) {
        if (!node->driver->parallel) {
            return node;
        }
    }
    return request->priv.held;
}

static bool request_is_background(const BlockRequest *request)
{
    return request->flags & BLOCK_BACKGROUND;
}

/* True when a worker may start on the queue's next request of the kind. */
static bool gate_has_room(const BlockNode *gate, bool background)
{
    const RequestQueue *queue = &gate->priv->queue;
    unsigned limit = gate->driver->parallel ? NODE_RUNNING : 1;
    if (queue->running >= limit || boundary.running >= POOL_THREADS - 1 ||
        (queue->running > 0 && boundary.running >= POOL_THREADS / 2)) {
        return false;
    }
    if (!background) {
        return true;
    }
    return boundary.running_background < TOTAL_BACKGROUND &&
           queue->running_background < (gate->driver->parallel ? NODE_BACKGROUND : 1);
}

static void request_run(Work *work)
{
    BlockRequest *request = work_request(work);
    request->result = node_call(request->priv.held, request->op, request->offset, request->bytes,
                                request->iov, request->niov, request->flags);
}

static void request_run_done(Work *work);

static void request_start(BlockRequest *request, BlockNode *gate)
{
    Work *work = request_work(request);
    memset(work, 0, sizeof *work);
    work->run = request_run;
    work->done = request_run_done;
    request->priv.state = STATE_RUNNING;
    boundary.running++;
    gate->priv->queue.running++;
    if (request_is_background(request)) {
        boundary.running_background++;
        gate->priv->queue.running_background++;
    }
    for (BlockNode *node = request->priv.held; node; node = node->child) {
        node->priv->active++;
    }
    impatience_start(request);
    work_pool_submit(boundary_pool(), work);
}

/* Undoes the counting of request_start(). */
static void request_stop(BlockRequest *request, BlockNode *gate)
{
    boundary.running--;
    gate->priv->queue.running--;
    if (request_is_background(request)) {
        boundary.running_background--;
        gate->priv->queue.running_background--;
    }
    impatience_end(request);
    for (BlockNode *node = request->priv.held; node; node = node->child) {
        node->priv->active--;
    }
}

static void gate_set_waiting(BlockNode *gate)
{
    RequestQueue *queue = &gate->priv->queue;
    bool waits = queue->foreground.head || queue->background.head;
    if (waits && !queue->is_waiting) {
        g_queue_push_tail_link(&boundary.waiting, &queue->waiting);
    } else if (!waits && queue->is_waiting) {
        g_queue_unlink(&boundary.waiting, &queue->waiting);
    }
    queue->is_waiting = waits;
}

/* Starts what has room: foreground, then background. */
static void gate_start(BlockNode *gate, bool background)
{
    RequestQueue *queue = &gate->priv->queue;
    GQueue *from = background ? &queue->background : &queue->foreground;
    while (from->head && gate_has_room(gate, background)) {
        request_start(g_queue_pop_head_link(from)->data, gate);
    }
    gate_set_waiting(gate);
}

/* A worker is free: first every queue's foreground, then the background, each queue in its turn. */
static void boundary_start_waiting(void)
{
    for (int background = 0; background <= 1; background++) {
        GList *next;
        for (GList *l = boundary.waiting.head; l; l = next) {
            next = l->next;
            gate_start(l->data, background);
        }
    }
}

static void request_run_done(Work *work)
{
    BlockRequest *request = work_request(work);
    request->priv.held->priv->counts.ns[request->op] +=
        (uint64_t)(g_get_monotonic_time() - request->priv.started) * 1000;
    if (request->op == BLOCK_READ) {
        trace(block_read, request->priv.held->name, request_is_background(request) ? "ahead" : "waited",
              request->priv.started, g_get_monotonic_time() - request->priv.started, request->offset,
              request->bytes, request->result);
    }
    request_stop(request, request_gate(request));
    boundary_start_waiting();
    request_deliver(request, request->result);
}

static void request_enqueue(BlockRequest *request)
{
    BlockNode *gate = request_gate(request);
    RequestQueue *queue = &gate->priv->queue;
    bool background = request_is_background(request);
    request->priv.state = STATE_QUEUED;
    request->priv.started = g_get_monotonic_time();
    g_queue_push_tail_link(background ? &queue->background : &queue->foreground, &request->priv.link);
    gate_start(gate, false);
    if (!queue->foreground.head) {
        gate_start(gate, true);
    }
}

static int request_check(const BlockRequest *request)
{
    if ((unsigned)request->op >= BLOCK_OPS || request->niov < 0) {
        return -EINVAL;
    }
    bool has_data = request->op == BLOCK_READ || request->op == BLOCK_WRITE;
    if (has_data && iov_total(request->iov, request->niov) != request->bytes) {
        return -EINVAL;
    }
    return node_check(request->node, request->op, request->offset, request->bytes);
}

void block_request_init(BlockRequest *request, BlockNode *node, BlockOp op, uint64_t offset, void *buf,
                        uint64_t bytes, BlockDone done, void *opaque)
{
    *request = (BlockRequest){
        .node = node,
        .op = op,
        .offset = offset,
        .bytes = bytes,
        .iov = &request->priv.inline_iov,
        .niov = 1,
        .done = done,
        .opaque = opaque,
        .priv.inline_iov = {buf, bytes},
    };
}

/* The result without a worker, or -EAGAIN. */
static int request_try_now(const BlockRequest *request)
{
    if (request_is_background(request) || request->bytes > BUFFER_MAX) {
        return -EAGAIN;
    }
    if (request->op == BLOCK_READ) {
        return block_read_now(request->node, request->offset, request->bytes, request->iov, request->niov);
    }
    if (request->op == BLOCK_WRITE && !request->flags) {
        return block_node_write_now(request->node, request->offset, request->bytes, request->iov,
                                    request->niov);
    }
    return -EAGAIN;
}

void block_submit(BlockRequest *request)
{
    trace(block_request_submit, block_name(request->node), (void *)request, (int)request->op, request->offset,
          request->bytes);
    request->priv.link = (GList){.data = request};
    request->priv.abandoned = request->priv.hurried = false;
    request->priv.held = block_ref(request->node);
    boundary_pending_begin();
    int ret = request_check(request);
    if (ret < 0 || (request->bytes == 0 && request->op != BLOCK_FLUSH)) {
        request_ready(request, ret);
        return;
    }
    ret = request_try_now(request);
    if (ret != -EAGAIN) {
        request_ready(request, ret);
        return;
    }
    request_enqueue(request);
}

bool block_cancel(BlockRequest *request)
{
    BlockNode *gate = request->priv.held ? request_gate(request) : NULL;
    if (request->priv.state == STATE_QUEUED) {
        RequestQueue *queue = &gate->priv->queue;
        g_queue_unlink(request_is_background(request) ? &queue->background : &queue->foreground,
                       &request->priv.link);
        gate_set_waiting(gate);
    } else if (request->priv.state == STATE_RUNNING &&
               work_pool_cancel(boundary_pool(), request_work(request))) {
        request_stop(request, gate);
        boundary_start_waiting();
    } else {
        return false;
    }
    request_ready(request, -ECANCELED);
    return true;
}

bool boundary_only_drives_hang(int hanging)
{
    hanging += g_atomic_int_get(&boundary.drive_work[BLOCK_DRIVE_ASKED]) +
               g_atomic_int_get(&boundary.drive_work[BLOCK_DRIVE_LOOK]);
    const int closing = g_atomic_int_get(&boundary.drive_work[BLOCK_DRIVE_CLOSING]);
    return hanging > 0 && g_atomic_int_get(&boundary.pending) <= hanging + closing;
}

void block_parked(int more)
{
    g_atomic_int_add(&boundary.parked, more);
}

void block_settle(unsigned timeout_ms)
{
    gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
    block_deliver_ready();
    while ((int)boundary.running > g_atomic_int_get(&boundary.parked) && g_get_monotonic_time() < deadline) {
        work_pool_poll(boundary_pool(), 1);
        block_deliver_ready();
    }
}

bool block_shutdown(unsigned timeout_ms)
{
    gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
    guint tick = impatience_with_all();
    while (g_atomic_int_get(&boundary.pending) > 0 && g_get_monotonic_time() < deadline) {
        g_main_context_iteration(NULL, TRUE);
    }
    g_source_remove(tick);
    if (g_atomic_int_get(&boundary.pending) > 0) {
        return false;
    }
    work_pool_free(g_steal_pointer(&boundary.pool));
    cdrom_guard_end();
    if (boundary.source) {
        g_source_destroy(boundary.source);
        g_clear_pointer(&boundary.source, g_source_unref);
    }
    impatience_reset();
    return true;
}
