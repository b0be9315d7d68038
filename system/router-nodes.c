/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A user adds block nodes before it is known who is going to use them: a drive of Spindle's or a device of
 * QEMU's. So a node is first opened where it will probably be used (with Spindle while the medium of one of
 * its drives is being changed, or where only Spindle has the driver; else with QEMU), which tells of any
 * mistake at once; and it moves, with what is below it, when the other uses it: it is closed here and opened
 * there with what blockdev-add said. A node that cannot be closed, as others use it, is opened there as well.
 */
#include "system/router-int.h"
#include <string.h>
#include "block/block.h"
#include "monitor/qmp.h"

typedef struct Node {
    JsonObject *args; /* of blockdev-add */
    bool ours, engines;
    bool kept; /* while it moves: it could not be closed where it was */
} Node;

struct RouterNodes {
    GHashTable *by_name; /* char *: Node */
};

static void node_clear(gpointer data)
{
    Node *node = data;

    json_object_unref(node->args);
}

/* They are counted: a move may last longer than the record. */
static void node_unref(gpointer data)
{
    g_rc_box_release_full(data, node_clear);
}

static const char *member(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, name);

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

static Node *find(const Router *router, const char *name)
{
    return name ? g_hash_table_lookup(router->nodes->by_name, name) : NULL;
}

static void record(RouterNodes *nodes, JsonObject *args, bool ours)
{
    const char *name = member(args, "node-name");

    if (name) {
        Node *node = g_rc_box_new0(Node);
        node->args = json_object_ref(args);
        node->ours = ours;
        node->engines = !ours;
        g_hash_table_insert(nodes->by_name, g_strdup(name), node);
    }
}

RouterNodes *router_nodes_new(JsonArray *array)
{
    RouterNodes *nodes = g_new0(RouterNodes, 1);

    nodes->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, node_unref);
    for (guint i = 0; i < json_array_get_length(array); i++) {
        record(nodes, json_array_get_object_element(array, i), true);
    }
    return nodes;
}

void router_nodes_free(RouterNodes *nodes)
{
    if (nodes) {
        g_hash_table_unref(nodes->by_name);
        g_free(nodes);
    }
}

bool router_node_is_ours(const Router *router, const char *name)
{
    Node *node = find(router, name);

    return node && node->ours;
}

/* Names that mean something to QEMU only. */
static bool filename_is_private(const char *filename)
{
    return filename && (g_str_has_prefix(filename, "/dev/fdset/") || g_str_has_prefix(filename, "/dev/fd/") ||
                        g_str_has_prefix(filename, "/proc/self/fd/"));
}

/* The drive process has all the drivers, and the nodes below can be there. */
static bool is_served(const Router *router, JsonObject *args)
{
    const char *driver = member(args, "driver"), *file = member(args, "file");
    JsonNode *inner = json_object_get_member(args, "file");
    Node *below = find(router, file);

    if (!driver || !block_has_driver(driver) || filename_is_private(member(args, "filename"))) {
        return false;
    }
    if (file) {
        return below && (below->ours || is_served(router, below->args));
    }
    return !inner || !JSON_NODE_HOLDS_OBJECT(inner) || is_served(router, json_node_get_object(inner));
}

/* The recorded nodes from this one down which `engine` (or the drive process) lacks, the lowest first. */
static GPtrArray *chain_to_move(const Router *router, const char *name, bool engine)
{
    GPtrArray *chain = g_ptr_array_new_with_free_func(node_unref);

    while (name) {
        Node *node = find(router, name);
        if (!node || (engine ? node->engines : node->ours)) {
            break;
        }
        g_ptr_array_insert(chain, 0, g_rc_box_acquire(node));
        name = member(node->args, "file");
    }
    return chain;
}

/* Of a call's; one at a time. */
typedef struct Move {
    GPtrArray *chain; /* Node */
    bool engine;      /* where to */
    bool alone;       /* not where the other still uses one of them */
    JsonObject *failure;
    void (*then)(RouterCall *call);
} Move;

static void add_step_del(RouterCall *call, Node *node, bool engine, bool *ret_failed)
{
    g_autoptr(JsonObject) args = json_object_new();

    json_object_set_string_member(args, "node-name", member(node->args, "node-name"));
    router_call_add_step(call, engine, "blockdev-del", args, ret_failed);
}

static Move *end_move(RouterCall *call)
{
    Move *move = call->move;

    call->move = NULL;
    g_ptr_array_unref(move->chain);
    return move;
}

static void restored(RouterCall *call, JsonObject *ignored)
{
    Move *move = end_move(call);

    router_call_answer(call, move->failure);
    json_object_unref(move->failure);
    g_free(move);
}

