/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which command goes where. Whatever is not in the table passes to QEMU, unless it names one of Spindle's
 * drives or a node that only the drive process has.
 */
#include "system/router-int.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "monitor/qmp.h"

const char *router_call_arg(const RouterCall *call, const char *name)
{
    JsonNode *node = json_object_get_member(call->args, name);

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

static void pass(RouterCall *call)
{
    router_call_pass(call, NULL);
}

/* The drive process has no such command, or knows what the drive cannot do. */
static void answered(RouterCall *call, JsonObject *answer)
{
    if (router_answer_failed(answer) && !strcmp(router_answer_class(answer), "CommandNotFound")) {
        router_call_unsupported(call);
    } else {
        router_call_answer(call, answer);
    }
}

static void ask(RouterCall *call)
{
    router_call_ask(call, answered);
}

/* The drive that `id`, `device` or `name` names, if it is Spindle's. */
static const char *call_drive(const RouterCall *call)
{
    static const char *const keys[] = {"id", "device"};

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *name = router_call_arg(call, keys[i]);
        if (name && router_has_drive(call->port->router, name)) {
            return name;
        }
    }
    return NULL;
}

/* By its drive, else by its node, else QEMU's. */
static void route_drive(RouterCall *call)
{
    const char *node = router_call_arg(call, "node-name");

    if (call_drive(call) || (node && router_node_is_ours(call->port->router, node))) {
        ask(call);
    } else {
        pass(call);
    }
}

/* The tray is where a change of the medium begins and ends, see router-nodes.c. */
static void tray_answered(RouterCall *call, JsonObject *answer)
{
    GHashTable *open = call->port->router->open_trays;
    const char *drive = call_drive(call);
    bool begins = !strcmp(call->name, "blockdev-remove-medium");

    if (!router_answer_failed(answer) && begins) {
        g_hash_table_add(open, g_strdup(drive));
    } else if (!router_answer_failed(answer)) {
        g_hash_table_remove(open, drive);
    }
    router_call_answer(call, answer);
}

static void ask_tray(RouterCall *call)
{
    router_call_ask(call, tray_answered);
}

static void route_tray(RouterCall *call)
{
    if (call_drive(call)) {
        ask_tray(call);
    } else {
        pass(call);
    }
}

static void route_insert(RouterCall *call)
{
    const char *node = router_call_arg(call, "node-name");

    if (call_drive(call)) {
        router_nodes_need(call, node, false, ask_tray);
    } else {
        router_nodes_need(call, node, true, pass);
    }
}

/* Objects that both may need: the drive process gets a copy. What it does not have is QEMU's alone. */
static void object_copied(RouterCall *call, JsonObject *failure)
{
    if (failure) {
        router_call_answer(call, failure);
    } else {
        router_call_return(call, qmp_object(json_object_new()));
    }
}

static void object_added(RouterCall *call, JsonObject *answer)
{
    static const char *const shared[] = {"secret", "throttle-group", NULL};
    static bool ignored;
    const char *type = router_call_arg(call, "qom-type");

    if (router_answer_failed(answer) || !type) {
        router_call_answer(call, answer);
        return;
    }
    router_call_add_step(call, false, "object-add", call->args,
                         g_strv_contains(shared, type) && router_drives_alive(call->port->router) ? NULL
                                                                                                  : &ignored);
    router_call_run_script(call, object_copied);
}

static void route_object_add(RouterCall *call)
{
    const char *type = router_call_arg(call, "qom-type");

    if (type &&
        (!strcmp(type, "secret") || !strcmp(type, "throttle-group") || g_str_has_prefix(type, "tls-creds"))) {
        router_call_pass(call, object_added);
    } else {
        pass(call);
    }
}

/* One that a node in the drive process uses stays with both. */
static void object_deleted_here(RouterCall *call, JsonObject *answer)
{
    if (router_answer_failed(answer) && strstr(router_answer_text(answer), "in use")) {
        router_call_answer(call, answer);
    } else {
        pass(call);
    }
}

static void route_object_del(RouterCall *call)
{
    if (router_drives_alive(call->port->router)) {
        router_call_ask(call, object_deleted_here);
    } else {
        pass(call);
    }
}

JsonObject *router_bus_controller(const Router *router, const char *bus)
{
    JsonArray *controllers = router->config->controllers;
    const char *dot = bus ? strrchr(bus, '.') : NULL;

    for (guint i = 0; i < json_array_get_length(controllers); i++) {
        JsonObject *controller = json_array_get_object_element(controllers, i);
        const char *id = json_object_get_string_member(controller, "user-id");
        if (!bus || (dot && strlen(id) == (size_t)(dot - bus) && !strncmp(id, bus, strlen(id)))) {
            return controller;
        }
    }
    return NULL;
}

static void device_added(RouterCall *call, JsonObject *answer)
{
    const char *id = router_call_arg(call, "id"), *bus = router_call_arg(call, "bus");

    if (!router_answer_failed(answer)) {
        router_device_add(call->port->router, id ? id : "", router_call_arg(call, "driver"), bus);
    }
    router_call_answer(call, answer);
}

static void add_device_here(RouterCall *call)
{
    router_call_ask(call, device_added);
}

/* Drives for a bus of Spindle's; whether a bus takes them while the machine runs the drive process knows. */
static void route_device_add(RouterCall *call)
{
    const char *driver = router_call_arg(call, "driver"), *node = router_call_arg(call, "drive");
    bool drive = driver && (!strcmp(driver, "ide-cd") || !strcmp(driver, "ide-hd"));

    if (drive && router_bus_controller(call->port->router, router_call_arg(call, "bus"))) {
        router_nodes_need(call, node, false, add_device_here);
    } else {
        router_nodes_need(call, node, true, pass);
    }
}

