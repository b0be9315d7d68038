/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on moving a machine. It is sent while it stands still, so what QEMU's capabilities and
 * parameters would tune has nothing to act on: known ones are kept and told back, of all only `events` does
 * something.
 */
#include <string.h>
#include "monitor/qmp.h"
#include "util/error.h"

static const char *const capabilities[] = {
    "xbzrle",
    "rdma-pin-all",
    "auto-converge",
    "events",
    "postcopy-ram",
    "x-colo",
    "release-ram",
    "return-path",
    "pause-before-switchover",
    "multifd",
    "dirty-bitmaps",
    "postcopy-blocktime",
    "late-block-activate",
    "x-ignore-shared",
    "validate-uuid",
    "background-snapshot",
    "zero-copy-send",
    "postcopy-preempt",
    "switchover-ack",
    "dirty-limit",
    "mapped-ram",
};

static const struct {
    const char *name;
    GType type;
    gint64 number; /* by default; texts: empty */
} parameters[] = {
    {"announce-initial", G_TYPE_INT64, 50},
    {"announce-max", G_TYPE_INT64, 550},
    {"announce-rounds", G_TYPE_INT64, 5},
    {"announce-step", G_TYPE_INT64, 100},
    {"throttle-trigger-threshold", G_TYPE_INT64, 50},
    {"cpu-throttle-initial", G_TYPE_INT64, 20},
    {"cpu-throttle-increment", G_TYPE_INT64, 10},
    {"cpu-throttle-tailslow", G_TYPE_BOOLEAN, 0},
    {"tls-creds", G_TYPE_STRING, 0},
    {"tls-hostname", G_TYPE_STRING, 0},
    {"tls-authz", G_TYPE_STRING, 0},
    {"max-bandwidth", G_TYPE_INT64, 134217728},
    {"avail-switchover-bandwidth", G_TYPE_INT64, 0},
    {"downtime-limit", G_TYPE_INT64, 300},
    {"x-checkpoint-delay", G_TYPE_INT64, 20000},
    {"multifd-channels", G_TYPE_INT64, 2},
    {"xbzrle-cache-size", G_TYPE_INT64, 67108864},
    {"max-postcopy-bandwidth", G_TYPE_INT64, 0},
    {"max-cpu-throttle", G_TYPE_INT64, 99},
    {"multifd-compression", G_TYPE_STRING, 0},
    {"multifd-zlib-level", G_TYPE_INT64, 1},
    {"multifd-zstd-level", G_TYPE_INT64, 1},
    {"x-vcpu-dirty-limit-period", G_TYPE_INT64, 1000},
    {"vcpu-dirty-limit", G_TYPE_INT64, 1},
    {"mode", G_TYPE_STRING, 0},
    {"zero-page-detection", G_TYPE_STRING, 0},
    {"direct-io", G_TYPE_BOOLEAN, 0},
};

void monitor_migrate_settings_init(MonitorMigrateSettings *settings)
{
    settings->events = false;
    settings->on = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    settings->parameters = json_object_new();
}

void monitor_migrate_settings_clear(MonitorMigrateSettings *settings)
{
    g_clear_pointer(&settings->on, g_hash_table_unref);
    g_clear_pointer(&settings->parameters, json_object_unref);
}

static const MonitorMachine *machine_of(QmpCall *call, void **ret_opaque)
{
    return monitor_machine(qmp_call_monitor(call), ret_opaque);
}

static MonitorMigrateSettings *settings_of(QmpCall *call)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    return machine->migrate_settings(opaque);
}

static const char *member(JsonObject *object, const char *name)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