/* The other way round; the drives go on reading what they have. */
static void restore(RouterCall *call, JsonObject *failure)
{
    static bool ignored;
    Move *move = call->move;

    move->failure = json_object_ref(failure);
    for (guint i = move->chain->len; i-- > 0;) {
        add_step_del(call, g_ptr_array_index(move->chain, i), move->engine, &ignored);
    }
    for (guint i = 0; i < move->chain->len; i++) {
        Node *node = g_ptr_array_index(move->chain, i);
        if (!node->kept) {
            router_call_add_step(call, !move->engine, "blockdev-add", node->args, &ignored);
        }
    }
    router_call_run_script(call, restored);
}

static void moved(RouterCall *call, JsonObject *failure)
{
    if (failure) {
        restore(call, failure);
        return;
    }
    Move *move = end_move(call);
    void (*then)(RouterCall *) = move->then;
    g_free(move);
    then(call);
}

/* Notes where the nodes are from now on. */
static void note_move(RouterCall *call, JsonObject *failure)
{
    Move *move = call->move;

    for (guint i = 0; i < move->chain->len && !failure; i++) {
        Node *node = g_ptr_array_index(move->chain, i);
        node->ours = !move->engine || node->kept;
        node->engines = move->engine || node->kept;
    }
    moved(call, failure);
}

static void refused(RouterCall *call, JsonObject *ignored)
{
    g_free(end_move(call));
    router_call_unsupported(call);
}

static bool is_in_use(const Move *move)
{
    for (guint i = 0; i < move->chain->len; i++) {
        if (((Node *)g_ptr_array_index(move->chain, i))->kept) {
            return true;
        }
    }
    return false;
}

/* What could be closed is. */
static void closed(RouterCall *call, JsonObject *failure)
{
    static bool ignored;
    Move *move = call->move;
    const bool refuse = move->alone && is_in_use(move);

    if (failure) { /* nobody there */
        restore(call, failure);
        return;
    }
    for (guint i = 0; i < move->chain->len; i++) {
        Node *node = g_ptr_array_index(move->chain, i);
        if (!refuse || !node->kept) {
            router_call_add_step(call, refuse ? !move->engine : move->engine, "blockdev-add", node->args,
                                 refuse ? &ignored : NULL);
        }
    }
    router_call_run_script(call, refuse ? refused : note_move);
}

static void begin_move(RouterCall *call, const char *name, Move move)
{
    GPtrArray *chain = chain_to_move(call->port->router, name, move.engine);

    if (chain->len == 0) {
        g_ptr_array_unref(chain);
        move.then(call);
        return;
    }
    for (guint i = chain->len; i-- > 0;) {
        Node *node = g_ptr_array_index(chain, i);
        node->kept = false;
        add_step_del(call, node, !move.engine, &node->kept);
    }
    move.chain = chain;
    call->move = g_new(Move, 1);
    *call->move = move;
    router_call_run_script(call, closed);
}

void router_nodes_need(RouterCall *call, const char *name, bool engine, void (*then)(RouterCall *call))
{
    begin_move(call, name, (Move){.engine = engine, .then = then});
}

/* Two may read one image, but nobody else may change what a drive of Spindle's writes to, or copy it
 * meanwhile. */
void router_nodes_take(RouterCall *call, const char *name, void (*then)(RouterCall *call))
{
    const Node *node = find(call->port->router, name);
    const bool read_only =
        node && json_object_get_boolean_member_with_default(node->args, "read-only", false);

    begin_move(
        call, name,
        (Move){.engine = true, .alone = !read_only && router_drives_alive(call->port->router), .then = then});
}

static void added_here(RouterCall *call, JsonObject *answer)
{
    if (!router_answer_failed(answer)) {
        record(call->port->router->nodes, call->args, true);
    }
    router_call_answer(call, answer);
}

static void add_here(RouterCall *call)
{
    router_call_ask(call, added_here);
}

/* QEMU was built, or is installed, without this driver. */
static bool driver_is_unknown(JsonObject *answer)
{
    const char *text = router_answer_text(answer);

    return g_str_has_prefix(text, "Unknown driver") || g_str_has_prefix(text, "Unknown protocol") ||
           g_str_has_prefix(text, "Parameter 'driver' does not accept value");
}

static void added_there(RouterCall *call, JsonObject *answer)
{
    Router *router = call->port->router;

    if (router_answer_failed(answer) && driver_is_unknown(answer) && is_served(router, call->args)) {
        router_nodes_need(call, member(call->args, "file"), false, add_here);
        return;
    }
    if (!router_answer_failed(answer)) {
        record(router->nodes, call->args, false);
    }
    router_call_answer(call, answer);
}

