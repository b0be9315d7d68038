/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * -incoming and `migrate-incoming`: the drives' state is read first, QEMU loads the rest, then the drives get
 * theirs. QEMU does not restore the PCI configuration of a vfio-user-pci device; so what the guest had in it
 * is written again, through the ports that the guest would use.
 */
#include "system/router-state.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "monitor/qmp.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

static void start_machine(RouterState *state);

/* Those who want the machine to run are told whether it can. */
static void release_waiting(RouterState *state)
{
    g_autoptr(GPtrArray) waiting = g_steal_pointer(&state->waiting);

    state->waiting = g_ptr_array_new();
    for (guint i = 0; i < waiting->len; i++) {
        router_state_cont(g_ptr_array_index(waiting, i));
    }
}

void router_load_failed(RouterState *state, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_free(state->failure);
    state->failure = g_strdup_vprintf(format, args);
    va_end(args);
    state->phase = LOAD_FAILED;
    log_error("%s", state->failure);
    release_waiting(state);
}

static void close_inherited(Router *router)
{
    GArray *fds = router->config->inherited;

    for (guint i = 0; i < fds->len; i++) {
        close(g_array_index(fds, RouterConfigFd, i).fd);
    }
    g_array_set_size(fds, 0);
}

static void all_written(JsonObject *answer, void *opaque)
{
    RouterState *state = opaque;

    state->phase = LOAD_DONE;
    close_inherited(state->router);
    release_waiting(state);
    if (state->router->config->autostart) {
        start_machine(state);
    }
}

