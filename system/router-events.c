/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the router acts upon by itself: it keeps the drive process and QEMU in step, and when the drive
 * process is lost it tells the users, and has QEMU take the dead controllers from the guest where their bus
 * allows that. QEMU aborts when a machine with a dead controller is reset; so a reset is a shutdown from then
 * on.
 */
#include <string.h>
#include "monitor/qmp-json.h"
#include "monitor/qmp.h"
#include "system/router-int.h"
#include "util/json.h"
#include "util/log.h"

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

static JsonObject *event_data(JsonNode *event)
{
    JsonNode *data = json_object_get_member(json_node_get_object(event), "data");

    return data && JSON_NODE_HOLDS_OBJECT(data) ? json_node_get_object(data) : NULL;
}

static const char *data_string(JsonNode *event, const char *key)
{
    JsonObject *data = event_data(event);

    return data ? json_object_get_string_member_with_default(data, key, "") : "";
}

static bool event_is(JsonNode *event, const char *name)
{
    return !g_strcmp0(json_object_get_string_member_with_default(json_node_get_object(event), "event", ""),
                      name);
}

/* To all users that have negotiated. */
static void emit(Router *router, const char *name, JsonObject *data)
{
    JsonObject *object = json_object_new(), *time = json_object_new();
    gint64 now = g_get_real_time();

    json_object_set_int_member(time, "seconds", now / G_USEC_PER_SEC);
    json_object_set_int_member(time, "microseconds", now % G_USEC_PER_SEC);
    json_object_set_object_member(object, "timestamp", time);
    json_object_set_string_member(object, "event", name);
    json_object_set_object_member(object, "data", data);
    g_autoptr(JsonNode) event = qmp_object(object);
    for (guint i = 0; i < router->ports->len; i++) {
        RouterPort *port = g_ptr_array_index(router->ports, i);
        if (port->ready) {
            router_port_send(port, event);
        }
    }
}

void router_device_add(Router *router, const char *id, const char *driver, const char *bus)
{
    JsonObject *object = json_object_new();
    const char *dot = bus ? strrchr(bus, '.') : NULL;
    g_autofree char *controller = dot ? g_strndup(bus, (gsize)(dot - bus)) : g_strdup("ide");

    json_object_set_string_member(object, "id", id);
    json_object_set_string_member(object, "driver", driver);
    json_object_set_string_member(object, "controller", controller);
    json_array_add_object_element(router->config->devices, object);
}

static const char *device_path(JsonObject *device)
{
    return json_object_get_string_member_with_default(device, "path", "");
}

void router_device_remove(Router *router, const char *id, const char *path)
{
    JsonArray *devices = router->config->devices;

    for (guint i = json_array_get_length(devices); i-- > 0;) {
        JsonObject *device = json_array_get_object_element(devices, i);
        const char *known = json_object_get_string_member(device, "id");
        if (known[0] ? !strcmp(known, id) : !strcmp(device_path(device), path)) {
            json_array_remove_element(devices, i);
        }
    }
}

void router_drive_event(JsonNode *event, void *opaque)
{
    Router *router = opaque;

    if (event_is(event, "DEVICE_DELETED")) {
        router_device_remove(router, data_string(event, "device"), data_string(event, "path"));
    } else if (event_is(event, "BLOCK_IO_ERROR") && !strcmp(data_string(event, "action"), "stop")) {
        router->stopped_by_error = true;
        router_peer_ask(router->engine, "stop", NULL, ignore_reply, NULL);
    }
}

static JsonObject *find_controller(const Router *router, const char *device)
{
    for (guint i = 0; i < json_array_get_length(router->config->controllers); i++) {
        JsonObject *controller = json_array_get_object_element(router->config->controllers, i);
        if (!strcmp(json_object_get_string_member(controller, "device"), device)) {
            return controller;
        }
    }
    return NULL;
}

