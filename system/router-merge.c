/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Queries that both are asked, the drive process first: what it has comes first in the joined list. Without
 * the drive process QEMU's answer is all; an error of one of them is the answer, never a list without its
 * part.
 */
#include "system/router-int.h"
#include <string.h>
#include "monitor/qmp.h"

static JsonArray *answer_array(JsonNode *answer)
{
    JsonNode *value = answer ? json_object_get_member(json_node_get_object(answer), "return") : NULL;

    return value && JSON_NODE_HOLDS_ARRAY(value) ? json_node_get_array(value) : NULL;
}

static void keep_answer(RouterCall *call, JsonObject *answer)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_set_object(node, answer);
    g_clear_pointer(&call->kept, json_node_unref);
    call->kept = node;
}

static JsonArray *object_array(JsonObject *answer)
{
    JsonNode *value = json_object_get_member(answer, "return");

    return value && JSON_NODE_HOLDS_ARRAY(value) ? json_node_get_array(value) : NULL;
}

static const char *element_string(JsonNode *element, const char *key)
{
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(element) ? json_node_get_object(element) : NULL;

    return object ? json_object_get_string_member_with_default(object, key, NULL) : NULL;
}

static bool has_element(JsonArray *array, const char *key, const char *value)
{
    for (guint i = 0; array && value && i < json_array_get_length(array); i++) {
        if (!g_strcmp0(element_string(json_array_get_element(array, i), key), value)) {
            return true;
        }
    }
    return false;
}

static void append_elements(JsonArray *to, JsonArray *from)
{
    for (guint i = 0; from && i < json_array_get_length(from); i++) {
        json_array_add_element(to, json_node_copy(json_array_get_element(from, i)));
    }
}

/* The drives of a drive process that has ended, as long as the guest has them. */
static void append_lost(JsonArray *to, const RouterCall *call)
{
    JsonArray *devices = call->port->router->config->devices;

    for (guint i = 0; i < json_array_get_length(devices); i++) {
        JsonObject *device = json_array_get_object_element(devices, i), *object = json_object_new();
        bool cd = !strcmp(json_object_get_string_member(device, "driver"), "ide-cd");
        json_object_set_string_member(object, "device", "");
        json_object_set_string_member(object, "type", "unknown");
        json_object_set_boolean_member(object, "removable", cd);
        json_object_set_boolean_member(object, "locked", false);
        json_object_set_string_member(object, "qdev", json_object_get_string_member(device, "id"));
        json_object_set_string_member(object, "io-status", "failed");
        if (cd) {
            json_object_set_boolean_member(object, "tray_open", false);
        }
        json_array_add_object_element(to, object);
    }
}

static void joined(RouterCall *call, JsonObject *answer)
{
    JsonArray *theirs = object_array(answer);

    if (!theirs) {
        router_call_answer(call, answer);
        return;
    }
    JsonArray *all = json_array_new();
    append_elements(all, answer_array(call->kept));
    if (!router_drives_alive(call->port->router) && !strcmp(call->name, "query-block")) {
        append_lost(all, call);
    }
    append_elements(all, theirs);
    router_call_return(call, qmp_array(all));
}

/* Keeps our part of the answer, and asks QEMU for its own. */
static void keep_and_pass(RouterCall *call, JsonObject *answer,
                          void (*join)(RouterCall *call, JsonObject *answer))
{
    if (router_answer_failed(answer) && router_drives_alive(call->port->router)) {
        router_call_answer(call, answer);
        return;
    }
    keep_answer(call, answer);
    router_call_pass(call, join);
}

static void ours_for_join(RouterCall *call, JsonObject *answer)
{
    keep_and_pass(call, answer, joined);
}

void router_merge_query_block(RouterCall *call)
{
    router_call_ask(call, ours_for_join);
}

void router_merge_blockstats(RouterCall *call)
{
    router_call_ask(call, ours_for_join);
}

/* A node that both have is told once, as QEMU has it. */
static void joined_nodes(RouterCall *call, JsonObject *answer)
{
    JsonArray *theirs = object_array(answer), *ours = answer_array(call->kept);

    if (!theirs) {
        router_call_answer(call, answer);
        return;
    }
    JsonArray *all = json_array_new();
    for (guint i = 0; ours && i < json_array_get_length(ours); i++) {
        JsonNode *node = json_array_get_element(ours, i);
        if (!has_element(theirs, "node-name", element_string(node, "node-name"))) {
            json_array_add_element(all, json_node_copy(node));
        }
    }
    append_elements(all, theirs);
    router_call_return(call, qmp_array(all));
}

static void ours_for_nodes(RouterCall *call, JsonObject *answer)
{
    keep_and_pass(call, answer, joined_nodes);
}

void router_merge_named_nodes(RouterCall *call)
{
    router_call_ask(call, ours_for_nodes);
}