static void run_text(RouterState *state, RouterReply *reply, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void run_text(RouterState *state, RouterReply *reply, const char *format, ...)
{
    g_autoptr(JsonObject) args = json_object_new();
    va_list list;

    va_start(list, format);
    g_autofree char *line = g_strdup_vprintf(format, list);
    va_end(list);
    json_object_set_string_member(args, "command-line", line);
    router_peer_ask(state->router->engine, "human-monitor-command", args, reply, state);
}

#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA    0xcfc

/* One function's, at its place: the size letters are QEMU's for 1, 2 and 4 bytes. */
static void write_config(RouterState *state, unsigned address, JsonArray *writes)
{
    for (guint i = 0; i < json_array_get_length(writes); i++) {
        JsonObject *write = json_array_get_object_element(writes, i);
        unsigned offset = (unsigned)json_object_get_int_member(write, "offset");
        gint64 size = json_object_get_int_member(write, "size");
        run_text(state, ignore_reply, "o /w 0x%x 0x%x", CONFIG_ADDRESS, address | (offset & 0xfc));
        run_text(state, ignore_reply, "o /%c 0x%x 0x%x",
                 size == 1   ? 'b'
                 : size == 2 ? 'h'
                             : 'w',
                 CONFIG_DATA + (offset & 3), (unsigned)json_object_get_int_member(write, "value"));
    }
}

/* Bus, slot and function of a device, as the address register has them, among the devices of a bus and behind
 * its bridges. 0: not there. */
static unsigned find_function(JsonArray *devices, const char *id)
{
    for (guint i = 0; devices && i < json_array_get_length(devices); i++) {
        JsonObject *device = json_array_get_object_element(devices, i);
        if (!g_strcmp0(json_object_get_string_member_with_default(device, "qdev_id", ""), id)) {
            return 0x80000000u | (unsigned)json_object_get_int_member(device, "bus") << 16 |
                   (unsigned)json_object_get_int_member(device, "slot") << 11 |
                   (unsigned)json_object_get_int_member(device, "function") << 8;
        }
        JsonObject *bridge = json_object_has_member(device, "pci_bridge")
                                 ? json_object_get_object_member(device, "pci_bridge")
                                 : NULL;
        if (bridge && json_object_has_member(bridge, "devices")) {
            unsigned found = find_function(json_object_get_array_member(bridge, "devices"), id);
            if (found) {
                return found;
            }
        }
    }
    return 0;
}

static const char *device_of_controller(const Router *router, const char *user_id)
{
    JsonArray *controllers = router->config->controllers;

    for (guint i = 0; i < json_array_get_length(controllers); i++) {
        JsonObject *controller = json_array_get_object_element(controllers, i);
        if (!g_strcmp0(json_object_get_string_member(controller, "user-id"), user_id)) {
            return json_object_get_string_member(controller, "device");
        }
    }
    return NULL;
}

static unsigned controller_address(const Router *router, JsonArray *buses, const char *user_id)
{
    const char *device = device_of_controller(router, user_id);
    unsigned address = 0;

    for (guint i = 0; device && i < json_array_get_length(buses) && !address; i++) {
        address = find_function(
            json_object_get_array_member(json_array_get_object_element(buses, i), "devices"), device);
    }
    return address;
}

/* "portl[0x0cf8] = 0x80000000": what the guest has selected stays selected. */
static void on_address(JsonObject *answer, void *opaque)
{
    RouterState *state = opaque;
    const char *text = json_object_get_string_member_with_default(answer, "return", "");
    const char *equals = strchr(text, '=');

    run_text(state, all_written, "o /w 0x%x 0x%lx", CONFIG_ADDRESS,
             equals ? strtoul(equals + 1, NULL, 0) : 0);
}

static void on_pci(JsonObject *answer, void *opaque)
{
    RouterState *state = opaque;
    JsonNode *value = json_object_get_member(answer, "return");
    JsonArray *buses = value && JSON_NODE_HOLDS_ARRAY(value) ? json_node_get_array(value) : NULL;

    run_text(state, on_address, "i /w 0x%x", CONFIG_ADDRESS);
    for (guint i = 0; buses && i < json_array_get_length(state->writes); i++) {
        JsonObject *controller = json_array_get_object_element(state->writes, i);
        unsigned address =
            controller_address(state->router, buses, json_object_get_string_member(controller, "id"));
        if (address) {
            write_config(state, address, json_object_get_array_member(controller, "pci-config"));
        }
    }
}

static void on_loaded(JsonObject *answer, void *opaque)
{
    RouterState *state = opaque;
    JsonNode *value = json_object_get_member(answer, "return");
    JsonObject *object = value && JSON_NODE_HOLDS_OBJECT(value) ? json_node_get_object(value) : NULL;

    if (!object || !json_object_has_member(object, "controllers")) {
        router_load_failed(state, "The state of the drives: %s", router_answer_text(answer));
        return;
    }
    state->writes = json_array_ref(json_object_get_array_member(object, "controllers"));
    router_peer_ask(state->router->engine, "query-pci", NULL, on_pci, state);
}

void router_state_migration(Router *router, const char *status)
{
    RouterState *state = router->state;

    if (state->phase != LOAD_RUNNING) {
        return;
    }
    if (!strcmp(status, "failed")) {
        router_load_failed(state, "The machine's state could not be loaded");
    } else if (!strcmp(status, "completed")) {
        g_autoptr(JsonObject) args = json_object_new();
        state->phase = LOAD_DEVICES;
        state->parked = true;
        json_object_set_string_member(args, "data", state->data);
        router_peer_ask(router->drives, "load-state", args, on_loaded, state);
    }
}

static void incoming_replied(JsonObject *answer, void *opaque)
{
    StateJob *job = opaque;

    if (router_answer_failed(answer)) {
        router_load_failed(job->state, "%s", router_answer_text(answer));
    }
    if (job->call) {
        router_call_answer_behind_events(job->call, answer);
    }
    router_job_free(job);
}

static void on_read(StateJob *job, GError *error)
{
    RouterState *state = job->state;
    gsize size;

    if (error) {
        if (job->call) {
            router_call_fail(job->call, "GenericError", "%s", error->message);
        }
        router_load_failed(state, "%s", error->message);
        g_error_free(error);
        router_job_free(job);
        return;
    }
    const void *bytes = g_bytes_get_data(job->data, &size);
    g_free(state->data);
    state->data = g_base64_encode(bytes, size);
    state->phase = LOAD_RUNNING;
    if (job->ours || !job->call || router_stream_from_file(job)) {
        router_stream_hand_over(job, "migrate-incoming", incoming_replied);
    } else {
        RouterCall *call = job->call;
        router_job_free(job);
        router_call_pass(call, NULL);
    }
}

static bool begin(RouterState *state, RouterCall *call, const char *uri, GError **error)
{
    Router *router = state->router;
    bool ours;
    int fd = router_stream_open(call ? call->port : NULL, router->config, uri, true, &ours, error);

    if (fd < 0) {
        return false;
    }
    StateJob *job = g_new0(StateJob, 1);
    job->state = state;
    job->call = call;
    job->uri = g_strdup(uri);
    job->fd = fd;
    job->ours = ours;
    state->phase = LOAD_READING;
    router_stream_read(job, on_read);
    return true;
}

void router_state_incoming(RouterCall *call)
{
    RouterState *state = call->port->router->state;
    GError *error = NULL;

    if (state->phase != LOAD_EXPECTED && state->phase != LOAD_FAILED) {
        router_call_pass(call, NULL); /* QEMU says why not */
    } else if (!begin(state, call, router_call_arg(call, "uri"), &error)) {
        router_call_fail(call, "GenericError", "%s", error->message);
        g_error_free(error);
    }
}

static void cont_replied(RouterCall *call, JsonObject *failure)
{
    if (failure) {
        router_call_answer(call, failure);
    } else {
        call->port->router->state->parked = false;
        router_call_pass(call, NULL);
    }
}

void router_state_cont(RouterCall *call)
{
    RouterState *state = call->port->router->state;
    g_autoptr(JsonObject) none = json_object_new();

    switch (state->phase) {
    case LOAD_EXPECTED: /* as with QEMU: it runs when it has its state */
        state->router->config->autostart = true;
        router_call_return(call, qmp_object(json_object_new()));
        return;
    case LOAD_READING:
    case LOAD_RUNNING:
    case LOAD_DEVICES:
        g_ptr_array_add(state->waiting, call);
        return;
    case LOAD_FAILED:
        router_call_fail(call, "GenericError", "%s", state->failure);
        return;
    default:
        break;
    }
    if (state->parked && router_drives_alive(state->router)) {
        router_call_add_step(call, false, "cont", none, NULL);
        router_call_run_script(call, cont_replied);
    } else {
        router_call_pass(call, NULL);
    }
}

static void drives_run(JsonObject *answer, void *opaque)
{
    RouterState *state = opaque;

    if (router_answer_failed(answer)) {
        router_load_failed(state, "%s", router_answer_text(answer));
    } else {
        state->parked = false;
        router_peer_ask(state->router->engine, "cont", NULL, ignore_reply, NULL);
    }
}

static void start_machine(RouterState *state)
{
    router_peer_ask(state->router->drives, "cont", NULL, drives_run, state);
}

/* QEMU tells how loading goes if it is asked to. */
static void watch_migration(Router *router)
{
    g_autoptr(JsonObject) args = json_object_new();
    JsonObject *events = json_object_new();
    JsonArray *list = json_array_new();

    json_object_set_string_member(events, "capability", "events");
    json_object_set_boolean_member(events, "state", true);
    json_array_add_object_element(list, events);
    json_object_set_array_member(args, "capabilities", list);
    router_peer_ask(router->engine, "migrate-set-capabilities", args, ignore_reply, NULL);
}

RouterState *router_state_new(Router *router)
{
    RouterState *state = g_new0(RouterState, 1);
    const char *uri = router->config->incoming;
    GError *error = NULL;

    state->router = router;
    state->waiting = g_ptr_array_new();
    state->phase = uri ? LOAD_EXPECTED : LOAD_NONE;
    if (uri) {
        watch_migration(router);
    }
    if (uri && strcmp(uri, "defer") != 0 && !begin(state, NULL, uri, &error)) {
        router_load_failed(state, "-incoming %s: %s", uri, error->message);
        g_error_free(error);
    }
    return state;
}

void router_state_free(RouterState *state)
{
    g_ptr_array_unref(state->waiting);
    g_clear_pointer(&state->writes, json_array_unref);
    g_free(state->failure);
    g_free(state->data);
    g_free(state);
}
