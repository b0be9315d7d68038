/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A call ends by exactly one answer to its user, or by passing QEMU's. It has a reference for being under way
 * (the port's, dropped with the answer) and one for each answer that it waits for; when its user goes away it
 * is an orphan: what it has begun goes on, and nobody hears of it.
 */
#include "system/router-int.h"
#include <string.h>
#include <unistd.h>
#include "monitor/qmp-json.h"
#include "monitor/qmp.h"
#include "util/json.h"

static void step_free(gpointer data)
{
    RouterStep *step = data;

    g_free(step->command);
    g_clear_pointer(&step->args, json_object_unref);
    g_free(step);
}

static void read_request(RouterCall *call)
{
    JsonObject *object = json_node_get_object(call->request);
    JsonNode *args = json_object_get_member(object, "arguments");
    JsonNode *execute = json_object_get_member(object, "execute");
    JsonNode *urgent = json_object_get_member(object, "exec-oob");

    if (execute && JSON_NODE_HOLDS_VALUE(execute) && json_node_get_value_type(execute) == G_TYPE_STRING) {
        call->name = json_node_get_string(execute);
    }
    call->id = json_object_get_member(object, "id");
    call->urgent = urgent != NULL;
    if (args && JSON_NODE_HOLDS_OBJECT(args)) {
        call->args = json_object_ref(json_node_get_object(args));
    } else if (args) {
        call->name = NULL; /* QEMU will say so */
    }
    if (!call->args) {
        call->args = json_object_new();
    }
}

/* `detach` of migrate was without effect for long and is gone from QEMU 11, but libvirt 9 still gives it. */
static void drop_detach(RouterCall *call)
{
    if (call->name && !strcmp(call->name, "migrate") && json_object_has_member(call->args, "detach")) {
        json_object_remove_member(call->args, "detach");
        g_free(call->text);
        call->text = json_to_string(call->request, false);
        call->len = strlen(call->text);
    }
}

RouterCall *router_call_new(RouterPort *port, char *text, size_t len, GArray *fds)
{
    RouterCall *call = g_new0(RouterCall, 1);

    call->port = port;
    call->refs = 1;
    call->text = text;
    call->len = len;
    call->fds = fds;
    call->request = len <= JSON_MAX_SIZE ? json_parse(text, (gssize)len, NULL) : NULL;
    if (call->request && JSON_NODE_HOLDS_OBJECT(call->request)) {
        read_request(call);
        drop_detach(call);
    }
    return call;
}

void router_call_unref(RouterCall *call)
{
    if (--call->refs > 0) {
        return;
    }
    for (guint i = 0; i < call->fds->len; i++) {
        close(g_array_index(call->fds, int, i));
    }
    g_array_unref(call->fds);
    g_clear_pointer(&call->args, json_object_unref);
    g_clear_pointer(&call->request, json_node_unref);
    g_clear_pointer(&call->kept, json_node_unref);
    g_clear_pointer(&call->script, g_ptr_array_unref);
    g_free(call->text);
    g_free(call);
}

static void end_call(RouterCall *call)
{
    RouterPort *port = call->port;

    if (!call->orphan && port->current == call) {
        port->current = NULL;
        router_port_next(port);
    }
    call->orphan = true;
    router_call_unref(call);
}

void router_call_start(RouterCall *call)
{
    GError *error = NULL;

    if (!call->request && call->len <= JSON_MAX_SIZE) {
        json_parse(call->text, (gssize)call->len, &error);
        router_call_fail(call, "GenericError", "%s", error ? error->message : "JSON parse error");
        g_clear_error(&error);
    } else if (!call->name || !call->port->ready) {
        router_call_pass(call, NULL);
    } else {
        router_route(call);
    }
}

void router_call_translate(RouterCall *call, const char *name, JsonObject *args,
                           char *(*as_text)(JsonNode *value))
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "execute", name);
    json_object_set_object_member(object, "arguments", json_object_ref(args));
    g_autoptr(JsonNode) node = qmp_object(object);
    g_free(call->text);
    call->text = json_to_string(node, false);
    call->len = strlen(call->text);
    json_object_unref(call->args);
    call->args = args;
    call->name = name;
    call->as_text = as_text;
}

void router_call_pass(RouterCall *call, void (*on_engine)(RouterCall *call, JsonObject *answer))
{
    RouterPort *port = call->port;

    if (call->orphan || !port->engine) {
        end_call(call);
        return;
    }
    call->refs++;
    call->on_engine = on_engine || !call->as_text ? on_engine : router_call_answer;
    port->waiting = call;
    stream_write_fds(port->engine, call->text, call->len, (int *)(void *)call->fds->data, call->fds->len);
    stream_write(port->engine, "\n", 1);
    g_array_set_size(call->fds, 0);
}

void router_call_engine_answered(RouterCall *call, const char *text, size_t len)
{
    g_autoptr(JsonNode) node = NULL;

    if (!call->on_engine) {
        size_t size;
        if (call->name && !strcmp(call->name, "qmp_capabilities") &&
            qmp_json_member(text, len, "return", &size)) {
            call->port->ready = true;
        }
        end_call(call);
        return;
    }
    node = json_parse(text, (gssize)len, NULL);
    if (node && JSON_NODE_HOLDS_OBJECT(node)) {
        call->on_engine(call, json_node_get_object(node));
    } else {
        router_call_fail(call, "GenericError", "QEMU's answer is too long to be looked at");
    }
}

