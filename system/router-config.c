/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/router-config.h"
#include <string.h>
#include "util/error.h"
#include "util/json.h"

static void port_free(gpointer data)
{
    RouterConfigPort *port = data;

    g_free(port->label);
    g_free(port->socket);
    g_free(port->address);
    g_free(port->remove);
    g_free(port);
}

RouterConfig *router_config_new(void)
{
    RouterConfig *config = g_new0(RouterConfig, 1);

    config->ports = g_ptr_array_new_with_free_func(port_free);
    config->inherited = g_array_new(false, false, sizeof(RouterConfigFd));
    config->devices = json_array_new();
    config->nodes = json_array_new();
    config->controllers = json_array_new();
    return config;
}

void router_config_free(RouterConfig *config)
{
    if (config) {
        g_free(config->folder);
        g_free(config->incoming);
        g_free(config->user);
        g_array_unref(config->inherited);
        g_ptr_array_unref(config->ports);
        json_array_unref(config->devices);
        json_array_unref(config->nodes);
        json_array_unref(config->controllers);
        g_free(config);
    }
}

RouterConfigPort *router_config_add_port(RouterConfig *config)
{
    RouterConfigPort *port = g_new0(RouterConfigPort, 1);

    port->in = port->out = port->drives = -1;
    g_ptr_array_add(config->ports, port);
    return port;
}

static void add_device(RouterConfig *config, JsonObject *device, const char *path)
{
    JsonObject *object = json_object_new();
    const char *bus = json_object_get_string_member_with_default(device, "bus", "");
    const char *dot = strrchr(bus, '.');

    json_object_set_string_member(object, "id", json_object_get_string_member_with_default(device, "id", ""));
    json_object_set_string_member(object, "name",
                                  json_object_get_string_member_with_default(device, "backend", ""));
    json_object_set_string_member(object, "driver",
                                  json_object_get_string_member_with_default(device, "driver", ""));
    g_autofree char *controller = dot ? g_strndup(bus, dot - bus) : g_strdup(bus);
    json_object_set_string_member(object, "controller", controller);
    if (path) {
        json_object_set_string_member(object, "path", path);
    }
    json_array_add_object_element(config->devices, object);
}

/* The k=v form has switches as words; QMP wants booleans. */
static JsonObject *with_booleans(JsonObject *object)
{
    JsonObject *copy = json_object_new();
    g_autoptr(GList) members = json_object_get_members(object);

    for (GList *l = members; l; l = l->next) {
        JsonNode *node = json_object_get_member(object, l->data);
        const char *text = JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
                               ? json_node_get_string(node)
                               : NULL;
        if (JSON_NODE_HOLDS_OBJECT(node)) {
            json_object_set_object_member(copy, l->data, with_booleans(json_node_get_object(node)));
        } else if (text && strcmp(l->data, "detect-zeroes") &&
                   (!strcmp(text, "on") || !strcmp(text, "off"))) {
            json_object_set_boolean_member(copy, l->data, text[1] == 'n');
        } else {
            json_object_set_member(copy, l->data, json_node_copy(node));
        }
    }
    return copy;
}

void router_config_add_plan(RouterConfig *config, const Plan *plan)
{
    for (guint i = 0; i < plan->drive->len; i++) {
        const PlanArg *arg = g_ptr_array_index(plan->drive, i);
        g_autoptr(JsonNode) node = arg->arg ? json_parse(arg->arg, -1, NULL) : NULL;
        if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
            continue;
        }
        if (!strcmp(arg->name, "--device")) {
            g_autofree char *path = plan_device_path(plan, i);
            add_device(config, json_node_get_object(node), path);
        } else if (!strcmp(arg->name, "--blockdev")) {
            json_array_add_object_element(config->nodes, with_booleans(json_node_get_object(node)));
        }
    }
    for (guint i = 0; i < plan->ports->len; i++) {
        const PlanPort *port = g_ptr_array_index(plan->ports, i);
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "device", port->device);
        json_object_set_string_member(object, "user-id", port->user_id);
        json_object_set_boolean_member(object, "hidden", port->hidden);
        json_array_add_object_element(config->controllers, object);
    }
}

/* Pairs of numbers. */
static JsonArray *inherited_array(const RouterConfig *config)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < config->inherited->len; i++) {
        const RouterConfigFd *item = &g_array_index(config->inherited, RouterConfigFd, i);
        json_array_add_int_element(array, item->number);
        json_array_add_int_element(array, item->fd);
    }
    return array;
}

