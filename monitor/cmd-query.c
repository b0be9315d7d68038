/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP queries: drives, nodes, what they have done, and the program itself.
 */
#include "monitor/backend.h"
#include "monitor/cmd-query.h"
#include "monitor/qmp.h"
#include "util/error.h"

static void set_limit(JsonObject *object, const char *name, const ThrottleLimits *limits,
                      ThrottleBucketIndex index)
{
    g_autofree char *max = g_strconcat(name, "_max", NULL);
    g_autofree char *length = g_strconcat(name, "_max_length", NULL);

    json_object_set_int_member(object, name, (gint64)limits->bucket[index].average);
    if (limits->bucket[index].max) {
        json_object_set_int_member(object, max, (gint64)limits->bucket[index].max);
        json_object_set_int_member(object, length, (gint64)limits->bucket[index].length);
    }
}

static void set_limits(JsonObject *object, Backend *backend)
{
    ThrottleLimits limits;

    throttle_limits_init(&limits);
    if (backend && !backend->plain) {
        throttle_group_get_limits(backend->group, &limits);
    }
    set_limit(object, "bps", &limits, THROTTLE_BPS_TOTAL);
    set_limit(object, "bps_rd", &limits, THROTTLE_BPS_READ);
    set_limit(object, "bps_wr", &limits, THROTTLE_BPS_WRITE);
    set_limit(object, "iops", &limits, THROTTLE_IOPS_TOTAL);
    set_limit(object, "iops_rd", &limits, THROTTLE_IOPS_READ);
    set_limit(object, "iops_wr", &limits, THROTTLE_IOPS_WRITE);
    if (limits.iops_size) {
        json_object_set_int_member(object, "iops_size", (gint64)limits.iops_size);
    }
    if (throttle_limits_enabled(&limits)) {
        json_object_set_string_member(object, "group", throttle_group_name(backend->group));
    }
}

static JsonObject *image_object(BlockNode *node)
{
    const BlockInfo *info = block_info(node);
    JsonObject *image = json_object_new();

    json_object_set_int_member(image, "virtual-size", (gint64)info->size);
    json_object_set_string_member(image, "filename", info->filename);
    json_object_set_string_member(image, "format", info->driver);
    json_object_set_boolean_member(image, "dirty-flag", false);
    return image;
}

static JsonArray *children_array(BlockNode *node)
{
    static const char *const roles[] = {"file", "image"};
    JsonArray *children = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++) {
        BlockNode *child = block_child(node, roles[i]);
        if (child) {
            JsonObject *object = json_object_new();
            json_object_set_string_member(object, "node-name", block_name(child));
            json_object_set_string_member(object, "child", roles[i]);
            json_array_add_object_element(children, object);
        }
    }
    return children;
}

/* BlockDeviceInfo. */
static JsonObject *node_object(BlockNode *node, Backend *backend)
{
    const BlockInfo *info = block_info(node);
    JsonObject *object = json_object_new(), *cache = json_object_new();

    set_limits(object, backend);
    json_object_set_string_member(object, "detect_zeroes", "off");
    json_object_set_boolean_member(object, "active", true);
    json_object_set_object_member(object, "image", image_object(node));
    json_object_set_boolean_member(object, "ro", info->read_only);
    json_object_set_array_member(object, "children", children_array(node));
    json_object_set_string_member(object, "node-name", block_name(node));
    json_object_set_int_member(object, "backing_file_depth", 0);
    json_object_set_string_member(object, "drv", info->driver);
    json_object_set_int_member(object, "write_threshold", 0);
    json_object_set_boolean_member(object, "encrypted", g_str_equal(info->driver, "luks"));
    json_object_set_boolean_member(cache, "no-flush", false);
    json_object_set_boolean_member(cache, "direct", false);
    json_object_set_boolean_member(cache, "writeback", backend ? backend->writeback : true);
    json_object_set_object_member(object, "cache", cache);
    json_object_set_string_member(object, "file", info->filename);
    return object;
}

const char *backend_io_status_name(const Backend *backend)
{
    static const char *const names[] = {"ok", "failed", "nospace"};

    return names[backend->io_status];
}

static JsonObject *drive_object(Backend *backend)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "device", backend->name);
    json_object_set_string_member(object, "type", "unknown");
    json_object_set_boolean_member(object, "removable", backend->mmc || !backend->qdev);
    json_object_set_boolean_member(object, "locked", backend->mmc && mmc_drive_locked(backend->mmc));
    if (backend->qdev) {
        json_object_set_string_member(object, "qdev", backend_qdev(backend));
        json_object_set_string_member(object, "io-status", backend_io_status_name(backend));
    }
    if (backend->mmc) {
        json_object_set_boolean_member(object, "tray_open", mmc_drive_tray_open(backend->mmc));
    }
    if (backend->node) {
        json_object_set_object_member(object, "inserted", node_object(backend->node, backend));
    }
    return object;
}

static JsonNode *cmd_query_block(QmpCall *call, GError **error)
{
    GPtrArray *all = monitor_backends(qmp_call_monitor(call));
    JsonArray *array = json_array_new();

    for (guint i = 0; i < all->len; i++) {
        json_array_add_object_element(array, drive_object(g_ptr_array_index(all, i)));
    }
    return qmp_array(array);
}

