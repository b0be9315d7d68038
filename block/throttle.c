/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Throttle groups, and `driver=throttle` (options `throttle-group` and `file`). A request that has to wait
 * does so on its worker.
 *
 * A group that was made while a machine's clock runs (throttle_clock_set()) follows that alone; an earlier
 * one follows the host's clock and what the machine's is moved by, as limits of the engine's command line do.
 */
#include "block/block-int.h"
#include "block/throttle-bucket.h"
#include "util/error.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

struct ThrottleGroup {
    char *name;
    bool by_guest_clock;
    unsigned refs;        /* the table's lock */
    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t wake, looked;
    ThrottleBuckets buckets;
    GQueue waiting[2];   /* of links on the stacks of workers: read and write, first come first served */
    int64_t may_pass[2]; /* when the first of them may, by the group's clock; 0: it has yet to look */
};

typedef struct ThrottleState {
    ThrottleGroup *group; /* atomic; changed on the loop thread */
    GSList *former;       /* groups that requests may still wait in, with references; loop thread */
    gint interrupts;      /* atomic; waiters look at it under the group's lock, as at the next */
    gint hurries;         /* atomic */
    gint unlimited;       /* atomic: for ever */
} ThrottleState;

/* All groups, by name. Any thread, under the lock. */
static struct {
    pthread_mutex_t lock;
    GList *groups;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A machine's clock, where there is one. Written on the loop thread; atomic. */
static struct {
    int64_t ns;
    gint runs;
} guest_clock;

static int64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t group_now(const ThrottleGroup *group)
{
    int64_t moved = __atomic_load_n(&guest_clock.ns, __ATOMIC_ACQUIRE);
    return group->by_guest_clock ? moved : host_ns() + moved;
}

/* Called with the table's lock held. */
static ThrottleGroup *table_find(const char *name)
{
    for (GList *l = table.groups; l; l = l->next) {
        ThrottleGroup *group = l->data;
        if (!strcmp(group->name, name)) {
            return group;
        }
    }
    return NULL;
}

static ThrottleGroup *group_alloc(const char *name, const ThrottleLimits *limits)
{
    ThrottleGroup *group = g_new0(ThrottleGroup, 1);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&group->wake, &attr);
    pthread_cond_init(&group->looked, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&group->lock, NULL);
    group->name = g_strdup(name);
    group->refs = 1;
    group->by_guest_clock = g_atomic_int_get(&guest_clock.runs);
    group->buckets.limits = *limits;
    group->buckets.leaked_at = group_now(group);
    return group;
}

static void group_free(ThrottleGroup *group)
{
    pthread_cond_destroy(&group->wake);
    pthread_cond_destroy(&group->looked);
    pthread_mutex_destroy(&group->lock);
    g_free(group->name);
    g_free(group);
}

ThrottleGroup *throttle_group_new(const char *name, const ThrottleLimits *limits, GError **error)
{
    if (!throttle_limits_check(limits, error)) {
        return NULL;
    }
    ThrottleGroup *group = NULL;
    pthread_mutex_lock(&table.lock);
    if (table_find(name)) {
        error_set(error, "attempt to add duplicate property '%s' to object (type 'container')", name);
    } else {
        group = group_alloc(name, limits);
        table.groups = g_list_append(table.groups, group);
    }
    pthread_mutex_unlock(&table.lock);
    return group;
}

ThrottleGroup *throttle_group_new_from_options(Options *options, GError **error)
{
    const char *id = options_get(options, "id");
    if (!id) {
        error_set(error, "Parameter 'id' is missing");
        return NULL;
    }
    options_get(options, "qom-type");
    ThrottleLimits limits;
    throttle_limits_init(&limits);
    if (!throttle_limits_read(&limits, options, "x-", error) ||
        !throttle_limits_read(&limits, options, "limits.", error) ||
        !options_check_expected(options, error)) {
        return NULL;
    }
    return throttle_group_new(id, &limits, error);
}

ThrottleGroup *throttle_group_find(const char *name)
{
    pthread_mutex_lock(&table.lock);
    ThrottleGroup *group = table_find(name);
    if (group) {
        group->refs++;
    }
    pthread_mutex_unlock(&table.lock);
    return group;
}

void throttle_group_unref(ThrottleGroup *group)
{
    if (!group) {
        return;
    }
    pthread_mutex_lock(&table.lock);
    bool last = --group->refs == 0;
    if (last) {
        table.groups = g_list_remove(table.groups, group);
    }
    pthread_mutex_unlock(&table.lock);
    if (last) {
        group_free(group);
    }
}

/* All who wait. Called with the lock held. */
static void group_look_again(ThrottleGroup *group)
{
    group->may_pass[0] = group->may_pass[1] = 0;
    pthread_cond_broadcast(&group->wake);
}