char *router_config_to_text(const RouterConfig *config)
{
    g_autoptr(JsonObject) object = json_object_new();
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonArray *ports = json_array_new();

    for (guint i = 0; i < config->ports->len; i++) {
        const RouterConfigPort *port = g_ptr_array_index(config->ports, i);
        JsonObject *p = json_object_new();
        json_object_set_string_member(p, "label", port->label);
        json_object_set_string_member(p, "socket", port->socket);
        if (port->address) {
            json_object_set_string_member(p, "address", port->address);
        }
        if (port->remove) {
            json_object_set_string_member(p, "remove", port->remove);
        }
        json_object_set_int_member(p, "in", port->in);
        json_object_set_int_member(p, "out", port->out);
        json_object_set_int_member(p, "drives", port->drives);
        json_object_set_boolean_member(p, "server", port->server);
        json_object_set_boolean_member(p, "pretty", port->pretty);
        json_object_set_boolean_member(p, "human", port->human);
        json_object_set_boolean_member(p, "wait", port->wait);
        json_object_set_int_member(p, "serial", port->serial);
        json_array_add_object_element(ports, p);
    }
    json_object_set_string_member(object, "folder", config->folder);
    json_object_set_int_member(object, "engine", config->engine);
    json_object_set_int_member(object, "drives", config->drives);
    json_object_set_boolean_member(object, "timestamp", config->timestamp);
    json_object_set_boolean_member(object, "sandbox", config->sandbox);
    json_object_set_boolean_member(object, "no-shutdown", config->no_shutdown);
    if (config->user) {
        json_object_set_string_member(object, "user", config->user);
    }
    if (config->incoming) {
        json_object_set_string_member(object, "incoming", config->incoming);
        json_object_set_boolean_member(object, "autostart", config->autostart);
        json_object_set_array_member(object, "inherited", inherited_array(config));
    }
    json_object_set_array_member(object, "ports", ports);
    json_object_set_array_member(object, "devices", json_array_ref(config->devices));
    json_object_set_array_member(object, "nodes", json_array_ref(config->nodes));
    json_object_set_array_member(object, "controllers", json_array_ref(config->controllers));
    json_node_set_object(node, object);
    return json_to_string(node, false);
}

static void read_port(RouterConfig *config, JsonObject *p)
{
    RouterConfigPort *port = router_config_add_port(config);

    port->label = g_strdup(json_object_get_string_member_with_default(p, "label", ""));
    port->socket = g_strdup(json_object_get_string_member_with_default(p, "socket", ""));
    port->address = g_strdup(json_object_get_string_member_with_default(p, "address", NULL));
    port->remove = g_strdup(json_object_get_string_member_with_default(p, "remove", NULL));
    port->in = (int)json_object_get_int_member_with_default(p, "in", -1);
    port->out = (int)json_object_get_int_member_with_default(p, "out", -1);
    port->drives = (int)json_object_get_int_member_with_default(p, "drives", -1);
    port->server = json_object_get_boolean_member_with_default(p, "server", false);
    port->pretty = json_object_get_boolean_member_with_default(p, "pretty", false);
    port->human = json_object_get_boolean_member_with_default(p, "human", false);
    port->wait = json_object_get_boolean_member_with_default(p, "wait", false);
    port->serial = (int)json_object_get_int_member_with_default(p, "serial", -1);
}

static JsonArray *take_array(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, name);

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_array_ref(json_node_get_array(node)) : json_array_new();
}

static void read_array(JsonObject *object, const char *name, JsonArray **array)
{
    json_array_unref(*array);
    *array = take_array(object, name);
}

RouterConfig *router_config_from_text(const char *text, GError **error)
{
    g_autoptr(JsonNode) node = json_parse(text, -1, error);

    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        if (node) {
            error_set(error, "The router's argument is no JSON object");
        }
        return NULL;
    }
    JsonObject *object = json_node_get_object(node);
    RouterConfig *config = router_config_new();
    config->folder = g_strdup(json_object_get_string_member_with_default(object, "folder", ""));
    config->engine = (int)json_object_get_int_member_with_default(object, "engine", -1);
    config->drives = (int)json_object_get_int_member_with_default(object, "drives", -1);
    config->timestamp = json_object_get_boolean_member_with_default(object, "timestamp", false);
    config->no_shutdown = json_object_get_boolean_member_with_default(object, "no-shutdown", false);
    config->sandbox = json_object_get_boolean_member_with_default(object, "sandbox", false);
    config->user = g_strdup(json_object_get_string_member_with_default(object, "user", NULL));
    g_autoptr(JsonArray) ports = take_array(object, "ports");
    for (guint i = 0; i < json_array_get_length(ports); i++) {
        JsonNode *port = json_array_get_element(ports, i);
        if (JSON_NODE_HOLDS_OBJECT(port)) {
            read_port(config, json_node_get_object(port));
        }
    }
    config->incoming = g_strdup(json_object_get_string_member_with_default(object, "incoming", NULL));
    config->autostart = json_object_get_boolean_member_with_default(object, "autostart", false);
    g_autoptr(JsonArray) inherited = take_array(object, "inherited");
    for (guint i = 0; i + 1 < json_array_get_length(inherited); i += 2) {
        RouterConfigFd item = {(int)json_array_get_int_element(inherited, i),
                               (int)json_array_get_int_element(inherited, i + 1)};
        g_array_append_val(config->inherited, item);
    }
    read_array(object, "devices", &config->devices);
    read_array(object, "nodes", &config->nodes);
    read_array(object, "controllers", &config->controllers);
    return config;
}