/* The guest has let go of a dead controller: its drives went with it. */
static void controller_deleted(Router *router, JsonObject *controller)
{
    JsonArray *devices = router->config->devices;
    const char *user_id = json_object_get_string_member(controller, "user-id");

    for (guint i = json_array_get_length(devices); i-- > 0;) {
        JsonObject *device = json_array_get_object_element(devices, i), *data;
        const char *id = json_object_get_string_member(device, "id");
        if (strcmp(json_object_get_string_member(device, "controller"), user_id) != 0) {
            continue;
        }
        g_autofree char *path =
            id[0] ? g_strconcat("/machine/peripheral/", id, NULL) : g_strdup(device_path(device));
        data = json_object_new();
        if (id[0]) {
            json_object_set_string_member(data, "device", id);
        }
        json_object_set_string_member(data, "path", path);
        emit(router, "DEVICE_DELETED", data);
        json_array_remove_element(devices, i);
    }
}

static void restore_console(gpointer data, gpointer opaque)
{
    router_console_restore(data);
}

void router_engine_event(JsonNode *event, void *opaque)
{
    Router *router = opaque;

    if (event_is(event, "STOP")) {
        router_peer_ask(router->drives, "stop", NULL, ignore_reply, NULL);
    } else if (event_is(event, "RESUME")) {
        router->stopped_by_error = false;
        router_peer_ask(router->drives, "cont", NULL, ignore_reply, NULL);
    } else if (event_is(event, "SHUTDOWN") && !router->config->no_shutdown) {
        g_ptr_array_foreach(router->consoles, restore_console, NULL);
    } else if (event_is(event, "MIGRATION")) {
        router_state_migration(router, data_string(event, "status"));
    } else if (event_is(event, "DEVICE_DELETED")) {
        JsonObject *controller = find_controller(router, data_string(event, "device"));
        if (controller) {
            controller_deleted(router, controller);
        }
    }
}

bool router_event_is_internal(const Router *router, const char *text, size_t len)
{
    size_t size;
    const char *name = qmp_json_member(text, len, "event", &size);

    if (!name || !g_str_has_prefix(name, "\"DEVICE_")) {
        return false;
    }
    g_autoptr(JsonNode) event = json_parse(text, (gssize)len, NULL);
    JsonObject *controller =
        event && JSON_NODE_HOLDS_OBJECT(event) ? find_controller(router, data_string(event, "device")) : NULL;
    return controller && json_object_get_boolean_member(controller, "hidden");
}

static void unplug_replied(JsonObject *answer, void *opaque)
{
    Router *router = opaque;

    if (router_answer_failed(answer)) {
        g_autoptr(JsonObject) args = json_object_new();
        json_object_set_string_member(args, "reboot", "shutdown");
        router_peer_ask(router->engine, "set-action", args, ignore_reply, NULL);
    }
}

void router_drives_lost(Router *router)
{
    JsonArray *devices = router->config->devices, *controllers = router->config->controllers;

    log_error("The drive process has ended: its drives are lost");
    for (guint i = 0; i < json_array_get_length(devices); i++) {
        JsonObject *data = json_object_new();
        const char *id = json_object_get_string_member(json_array_get_object_element(devices, i), "id");
        g_autofree char *path = g_strconcat("/machine/peripheral/", id, NULL);
        json_object_set_string_member(data, "device", "");
        json_object_set_string_member(data, "qom-path", path);
        json_object_set_string_member(data, "reason", "The drive process has ended");
        json_object_set_string_member(data, "operation", "read");
        json_object_set_string_member(data, "action", "report");
        json_object_set_boolean_member(data, "nospace", false);
        emit(router, "BLOCK_IO_ERROR", data);
    }
    for (guint i = 0; i < json_array_get_length(controllers); i++) {
        g_autoptr(JsonObject) args = json_object_new();
        JsonObject *controller = json_array_get_object_element(controllers, i);
        json_object_set_string_member(args, "id", json_object_get_string_member(controller, "device"));
        router_peer_ask(router->engine, "device_del", args, unplug_replied, router);
    }
}
