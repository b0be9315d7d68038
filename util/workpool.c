/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A Work's state, guarded by the pool's lock:
 *
 *   IDLE --submit--> QUEUED --worker takes it--> RUNNING --run returns--> FINISHED --loop--> IDLE, then
 * done() |                                                                 ^
 *                      +--cancel--> IDLE                                                 |
 *   QUEUED: in `urgent` or `normal`. RUNNING: in no list. FINISHED: in `finished`, then in `ready`, which
 *   only the loop thread touches.
 *
 * A worker that has been idle for WORKER_IDLE_SECONDS marks its slot EXITED and ends; whoever needs the slot
 * next joins it.
 */
#include "util/workpool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define WORKER_IDLE_SECONDS 5
#define WORKER_STACK_SIZE   (256 * 1024)
#define DEFAULT_THREADS     8

enum { WORK_IDLE, WORK_QUEUED_URGENT, WORK_QUEUED, WORK_RUNNING, WORK_FINISHED };

enum { SLOT_FREE, SLOT_LIVE, SLOT_EXITED };

typedef struct {
    WorkPool *pool;
    pthread_t thread;
    int state; /* SLOT_… */
} Slot;

typedef struct {
    GSource base;
    WorkPool *pool;
} PoolSource;

struct WorkPool {
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* work came, or `closing` */
    GQueue urgent, normal; /* of Work, not started */
    GQueue finished;       /* of Work, `run` has returned */
    GQueue ready;          /* taken from `finished`; loop thread only */
    unsigned max_threads;
    unsigned live;          /* threads in SLOT_LIVE */
    unsigned waiting;       /* of these, waiting on `wake` */
    bool waking;            /* one of these has been signalled and does not run yet */
    unsigned normal_active; /* normal work being run */
    bool closing;
    int event_fd;
    gpointer fd_tag;
    GSource *source;
    Slot slots[];
};

/* Normal work that may start now: one thread is kept back for urgent work. */
static unsigned pool_startable(const WorkPool *pool)
{
    unsigned room = pool->max_threads - 1 - pool->normal_active;
    return pool->urgent.length + MIN(pool->normal.length, room);
}

static Work *pool_take(WorkPool *pool, bool *ret_normal)
{
    GList *link = g_queue_pop_head_link(&pool->urgent);
    *ret_normal = !link;
    if (!link && pool->normal_active < pool->max_threads - 1) {
        link = g_queue_pop_head_link(&pool->normal);
    }
    return link ? link->data : NULL;
}

static void pool_finish(WorkPool *pool, Work *work)
{
    work->state = WORK_FINISHED;
    g_queue_push_tail_link(&pool->finished, &work->link);
    if (pool->finished.length == 1) {
        /* The loop takes the whole list, so the first completion wakes it for all. */
        uint64_t one = 1;
        while (write(pool->event_fd, &one, sizeof one) < 0 && errno == EINTR) {
        }
    }
}

static void pool_run(WorkPool *pool, Work *work, bool normal)
{
    work->state = WORK_RUNNING;
    pool->normal_active += normal;
    pthread_mutex_unlock(&pool->lock);
    work->run(work);
    pthread_mutex_lock(&pool->lock);
    pool->normal_active -= normal;
    pool_finish(pool, work);
}

/* Waits for work; false after the idle time, or when the pool closes. */
static bool pool_wait(WorkPool *pool)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WORKER_IDLE_SECONDS;
    int error = 0;
    pool->waiting++;
    while (!pool_startable(pool) && !pool->closing && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&pool->wake, &pool->lock, &until);
        pool->waking = false; /* by whomever: a signal too many is better than one too few */
    }
    pool->waiting--;
    return pool_startable(pool) > 0;
}

/* Workers wake each other one by one while there is work that nobody has taken: on a burst of short work the
 * first one or two do it all, and the others are left to sleep. Called with the lock held. */
static void pool_wake(WorkPool *pool)
{
    if (pool->waiting && !pool->waking && pool_startable(pool)) {
        pool->waking = true;
        pthread_cond_signal(&pool->wake);
    }
}

static void *pool_worker(void *opaque)
{
    Slot *slot = opaque;
    WorkPool *pool = slot->pool;
    pthread_setname_np(pthread_self(), "spindle-worker");
    pthread_mutex_lock(&pool->lock);
    do {
        bool normal;
        for (Work *work; (work = pool_take(pool, &normal));) {
            pool_wake(pool);
            pool_run(pool, work, normal);
        }
    } while (pool_wait(pool));
    slot->state = SLOT_EXITED;
    pool->live--;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Called with the lock held. False when the system has no thread to give. */
static bool pool_start_thread(WorkPool *pool)
{
    Slot *slot = pool->slots;
    while (slot->state == SLOT_LIVE) {
        slot++;
    }
    if (slot->state == SLOT_EXITED) {
        /* It has only its last unlock left to do, which does not wait. */
        pthread_join(slot->thread, NULL);
        slot->state = SLOT_FREE;
    }
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, WORKER_STACK_SIZE);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&slot->thread, &attr, pool_worker, slot);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (error) {
        return false;
    }
    slot->state = SLOT_LIVE;
    pool->live++;
    return true;
}

/* Called with the lock held, by the loop thread. */
static void pool_kick(WorkPool *pool)
{
    if (pool_startable(pool) > pool->waiting && pool->live < pool->max_threads) {
        pool_start_thread(pool);
    }
    pool_wake(pool);
    if (!pool->live) {
        /* No thread to be had: pool_dispatch() runs the work itself, late but surely. */
        uint64_t one = 1;
        while (write(pool->event_fd, &one, sizeof one) < 0 && errno == EINTR) {
        }
    }
}

