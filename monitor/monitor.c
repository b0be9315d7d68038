/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/monitor.h"
#include <string.h>
#include <unistd.h>
#include "block/io-shell.h"
#include "monitor/backend.h"
#include "monitor/console.h"
#include "monitor/event-limiter.h"
#include "monitor/hmp-complete.h"
#include "monitor/hmp.h"
#include "monitor/qmp.h"
#include "monitor/session.h"
#include "monitor/threshold.h"
#include "util/error.h"

typedef struct Server {
    Monitor *monitor;
    Chardev *chardev;
    QmpSession *session; /* one of these two; both NULL: nobody is connected */
    Console *console;
    MonitorMode mode;
} Server;

struct Monitor {
    unsigned refs; /* the owner, and commands under way */
    bool closed;   /* the owner has let go */
    const MonitorMachine *machine;
    void *opaque;
    char *name, *uuid;
    GPtrArray *servers;  /* Server */
    GPtrArray *backends; /* Backend */
    GPtrArray *shells;   /* IoShell */
    GPtrArray *nodes;    /* BlockNode, one reference each */
    GPtrArray *groups;   /* ThrottleGroup, one reference each */
    GHashTable *fds;     /* by name; the values are descriptors plus one */
    EventLimiter *limiter;
};

static void server_free(gpointer data)
{
    Server *server = data;

    qmp_session_free(server->session);
    console_free(server->console);
    chardev_free(server->chardev);
    g_free(server);
}

static void node_free(gpointer data)
{
    block_unref(data);
}

static void group_free(gpointer data)
{
    throttle_group_unref(data);
}

static void shell_free(gpointer data)
{
    io_shell_free(data);
}

static void fd_free(gpointer data)
{
    close(GPOINTER_TO_INT(data) - 1);
}

static void send_event(JsonNode *event, void *opaque)
{
    Monitor *monitor = opaque;

    for (guint i = 0; i < monitor->servers->len; i++) {
        Server *server = g_ptr_array_index(monitor->servers, i);
        if (server->session) {
            qmp_session_event(server->session, event);
        }
    }
}

Monitor *monitor_new(const MonitorMachine *machine, void *opaque)
{
    Monitor *monitor = g_new0(Monitor, 1);

    monitor->refs = 1;
    monitor->machine = machine;
    monitor->opaque = opaque;
    monitor->servers = g_ptr_array_new_with_free_func(server_free);
    monitor->backends = g_ptr_array_new();
    monitor->shells = g_ptr_array_new_with_free_func(shell_free);
    monitor->nodes = g_ptr_array_new_with_free_func(node_free);
    monitor->groups = g_ptr_array_new_with_free_func(group_free);
    monitor->fds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, fd_free);
    monitor->limiter = event_limiter_new(send_event, monitor);
    return monitor;
}

void monitor_free(Monitor *monitor)
{
    if (!monitor) {
        return;
    }
    monitor->closed = true;
    g_ptr_array_set_size(monitor->servers, 0);
    g_ptr_array_set_size(monitor->shells, 0);
    while (monitor->backends->len) {
        backend_remove(g_ptr_array_index(monitor->backends, monitor->backends->len - 1));
    }
    threshold_forget(monitor);
    g_ptr_array_set_size(monitor->nodes, 0);
    g_ptr_array_set_size(monitor->groups, 0);
    g_clear_pointer(&monitor->limiter, event_limiter_free);
    g_hash_table_remove_all(monitor->fds);
    monitor_unref(monitor);
}

Monitor *monitor_ref(Monitor *monitor)
{
    monitor->refs++;
    return monitor;
}

void monitor_unref(Monitor *monitor)
{
    if (--monitor->refs > 0) {
        return;
    }
    g_ptr_array_unref(monitor->servers);
    g_ptr_array_unref(monitor->shells);
    g_ptr_array_unref(monitor->backends);
    g_ptr_array_unref(monitor->nodes);
    g_ptr_array_unref(monitor->groups);
    g_hash_table_unref(monitor->fds);
    g_free(monitor->name);
    g_free(monitor->uuid);
    g_free(monitor);
}

void monitor_set_name(Monitor *monitor, const char *name)
{
    g_free(monitor->name);
    monitor->name = g_strdup(name);
}

const char *monitor_name(const Monitor *monitor)
{
    return monitor->name;
}

void monitor_set_uuid(Monitor *monitor, const char *uuid)
{
    g_free(monitor->uuid);
    monitor->uuid = g_strdup(uuid);
}

const char *monitor_uuid(const Monitor *monitor)
{
    return monitor->uuid;
}

const MonitorMachine *monitor_machine(const Monitor *monitor, void **ret_opaque)
{
    *ret_opaque = monitor->opaque;
    return monitor->closed ? NULL : monitor->machine;
}

GPtrArray *monitor_backends(const Monitor *monitor)
{
    return monitor->backends;
}

GPtrArray *monitor_shells(const Monitor *monitor)
{
    return monitor->shells;
}

void monitor_own_node(Monitor *monitor, BlockNode *node)
{
    if (monitor->closed) {
        block_unref(node);
    } else {
        g_ptr_array_add(monitor->nodes, node);
    }
}

bool monitor_owns_node(const Monitor *monitor, BlockNode *node)
{
    return g_ptr_array_find(monitor->nodes, node, NULL);
}