static void add_there(RouterCall *call)
{
    router_call_pass(call, added_there);
}

void router_nodes_add(RouterCall *call)
{
    Router *router = call->port->router;
    const char *file = member(call->args, "file"), *name = member(call->args, "node-name");
    bool here = is_served(router, call->args) && router_drives_alive(router) &&
                (router_node_is_ours(router, file) || g_hash_table_size(router->open_trays) > 0);

    if (router_node_is_ours(router, name)) {
        router_call_fail(call, "GenericError", "Duplicate nodes with node-name='%s'", name);
    } else {
        router_nodes_need(call, file, !here, here ? add_here : add_there);
    }
}

static void deleted_there(RouterCall *call, JsonObject *answer)
{
    if (!router_answer_failed(answer)) {
        g_hash_table_remove(call->port->router->nodes->by_name, member(call->args, "node-name"));
    }
    router_call_answer(call, answer);
}

static void deleted_here(RouterCall *call, JsonObject *answer)
{
    Node *node = find(call->port->router, member(call->args, "node-name"));

    if (router_answer_failed(answer) || !node || !node->engines) {
        deleted_there(call, answer);
        return;
    }
    node->ours = false;
    router_call_pass(call, deleted_there);
}

void router_nodes_del(RouterCall *call)
{
    const char *name = member(call->args, "node-name");

    if (router_node_is_ours(call->port->router, name)) {
        router_call_ask(call, deleted_here);
    } else {
        router_call_pass(call, deleted_there);
    }
}

static void reopened(RouterCall *call, JsonObject *answer)
{
    router_call_answer(call, answer);
}

/* All the nodes of one call are of one side. */
void router_nodes_reopen(RouterCall *call)
{
    JsonNode *options = json_object_get_member(call->args, "options");
    JsonArray *array = options && JSON_NODE_HOLDS_ARRAY(options) ? json_node_get_array(options) : NULL;
    JsonNode *first = array && json_array_get_length(array) ? json_array_get_element(array, 0) : NULL;

    if (first && JSON_NODE_HOLDS_OBJECT(first) &&
        router_node_is_ours(call->port->router, member(json_node_get_object(first), "node-name"))) {
        router_call_ask(call, reopened);
    } else {
        router_call_pass(call, NULL);
    }
}

static const char *wanted_by(const Router *router, JsonObject *args)
{
    static const char *const keys[] = {"drive", "node-name", "node",      "target",   "overlay", "device",
                                       "file",  "backing",   "base-node", "top-node", "replaces"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *name = member(args, keys[i]);
        Node *node = find(router, name);
        if (node && node->ours && !node->engines) {
            return name;
        }
    }
    return NULL;
}

/* The actions of a transaction name nodes, and drives, as the commands that they are called after. */
static JsonObject *transaction_action(const RouterCall *call, guint i)
{
    JsonNode *actions = json_object_get_member(call->args, "actions");
    JsonArray *array = actions && JSON_NODE_HOLDS_ARRAY(actions) ? json_node_get_array(actions) : NULL;
    JsonNode *action = array && i < json_array_get_length(array) ? json_array_get_element(array, i) : NULL;

    return action && JSON_NODE_HOLDS_OBJECT(action) ? json_node_get_object(action) : NULL;
}

static JsonObject *action_data(JsonObject *action)
{
    JsonNode *data = json_object_get_member(action, "data");

    return data && JSON_NODE_HOLDS_OBJECT(data) ? json_node_get_object(data) : NULL;
}

const char *router_nodes_wanted(const RouterCall *call)
{
    const Router *router = call->port->router;
    const char *name = wanted_by(router, call->args);
    JsonObject *action;

    for (guint i = 0; !name && (action = transaction_action(call, i)); i++) {
        JsonObject *data = action_data(action);
        name = data ? wanted_by(router, data) : NULL;
    }
    return name;
}

/* The action that names this node or drive. */
static const char *action_of(const RouterCall *call)
{
    const Router *router = call->port->router;
    JsonObject *action;

    for (guint i = 0; (action = transaction_action(call, i)); i++) {
        JsonObject *data = action_data(action);
        const char *drive = data ? member(data, "device") : NULL;
        if (data && (wanted_by(router, data) || (drive && router_has_drive(router, drive)))) {
            return member(action, "type");
        }
    }
    return NULL;
}

bool router_nodes_has_drive_action(const RouterCall *call)
{
    return !router_nodes_wanted(call) && action_of(call);
}

void router_call_unsupported(RouterCall *call)
{
    const char *action = action_of(call);

    router_call_fail(call, "GenericError", "Spindle's drives and their nodes do not support '%s'",
                     action ? action : call->name);
}