static void drives_replied(JsonObject *answer, void *opaque)
{
    RouterCall *call = opaque;

    call->on_drives(call, answer);
    router_call_unref(call);
}

void router_call_ask(RouterCall *call, void (*on_drives)(RouterCall *call, JsonObject *answer))
{
    call->refs++;
    call->on_drives = on_drives;
    router_peer_ask(call->port->drives, call->name, call->args, drives_replied, call);
}

/* As the human monitor prints it. */
static JsonNode *human_answer(const RouterCall *call, JsonNode *value, bool failed)
{
    g_autoptr(JsonNode) node = value;
    g_autofree char *text = NULL;

    if (failed) {
        const char *why = json_object_get_string_member_with_default(json_node_get_object(node), "desc", "");
        text = g_strdup_printf("Error: %s\r\n", why);
    } else {
        text = call->as_text(node);
    }
    return qmp_string(text);
}

/* `value` is taken over. */
static void send_answer(RouterCall *call, const char *member, JsonNode *value)
{
    JsonObject *answer = json_object_new();
    bool failed = !strcmp(member, "error");

    if (call->as_text) {
        value = human_answer(call, value, failed);
        member = "return";
        failed = false;
    }

    if (call->id && failed) {
        json_object_set_member(answer, "id", json_node_copy(call->id));
    }
    json_object_set_member(answer, member, value);
    if (call->id && !failed) {
        json_object_set_member(answer, "id", json_node_copy(call->id));
    }
    g_autoptr(JsonNode) node = qmp_object(answer);
    if (!call->orphan) {
        router_port_send(call->port, node);
    }
    end_call(call);
}

void router_call_answer(RouterCall *call, JsonObject *answer)
{
    const char *member = router_answer_failed(answer) ? "error" : "return";
    JsonNode *value = json_object_get_member(answer, member);

    send_answer(call, member, value ? json_node_copy(value) : qmp_object(json_object_new()));
}

static void events_are_through(RouterCall *call, JsonObject *answer)
{
    g_autoptr(JsonNode) kept = g_steal_pointer(&call->kept);

    router_call_answer(call, json_node_get_object(kept));
}

void router_call_answer_behind_events(RouterCall *call, JsonObject *answer)
{
    static const char question[] = "{\"execute\":\"query-status\"}\n";
    RouterPort *port = call->port;

    if (call->orphan || !port->engine) {
        router_call_answer(call, answer);
        return;
    }
    g_clear_pointer(&call->kept, json_node_unref);
    call->kept = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(call->kept, answer);
    call->refs++;
    call->on_engine = events_are_through;
    port->waiting = call;
    stream_write(port->engine, question, sizeof question - 1);
}

void router_call_return(RouterCall *call, JsonNode *value)
{
    send_answer(call, "return", value);
}

void router_call_fail(RouterCall *call, const char *error_class, const char *format, ...)
{
    JsonObject *error = json_object_new();
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_object_set_string_member(error, "class", error_class);
    json_object_set_string_member(error, "desc", text);
    send_answer(call, "error", qmp_object(error));
}

void router_call_add_step(RouterCall *call, bool engine, const char *command, JsonObject *args, bool *failed)
{
    RouterStep *step = g_new0(RouterStep, 1);

    step->engine = engine;
    step->command = g_strdup(command);
    step->args = json_object_ref(args);
    step->failed = failed;
    if (!call->script) {
        call->script = g_ptr_array_new_with_free_func(step_free);
    }
    g_ptr_array_add(call->script, step);
}

static void next_step(RouterCall *call);

static void step_replied(JsonObject *answer, void *opaque)
{
    RouterCall *call = opaque;
    RouterStep *step = g_ptr_array_index(call->script, 0);
    bool failed = router_answer_failed(answer) && !step->failed;

    if (router_answer_failed(answer) && step->failed) {
        *step->failed = true;
    }
    g_ptr_array_remove_index(call->script, 0);
    if (failed) {
        g_ptr_array_set_size(call->script, 0);
        call->on_script(call, answer);
    } else {
        next_step(call);
    }
    router_call_unref(call);
}

static void next_step(RouterCall *call)
{
    Router *router = call->port->router;

    if (!call->script || call->script->len == 0) {
        call->on_script(call, NULL);
        return;
    }
    RouterStep *step = g_ptr_array_index(call->script, 0);
    call->refs++;
    router_peer_ask(step->engine ? router->engine : call->port->drives, step->command, step->args,
                    step_replied, call);
}

void router_call_run_script(RouterCall *call, void (*done)(RouterCall *call, JsonObject *failure))
{
    call->on_script = done;
    next_step(call);
}

static JsonObject *answer_error(JsonObject *answer)
{
    JsonNode *error = json_object_get_member(answer, "error");

    return error && JSON_NODE_HOLDS_OBJECT(error) ? json_node_get_object(error) : NULL;
}

bool router_answer_failed(JsonObject *answer)
{
    return json_object_has_member(answer, "error");
}

const char *router_answer_class(JsonObject *answer)
{
    JsonObject *error = answer_error(answer);

    return error ? json_object_get_string_member_with_default(error, "class", "") : "";
}

const char *router_answer_text(JsonObject *answer)
{
    JsonObject *error = answer_error(answer);

    return error ? json_object_get_string_member_with_default(error, "desc", "") : "";
}