bool throttle_group_set_limits(ThrottleGroup *group, const ThrottleLimits *limits, GError **error)
{
    if (!throttle_limits_check(limits, error)) {
        return false;
    }
    pthread_mutex_lock(&group->lock);
    /* Levels start anew, as in QEMU. */
    group->buckets = (ThrottleBuckets){.limits = *limits, .leaked_at = group_now(group)};
    group_look_again(group);
    pthread_mutex_unlock(&group->lock);
    return true;
}

const char *throttle_group_name(const ThrottleGroup *group)
{
    return group->name;
}

void throttle_group_get_limits(ThrottleGroup *group, ThrottleLimits *ret)
{
    pthread_mutex_lock(&group->lock);
    *ret = group->buckets.limits;
    pthread_mutex_unlock(&group->lock);
}

/* Called with the lock held by the first of its queue, or when the queue is empty. ns; 0: it may pass. */
static int64_t group_wait_time(ThrottleGroup *group, bool write)
{
    throttle_buckets_leak(&group->buckets, group_now(group));
    return throttle_buckets_wait(&group->buckets, write);
}

static ThrottleGroup *state_group(ThrottleState *s)
{
    return g_atomic_pointer_get(&s->group);
}

void throttle_clock_set(int64_t ns)
{
    pthread_mutex_lock(&table.lock);
    __atomic_store_n(&guest_clock.ns, ns, __ATOMIC_RELEASE);
    g_atomic_int_set(&guest_clock.runs, 1);
    for (GList *l = table.groups; l; l = l->next) {
        ThrottleGroup *group = l->data;
        pthread_mutex_lock(&group->lock);
        group_look_again(group);
        pthread_mutex_unlock(&group->lock);
    }
    pthread_mutex_unlock(&table.lock);
}

int64_t throttle_clock_next(void)
{
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&table.lock);
    for (GList *l = table.groups; l; l = l->next) {
        ThrottleGroup *group = l->data;
        pthread_mutex_lock(&group->lock);
        for (int write = 0; write <= 1; write++) {
            while (group->waiting[write].head && group->may_pass[write] == 0) {
                pthread_cond_wait(&group->looked, &group->lock);
            }
            if (group->waiting[write].head && group->by_guest_clock) {
                next = MIN(next, group->may_pass[write]);
            }
        }
        pthread_mutex_unlock(&group->lock);
    }
    pthread_mutex_unlock(&table.lock);
    return next;
}

/* Until the first of a queue has to look again. Called with the lock held. */
static void group_sleep(ThrottleGroup *group, bool write, int64_t wait)
{
    group->may_pass[write] = group_now(group) + wait;
    pthread_cond_broadcast(&group->looked);
    if (group->by_guest_clock) {
        pthread_cond_wait(&group->wake, &group->lock);
        return;
    }
    int64_t until = host_ns() + wait;
    struct timespec end = {until / 1000000000, until % 1000000000};
    pthread_cond_timedwait(&group->wake, &group->lock, &end);
}

/* Called with the lock held by who is in the queue: 0, it may pass; -ECANCELED, the node was interrupted. */
static int group_wait(ThrottleState *s, ThrottleGroup *group, bool write, const GList *link)
{
    gint interrupts = g_atomic_int_get(&s->interrupts), hurries = g_atomic_int_get(&s->hurries);
    while (g_atomic_int_get(&s->interrupts) == interrupts) {
        if (g_atomic_int_get(&s->hurries) != hurries || g_atomic_int_get(&s->unlimited)) {
            return 0;
        }
        if (group->waiting[write].head != link) {
            pthread_cond_wait(&group->wake, &group->lock);
            continue;
        }
        int64_t wait = group_wait_time(group, write);
        if (wait == 0) {
            return 0;
        }
        group_sleep(group, write, wait);
    }
    return -ECANCELED;
}

/* Waits for a turn. 0, or -ECANCELED when the node was interrupted. */
static int group_pass(ThrottleState *s, bool write, uint64_t bytes)
{
    ThrottleGroup *group = state_group(s);
    GQueue *queue = &group->waiting[write];
    GList link = {0};
    pthread_mutex_lock(&group->lock);
    g_queue_push_tail_link(queue, &link);
    block_parked(1);
    int ret = group_wait(s, group, write, &link);
    block_parked(-1);
    if (queue->head == &link) {
        group->may_pass[write] = 0;
    }
    g_queue_unlink(queue, &link);
    if (ret == 0) {
        throttle_buckets_add(&group->buckets, write, bytes);
    }
    if (queue->head) {
        pthread_cond_broadcast(&group->wake);
    }
    pthread_cond_broadcast(&group->looked);
    pthread_mutex_unlock(&group->lock);
    return ret;
}

static bool throttle_open(BlockNode *node, Options *options, GError **error)
{
    ThrottleState *s = node->state;
    const char *name = options_get(options, "throttle-group");
    if (!name) {
        return error_set(error, "Parameter 'throttle-group' is missing");
    }
    s->group = throttle_group_find(name);
    if (!s->group) {
        return error_set(error, "Throttle group '%s' does not exist", name);
    }
    if (!block_node_open_child(node, options, "file", error)) {
        throttle_group_unref(s->group);
        return false;
    }
    const BlockInfo *child = block_info(node->child);
    node->info.size = child->size;
    node->info.align = child->align;
    node->info.opt_transfer = child->opt_transfer;
    return true;
}