static void route_device_del(RouterCall *call)
{
    if (call_drive(call)) {
        ask(call);
    } else {
        pass(call);
    }
}

static void route_qom(RouterCall *call)
{
    const char *path = router_call_arg(call, "path");

    if (path && router_has_drive(call->port->router, path)) {
        ask(call);
    } else if (path && !strcmp(call->name, "qom-list") &&
               (!strcmp(path, "/machine/peripheral") || !strcmp(path, "peripheral") ||
                !strcmp(path, "/machine/peripheral-anon") || !strcmp(path, "peripheral-anon"))) {
        router_merge_qom_list(call);
    } else {
        pass(call);
    }
}

/* What is loaded would lack their state. */
static void refuse_snapshot(RouterCall *call)
{
    if (router_drives_alive(call->port->router)) {
        router_call_fail(call, "GenericError", ROUTER_NO_SNAPSHOTS);
    } else {
        pass(call);
    }
}

/* Where a `migrate` comes next, it is to be written to before QEMU does. */
static void route_getfd(RouterCall *call)
{
    const char *name = router_call_arg(call, "fdname");

    if (name && call->fds->len == 1) {
        call->port->got_name = g_strdup(name);
        call->port->got_fd = fcntl(g_array_index(call->fds, int, 0), F_DUPFD_CLOEXEC, 3);
    }
    pass(call);
}

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

/* The drive process gets a copy, in the set that QEMU has chosen. */
static void fd_added(RouterCall *call, JsonObject *answer)
{
    JsonNode *value = json_object_get_member(answer, "return");
    const char *text = router_call_arg(call, "opaque");
    int fd = call->port->set_fd;

    call->port->set_fd = -1;
    if (value && JSON_NODE_HOLDS_OBJECT(value) && fd >= 0) {
        g_autoptr(JsonObject) args = json_object_new();
        json_object_set_int_member(args, "fdset-id",
                                   json_object_get_int_member(json_node_get_object(value), "fdset-id"));
        if (text) {
            json_object_set_string_member(args, "opaque", text);
        }
        router_peer_ask_with_fd(call->port->drives, "add-fd", args, fd, ignore_reply, NULL);
    } else if (fd >= 0) {
        close(fd);
    }
    router_call_answer(call, answer);
}

static void route_add_fd(RouterCall *call)
{
    if (call->fds->len == 1) {
        call->port->set_fd = fcntl(g_array_index(call->fds, int, 0), F_DUPFD_CLOEXEC, 3);
    }
    router_call_pass(call, fd_added);
}

/* The numbers of the descriptors differ; so all of the set go there, unless one stays with QEMU. */
static void route_remove_fd(RouterCall *call)
{
    JsonNode *id = json_object_get_member(call->args, "fdset-id");

    if (id && JSON_NODE_HOLDS_VALUE(id) && json_node_get_value_type(id) == G_TYPE_INT64 &&
        !json_object_has_member(call->args, "fd")) {
        router_peer_ask(call->port->drives, "remove-fd", call->args, ignore_reply, NULL);
    }
    pass(call);
}

static const struct {
    const char *name;
    void (*route)(RouterCall *call);
} routes[] = {
    {"add-fd", route_add_fd},
    {"block_resize", route_drive},
    {"block_set_io_throttle", route_drive},
    {"block-latency-histogram-set", route_drive},
    {"block-set-write-threshold", route_drive},
    {"blockdev-add", router_nodes_add},
    {"blockdev-change-medium", route_tray},
    {"blockdev-close-tray", route_tray},
    {"blockdev-del", router_nodes_del},
    {"blockdev-insert-medium", route_insert},
    {"blockdev-open-tray", route_drive},
    {"blockdev-remove-medium", route_tray},
    {"blockdev-reopen", router_nodes_reopen},
    {"cont", router_state_cont},
    {"device_add", route_device_add},
    {"device_del", route_device_del},
    {"eject", route_drive},
    {"getfd", route_getfd},
    {"human-monitor-command", router_text_route},
    {"migrate", router_state_migrate},
    {"migrate-incoming", router_state_incoming},
    {"object-add", route_object_add},
    {"object-del", route_object_del},
    {"qom-get", route_qom},
    {"qom-list", route_qom},
    {"qom-set", route_qom},
    {"query-block", router_merge_query_block},
    {"query-blockstats", router_merge_blockstats},
    {"query-chardev", router_merge_chardevs},
    {"query-named-block-nodes", router_merge_named_nodes},
    {"query-status", router_merge_status},
    {"remove-fd", route_remove_fd},
    {"snapshot-load", refuse_snapshot},
    {"snapshot-save", refuse_snapshot},
};

void router_route(RouterCall *call)
{
    const char *node;

    if (!g_str_has_prefix(call->name, "migrate")) {
        router_port_forget_fd(call->port);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(routes); i++) {
        if (!strcmp(routes[i].name, call->name)) {
            routes[i].route(call);
            return;
        }
    }
    node = router_call_arg(call, "device");
    if (node && router_has_drive(call->port->router, node)) {
        ask(call);
    } else if ((node = router_nodes_wanted(call))) {
        router_nodes_take(call, node, router_route); /* there may be others */
    } else if (router_nodes_has_drive_action(call)) {
        router_call_unsupported(call);
    } else {
        pass(call);
    }
}
