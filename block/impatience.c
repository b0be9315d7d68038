/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Requests under way that somebody is impatient with: abandoned ones, whose drivers are interrupted, and
 * hurried ones, which no limit is to hold up. Both are told again and again: a word that came before the
 * worker began to wait is lost. Loop thread.
 */
#include "block/core.h"

#define AGAIN_MS 20

static struct {
    GQueue abandoned, hurried; /* of requests in RUNNING, by priv.link */
    guint timer;
} impatience;

/* Wakes the nodes in which only abandoned requests are left; a driver that others still wait for is left in
 * peace. */
static void interrupt_chain(BlockNode *node)
{
    for (; node; node = node->child) {
        if (node->driver->interrupt && node->priv->active == node->priv->active_abandoned) {
            node->driver->interrupt(node);
        }
    }
}

void block_unlimit(BlockNode *node, bool for_good)
{
    for (; node; node = node->child) {
        if (node->driver->hurry) {
            node->driver->hurry(node, for_good);
        }
    }
}

static gboolean say_again(gpointer opaque)
{
    for (GList *l = impatience.abandoned.head; l; l = l->next) {
        interrupt_chain(((BlockRequest *)l->data)->priv.held);
    }
    for (GList *l = impatience.hurried.head; l; l = l->next) {
        block_unlimit(((BlockRequest *)l->data)->priv.held, false);
    }
    if (impatience.abandoned.head || impatience.hurried.head) {
        return G_SOURCE_CONTINUE;
    }
    impatience.timer = 0;
    return G_SOURCE_REMOVE;
}

static void list(BlockRequest *request, GQueue *queue)
{
    g_queue_push_tail_link(queue, &request->priv.link);
    if (!impatience.timer) {
        impatience.timer = g_timeout_add(AGAIN_MS, say_again, NULL);
    }
}

void impatience_start(BlockRequest *request)
{
    if (request->priv.hurried) {
        list(request, &impatience.hurried);
    }
}

void impatience_end(BlockRequest *request)
{
    if (request->priv.abandoned) {
        g_queue_unlink(&impatience.abandoned, &request->priv.link);
        for (BlockNode *node = request->priv.held; node; node = node->child) {
            node->priv->active_abandoned--;
        }
    } else if (request->priv.hurried) {
        g_queue_unlink(&impatience.hurried, &request->priv.link);
    }
    request->priv.abandoned = request->priv.hurried = false;
}

void block_abandon(BlockRequest *request)
{
    if (block_cancel(request) || request->priv.state != STATE_RUNNING || request->priv.abandoned) {
        return;
    }
    impatience_end(request); /* no longer a hurried one */
    request->priv.abandoned = true;
    for (BlockNode *node = request->priv.held; node; node = node->child) {
        node->priv->active_abandoned++;
    }
    list(request, &impatience.abandoned);
    interrupt_chain(request->priv.held);
}

void block_hurry(BlockRequest *request)
{
    bool running = request->priv.state == STATE_RUNNING;
    if ((!running && request->priv.state != STATE_QUEUED) || request->priv.abandoned ||
        request->priv.hurried) {
        return;
    }
    request->priv.hurried = true;
    if (running) {
        list(request, &impatience.hurried);
        block_unlimit(request->priv.held, false);
    }
}

static gboolean interrupt_all(gpointer opaque)
{
    g_autoptr(GList) nodes = block_list();
    for (GList *l = nodes; l; l = l->next) {
        BlockNode *node = l->data;
        if (node->driver->interrupt && node->priv->active > 0) {
            node->driver->interrupt(node);
        }
    }
    return G_SOURCE_CONTINUE;
}

guint impatience_with_all(void)
{
    interrupt_all(NULL);
    return g_timeout_add(AGAIN_MS, interrupt_all, NULL);
}

void impatience_reset(void)
{
    if (impatience.timer) {
        g_source_remove(impatience.timer);
        impatience.timer = 0;
    }
}

/* Reads of a drive's medium that nobody waits for. */
static int hanging_reads(void)
{
    int reads = 0;
    for (GList *l = impatience.abandoned.head; l; l = l->next) {
        const BlockNode *node = ((BlockRequest *)l->data)->priv.held;
        while (node->child) {
            node = node->child;
        }
        reads += node->info.removable;
    }
    return reads;
}

bool block_drives_hang(void)
{
    return boundary_only_drives_hang(hanging_reads());
}