/* Not by the references: a node that was deleted may be closing on a worker. */
bool throttle_group_in_use(const ThrottleGroup *group)
{
    g_autoptr(GList) nodes = block_list();

    for (GList *l = nodes; l; l = l->next) {
        const BlockNode *node = l->data;
        if (!strcmp(block_info(node)->driver, "throttle") && state_group(node->state) == group) {
            return true;
        }
    }
    return false;
}

static void group_unref(gpointer group)
{
    throttle_group_unref(group);
}

static void throttle_close(BlockNode *node)
{
    ThrottleState *s = node->state;
    throttle_group_unref(s->group);
    g_slist_free_full(s->former, group_unref);
}

/* Who waits in the old group does so to the end. */
static bool throttle_reopen(BlockNode *node, Options *options, bool apply, GError **error)
{
    ThrottleState *s = node->state;
    const char *name = options_get(options, "throttle-group");
    if (!name) {
        return error_set(error, "Parameter 'throttle-group' is missing");
    }
    ThrottleGroup *group = throttle_group_find(name);
    if (!group) {
        return error_set(error, "Throttle group '%s' does not exist", name);
    }
    if (!apply || group == s->group) {
        throttle_group_unref(group);
        return true;
    }
    s->former = g_slist_prepend(s->former, s->group);
    g_atomic_pointer_set(&s->group, group);
    return true;
}

static int throttle_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                           int niov)
{
    int ret = group_pass(node->state, false, bytes);
    return ret < 0 ? ret : block_node_preadv(node->child, offset, bytes, iov, niov);
}

/* Only when nobody waits and nothing has to. */
static int throttle_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                             int niov)
{
    ThrottleGroup *group = state_group(node->state);
    int ret = -EAGAIN;
    if (pthread_mutex_trylock(&group->lock) != 0) {
        return ret;
    }
    if (!group->waiting[0].head && group_wait_time(group, false) == 0) {
        ret = block_node_read_now(node->child, offset, bytes, iov, niov);
        if (ret != -EAGAIN) {
            throttle_buckets_add(&group->buckets, false, bytes);
        }
    }
    pthread_mutex_unlock(&group->lock);
    return ret;
}

static int throttle_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                            int niov, BlockFlags flags)
{
    int ret = group_pass(node->state, true, bytes);
    return ret < 0 ? ret : block_node_pwritev(node->child, offset, bytes, iov, niov, flags);
}

static int throttle_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    int ret = group_pass(node->state, true, bytes);
    return ret < 0 ? ret : block_discard(node->child, offset, bytes);
}

static int throttle_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    int ret = group_pass(node->state, true, bytes);
    return ret < 0 ? ret : block_write_zeroes(node->child, offset, bytes, flags);
}

static int throttle_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                           unsigned *ret_status)
{
    return block_status(node->child, offset, bytes, ret_bytes, ret_status);
}

static int throttle_resize(BlockNode *node, uint64_t size, GError **error)
{
    return block_resize(node->child, size, error);
}

static void throttle_refresh(BlockNode *node)
{
    block_node_set_size(node, block_info(node->child)->size);
}

static void throttle_interrupt(BlockNode *node)
{
    ThrottleState *s = node->state;
    ThrottleGroup *group = state_group(s);
    pthread_mutex_lock(&group->lock);
    g_atomic_int_inc(&s->interrupts);
    group_look_again(group);
    pthread_mutex_unlock(&group->lock);
}

/* As the engine does when it drains a node. */
static void throttle_hurry(BlockNode *node, bool for_good)
{
    ThrottleState *s = node->state;
    ThrottleGroup *group = state_group(s);
    pthread_mutex_lock(&group->lock);
    g_atomic_int_inc(&s->hurries);
    if (for_good) {
        g_atomic_int_set(&s->unlimited, 1);
    }
    group_look_again(group);
    pthread_mutex_unlock(&group->lock);
}

static const char *const throttle_reopen_names[] = {"throttle-group", NULL};

const BlockDriver block_driver_throttle = {
    .name = "throttle",
    .parallel = true,
    .state_size = sizeof(ThrottleState),
    .open = throttle_open,
    .close = throttle_close,
    .preadv = throttle_preadv,
    .pwritev = throttle_pwritev,
    .discard = throttle_discard,
    .write_zeroes = throttle_write_zeroes,
    .read_now = throttle_read_now,
    .status = throttle_status,
    .resize = throttle_resize,
    .interrupt = throttle_interrupt,
    .hurry = throttle_hurry,
    .refresh = throttle_refresh,
    .reopen = throttle_reopen,
    .reopen_names = throttle_reopen_names,
};