/* The one channel of the newer form as a URI. */
static char *uri_of_channels(JsonArray *channels, GError **error)
{
    JsonNode *first = json_array_get_length(channels) == 1 ? json_array_get_element(channels, 0) : NULL;
    JsonObject *channel = first && JSON_NODE_HOLDS_OBJECT(first) ? json_node_get_object(first) : NULL;
    JsonNode *node = channel ? json_object_get_member(channel, "addr") : NULL;
    JsonObject *addr = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    const char *transport = member(addr, "transport"), *type = member(addr, "type");

    if (!g_strcmp0(transport, "file") && member(addr, "filename")) {
        return g_strconcat("file:", member(addr, "filename"), NULL);
    }
    if (!g_strcmp0(transport, "socket") && !g_strcmp0(type, "unix") && member(addr, "path")) {
        return g_strconcat("unix:", member(addr, "path"), NULL);
    }
    if (!g_strcmp0(transport, "socket") && !g_strcmp0(type, "inet") && member(addr, "host") &&
        member(addr, "port")) {
        return g_strconcat("tcp:", member(addr, "host"), ":", member(addr, "port"), NULL);
    }
    if (!g_strcmp0(transport, "socket") && !g_strcmp0(type, "fd") && member(addr, "str")) {
        return g_strconcat("fd:", member(addr, "str"), NULL);
    }
    error_set(error,
              "Parameter 'channels' expects one channel: a socket of type unix, inet or fd, or a file");
    return NULL;
}

static char *uri_of(QmpCall *call, GError **error)
{
    bool channels = qmp_arg_given(call, "channels");

    if (channels == qmp_arg_given(call, "uri")) {
        error_set(error,
                  channels ? "'uri' and 'channels' arguments are mutually exclusive; exactly one of the two "
                             "should be present in 'migrate' qmp command "
                           : "need either 'uri' or 'channels' argument");
        return NULL;
    }
    return channels ? uri_of_channels(json_object_get_array_member(qmp_args(call), "channels"), error)
                    : g_strdup(qmp_arg_string(call, "uri"));
}

static JsonNode *cmd_migrate(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);
    g_autofree char *uri = uri_of(call, error);

    if (uri && qmp_arg_bool(call, "resume", false)) {
        error_set(error, "Cannot resume if there is no paused migration");
    } else if (uri) {
        machine->migrate(opaque, uri, error);
    }
    return NULL;
}

static JsonNode *cmd_migrate_incoming(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);
    g_autofree char *uri = uri_of(call, error);

    if (uri) {
        machine->incoming(opaque, uri, qmp_arg_bool(call, "exit-on-error", true), error);
    }
    return NULL;
}

static JsonNode *cmd_migrate_cancel(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    machine->migrate_cancel(opaque);
    return NULL;
}

static JsonNode *cmd_query_migrate(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    return qmp_object(machine->query_migrate ? machine->query_migrate(opaque) : json_object_new());
}

static bool capability_known(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(capabilities); i++) {
        if (!g_strcmp0(capabilities[i], name)) {
            return true;
        }
    }
    return false;
}

/* {"capability": NAME, "state": BOOL}; *ret_name stays the node's. */
static bool read_capability(JsonArray *array, guint i, const char **ret_name, bool *ret_on, GError **error)
{
    JsonNode *node = json_array_get_element(array, i);
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    JsonNode *state = object ? json_object_get_member(object, "state") : NULL;

    *ret_name = member(object, "capability");
    if (!*ret_name || !state) {
        return error_set(error, "Parameter 'capabilities[%u].%s' is missing", i,
                         *ret_name ? "state" : "capability");
    }
    if (!capability_known(*ret_name)) {
        return error_set(error, "Parameter 'capabilities[%u].capability' does not accept value '%s'", i,
                         *ret_name);
    }
    if (!JSON_NODE_HOLDS_VALUE(state) || json_node_get_value_type(state) != G_TYPE_BOOLEAN) {
        return error_set(error, "Invalid parameter type for 'capabilities[%u].state', expected: boolean", i);
    }
    *ret_on = json_node_get_boolean(state);
    return true;
}

static JsonNode *cmd_set_capabilities(QmpCall *call, GError **error)
{
    JsonArray *array = json_object_get_array_member(qmp_args(call), "capabilities");
    MonitorMigrateSettings *settings = settings_of(call);
    const char *name;
    bool on;

    for (guint i = 0; i < json_array_get_length(array); i++) { /* all or none */
        if (!read_capability(array, i, &name, &on, error)) {
            return NULL;
        }
    }
    for (guint i = 0; i < json_array_get_length(array); i++) {
        read_capability(array, i, &name, &on, NULL);
        if (on) {
            g_hash_table_add(settings->on, g_strdup(name));
        } else {
            g_hash_table_remove(settings->on, name);
        }
    }
    settings->events = g_hash_table_contains(settings->on, "events");
    return NULL;
}

