/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on block nodes, objects and limits.
 */
#include <string.h>
#include "block/inspect.h"
#include "block/reopen.h"
#include "block/throttle.h"
#include "monitor/backend.h"
#include "monitor/blockdev-types.h"
#include "monitor/objects.h"
#include "monitor/qmp.h"
#include "monitor/threshold.h"
#include "util/error.h"

static void on_opened(BlockNode *node, GError *error, void *opaque)
{
    QmpCall *call = opaque;

    if (node) {
        monitor_own_node(qmp_call_monitor(call), node);
    }
    qmp_call_finish(call, NULL, error);
}

static JsonNode *cmd_blockdev_add(QmpCall *call, GError **error)
{
    g_autoptr(Options) options =
        blockdev_check_types(qmp_args(call), "", error) ? options_from_json(qmp_args(call), error) : NULL;

    if (!options) {
        return NULL;
    }
    if (!options_has(options, "node-name")) {
        error_set(error, "'node-name' must be specified for the root node");
        return NULL;
    }
    if (!block_has_driver(options_get(options, "driver"))) {
        error_set(error, "Parameter 'driver' does not accept value '%s'", options_get(options, "driver"));
        return NULL;
    }
    qmp_call_defer(call);
    block_open_async(options, on_opened, call);
    return NULL;
}

/* The nth of the list, with its node; NULL and an error. The options are the caller's. */
static Options *reopen_item(JsonArray *list, guint n, BlockNode **ret_node, GError **error)
{
    JsonNode *item = json_array_get_element(list, n);

    if (!JSON_NODE_HOLDS_OBJECT(item)) {
        error_set(error, "Invalid parameter type for 'options[%u]', expected: object", n);
        return NULL;
    }
    JsonObject *object = json_node_get_object(item);
    g_autofree char *path = g_strdup_printf("options[%u].", n);
    g_autoptr(Options) options =
        blockdev_check_types(object, path, error) ? options_from_json(object, error) : NULL;
    const char *name = options ? options_get(options, "node-name") : NULL;
    *ret_node = name ? block_find(name) : NULL;
    if (options && !options_has(options, "driver")) {
        error_set(error, "Parameter 'options[%u].driver' is missing", n);
    } else if (options && !name) {
        error_set(error, "node-name not specified");
    } else if (options && !*ret_node) {
        error_set(error, "Failed to find node with node-name='%s'", name);
    }
    return *ret_node && options_has(options, "driver") ? g_steal_pointer(&options) : NULL;
}

/* All of them or none. */
static JsonNode *cmd_blockdev_reopen(QmpCall *call, GError **error)
{
    JsonArray *list = json_object_get_array_member(qmp_args(call), "options");
    guint len = json_array_get_length(list);

    for (guint pass = 0; pass < 2; pass++) {
        for (guint i = 0; i < len; i++) {
            BlockNode *node = NULL;
            g_autoptr(Options) options = reopen_item(list, i, &node, error);
            if (!options || !block_reopen(node, options, pass == 1, error)) {
                return NULL;
            }
        }
    }
    return NULL;
}

/* Another node stands on it. */
static bool node_is_used(const BlockNode *node)
{
    g_autoptr(GList) all = block_list();

    for (GList *l = all; l; l = l->next) {
        if (block_child(l->data, "file") == node || block_child(l->data, "image") == node) {
            return true;
        }
    }
    return false;
}

static JsonNode *cmd_blockdev_del(QmpCall *call, GError **error)
{
    Monitor *monitor = qmp_call_monitor(call);
    const char *name = qmp_arg_string(call, "node-name");
    BlockNode *node = block_find(name);

    if (!node) {
        error_set(error, "Failed to find node with node-name='%s'", name);
    } else if (backend_of_node(monitor, node)) {
        error_set(error, "Node %s is in use", name);
    } else if (node_is_used(node)) {
        error_set(error, "Block device %s is in use", name);
    } else if (!monitor_owns_node(monitor, node)) {
        error_set(error, "Node %s is not owned by the monitor", name);
    } else {
        monitor_drop_node(monitor, node);
    }
    return NULL;
}

static BlockNode *node_of_args(QmpCall *call, GError **error)
{
    const char *device = qmp_arg_string(call, "device"), *name = qmp_arg_string(call, "node-name");
    Backend *backend = device ? backend_find(qmp_call_monitor(call), device) : NULL;
    BlockNode *node = backend ? backend->top : device || !name ? NULL : block_find(name);

    if (backend && !node) {
        error_set(error, "Device '%s' has no medium", device);
    } else if (!node) {
        error_set(error, "Cannot find device='%s' nor node-name='%s'", device ? device : "",
                  name ? name : "");
    }
    return node;
}

static JsonNode *cmd_block_resize(QmpCall *call, GError **error)
{
    int64_t size = qmp_arg_int(call, "size", 0);
    BlockNode *node = node_of_args(call, error);

    if (node && size < 0) {
        error_set(error, "Parameter 'size' expects a >0 size");
    } else if (node) {
        block_resize(node, (uint64_t)size, error);
    }
    return NULL;
}

static JsonNode *cmd_set_write_threshold(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "node-name");
    BlockNode *node = block_find(name);

    if (!node) {
        error_set(error, "Device '%s' not found", name);
    } else {
        threshold_set(qmp_call_monitor(call), node, (uint64_t)qmp_arg_int(call, "write-threshold", 0));
    }
    return NULL;
}

/* Nodes run on the pool of workers or on the loop thread: the main one is the only I/O thread that they can
 * be in. */