/* The limits in front of each drive are not for users to see. */
bool backend_is_limit_node(const Monitor *monitor, const BlockNode *node)
{
    GPtrArray *all = monitor_backends(monitor);

    for (guint i = 0; i < all->len; i++) {
        const Backend *backend = g_ptr_array_index(all, i);
        if (backend->top == node && !backend->plain) {
            return true;
        }
    }
    return false;
}

static JsonNode *cmd_query_named_block_nodes(QmpCall *call, GError **error)
{
    Monitor *monitor = qmp_call_monitor(call);
    JsonArray *array = json_array_new();
    g_autoptr(GList) nodes = block_list();

    for (GList *l = g_list_last(nodes); l; l = l->prev) {
        if (!backend_is_limit_node(monitor, l->data)) {
            json_array_add_object_element(array, node_object(l->data, backend_of_node(monitor, l->data)));
        }
    }
    return qmp_array(array);
}

static JsonObject *stats_object(BlockNode *node)
{
    static const struct {
        const char *prefix;
        BlockOp op;
        bool bytes;
    } kinds[] = {{"rd", BLOCK_READ, true},
                 {"wr", BLOCK_WRITE, true},
                 {"flush", BLOCK_FLUSH, false},
                 {"unmap", BLOCK_DISCARD, true}};
    static const BlockStats nothing;
    const BlockStats *stats = node ? block_stats(node) : &nothing;
    JsonObject *object = json_object_new();

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *ops = g_strconcat(kinds[i].prefix, "_operations", NULL);
        g_autofree char *bytes = g_strconcat(kinds[i].prefix, "_bytes", NULL);
        g_autofree char *failed = g_strconcat("failed_", ops, NULL);
        g_autofree char *invalid = g_strconcat("invalid_", ops, NULL);
        g_autofree char *time = g_strconcat(kinds[i].prefix, "_total_time_ns", NULL);
        json_object_set_int_member(object, ops, (gint64)stats->ops[kinds[i].op]);
        json_object_set_int_member(object, failed, (gint64)stats->failed[kinds[i].op]);
        json_object_set_int_member(object, invalid, 0);
        json_object_set_int_member(object, time, 0);
        if (kinds[i].bytes) {
            g_autofree char *merged = g_strconcat(kinds[i].prefix, "_merged", NULL);
            json_object_set_int_member(object, bytes, (gint64)stats->bytes[kinds[i].op]);
            json_object_set_int_member(object, merged, 0);
        }
    }
    json_object_set_int_member(object, "wr_highest_offset", 0);
    json_object_set_boolean_member(object, "account_invalid", true);
    json_object_set_boolean_member(object, "account_failed", true);
    json_object_set_array_member(object, "timed_stats", json_array_new());
    return object;
}

static JsonNode *cmd_query_blockstats(QmpCall *call, GError **error)
{
    GPtrArray *all = monitor_backends(qmp_call_monitor(call));
    JsonArray *array = json_array_new();

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "device", backend->name);
        json_object_set_object_member(object, "stats", stats_object(backend->top));
        if (backend->node) {
            json_object_set_string_member(object, "node-name", block_name(backend->node));
        }
        if (backend->qdev) {
            json_object_set_string_member(object, "qdev", backend_qdev(backend));
        }
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

JsonObject *qmp_version_object(void)
{
    JsonObject *version = json_object_new(), *qemu = json_object_new();

    json_object_set_int_member(qemu, "micro", 0);
    json_object_set_int_member(qemu, "minor", 0);
    json_object_set_int_member(qemu, "major", 10);
    json_object_set_object_member(version, "qemu", qemu);
    json_object_set_string_member(version, "package", "spindle-" SPINDLE_VERSION);
    return version;
}

static JsonNode *cmd_query_version(QmpCall *call, GError **error)
{
    return qmp_object(qmp_version_object());
}

static JsonNode *cmd_query_commands(QmpCall *call, GError **error)
{
    Monitor *monitor = qmp_call_monitor(call);
    JsonArray *array = json_array_new();
    const QmpCommand *command;

    for (unsigned n = 0; (command = qmp_command_nth(n)); n++) {
        if (!qmp_command_available(command, monitor)) {
            continue;
        }
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", command->name);
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

static JsonNode *cmd_query_name(QmpCall *call, GError **error)
{
    const char *name = monitor_name(qmp_call_monitor(call));
    JsonObject *object = json_object_new();

    if (name) {
        json_object_set_string_member(object, "name", name);
    }
    return qmp_object(object);
}

static JsonNode *cmd_query_uuid(QmpCall *call, GError **error)
{
    const char *uuid = monitor_uuid(qmp_call_monitor(call));
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "UUID", uuid ? uuid : "00000000-0000-0000-0000-000000000000");
    return qmp_object(object);
}

const QmpCommand qmp_commands_query[] = {
    {.name = "query-block", .run = cmd_query_block},
    {.name = "query-blockstats", .run = cmd_query_blockstats, .args = {{"query-nodes", QMP_BOOL, true}}},
    {.name = "query-commands", .run = cmd_query_commands},
    {.name = "query-name", .run = cmd_query_name},
    {.name = "query-named-block-nodes",
     .run = cmd_query_named_block_nodes,
     .args = {{"flat", QMP_BOOL, true}}},
    {.name = "query-uuid", .run = cmd_query_uuid},
    {.name = "query-version", .run = cmd_query_version},
    {NULL},
};
