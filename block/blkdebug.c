/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=blkdebug`, as QEMU's: errors, delays and breakpoints by rules. The child's role is `image`.
 *
 * A rule waits for an event, if the node is in the rule's state (0: any; the node starts in 1). The layer
 * above and the core tell the events. An inject-error rule that its event has made active then fails every
 * request that matches it, until an event makes other rules active; a set-state rule moves the node on; a
 * breakpoint holds the request until its tag is resumed, once. Where an event can reach only qcow2 its rule
 * is accepted and never fires.
 */
#include "block/blkdebug.h"
#include "util/checked.h"
#include "util/error.h"
#include "util/trace.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define ANY_OFFSET UINT64_MAX

typedef struct Suspended {
    char *tag;
    bool resumed;
} Suspended;

typedef struct BlkdebugState {
    pthread_mutex_t lock; /* for all below: workers, and the loop thread's commands */
    pthread_cond_t wake;
    GList *rules;     /* of BlkdebugRule, owned, the newest first */
    GList *active;    /* of those that inject, the oldest first */
    GList *suspended; /* of Suspended, on the stacks of the workers that wait */
    int state;
} BlkdebugState;

void blkdebug_rule_free(BlkdebugRule *rule)
{
    g_free(rule->tag);
    g_free(rule);
}

/* Called with the lock held. */
static void remove_rule(BlkdebugState *s, BlkdebugRule *rule)
{
    s->active = g_list_remove(s->active, rule);
    s->rules = g_list_remove(s->rules, rule);
    blkdebug_rule_free(rule);
}

/* Holds this worker until the tag is resumed. Called with the lock held. */
static void suspend(BlockNode *node, const char *tag)
{
    BlkdebugState *s = node->state;
    Suspended self = {.tag = g_strdup(tag)};
    s->suspended = g_list_prepend(s->suspended, &self);
    trace(blkdebug_suspend, node->name, tag);
    block_parked(1);
    while (!self.resumed) {
        pthread_cond_wait(&s->wake, &s->lock);
    }
    block_parked(-1);
    s->suspended = g_list_remove(s->suspended, &self);
    g_free(self.tag);
}

static void blkdebug_event(BlockNode *node, BlockDebugEvent event)
{
    BlkdebugState *s = node->state;
    g_autoptr(GPtrArray) tags = g_ptr_array_new_with_free_func(g_free);
    bool injected = false;
    GList *next;
    pthread_mutex_lock(&s->lock);
    int state = s->state;
    for (GList *l = s->rules; l; l = next) {
        BlkdebugRule *rule = l->data;
        next = l->next;
        if (rule->event != (int)event || (rule->state != 0 && rule->state != s->state)) {
            continue;
        }
        switch (rule->action) {
        case BLKDEBUG_INJECT:
            if (!injected) {
                g_clear_list(&s->active, NULL);
            }
            injected = true;
            s->active = g_list_prepend(s->active, rule);
            break;
        case BLKDEBUG_SET_STATE:
            state = rule->new_state;
            break;
        case BLKDEBUG_SUSPEND:
            g_ptr_array_add(tags, g_steal_pointer(&rule->tag));
            remove_rule(s, rule);
            break;
        }
    }
    s->state = state;
    for (guint i = 0; i < tags->len; i++) {
        suspend(node, tags->pdata[i]);
    }
    pthread_mutex_unlock(&s->lock);
}

/* What the active rules make of a request. 0 or -errno. */
static int check_rules(BlockNode *node, BlkdebugIotype type, uint64_t offset, uint64_t bytes)
{
    BlkdebugState *s = node->state;
    uint64_t delay_ns = 0;
    int ret = 0;
    pthread_mutex_lock(&s->lock);
    for (GList *l = s->active; l; l = l->next) {
        BlkdebugRule *rule = l->data;
        bool here = rule->offset == ANY_OFFSET || (rule->offset >= offset && rule->offset - offset < bytes);
        if (here && (rule->iotypes & 1u << type)) {
            ret = -rule->error;
            delay_ns = rule->delay_ns;
            if (rule->once) {
                remove_rule(s, rule);
            }
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
    struct timespec left = {delay_ns / 1000000000, delay_ns % 1000000000};
    while (delay_ns > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
    return ret;
}

static bool blkdebug_open(BlockNode *node, Options *options, GError **error)
{
    BlkdebugState *s = node->state;
    const char *config = options_get(options, "config");
    uint64_t align;
    g_autofree char *filename = NULL;
    if (!options_get_size(options, "align", 0, &align, error)) {
        return false;
    }
    if (align > 0 && (!is_power_of_2(align) || align > BUFFER_MAX)) {
        return error_set(error, "Cannot meet constraints with align %" G_GUINT64_FORMAT, align);
    }
    if ((config && config[0] && !blkdebug_read_config(&s->rules, config, error)) ||
        !blkdebug_read_options(&s->rules, options, error) ||
        !block_node_open_child(node, options, "image", error)) {
        g_list_free_full(s->rules, (GDestroyNotify)blkdebug_rule_free);
        return false;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->state = 1;
    const BlockInfo *child = block_info(node->child);
    filename = g_strdup_printf("blkdebug:%s:%s", config ? config : "", child->filename);
    block_node_set_filename(node, filename);
    node->info.size = child->size;
    node->info.align = MAX(align, child->align);
    node->info.opt_transfer = child->opt_transfer;
    blkdebug_event(node, BLOCK_DEBUG_NONE);
    return true;
}

static void blkdebug_close(BlockNode *node)
{
    BlkdebugState *s = node->state;
    g_list_free(s->active);
    g_list_free_full(s->rules, (GDestroyNotify)blkdebug_rule_free);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
}

static int blkdebug_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                           int niov)
{
    int ret = check_rules(node, BLKDEBUG_READ, offset, bytes);
    return ret < 0 ? ret : block_node_preadv(node->child, offset, bytes, iov, niov);
}

static int blkdebug_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                            int niov, BlockFlags flags)
{
    int ret = check_rules(node, BLKDEBUG_WRITE, offset, bytes);
    return ret < 0 ? ret : block_node_pwritev(node->child, offset, bytes, iov, niov, flags);
}

static int blkdebug_flush(BlockNode *node)
{
    int ret = check_rules(node, BLKDEBUG_FLUSH, 0, 0);
    return ret < 0 ? ret : block_node_flush(node->child);
}

static int blkdebug_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    int ret = check_rules(node, BLKDEBUG_DISCARD, offset, bytes);
    return ret < 0 ? ret : block_discard(node->child, offset, bytes);
}

static int blkdebug_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    int ret = check_rules(node, BLKDEBUG_WRITE_ZEROES, offset, bytes);
    return ret < 0 ? ret : block_write_zeroes(node->child, offset, bytes, flags);
}

static int blkdebug_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                           unsigned *ret_status)
{
    int ret = check_rules(node, BLKDEBUG_BLOCK_STATUS, offset, bytes);
    return ret < 0 ? ret : block_status(node->child, offset, bytes, ret_bytes, ret_status);
}

static int blkdebug_resize(BlockNode *node, uint64_t size, GError **error)
{
    return block_resize(node->child, size, error);
}

static void blkdebug_refresh(BlockNode *node)
{
    block_node_set_size(node, block_info(node->child)->size);
}

/* Resumes those with the tag, or all for NULL. False when there was none. */
static bool resume_tag(BlockNode *node, const char *tag)
{
    BlkdebugState *s = node->state;
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (GList *l = s->suspended; l; l = l->next) {
        Suspended *suspended = l->data;
        if (!suspended->resumed && (!tag || !strcmp(suspended->tag, tag))) {
            trace(blkdebug_resume, node->name, suspended->tag);
            suspended->resumed = found = true;
        }
    }
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Nobody waits any more for what hangs at a breakpoint: let it go. */
static void blkdebug_interrupt(BlockNode *node)
{
    resume_tag(node, NULL);
}

static int blkdebug_breakpoint(BlockNode *node, const char *event, const char *tag)
{
    BlkdebugState *s = node->state;
    int number;
    if (!blkdebug_find_event(event, &number)) {
        return -ENOENT;
    }
    BlkdebugRule *rule = g_new0(BlkdebugRule, 1);
    *rule = (BlkdebugRule){.action = BLKDEBUG_SUSPEND, .event = number, .tag = g_strdup(tag)};
    pthread_mutex_lock(&s->lock);
    s->rules = g_list_prepend(s->rules, rule);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* Breakpoints of that tag that wait for their event, and requests that wait at one. */
static int blkdebug_remove_breakpoint(BlockNode *node, const char *tag)
{
    BlkdebugState *s = node->state;
    bool found = false;
    GList *next;
    pthread_mutex_lock(&s->lock);
    for (GList *l = s->rules; l; l = next) {
        BlkdebugRule *rule = l->data;
        next = l->next;
        if (rule->action == BLKDEBUG_SUSPEND && !strcmp(rule->tag, tag)) {
            remove_rule(s, rule);
            found = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    found |= resume_tag(node, tag);
    return found ? 0 : -ENOENT;
}

static int blkdebug_resume(BlockNode *node, const char *tag)
{
    return resume_tag(node, tag) ? 0 : -ENOENT;
}

static bool blkdebug_is_suspended(BlockNode *node, const char *tag)
{
    BlkdebugState *s = node->state;
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (GList *l = s->suspended; l; l = l->next) {
        Suspended *suspended = l->data;
        found |= !suspended->resumed && !strcmp(suspended->tag, tag);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static bool blkdebug_has_breakpoint(BlockNode *node, const char *tag)
{
    BlkdebugState *s = node->state;
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (GList *l = s->rules; l; l = l->next) {
        BlkdebugRule *rule = l->data;
        found |= rule->action == BLKDEBUG_SUSPEND && !strcmp(rule->tag, tag);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static const BlockDebugOps blkdebug_ops = {
    .breakpoint = blkdebug_breakpoint,
    .remove_breakpoint = blkdebug_remove_breakpoint,
    .resume = blkdebug_resume,
    .has_breakpoint = blkdebug_has_breakpoint,
    .is_suspended = blkdebug_is_suspended,
};

const BlockDriver block_driver_blkdebug = {
    .name = "blkdebug",
    .parallel = true,
    .state_size = sizeof(BlkdebugState),
    .open = blkdebug_open,
    .close = blkdebug_close,
    .preadv = blkdebug_preadv,
    .pwritev = blkdebug_pwritev,
    .flush = blkdebug_flush,
    .discard = blkdebug_discard,
    .write_zeroes = blkdebug_write_zeroes,
    .status = blkdebug_status,
    .resize = blkdebug_resize,
    .interrupt = blkdebug_interrupt,
    .refresh = blkdebug_refresh,
    .debug_event = blkdebug_event,
    .debug = &blkdebug_ops,
};
