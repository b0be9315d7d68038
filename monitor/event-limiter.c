/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/event-limiter.h"

#define INTERVAL_MS 1000

struct EventLimiter {
    EventEmit emit;
    void *opaque;
    GHashTable *keys; /* Entry, by its key */
};

/* One has gone out within the last interval. */
typedef struct Entry {
    EventLimiter *limiter;
    char *key;
    guint timer;
    JsonNode *waiting; /* or NULL */
} Entry;

static void entry_free(gpointer data)
{
    Entry *entry = data;

    g_clear_handle_id(&entry->timer, g_source_remove);
    g_clear_pointer(&entry->waiting, json_node_unref);
    g_free(entry->key);
    g_free(entry);
}

EventLimiter *event_limiter_new(EventEmit emit, void *opaque)
{
    EventLimiter *limiter = g_new0(EventLimiter, 1);

    limiter->emit = emit;
    limiter->opaque = opaque;
    limiter->keys = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    return limiter;
}

void event_limiter_free(EventLimiter *limiter)
{
    if (limiter) {
        g_hash_table_unref(limiter->keys);
        g_free(limiter);
    }
}

static gboolean on_interval(gpointer data)
{
    Entry *entry = data;
    EventLimiter *limiter = entry->limiter;

    if (entry->waiting) {
        g_autoptr(JsonNode) event = g_steal_pointer(&entry->waiting);
        limiter->emit(event, limiter->opaque);
        return G_SOURCE_CONTINUE;
    }
    entry->timer = 0;
    g_hash_table_remove(limiter->keys, entry->key);
    return G_SOURCE_REMOVE;
}

void event_limiter_pass(EventLimiter *limiter, const char *key, JsonNode *event)
{
    Entry *entry = g_hash_table_lookup(limiter->keys, key);

    if (entry) {
        g_clear_pointer(&entry->waiting, json_node_unref);
        entry->waiting = json_node_ref(event);
        return;
    }
    entry = g_new0(Entry, 1);
    entry->limiter = limiter;
    entry->key = g_strdup(key);
    entry->timer = g_timeout_add(INTERVAL_MS, on_interval, entry);
    g_hash_table_insert(limiter->keys, entry->key, entry);
    limiter->emit(event, limiter->opaque);
}

void event_limiter_forget(EventLimiter *limiter, const char *key)
{
    g_hash_table_remove(limiter->keys, key);
}