void monitor_drop_node(Monitor *monitor, BlockNode *node)
{
    g_ptr_array_remove(monitor->nodes, node);
}

void monitor_own_group(Monitor *monitor, ThrottleGroup *group)
{
    g_ptr_array_add(monitor->groups, group);
}

static ThrottleGroup *group_at(const Monitor *monitor, guint i)
{
    return g_ptr_array_index(monitor->groups, i);
}

ThrottleGroup *monitor_find_group(const Monitor *monitor, const char *name)
{
    for (guint i = 0; i < monitor->groups->len; i++) {
        if (!strcmp(throttle_group_name(group_at(monitor, i)), name)) {
            return throttle_group_find(name);
        }
    }
    return NULL;
}

char **monitor_group_names(const Monitor *monitor)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = 0; i < monitor->groups->len; i++) {
        g_ptr_array_add(names, g_strdup(throttle_group_name(group_at(monitor, i))));
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, false);
}

bool monitor_drop_group(Monitor *monitor, const char *name, GError **error)
{
    for (guint i = 0; i < monitor->groups->len; i++) {
        ThrottleGroup *group = group_at(monitor, i);
        if (strcmp(throttle_group_name(group), name) != 0) {
            continue;
        }
        if (throttle_group_in_use(group)) {
            return error_set(error, "Cannot delete throttle group '%s' with active references", name);
        }
        g_ptr_array_remove_index(monitor->groups, i);
        return true;
    }
    return false;
}

void monitor_add_server(Monitor *monitor, Chardev *chardev, MonitorMode mode)
{
    Server *server = g_new0(Server, 1);

    server->monitor = monitor;
    server->chardev = chardev;
    server->mode = mode;
    g_ptr_array_add(monitor->servers, server);
}

static void on_closed(QmpSession *session, void *opaque)
{
    Server *server = opaque;

    server->session = NULL;
    qmp_session_free(session);
    chardev_disconnected(server->chardev);
}

static void on_console_closed(Console *console, void *opaque)
{
    Server *server = opaque;

    server->console = NULL;
    console_free(console);
    chardev_disconnected(server->chardev);
}

static void console_run(const char *line, void (*done)(const char *text, void *done_opaque),
                        void *done_opaque, void *opaque)
{
    hmp_run_line(((Server *)opaque)->monitor, line, done, done_opaque);
}

static char **console_complete(const char *before, const char *word, void *opaque)
{
    return hmp_complete(((Server *)opaque)->monitor, before, word);
}

static const ConsoleOps console_ops = {
    .prompt = "(spindle) ",
    .run = console_run,
    .complete = console_complete,
    .closed = on_console_closed,
};

static void on_connected(int in, int out, void *opaque)
{
    Server *server = opaque;

    if (server->mode == MONITOR_HUMAN) {
        server->console =
            console_new(&console_ops, server,
                        "Spindle " SPINDLE_VERSION " monitor - type 'help' for more information\n", in, out);
    } else {
        server->session =
            qmp_session_new(server->monitor, in, out, server->mode == MONITOR_QMP_PRETTY, on_closed, server);
    }
}

bool monitor_open(Monitor *monitor, GError **error)
{
    for (guint i = 0; i < monitor->servers->len; i++) {
        Server *server = g_ptr_array_index(monitor->servers, i);
        if (!chardev_open(server->chardev, on_connected, server, error)) {
            return false;
        }
    }
    return true;
}

bool monitor_is_closed(const Monitor *monitor)
{
    return monitor->closed;
}

void monitor_set_fd(Monitor *monitor, const char *name, int fd)
{
    g_hash_table_replace(monitor->fds, g_strdup(name), GINT_TO_POINTER(fd + 1));
}

bool monitor_close_fd(Monitor *monitor, const char *name)
{
    return g_hash_table_remove(monitor->fds, name);
}

int monitor_take_fd(Monitor *monitor, const char *name)
{
    gpointer key, value;

    if (!g_hash_table_steal_extended(monitor->fds, name, &key, &value)) {
        return -1;
    }
    g_free(key);
    return GPOINTER_TO_INT(value) - 1;
}

static JsonNode *make_event(const char *name, JsonObject *data)
{
    gint64 now = g_get_real_time();
    JsonObject *event = json_object_new(), *timestamp = json_object_new();

    json_object_set_int_member(timestamp, "seconds", now / G_USEC_PER_SEC);
    json_object_set_int_member(timestamp, "microseconds", now % G_USEC_PER_SEC);
    json_object_set_object_member(event, "timestamp", timestamp);
    json_object_set_string_member(event, "event", name);
    if (data) {
        json_object_set_object_member(event, "data", data);
    }
    return qmp_object(event);
}

void monitor_event(Monitor *monitor, const char *name, JsonObject *data)
{
    g_autoptr(JsonNode) event = make_event(name, data);

    send_event(event, monitor);
}

void monitor_event_limited(Monitor *monitor, const char *name, JsonObject *data, const char *key)
{
    g_autofree char *full = g_strconcat(name, " ", key, NULL);
    g_autoptr(JsonNode) event = make_event(name, data);

    if (monitor->limiter) {
        event_limiter_pass(monitor->limiter, full, event);
    }
}

void monitor_event_forget(Monitor *monitor, const char *name, const char *key)
{
    g_autofree char *full = g_strconcat(name, " ", key, NULL);

    if (monitor->limiter) {
        event_limiter_forget(monitor->limiter, full);
    }
}