static gboolean pool_source_prepare(GSource *source, int *ret_timeout)
{
    *ret_timeout = -1;
    return ((PoolSource *)source)->pool->ready.length > 0;
}

static gboolean pool_source_check(GSource *source)
{
    WorkPool *pool = ((PoolSource *)source)->pool;
    return pool->ready.length > 0 || g_source_query_unix_fd(source, pool->fd_tag);
}

/* Runs queued work on the loop thread when there is no worker. Called with the lock held. */
static void pool_run_without_threads(WorkPool *pool)
{
    while (!pool->live && pool_startable(pool) && !pool_start_thread(pool)) {
        bool normal;
        Work *work = pool_take(pool, &normal);
        pool_run(pool, work, normal);
    }
}

static void pool_collect(WorkPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool_run_without_threads(pool);
    for (GList *link; (link = g_queue_pop_head_link(&pool->finished));) {
        ((Work *)link->data)->state = WORK_IDLE;
        g_queue_push_tail_link(&pool->ready, link);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* One at a time: a `done` may iterate the loop itself, and the inner turn must find the rest. */
static void pool_run_done(WorkPool *pool)
{
    for (GList *link; (link = g_queue_pop_head_link(&pool->ready));) {
        Work *work = link->data;
        work->done(work);
    }
}

static gboolean pool_source_dispatch(GSource *source, GSourceFunc callback, gpointer opaque)
{
    WorkPool *pool = ((PoolSource *)source)->pool;
    if (g_source_query_unix_fd(source, pool->fd_tag)) {
        uint64_t count;
        (void)!read(pool->event_fd, &count, sizeof count);
        pool_collect(pool);
    }
    pool_run_done(pool);
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs pool_source_funcs = {
    .prepare = pool_source_prepare,
    .check = pool_source_check,
    .dispatch = pool_source_dispatch,
};

WorkPool *work_pool_new(GMainContext *context, unsigned max_threads)
{
    max_threads = MAX(max_threads, 2);
    WorkPool *pool = g_malloc0(sizeof *pool + max_threads * sizeof pool->slots[0]);
    pool->max_threads = max_threads;
    for (unsigned i = 0; i < max_threads; i++) {
        pool->slots[i].pool = pool;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attr);
    pthread_condattr_destroy(&attr);
    pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->event_fd < 0) {
        g_error("failed to make an eventfd: %s", g_strerror(errno));
    }
    pool->source = g_source_new(&pool_source_funcs, sizeof(PoolSource));
    ((PoolSource *)pool->source)->pool = pool;
    g_source_set_name(pool->source, "work pool");
    g_source_set_can_recurse(pool->source, TRUE);
    pool->fd_tag = g_source_add_unix_fd(pool->source, pool->event_fd, G_IO_IN);
    g_source_attach(pool->source, context);
    return pool;
}

/* Until something has ended. Workers that end without a completion do not wake anyone. */
static void pool_await_end(WorkPool *pool, int timeout_ms)
{
    GPollFD poll_fd = {.fd = pool->event_fd, .events = G_IO_IN};
    uint64_t count;
    g_poll(&poll_fd, 1, timeout_ms);
    (void)!read(pool->event_fd, &count, sizeof count);
}

void work_pool_poll(WorkPool *pool, int timeout_ms)
{
    pool_collect(pool);
    if (!pool->ready.length) {
        pool_await_end(pool, timeout_ms);
        pool_collect(pool);
    }
    pool_run_done(pool);
}

/* Runs what is left to its end: a `done` may submit again until the pool is empty. */
static void pool_drain(WorkPool *pool)
{
    for (;;) {
        pool_collect(pool);
        if (pool->ready.length) {
            Work *work = g_queue_pop_head_link(&pool->ready)->data;
            work->done(work);
            continue;
        }
        pthread_mutex_lock(&pool->lock);
        bool empty = !pool->live && !pool->finished.length && !pool->urgent.length && !pool->normal.length;
        pthread_mutex_unlock(&pool->lock);
        if (empty) {
            return;
        }
        pool_await_end(pool, 1);
    }
}

void work_pool_free(WorkPool *pool)
{
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    pool_drain(pool);
    for (unsigned i = 0; i < pool->max_threads; i++) {
        if (pool->slots[i].state == SLOT_EXITED) {
            pthread_join(pool->slots[i].thread, NULL);
        }
    }
    g_source_destroy(pool->source);
    g_source_unref(pool->source);
    close(pool->event_fd);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

static void pool_submit(WorkPool *pool, Work *work, GQueue *queue, int state)
{
    work->link = (GList){.data = work};
    pthread_mutex_lock(&pool->lock);
    work->state = state;
    g_queue_push_tail_link(queue, &work->link);
    pool_kick(pool);
    pthread_mutex_unlock(&pool->lock);
}

void work_pool_submit(WorkPool *pool, Work *work)
{
    pool_submit(pool, work, &pool->normal, WORK_QUEUED);
}

void work_pool_submit_urgent(WorkPool *pool, Work *work)
{
    pool_submit(pool, work, &pool->urgent, WORK_QUEUED_URGENT);
}

bool work_pool_cancel(WorkPool *pool, Work *work)
{
    pthread_mutex_lock(&pool->lock);
    bool queued = work->state == WORK_QUEUED || work->state == WORK_QUEUED_URGENT;
    if (queued) {
        g_queue_unlink(work->state == WORK_QUEUED ? &pool->normal : &pool->urgent, &work->link);
        work->state = WORK_IDLE;
    }
    pthread_mutex_unlock(&pool->lock);
    return queued;
}

static WorkPool *default_pool; /* the process's own, see work_pool_default() */

WorkPool *work_pool_default(void)
{
    if (!default_pool) {
        default_pool = work_pool_new(NULL, DEFAULT_THREADS);
    }
    return default_pool;
}
