/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One user at a time, as QEMU has it: for each a new connection to QEMU, so that greeting, negotiation and
 * what is forgotten at the end are QEMU's own. Commands are taken in order, one at a time, but for those that
 * are out of band.
 *
 * What a user can make the router hold is bounded: while much waits to be read by them, neither QEMU nor the
 * drive process is read from, and no command is taken; QEMU and the drive process do the same in turn.
 */
#include "system/router-int.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "monitor/qmp-json.h"
#include "monitor/qmp.h"
#include "util/cleanup.h"
#include "util/json.h"

#define COMMAND_MAX (64u << 20) /* bytes: QEMU's own limit */
#define PENDING_MAX (1u << 20)  /* bytes that one side has not read */
#define QUEUE_MAX   16          /* commands taken ahead */

static void watch_clients(RouterPort *port);

static void close_fds(GArray *fds)
{
    for (guint i = 0; i < fds->len; i++) {
        close(g_array_index(fds, int, i));
    }
    g_array_set_size(fds, 0);
}

void router_port_forget_fd(RouterPort *port)
{
    if (port->got_fd >= 0) {
        close(steal_fd(&port->got_fd));
    }
    if (port->set_fd >= 0) {
        close(steal_fd(&port->set_fd));
    }
    g_clear_pointer(&port->got_name, g_free);
}

static void drop_call(gpointer data)
{
    RouterCall *call = data;

    call->orphan = true;
    router_call_unref(call);
}

/* Everything that belongs to this user ends; both connections are closed by the caller. */
static void forget_user(RouterPort *port)
{
    RouterCall *call;

    g_clear_handle_id(&port->next, g_source_remove);
    while ((call = g_queue_pop_head(&port->queue))) {
        drop_call(call);
    }
    if (port->current) {
        port->current->orphan = true;
        if (port->waiting) { /* for an answer that will not come */
            router_call_unref(port->waiting);
            router_call_unref(port->current);
        }
    }
    port->current = port->waiting = NULL;
    g_ptr_array_set_size(port->urgent, 0);
    close_fds(port->fds);
    router_port_forget_fd(port);
    port->ready = port->leaving = false;
    g_clear_pointer(&port->from_client, qmp_framer_free);
    g_clear_pointer(&port->from_engine, qmp_framer_free);
}

static void disconnect(RouterPort *port)
{
    if (!port->client) {
        return;
    }
    g_clear_pointer(&port->client, stream_free);
    g_clear_pointer(&port->engine, stream_free);
    forget_user(port);
    router_peer_pause(port->drives, false);
    if (port->config->server && !port->router->ended) {
        watch_clients(port);
    } else {
        port->client_over = true;
    }
    if (port->router->ended) {
        router_port_done(port->router);
    }
}

/* As long as the user does not read, nobody else is read from. */
static void balance(RouterPort *port)
{
    bool full = port->client && stream_pending(port->client) > PENDING_MAX;

    if (port->engine) {
        stream_pause(port->engine, full);
    }
    router_peer_pause(port->drives, full);
}

static void send_text(RouterPort *port, const char *text, size_t len)
{
    if (port->client) {
        stream_write(port->client, text, len);
        balance(port);
    }
}

void router_port_send(RouterPort *port, JsonNode *message)
{
    g_autoptr(GString) text = g_string_new(NULL);

    qmp_json_print(text, message, port->config->pretty);
    g_string_append_c(text, '\n');
    g_string_replace(text, "\n", "\r\n", 0); /* strings have none */
    send_text(port, text->str, text->len);
}

static bool take_urgent(RouterPort *port, const char *text, size_t len)
{
    size_t size;
    const char *id = port->urgent->len ? qmp_json_member(text, len, "id", &size) : NULL;
    g_autoptr(JsonNode) node = id ? json_parse(id, (gssize)size, NULL) : NULL;

    if (!node) {
        return false;
    }
    g_autoptr(GString) printed = g_string_new(NULL);
    qmp_json_print(printed, node, false);
    for (guint i = 0; i < port->urgent->len; i++) {
        if (!strcmp(g_ptr_array_index(port->urgent, i), printed->str)) {
            g_ptr_array_remove_index(port->urgent, i);
            return true;
        }
    }
    return false;
}

