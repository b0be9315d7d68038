/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP queries: drives, nodes, what they have done, and the program itself.
 */
#include "monitor/qmp.h"
#include "monitor/query.h"
#include "util/error.h"

/* An answer for which nodes are measured first. */
typedef struct Query {
    QmpCall *call;
    JsonArray *(*answer)(Monitor *monitor, const GArray *measures);
} Query;

static void on_measured(GArray *measures, void *opaque)
{
    Query *query = opaque;

    qmp_call_finish(query->call, qmp_array(query->answer(qmp_call_monitor(query->call), measures)), NULL);
    g_array_unref(measures);
    g_free(query);
}

static void measure(QmpCall *call, GList *nodes, JsonArray *(*answer)(Monitor *, const GArray *))
{
    Query *query = g_new0(Query, 1);

    query->call = call;
    query->answer = answer;
    qmp_call_defer(call);
    block_measure_async(nodes, on_measured, query);
}

static JsonArray *answer_block(Monitor *monitor, const GArray *measures)
{
    GPtrArray *all = monitor_backends(monitor);
    JsonArray *array = json_array_new();

    for (guint i = 0; i < all->len; i++) {
        json_array_add_object_element(array, query_drive_object(measures, g_ptr_array_index(all, i)));
    }
    return array;
}

static JsonNode *cmd_query_block(QmpCall *call, GError **error)
{
    GPtrArray *all = monitor_backends(qmp_call_monitor(call));
    g_autoptr(GList) nodes = NULL;

    for (guint i = 0; i < all->len; i++) {
        const Backend *backend = g_ptr_array_index(all, i);
        nodes = backend->node ? g_list_prepend(nodes, backend->node) : nodes;
    }
    measure(call, nodes, answer_block);
    return NULL;
}

/* Those that users see, in order of their making. */
static GList *visible_nodes(const Monitor *monitor)
{
    GList *nodes = block_list(), *next;

    for (GList *l = nodes; l; l = next) {
        next = l->next;
        if (backend_is_limit_node(monitor, l->data)) {
            nodes = g_list_delete_link(nodes, l);
        }
    }
    return nodes;
}

static JsonArray *answer_nodes(Monitor *monitor, const GArray *measures)
{
    JsonArray *array = json_array_new();
    g_autoptr(GList) nodes = visible_nodes(monitor);

    for (GList *l = g_list_last(nodes); l; l = l->prev) {
        json_array_add_object_element(array, query_node_object(measures, l->data, NULL));
    }
    return array;
}

static JsonNode *cmd_query_named_block_nodes(QmpCall *call, GError **error)
{
    g_autoptr(GList) nodes = visible_nodes(qmp_call_monitor(call));

    measure(call, nodes, answer_nodes);
    return NULL;
}

static JsonNode *cmd_query_blockstats(QmpCall *call, GError **error)
{
    Monitor *monitor = qmp_call_monitor(call);
    GPtrArray *all = monitor_backends(monitor);
    JsonArray *array = json_array_new();

    if (qmp_arg_bool(call, "query-nodes", false)) {
        g_autoptr(GList) nodes = visible_nodes(monitor);
        for (GList *l = nodes; l; l = l->next) {
            json_array_add_object_element(array, query_node_stats(l->data));
        }
        return qmp_array(array);
    }
    for (guint i = 0; i < all->len; i++) {
        json_array_add_object_element(array, query_drive_stats(g_ptr_array_index(all, i)));
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
    /* flat: without backing files, which no node has */
    {.name = "query-block", .run = cmd_query_block, .returns = QMP_ARRAY, .args = {{"flat", QMP_BOOL, true}}},
    {.name = "query-blockstats",
     .run = cmd_query_blockstats,
     .returns = QMP_ARRAY,
     .args = {{"query-nodes", QMP_BOOL, true}}},
    {.name = "query-name", .run = cmd_query_name, .returns = QMP_OBJECT},
    {.name = "query-named-block-nodes",
     .run = cmd_query_named_block_nodes,
     .returns = QMP_ARRAY,
     .args = {{"flat", QMP_BOOL, true}}},
    {.name = "query-uuid", .run = cmd_query_uuid, .returns = QMP_OBJECT},
    {.name = "query-version", .run = cmd_query_version, .returns = QMP_OBJECT},
    {NULL},
};
