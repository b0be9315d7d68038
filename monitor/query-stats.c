/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What queries tell of work done: by drives, and by the nodes below them.
 */
#include <string.h>
#include "monitor/query.h"

static void set_kind(JsonObject *object, const BlockStats *stats, const char *prefix, BlockOp op, bool bytes)
{
    const struct {
        const char *before, *after;
        uint64_t value;
        bool given;
    } members[] = {
        {"", "_operations", stats->ops[op], true}, {"failed_", "_operations", stats->failed[op], true},
        {"invalid_", "_operations", 0, true},      {"", "_total_time_ns", stats->ns[op], true},
        {"", "_bytes", stats->bytes[op], bytes},   {"", "_merged", 0, bytes}};

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        g_autofree char *name = g_strconcat(members[i].before, prefix, members[i].after, NULL);
        if (members[i].given) {
            json_object_set_int_member(object, name, (gint64)members[i].value);
        }
    }
}

static JsonObject *stats_object(const BlockStats *stats, bool account)
{
    static const BlockStats none;
    JsonObject *object = json_object_new();

    set_kind(object, stats, "rd", BLOCK_READ, true);
    set_kind(object, stats, "wr", BLOCK_WRITE, true);
    set_kind(object, &none, "zone_append", BLOCK_WRITE, true);
    set_kind(object, stats, "flush", BLOCK_FLUSH, false);
    set_kind(object, stats, "unmap", BLOCK_DISCARD, true);
    json_object_set_int_member(object, "wr_highest_offset", (gint64)stats->highest);
    json_object_set_boolean_member(object, "account_invalid", account);
    json_object_set_boolean_member(object, "account_failed", account);
    json_object_set_array_member(object, "timed_stats", json_array_new());
    return object;
}

/* How a source that is not a file here is doing. */
static JsonObject *remote_object(const BlockRemoteStats *stats)
{
    JsonObject *object = json_object_new();
    static const char *const states[] = {[BLOCK_REMOTE_CONNECTED] = "connected",
                                         [BLOCK_REMOTE_RETRYING] = "retrying",
                                         [BLOCK_REMOTE_STALLED] = "stalled"};

    json_object_set_string_member(object, "state", states[stats->state]);
    if (stats->state == BLOCK_REMOTE_RETRYING) {
        json_object_set_int_member(object, "retrying-ms", stats->since_us / 1000);
    } else if (stats->state == BLOCK_REMOTE_STALLED) {
        json_object_set_int_member(object, "stalled-ms", stats->since_us / 1000);
    }
    json_object_set_int_member(object, "rate", (gint64)stats->rate);
    json_object_set_int_member(object, "bytes-served", (gint64)stats->served);
    json_object_set_int_member(object, "bytes-fetched", (gint64)stats->fetched);
    json_object_set_int_member(object, "bytes-from-cache-file", (gint64)stats->from_file);
    json_object_set_int_member(object, "cache-hits", (gint64)stats->hits);
    json_object_set_int_member(object, "cache-misses", (gint64)stats->misses);
    json_object_set_int_member(object, "fetch-failures", (gint64)stats->failures);
    return object;
}

/* NULL: the driver has nothing of its own. */
static JsonObject *specific_object(BlockNode *node)
{
    const char *driver = block_info(node)->driver;
    const BlockStats *stats = block_stats(node);
    BlockRemoteStats remote;
    JsonObject *object = NULL;

    if (!strcmp(driver, "file") || !strcmp(driver, "host_device")) {
        object = json_object_new();
        json_object_set_int_member(object, "discard-nb-ok", (gint64)stats->ops[BLOCK_DISCARD]);
        json_object_set_int_member(object, "discard-nb-failed", (gint64)stats->failed[BLOCK_DISCARD]);
        json_object_set_int_member(object, "discard-bytes-ok", (gint64)stats->bytes[BLOCK_DISCARD]);
    } else if (block_remote_stats(node, &remote)) {
        object = remote_object(&remote);
    }
    if (object) {
        json_object_set_string_member(object, "driver", driver);
    }
    return object;
}

/* The node below, whatever its role is. */
static BlockNode *below(BlockNode *node)
{
    BlockNode *child = block_child(node, "file");

    return child ? child : block_child(node, "image");
}

JsonObject *query_node_stats(BlockNode *node)
{
    JsonObject *object = json_object_new(), *specific = specific_object(node);
    BlockNode *child = below(node);

    json_object_set_string_member(object, "node-name", block_name(node));
    json_object_set_object_member(object, "stats", stats_object(block_stats(node), false));
    if (specific) {
        json_object_set_object_member(object, "driver-specific", specific);
    }
    if (child) {
        json_object_set_object_member(object, "parent", query_node_stats(child));
    }
    return object;
}

JsonObject *query_drive_stats(Backend *backend)
{
    JsonObject *object = backend->node ? query_node_stats(backend->node) : json_object_new();
    BlockStats stats;

    backend_stats(backend, &stats);
    json_object_set_object_member(object, "stats", stats_object(&stats, true));
    json_object_set_string_member(object, "device", backend->name);
    if (backend->qdev) {
        json_object_set_string_member(object, "qdev", backend_qdev(backend));
    }
    return object;
}