/* In the folder of devices with an id, or without; NULL: not there. */
static const char *device_name(JsonObject *device, bool anonymous)
{
    const char *id = json_object_get_string_member(device, "id");
    const char *path = json_object_get_string_member_with_default(device, "path", NULL);

    if (anonymous) {
        return path ? strrchr(path, '/') + 1 : NULL;
    }
    return id[0] ? id : NULL;
}

/* Under /machine/peripheral: the drives are there, and the controllers that stand in for the user's are what
 * the user calls them; those that the user has not asked for are not. */
static void joined_devices(RouterCall *call, JsonObject *answer)
{
    JsonArray *theirs = object_array(answer), *controllers = call->port->router->config->controllers;
    JsonArray *devices = call->port->router->config->devices;
    const bool anonymous = g_str_has_suffix(router_call_arg(call, "path"), "-anon");

    if (!theirs) {
        router_call_answer(call, answer);
        return;
    }
    JsonArray *all = json_array_new();
    for (guint i = 0; i < json_array_get_length(theirs); i++) {
        JsonNode *element = json_array_get_element(theirs, i);
        bool hidden = false;
        for (guint k = 0; k < json_array_get_length(controllers); k++) {
            JsonObject *controller = json_array_get_object_element(controllers, k);
            hidden |= json_object_get_boolean_member(controller, "hidden") &&
                      !g_strcmp0(json_object_get_string_member(controller, "device"),
                                 element_string(element, "name"));
        }
        if (!hidden) {
            json_array_add_element(all, json_node_copy(element));
        }
    }
    for (guint i = 0; i < json_array_get_length(devices); i++) {
        JsonObject *device = json_array_get_object_element(devices, i);
        const char *name = device_name(device, anonymous);
        if (!name) {
            continue;
        }
        JsonObject *object = json_object_new();
        g_autofree char *type = g_strdup_printf("child<%s>", json_object_get_string_member(device, "driver"));
        json_object_set_string_member(object, "name", name);
        json_object_set_string_member(object, "type", type);
        json_array_add_object_element(all, object);
    }
    router_call_return(call, qmp_array(all));
}

void router_merge_qom_list(RouterCall *call)
{
    router_call_pass(call, joined_devices);
}

static const RouterPort *port_of_label(const Router *router, const char *label)
{
    for (guint i = 0; label && i < router->ports->len; i++) {
        const RouterPort *port = g_ptr_array_index(router->ports, i);
        if (!strcmp(port->config->label, label)) {
            return port;
        }
    }
    return NULL;
}

/* QEMU's sockets are told as the user's, which they stand for; the router's own is not. */
static void joined_chardevs(RouterCall *call, JsonObject *answer)
{
    JsonArray *theirs = object_array(answer);

    if (!theirs) {
        router_call_answer(call, answer);
        return;
    }
    JsonArray *all = json_array_new();
    for (guint i = 0; i < json_array_get_length(theirs); i++) {
        JsonNode *element = json_node_copy(json_array_get_element(theirs, i));
        const char *label = element_string(element, "label");
        const RouterPort *port = port_of_label(call->port->router, label);
        if (!g_strcmp0(label, ROUTER_CHARDEV)) {
            json_node_unref(element);
            continue;
        }
        if (port && port->config->address) {
            json_object_set_string_member(json_node_get_object(element), "filename", port->config->address);
        }
        json_array_add_element(all, element);
    }
    router_call_return(call, qmp_array(all));
}

void router_merge_chardevs(RouterCall *call)
{
    router_call_pass(call, joined_chardevs);
}

/* A machine that a drive's error policy has stopped. */
static void joined_status(RouterCall *call, JsonObject *answer)
{
    JsonNode *value = json_object_get_member(answer, "return");

    if (value && JSON_NODE_HOLDS_OBJECT(value) && call->port->router->stopped_by_error) {
        g_autoptr(JsonNode) copy = json_node_copy(value);
        JsonObject *status = json_node_get_object(copy);
        if (!g_strcmp0(json_object_get_string_member_with_default(status, "status", ""), "paused")) {
            json_object_set_string_member(status, "status", "io-error");
        }
        router_call_return(call, g_steal_pointer(&copy));
    } else {
        router_call_answer(call, answer);
    }
}

void router_merge_status(RouterCall *call)
{
    router_call_pass(call, joined_status);
}

static const char *answer_text(JsonObject *answer)
{
    return json_object_get_string_member_with_default(answer, "return", "");
}

static void joined_text(RouterCall *call, JsonObject *answer)
{
    const char *ours = answer_text(json_node_get_object(call->kept)), *theirs = answer_text(answer);

    if (router_answer_failed(answer)) {
        router_call_answer(call, answer);
        return;
    }
    g_autofree char *all = g_strconcat(ours, ours[0] && theirs[0] ? "\r\n" : "", theirs, NULL);
    router_call_return(call, qmp_string(all));
}

static void ours_for_text(RouterCall *call, JsonObject *answer)
{
    keep_answer(call, answer);
    router_call_pass(call, joined_text);
}

void router_merge_text(RouterCall *call)
{
    router_call_ask(call, ours_for_text);
}