static void on_engine_message(RouterPort *port, const char *text, size_t len)
{
    size_t size;
    RouterCall *call = port->waiting;
    bool answer = qmp_json_member(text, len, "return", &size) || qmp_json_member(text, len, "error", &size);

    if (!answer && router_event_is_internal(port->router, text, len)) {
        return;
    }
    if (!answer || !call || take_urgent(port, text, len)) {
        send_text(port, text, len);
        send_text(port, "\r\n", 2);
        return;
    }
    port->waiting = NULL;
    if (!call->on_engine) {
        send_text(port, text, len);
        send_text(port, "\r\n", 2);
    }
    router_call_engine_answered(call, text, len);
    router_call_unref(call);
}

static void on_engine_data(const char *bytes, size_t size, void *opaque)
{
    RouterPort *port = opaque;
    bool too_long = false;
    size_t len;
    char *text;

    qmp_framer_add(port->from_engine, bytes, size);
    while (port->from_engine && (text = qmp_framer_next(port->from_engine, &len, &too_long))) {
        on_engine_message(port, text, len);
        g_free(text);
    }
}

/* QEMU ended the session, or itself: the user gets what is left. */
static void on_engine_closed(void *opaque)
{
    RouterPort *port = opaque;

    g_clear_pointer(&port->engine, stream_free);
    if (!stream_pending(port->client)) {
        disconnect(port);
    }
}

static const StreamOps engine_ops = {.data = on_engine_data, .closed = on_engine_closed};

static gboolean take_next(gpointer data)
{
    RouterPort *port = data;

    port->next = 0;
    if (port->current || stream_pending(port->client) > PENDING_MAX) {
        return G_SOURCE_REMOVE;
    }
    if (g_queue_is_empty(&port->queue)) {
        if (port->leaving && !stream_pending(port->client)) {
            disconnect(port);
        }
        return G_SOURCE_REMOVE;
    }
    port->current = g_queue_pop_head(&port->queue);
    if (g_queue_get_length(&port->queue) < QUEUE_MAX) {
        stream_pause(port->client, false);
    }
    router_call_start(port->current);
    return G_SOURCE_REMOVE;
}

void router_port_next(RouterPort *port)
{
    if (!port->next && port->client && !port->current && port->engine) {
        port->next = g_idle_add_full(G_PRIORITY_DEFAULT, take_next, port, NULL);
    }
}

/* Goes at once, whatever else is under way. */
static void pass_urgent(RouterPort *port, RouterCall *call)
{
    g_autoptr(GString) printed = g_string_new(NULL);

    if (call->id) {
        qmp_json_print(printed, call->id, false);
        g_ptr_array_add(port->urgent, g_strdup(printed->str));
    }
    stream_write_fds(port->engine, call->text, call->len, (int *)(void *)call->fds->data, call->fds->len);
    g_array_set_size(call->fds, 0);
}

static void on_client_data(const char *bytes, size_t size, void *opaque)
{
    RouterPort *port = opaque;
    bool too_long = false;
    size_t len;
    char *text;

    qmp_framer_add(port->from_client, bytes, size);
    while (port->engine && (text = qmp_framer_next(port->from_client, &len, &too_long))) {
        RouterCall *call = router_call_new(port, text, len, port->fds);
        port->fds = g_array_new(false, false, sizeof(int));
        if (call->urgent && port->ready) {
            pass_urgent(port, call);
            router_call_unref(call);
        } else {
            g_queue_push_tail(&port->queue, call);
        }
    }
    if (too_long) {
        disconnect(port);
        return;
    }
    if (g_queue_get_length(&port->queue) >= QUEUE_MAX) {
        stream_pause(port->client, true);
    }
    router_port_next(port);
}

static void on_client_fds(const int *fds, unsigned count, void *opaque)
{
    RouterPort *port = opaque;

    if (port->fds->len + count > STREAM_FDS_MAX) {
        close_fds(port->fds); /* as QEMU, which keeps the latest */
    }
    g_array_append_vals(port->fds, fds, count);
}

