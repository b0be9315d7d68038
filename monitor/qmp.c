/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/qmp.h"
#include <string.h>
#include "util/error.h"

struct QmpCall {
    Monitor *monitor;
    QmpClient client;
    JsonObject *args;
    QmpDone done;
    void *opaque;
    bool deferred;
    bool running;  /* inside the command's function */
    bool finished; /* there, by qmp_call_finish() */
};

static const QmpCommand *const tables[] = {
    qmp_commands_block, qmp_commands_device,  qmp_commands_export,  qmp_commands_fd,
    qmp_commands_hmp,   qmp_commands_machine, qmp_commands_migrate, qmp_commands_qom,
    qmp_commands_query, qmp_commands_schema,  qmp_commands_state,   qmp_commands_tray,
};

const QmpCommand *qmp_command_nth(unsigned n)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const QmpCommand *command = tables[i]; command->name; command++) {
            if (n-- == 0) {
                return command;
            }
        }
    }
    return NULL;
}

const QmpCommand *qmp_command_find(const char *name)
{
    const QmpCommand *command;

    for (unsigned n = 0; (command = qmp_command_nth(n)) && strcmp(command->name, name) != 0; n++) {
    }
    return command;
}

bool qmp_command_available(const QmpCommand *command, const Monitor *monitor)
{
    void *opaque, (*function)(void);
    const MonitorMachine *machine = monitor_machine(monitor, &opaque);

    memcpy(&function, (const char *)machine + command->needs, sizeof function);
    return command->needs == 0 || function;
}

Monitor *qmp_call_monitor(const QmpCall *call)
{
    return call->monitor;
}

int qmp_call_take_fd(QmpCall *call)
{
    return call->client.take_fd ? call->client.take_fd(call->client.opaque) : -1;
}

JsonObject *qmp_args(const QmpCall *call)
{
    return call->args;
}

bool qmp_arg_given(const QmpCall *call, const char *name)
{
    return json_object_has_member(call->args, name);
}

const char *qmp_arg_string(const QmpCall *call, const char *name)
{
    return qmp_arg_given(call, name) ? json_object_get_string_member(call->args, name) : NULL;
}

bool qmp_arg_bool(const QmpCall *call, const char *name, bool fallback)
{
    return qmp_arg_given(call, name) ? json_object_get_boolean_member(call->args, name) : fallback;
}

int64_t qmp_arg_int(const QmpCall *call, const char *name, int64_t fallback)
{
    return qmp_arg_given(call, name) ? json_object_get_int_member(call->args, name) : fallback;
}

bool qmp_type_fits(JsonNode *node, QmpType type)
{
    GType value = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_NONE;

    switch (type) {
    case QMP_STRING:
        return value == G_TYPE_STRING;
    case QMP_BOOL:
        return value == G_TYPE_BOOLEAN;
    case QMP_INT:
        return value == G_TYPE_INT64;
    case QMP_UINT:
        return value == G_TYPE_INT64 && json_node_get_int(node) >= 0;
    case QMP_NUMBER:
        return value == G_TYPE_INT64 || value == G_TYPE_DOUBLE;
    case QMP_OBJECT:
        return JSON_NODE_HOLDS_OBJECT(node);
    case QMP_ARRAY:
        return JSON_NODE_HOLDS_ARRAY(node);
    default:
        return true;
    }
}

const char *qmp_type_name(QmpType type)
{
    static const char *const names[] = {"",       "string", "boolean", "integer", "uint64",
                                        "number", "object", "array",   "any"};

    return names[type];
}

static bool check_known(const QmpCommand *command, JsonObject *args, GError **error)
{
    g_autoptr(GList) members = json_object_get_members(args);

    for (GList *l = members; l && !command->any_args; l = l->next) {
        const QmpArg *arg = command->args;
        while (arg->name && strcmp(arg->name, l->data) != 0) {
            arg++;
        }
        if (!arg->name) {
            return error_set(error, "Parameter '%s' is unexpected", (char *)l->data);
        }
    }
    return true;
}

static bool wrong_type(const QmpArg *arg, GError **error)
{
    return arg->type == QMP_UINT ? error_set(error, "Parameter '%s' expects uint64", arg->name)
                                 : error_set(error, "Invalid parameter type for '%s', expected: %s",
                                             arg->name, qmp_type_name(arg->type));
}

static bool check_args(const QmpCommand *command, JsonObject *args, GError **error)
{
    for (const QmpArg *arg = command->args; arg->name; arg++) {
        if (!json_object_has_member(args, arg->name)) {
            if (!arg->optional) {
                return error_set(error, "Parameter '%s' is missing", arg->name);
            }
        } else if (!qmp_type_fits(json_object_get_member(args, arg->name), arg->type)) {
            return wrong_type(arg, error);
        }
    }
    return check_known(command, args, error);
}

void qmp_call_defer(QmpCall *call)
{
    call->deferred = true;
    call->client = (QmpClient){0}; /* which may be gone by the time the command goes on */
    monitor_ref(call->monitor);
}

static void call_free(QmpCall *call)
{
    if (call->deferred) {
        monitor_unref(call->monitor);
    }
    json_object_unref(call->args);
    g_free(call);
}

void qmp_call_finish(QmpCall *call, JsonNode *value, GError *error)
{
    call->done(value, error, call->opaque);
    call->finished = true;
    if (!call->running) {
        call_free(call);
    }
}

void qmp_call_run(Monitor *monitor, const QmpClient *client, const char *name, JsonObject *args, QmpDone done,
                  void *opaque)
{
    const QmpCommand *command = qmp_command_find(name);
    QmpCall *call = g_new0(QmpCall, 1);
    GError *error = NULL;
    JsonNode *value = NULL;

    call->monitor = monitor;
    call->client = client ? *client : (QmpClient){0};
    call->args = args ? json_object_ref(args) : json_object_new();
    call->done = done;
    call->opaque = opaque;
    if (!command || !qmp_command_available(command, monitor)) {
        g_set_error(&error, SPINDLE_ERROR, SPINDLE_ERROR_COMMAND_NOT_FOUND,
                    "The command %s has not been found", name);
    } else if (check_args(command, call->args, &error)) {
        call->running = true;
        value = command->run(call, &error);
        call->running = false;
    }
    if (call->finished) {
        call_free(call);
    } else if (!call->deferred) {
        qmp_call_finish(call, value, error);
    }
}

JsonNode *qmp_object(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    return node;
}

JsonNode *qmp_array(JsonArray *array)
{
    JsonNode *node = json_node_new(JSON_NODE_ARRAY);

    json_node_take_array(node, array);
    return node;
}

JsonNode *qmp_string(const char *text)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_string(node, text);
    return node;
}