static JsonNode *cmd_set_iothread(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "node-name");
    JsonNode *thread = json_object_get_member(qmp_args(call), "iothread");

    if (!block_find(name)) {
        error_set(error, "Failed to find node with node-name='%s'", name);
    } else if (JSON_NODE_HOLDS_VALUE(thread) && json_node_get_value_type(thread) == G_TYPE_STRING) {
        error_set(error, "Cannot find iothread %s", json_node_get_string(thread));
    } else if (!JSON_NODE_HOLDS_NULL(thread)) {
        error_set(error, "Invalid parameter type for 'iothread', expected: string or null");
    }
    return NULL;
}

#define LIMIT_MAX G_GINT64_CONSTANT(1000000000000000)

/* The arguments of block_set_io_throttle as options of limits: bps -> bps-total, bps_rd_max_length -> … */
static bool read_limits(QmpCall *call, ThrottleLimits *ret, GError **error)
{
    static const struct {
        const char *arg, *key;
    } names[] = {{"bps", "bps-total"},   {"bps_rd", "bps-read"},   {"bps_wr", "bps-write"},
                 {"iops", "iops-total"}, {"iops_rd", "iops-read"}, {"iops_wr", "iops-write"}};
    static const char *const ends[][2] = {{"", ""}, {"_max", "-max"}, {"_max_length", "-max-length"}};
    g_autoptr(Options) options = options_new();

    for (size_t i = 0; i < G_N_ELEMENTS(names) * G_N_ELEMENTS(ends); i++) {
        g_autofree char *arg = g_strconcat(names[i / 3].arg, ends[i % 3][0], NULL);
        g_autofree char *key = g_strconcat("l.", names[i / 3].key, ends[i % 3][1], NULL);
        if (qmp_arg_given(call, arg)) {
            int64_t value = qmp_arg_int(call, arg, 0);
            g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, value);
            bool length = i % 3 == 2;
            if (length ? value <= 0 : value < 0 || value > LIMIT_MAX) {
                return length
                           ? error_set(error, "the burst length cannot be 0")
                           : error_set(error, "bps/iops/max values must be within [0, %" G_GINT64_FORMAT "]",
                                       LIMIT_MAX);
            }
            if (value > 0 || i % 3 == 0) {
                options_set(options, key, text);
            }
        }
    }
    if (qmp_arg_int(call, "iops_size", 0) > 0) {
        g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, qmp_arg_int(call, "iops_size", 0));
        options_set(options, "l.iops-size", text);
    }
    throttle_limits_init(ret);
    return throttle_limits_read(ret, options, "l.", error) && throttle_limits_check(ret, error);
}

static JsonNode *cmd_set_io_throttle(QmpCall *call, GError **error)
{
    ThrottleLimits limits;
    Backend *backend = backend_find_either(qmp_call_monitor(call), qmp_arg_string(call, "device"),
                                           qmp_arg_string(call, "id"), error);

    if (backend && !backend->node) {
        error_set(error, "Device has no medium");
    } else if (backend && read_limits(call, &limits, error)) {
        backend_set_limits(backend, &limits, qmp_arg_string(call, "group"), error);
    }
    return NULL;
}

static char **object_types(void)
{
    return g_strdupv((char **)object_type_names);
}

static JsonNode *cmd_object_add(QmpCall *call, GError **error)
{
    g_autoptr(Options) options = options_from_json(qmp_args(call), error);

    if (options) {
        monitor_add_object(qmp_call_monitor(call), options, error);
    }
    return NULL;
}

static JsonNode *cmd_object_del(QmpCall *call, GError **error)
{
    monitor_remove_object(qmp_call_monitor(call), qmp_arg_string(call, "id"), error);
    return NULL;
}

#define LIMIT(name)                                                                                          \
    {name, QMP_INT}, {name "_max", QMP_INT, true},                                                           \
    {                                                                                                        \
        name "_max_length", QMP_INT, true                                                                    \
    }

const QmpCommand qmp_commands_block[] = {
    {.name = "block-set-write-threshold",
     .run = cmd_set_write_threshold,
     .args = {{"node-name", QMP_STRING}, {"write-threshold", QMP_UINT}}},
    {.name = "block_resize",
     .run = cmd_block_resize,
     .args = {{"device", QMP_STRING, true}, {"node-name", QMP_STRING, true}, {"size", QMP_INT}}},
    {.name = "block_set_io_throttle",
     .run = cmd_set_io_throttle,
     .args = {{"device", QMP_STRING, true},
              {"id", QMP_STRING, true},
              LIMIT("bps"),
              LIMIT("bps_rd"),
              LIMIT("bps_wr"),
              LIMIT("iops"),
              LIMIT("iops_rd"),
              LIMIT("iops_wr"),
              {"iops_size", QMP_INT, true},
              {"group", QMP_STRING, true}}},
    {.name = "blockdev-add",
     .run = cmd_blockdev_add,
     .any_args = true,
     .cases = block_driver_names,
     .args = {{"driver", QMP_STRING}, {"node-name", QMP_STRING, true}}},
    {.name = "blockdev-reopen", .run = cmd_blockdev_reopen, .args = {{"options", QMP_ARRAY}}},
    {.name = "blockdev-del", .run = cmd_blockdev_del, .args = {{"node-name", QMP_STRING}}},
    {.name = "object-add",
     .run = cmd_object_add,
     .any_args = true,
     .cases = object_types,
     .args = {{"qom-type", QMP_STRING}, {"id", QMP_STRING}}},
    {.name = "object-del", .run = cmd_object_del, .args = {{"id", QMP_STRING}}},
    {.name = "x-blockdev-set-iothread",
     .run = cmd_set_iothread,
     .args = {{"node-name", QMP_STRING}, {"iothread", QMP_ANY}, {"force", QMP_BOOL, true}}},
    {NULL},
};
