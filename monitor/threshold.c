/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/threshold.h"
#include "block/inspect.h"

static void on_event(BlockNode *node, BlockEvent event, void *opaque)
{
    uint64_t threshold, amount;

    /* The event goes up to the nodes above, whose own marks it is not about. */
    if (event != BLOCK_EVENT_THRESHOLD || !block_take_exceeded(node, &threshold, &amount)) {
        return;
    }
    JsonObject *data = json_object_new();
    json_object_set_string_member(data, "node-name", block_name(node));
    json_object_set_int_member(data, "amount-exceeded", (gint64)amount);
    json_object_set_int_member(data, "write-threshold", (gint64)threshold);
    monitor_event(opaque, "BLOCK_WRITE_THRESHOLD", data);
}

void threshold_set(Monitor *monitor, BlockNode *node, uint64_t threshold)
{
    block_unlisten(node, on_event, monitor);
    if (threshold) {
        block_listen(node, on_event, monitor);
    }
    block_set_write_threshold(node, threshold);
}

void threshold_forget(Monitor *monitor)
{
    g_autoptr(GList) nodes = block_list();

    for (GList *l = nodes; l; l = l->next) {
        block_unlisten(l->data, on_event, monitor);
    }
}