static JsonNode *cmd_query_capabilities(QmpCall *call, GError **error)
{
    JsonArray *array = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(capabilities); i++) {
        JsonObject *object = json_object_new();

        json_object_set_string_member(object, "capability", capabilities[i]);
        json_object_set_boolean_member(object, "state",
                                       g_hash_table_contains(settings_of(call)->on, capabilities[i]));
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

static bool check_parameter(const char *name, JsonNode *value, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(parameters); i++) {
        if (!strcmp(parameters[i].name, name)) {
            return (JSON_NODE_HOLDS_VALUE(value) && json_node_get_value_type(value) == parameters[i].type) ||
                   error_set(error, "Invalid parameter type for '%s', expected: %s", name,
                             parameters[i].type == G_TYPE_INT64    ? "integer"
                             : parameters[i].type == G_TYPE_STRING ? "string"
                                                                   : "boolean");
        }
    }
    return error_set(error, "Parameter '%s' is unexpected", name);
}

static JsonNode *cmd_set_parameters(QmpCall *call, GError **error)
{
    JsonObject *args = qmp_args(call), *kept = settings_of(call)->parameters;
    g_autoptr(GList) names = json_object_get_members(args);

    for (GList *l = names; l; l = l->next) {
        if (!check_parameter(l->data, json_object_get_member(args, l->data), error)) {
            return NULL;
        }
    }
    for (GList *l = names; l; l = l->next) {
        json_object_set_member(kept, l->data, json_node_copy(json_object_get_member(args, l->data)));
    }
    return NULL;
}

static JsonNode *cmd_query_parameters(QmpCall *call, GError **error)
{
    JsonObject *object = json_object_new(), *kept = settings_of(call)->parameters;

    for (size_t i = 0; i < G_N_ELEMENTS(parameters); i++) {
        const char *name = parameters[i].name;

        if (json_object_has_member(kept, name)) {
            json_object_set_member(object, name, json_node_copy(json_object_get_member(kept, name)));
        } else if (parameters[i].type == G_TYPE_INT64) {
            json_object_set_int_member(object, name, parameters[i].number);
        } else if (parameters[i].type == G_TYPE_BOOLEAN) {
            json_object_set_boolean_member(object, name, false);
        } else {
            json_object_set_string_member(object, name,
                                          !strcmp(name, "mode")                  ? "normal"
                                          : !strcmp(name, "multifd-compression") ? "none"
                                          : !strcmp(name, "zero-page-detection") ? "multifd"
                                                                                 : "");
        }
    }
    return qmp_object(object);
}

const QmpCommand qmp_commands_migrate[] = {
    {.name = "migrate",
     .run = cmd_migrate,
     .needs = QMP_NEEDS(migrate),
     .args = {{"uri", QMP_STRING, true},
              {"channels", QMP_ARRAY, true},
              {"detach", QMP_BOOL, true},
              {"resume", QMP_BOOL, true}}},
    {.name = "migrate-incoming",
     .run = cmd_migrate_incoming,
     .needs = QMP_NEEDS(incoming),
     .args = {{"uri", QMP_STRING, true}, {"channels", QMP_ARRAY, true}, {"exit-on-error", QMP_BOOL, true}}},
    {.name = "migrate-set-capabilities",
     .run = cmd_set_capabilities,
     .needs = QMP_NEEDS(migrate_settings),
     .args = {{"capabilities", QMP_ARRAY}}},
    {.name = "migrate-set-parameters",
     .run = cmd_set_parameters,
     .needs = QMP_NEEDS(migrate_settings),
     .any_args = true},
    {.name = "migrate_cancel", .run = cmd_migrate_cancel, .needs = QMP_NEEDS(migrate_cancel)},
    {.name = "query-migrate", .run = cmd_query_migrate, .returns = QMP_OBJECT, .needs = QMP_NEEDS(reset)},
    {.name = "query-migrate-capabilities",
     .run = cmd_query_capabilities,
     .returns = QMP_ARRAY,
     .needs = QMP_NEEDS(migrate_settings)},
    {.name = "query-migrate-parameters",
     .run = cmd_query_parameters,
     .returns = QMP_OBJECT,
     .needs = QMP_NEEDS(migrate_settings)},
    {NULL},
};
