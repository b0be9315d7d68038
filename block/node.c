/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes: the table of names, references, closing, listeners.
 *
 * A node dies in this order: the last reference goes; it leaves the table; a worker flushes (if it was
 * written to) and closes it; back on the loop thread its children lose this reference and it is freed.
 */
#include "block/core.h"
#include "block/toc.h"
#include "util/error.h"
#include "util/log.h"
#include <string.h>

/* The name table: any thread, under its lock. */
static struct {
    pthread_mutex_t lock; /* not GLib's: its own are invisible to ThreadSanitizer */
    GQueue nodes;         /* in order of creation */
    unsigned generated;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct Listener {
    BlockListener call;
    void *opaque;
} Listener;

BlockNode *node_new(const BlockDriver *driver, const GenericOptions *generic)
{
    BlockNode *node = g_new0(BlockNode, 1);
    node->driver = driver;
    node->state = driver->state_size ? g_malloc0(driver->state_size) : NULL;
    node->info.align = 1;
    node->info.opt_transfer = BLOCK_OPT_TRANSFER;
    node->info.driver = driver->name;
    node->filename = g_strdup("");
    node->info.filename = node->filename;
    node->priv = g_new0(struct BlockNodePrivate, 1);
    node->priv->refs = 1;
    node->priv->medium = 1;
    node->priv->generic = *generic;
    node->priv->link.data = node;
    node->priv->self = node;
    node->priv->extras = g_ptr_array_new();
    pthread_mutex_init(&node->priv->serial, NULL);
    pthread_mutex_init(&node->priv->flushing, NULL);
    pthread_rwlock_init(&node->priv->edges, NULL);
    g_queue_init(&node->priv->queue.foreground);
    g_queue_init(&node->priv->queue.background);
    node->priv->queue.waiting.data = node;
    return node;
}

void node_free(BlockNode *node)
{
    struct BlockNodePrivate *priv = node->priv;
    g_list_free_full(priv->listeners, g_free);
    g_clear_pointer(&priv->options, options_unref);
    g_ptr_array_free(priv->extras, TRUE);
    buffer_pool_free(priv->bounce);
    pthread_rwlock_destroy(&priv->edges);
    pthread_mutex_destroy(&priv->flushing);
    pthread_mutex_destroy(&priv->serial);
    g_free(priv);
    block_toc_free(node->toc);
    g_free(node->state);
    g_free(node->name);
    g_free(node->filename);
    g_free(node);
}

static BlockNode *table_find(const char *name)
{
    for (GList *l = table.nodes.head; l; l = l->next) {
        BlockNode *node = l->data;
        if (!strcmp(node->name, name)) {
            return node;
        }
    }
    return NULL;
}

bool node_list(BlockNode *node, const char *name, GError **error)
{
    pthread_mutex_lock(&table.lock);
    bool taken = name && table_find(name);
    if (!taken) {
        node->name = name ? g_strdup(name) : g_strdup_printf("#block%03u", table.generated++);
        g_queue_push_tail_link(&table.nodes, &node->priv->link);
        node->priv->listed = true;
    }
    pthread_mutex_unlock(&table.lock);
    return !taken || error_set(error, "Duplicate nodes with node-name='%s'", name);
}

static void node_unlist(BlockNode *node)
{
    pthread_mutex_lock(&table.lock);
    if (node->priv->listed) {
        g_queue_unlink(&table.nodes, &node->priv->link);
        node->priv->listed = false;
    }
    pthread_mutex_unlock(&table.lock);
}

/* Takes a reference unless the node is on its way out. */
static bool node_try_ref(BlockNode *node)
{
    gint refs;
    do {
        refs = g_atomic_int_get(&node->priv->refs);
        if (refs == 0) {
            return false;
        }
    } while (!g_atomic_int_compare_and_exchange(&node->priv->refs, refs, refs + 1));
    return true;
}

BlockNode *node_find_ref(const char *name)
{
    pthread_mutex_lock(&table.lock);
    BlockNode *node = table_find(name);
    if (node && !node_try_ref(node)) {
        node = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return node;
}

BlockNode *block_find(const char *name)
{
    pthread_mutex_lock(&table.lock);
    BlockNode *node = table_find(name);
    pthread_mutex_unlock(&table.lock);
    return node;
}

GList *block_list(void)
{
    pthread_mutex_lock(&table.lock);
    GList *copy = g_list_copy(table.nodes.head);
    pthread_mutex_unlock(&table.lock);
    return copy;
}

BlockNode *block_ref(BlockNode *node)
{
    g_atomic_int_inc(&node->priv->refs);
    return node;
}

/* Worker. */
static void node_close(BlockNode *node)
{
    if (g_atomic_int_get(&node->priv->dirty)) {
        int ret = block_node_flush(node);
        if (ret < 0) { /* nobody is left to hear of it but the user */
            log_warn("'%s': data may be lost: flushing at close failed: %s",
                     node->filename[0] ? node->filename : node->name, g_strerror(-ret));
        }
    }
    if (node->driver->close) {
        node->driver->close(node);
    }
}

static BlockNode *close_node(Work *work)
{
    return ((struct BlockNodePrivate *)((char *)work - offsetof(struct BlockNodePrivate, close_work)))->self;
}

static void close_run(Work *work)
{
    node_close(close_node(work));
}

static void close_done(Work *work)
{
    BlockNode *node = close_node(work);
    block_unref(node->child);
    for (guint i = 0; i < node->priv->extras->len; i++) {
        block_unref(node->priv->extras->pdata[i]);
    }
    node_free(node);
    boundary_pending_done();
}

void block_unref(BlockNode *node)
{
    if (!node || !g_atomic_int_dec_and_test(&node->priv->refs)) {
        return;
    }
    node_unlist(node);
    boundary_pending_begin();
    node->priv->close_work.run = close_run;
    node->priv->close_work.done = close_done;
    boundary_submit_urgent(&node->priv->close_work);
}

static gboolean unref_later(gpointer node)
{
    block_unref(node);
    boundary_pending_done();
    return G_SOURCE_REMOVE;
}

void node_unref_failed(BlockNode *node, bool deferred)
{
    if (node && deferred) {
        boundary_pending_begin();
        g_idle_add(unref_later, node);
        return;
    }
    if (!node || !g_atomic_int_dec_and_test(&node->priv->refs)) {
        return;
    }
    node_unlist(node);
    node_close(node);
    node_unref_failed(node->child, false);
    for (guint i = 0; i < node->priv->extras->len; i++) {
        node_unref_failed(node->priv->extras->pdata[i], false);
    }
    node_free(node);
}

const char *block_name(const BlockNode *node)
{
    return node->name;
}

const BlockInfo *block_info(const BlockNode *node)
{
    return &node->info;
}

BlockNode *block_child(const BlockNode *node, const char *role)
{
    return node->child && !strcmp(role, node->priv->child_role) ? node->child : NULL;
}

bool block_medium_present(const BlockNode *node)
{
    for (; node; node = node->child) {
        if (!g_atomic_int_get(&node->priv->medium)) {
            return false;
        }
    }
    return true;
}

void block_node_set_medium(BlockNode *node, bool present)
{
    g_atomic_int_set(&node->priv->medium, present);
}

void block_node_set_size(BlockNode *node, uint64_t size)
{
    __atomic_store_n(&node->info.size, size, __ATOMIC_RELAXED);
}

void block_node_set_filename(BlockNode *node, const char *filename)
{
    g_free(node->filename);
    node->filename = g_strdup(filename);
    node->info.filename = node->filename;
}

void block_listen(BlockNode *node, BlockListener listener, void *opaque)
{
    Listener *l = g_new0(Listener, 1);
    *l = (Listener){listener, opaque};
    node->priv->listeners = g_list_append(node->priv->listeners, l);
}

/* Frees the entries that were taken out while the list was walked. */
static void listeners_sweep(BlockNode *node)
{
    GList *next;
    for (GList *i = node->priv->listeners; i && !node->priv->notifying; i = next) {
        Listener *l = i->data;
        next = i->next;
        if (!l->call) {
            node->priv->listeners = g_list_delete_link(node->priv->listeners, i);
            g_free(l);
        }
    }
}

void block_unlisten(BlockNode *node, BlockListener listener, void *opaque)
{
    for (GList *i = node->priv->listeners; i; i = i->next) {
        Listener *l = i->data;
        if (l->call == listener && l->opaque == opaque) {
            l->call = NULL;
            break;
        }
    }
    listeners_sweep(node);
}

/* Calls the listeners of the node; they may listen and unlisten meanwhile. */
static void node_notify(BlockNode *node, BlockEvent event)
{
    node->priv->notifying++;
    for (GList *i = node->priv->listeners; i; i = i->next) {
        Listener *l = i->data;
        if (l->call) {
            l->call(node, event, l->opaque);
        }
    }
    node->priv->notifying--;
    listeners_sweep(node);
}

/* The node and whatever lies upon it. */
static void node_propagate(BlockNode *node, BlockEvent event)
{
    node_notify(node, event);
    GList *all = block_list();
    GList *parents = NULL;
    for (GList *l = all; l; l = l->next) {
        BlockNode *parent = l->data;
        if (parent->child == node && node_try_ref(parent)) {
            parents = g_list_append(parents, parent);
        }
    }
    g_list_free(all);
    for (GList *l = parents; l; l = l->next) {
        BlockNode *parent = l->data;
        if (parent->driver->refresh) {
            parent->driver->refresh(parent);
        }
        node_propagate(parent, event);
        block_unref(parent);
    }
    g_list_free(parents);
}

typedef struct PostedEvent {
    BlockNode *node; /* reference */
    BlockEvent event;
    void (*apply)(BlockNode *node, void *data);
    void *data;
    GDestroyNotify free_data;
} PostedEvent;

static gboolean event_dispatch(gpointer opaque)
{
    PostedEvent *posted = opaque;
    if (posted->apply) {
        posted->apply(posted->node, posted->data);
    }
    node_propagate(posted->node, posted->event);
    if (posted->free_data) {
        posted->free_data(posted->data);
    }
    block_unref(posted->node);
    g_free(posted);
    boundary_pending_done();
    return G_SOURCE_REMOVE;
}

void block_node_post_event(BlockNode *node, BlockEvent event, void (*apply)(BlockNode *node, void *data),
                           void *data, GDestroyNotify free_data)
{
    if (!node_try_ref(node)) {
        if (free_data) {
            free_data(data);
        }
        return;
    }
    /* Its reference would outlive a shutdown that did not wait for it. */
    boundary_pending_begin();
    PostedEvent *posted = g_new0(PostedEvent, 1);
    *posted = (PostedEvent){node, event, apply, data, free_data};
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, event_dispatch, posted, NULL);
    g_source_attach(source, NULL);
}

bool block_node_wants_write(const BlockNode *node)
{
    return !node->priv->generic.read_only;
}

bool block_node_auto_read_only(const BlockNode *node)
{
    return node->priv->generic.auto_read_only;
}

bool block_node_cache_direct(const BlockNode *node)
{
    return node->priv->generic.direct;
}

bool block_node_cache_no_flush(const BlockNode *node)
{
    return node->priv->generic.no_flush;
}

bool block_node_discard(const BlockNode *node)
{
    return node->priv->generic.discard;
}

bool block_node_force_share(const BlockNode *node)
{
    return node->priv->generic.force_share;
}