static void on_client_drained(void *opaque)
{
    RouterPort *port = opaque;

    balance(port);
    if (!port->engine) {
        disconnect(port);
    } else {
        router_port_next(port);
    }
}

/* The end of a pipe's input is not the end of its reader, who waits for what was asked. A socket's is, as
 * QEMU has it. */
static void on_client_closed(void *opaque)
{
    RouterPort *port = opaque;

    if (port->config->server || !port->engine) {
        disconnect(port);
        return;
    }
    port->leaving = true;
    router_port_next(port);
}

static const StreamOps client_ops = {
    .data = on_client_data, .fds = on_client_fds, .drained = on_client_drained, .closed = on_client_closed};

static int connect_engine(RouterPort *port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_strlcpy(address.sun_path, port->config->socket, sizeof address.sun_path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        return -1;
    }
    return steal_fd(&fd);
}

static void connected(RouterPort *port, int in, int out)
{
    int engine = connect_engine(port);

    if (engine < 0) { /* QEMU is gone */
        close(in);
        if (out != in) {
            close(out);
        }
        port->client_over = true;
        return;
    }
    port->from_client = qmp_framer_new(COMMAND_MAX);
    port->from_engine = qmp_framer_new(SIZE_MAX);
    port->client = stream_new(in, out, G_PRIORITY_DEFAULT, &client_ops, port);
    port->engine = stream_new(engine, engine, G_PRIORITY_DEFAULT, &engine_ops, port);
}

static gboolean on_client(gint fd, GIOCondition condition, gpointer data)
{
    RouterPort *port = data;
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (client < 0) {
        return G_SOURCE_CONTINUE;
    }
    port->watch = 0;
    connected(port, client, client);
    if (!port->client && !port->router->ended) {
        watch_clients(port);
    }
    return G_SOURCE_REMOVE;
}

static void watch_clients(RouterPort *port)
{
    if (!port->watch) {
        port->watch = g_unix_fd_add(port->config->in, G_IO_IN, on_client, port);
    }
}

/* What happens to drives is told to those who have negotiated, as QEMU does. */
static void on_drive_event(JsonNode *event, void *opaque)
{
    static const char *const internal[] = {"SHUTDOWN", "RESET", "STOP", "RESUME", NULL};
    RouterPort *port = opaque;
    const char *name = json_object_get_string_member_with_default(json_node_get_object(event), "event", "");

    if (port->ready && !g_strv_contains(internal, name)) {
        router_port_send(port, event);
    }
}

static void on_drives_closed(void *opaque)
{
    /* router.c acts, by its own session. */
}

static const RouterPeerOps drives_ops = {.event = on_drive_event, .closed = on_drives_closed};

RouterPort *router_port_new(Router *router, const RouterConfigPort *config)
{
    RouterPort *port = g_new0(RouterPort, 1);

    port->router = router;
    port->config = config;
    port->got_fd = port->set_fd = -1;
    port->urgent = g_ptr_array_new_with_free_func(g_free);
    port->fds = g_array_new(false, false, sizeof(int));
    port->drives = router_peer_new(config->drives, "The drive process", &drives_ops, port);
    if (config->in < 0) {
        port->client_over = true;
    } else if (config->server) {
        fcntl(config->in, F_SETFD, FD_CLOEXEC);
        g_unix_set_fd_nonblocking(config->in, true, NULL);
        watch_clients(port);
    } else {
        connected(port, config->in, config->out);
    }
    return port;
}

bool router_port_finish(RouterPort *port)
{
    g_clear_handle_id(&port->watch, g_source_remove);
    return port->client == NULL;
}

void router_port_free(RouterPort *port)
{
    g_clear_handle_id(&port->watch, g_source_remove);
    g_clear_pointer(&port->client, stream_free);
    g_clear_pointer(&port->engine, stream_free);
    forget_user(port);
    router_peer_free(port->drives);
    if (port->config->server) {
        close(port->config->in);
    }
    if (port->config->remove) {
        unlink(port->config->remove);
    }
    g_ptr_array_unref(port->urgent);
    g_array_unref(port->fds);
    g_free(port);
}
