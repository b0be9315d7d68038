/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What node.c, open.c, calls.c, request.c and impatience.c share; nobody else includes this. The comment
 * beside each member of BlockNodePrivate says which thread may touch it.
 */
#ifndef SPINDLE_BLOCK_CORE_H
#define SPINDLE_BLOCK_CORE_H

#include "block/block-int.h"
#include "util/buffer.h"
#include "util/workpool.h"
#include <pthread.h>

#define BLOCK_OPS          5
#define BLOCK_OPT_TRANSFER (256 * 1024)                              /* where a driver names none */
#define BLOCK_SIZE_MAX     (INT64_MAX & ~(uint64_t)(BUFFER_MAX - 1)) /* off_t, and room to round up */

typedef enum { DETECT_ZEROES_OFF, DETECT_ZEROES_ON, DETECT_ZEROES_UNMAP } DetectZeroes;

/* The options that every node has; children given inline inherit them. */
typedef struct GenericOptions {
    bool read_only, auto_read_only, direct, no_flush, discard, force_share;
    int detect_zeroes;
} GenericOptions;

/* Requests waiting for a worker. Loop thread. */
typedef struct RequestQueue {
    GQueue foreground, background;
    unsigned running, running_background;
    GList waiting; /* link in the list of queues that wait */
    bool is_waiting;
} RequestQueue;

struct BlockNodePrivate {
    gint refs;              /* atomic */
    GenericOptions generic; /* changed by block_reopen() only */
    Options *options;       /* as they were at open; a reference; loop thread after open */
    bool opened_read_only;  /* by then; constant after open */
    GList link;             /* in the table; its lock */
    bool listed;            /* the same */
    pthread_mutex_t serial; /* held around each driver call when the driver is not `parallel` */
    pthread_rwlock_t edges; /* written by read-modify-write, read by the others; only when align > 1 */
    BufferPool *bounce;     /* only when align > 1; thread-safe */
    size_t bounce_size;
    pthread_mutex_t flushing; /* a flush waits for the one before it */
    gint dirty;               /* atomic: written to (and the write was over) since the last flush */
    gint medium;              /* atomic: 0 when there is no medium */
    const char *child_role;
    GPtrArray *extras;  /* further children; open and close only */
    GList *listeners;   /* loop thread */
    unsigned notifying; /* loop thread: listeners are being called */
    BlockStats counts;  /* atomic members */
    BlockStats stats;   /* copy handed out; loop thread */
    RequestQueue queue;
    uint64_t threshold; /* atomic: a write behind it is told of; 0: none is */
    struct BlockExceeded {
        uint64_t threshold, amount;
    } exceeded;                        /* loop thread */
    unsigned active, active_abandoned; /* requests under way through this node; loop thread */
    bool deferred;                     /* opened on a worker; constant */
    Work close_work;
    BlockNode *self;
};

/* open.c: the options that every node has, with `inherit` for those left out. */
bool node_parse_generic(Options *options, const GenericOptions *inherit, GenericOptions *ret, GError **error);

/* node.c */
BlockNode *node_new(const BlockDriver *driver, const GenericOptions *generic);
/* Enters the table under `name`, or a generated one if NULL. False when the name is taken. Any thread. */
bool node_list(BlockNode *node, const char *name, GError **error);
/* A new reference to a named node, or NULL. Any thread. */
BlockNode *node_find_ref(const char *name);
/* Drops a reference where an open failed: the last one closes in this call (`deferred` false: the loop
 * thread, where blocking is allowed) or later, by way of the loop (a worker). Names that block_find() or
 * block_list() gave out on the loop thread therefore stay valid until it returns to its loop. */
void node_unref_failed(BlockNode *node, bool deferred);
/* Frees a node whose driver is closed or never opened; its children keep their references. */
void node_free(BlockNode *node);

/* request.c: opens and closes on the pool (loop thread), and the count of what block_shutdown() waits for
 * (any thread). */
enum { STATE_NEW, STATE_QUEUED, STATE_RUNNING, STATE_READY }; /* of a request */

/* impatience.c: what wakes workers. A request begins and ends to run. */
void impatience_start(BlockRequest *request);
void impatience_end(BlockRequest *request);
/* Interrupts all nodes, now and again; the timer. */
guint impatience_with_all(void);
void impatience_reset(void);

void boundary_submit_urgent(Work *work);
void boundary_pending_begin(void);
void boundary_pending_done(void);
/* How many of these are block_drive_work. Any thread. */
void boundary_drive_work(BlockDriveWork kind, int more);
/* Whether all that is pending hangs in drives: `hanging` reads, and what is asked and closed. */
bool boundary_only_drives_hang(int hanging);

/* Around each call into a driver: one at a time unless it is `parallel`. Any thread. */
static inline void node_call_begin(BlockNode *node)
{
    if (!node->driver->parallel) {
        pthread_mutex_lock(&node->priv->serial);
    }
}

static inline void node_call_end(BlockNode *node)
{
    if (!node->driver->parallel) {
        pthread_mutex_unlock(&node->priv->serial);
    }
}

/* calls.c: size as seen from any thread. */
static inline uint64_t node_size(const BlockNode *node)
{
    return __atomic_load_n(&node->info.size, __ATOMIC_RELAXED);
}

/* 0, or why the range or the write cannot be. Any thread. */
int node_check(const BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes);

/* inspect.c: a write ended at byte `end`, which is behind the node's mark. Any thread. */
void node_pass_threshold(BlockNode *node, uint64_t threshold, uint64_t end);

/* Carries out any op on this thread. */
int node_call(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
              BlockFlags flags);

#endif
