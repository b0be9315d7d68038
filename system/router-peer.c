/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/router-int.h"
#include <unistd.h>
#include "monitor/qmp-json.h"
#include "monitor/qmp.h"
#include "util/json.h"

/* What waits for an answer; they come in order. */
typedef struct Ask {
    RouterReply *reply;
    void *opaque;
} Ask;

struct RouterPeer {
    char *what;
    const RouterPeerOps *ops;
    void *opaque;
    Stream *stream; /* NULL: gone */
    QmpFramer *framer;
    GQueue asks;
};

static JsonObject *gone_answer(const RouterPeer *peer)
{
    JsonObject *answer = json_object_new(), *error = json_object_new();
    g_autofree char *text = g_strdup_printf("%s has ended", peer->what);

    json_object_set_string_member(error, "class", "GenericError");
    json_object_set_string_member(error, "desc", text);
    json_object_set_object_member(answer, "error", error);
    return answer;
}

static void fail_all(RouterPeer *peer)
{
    g_autoptr(JsonObject) answer = gone_answer(peer);
    Ask *ask;

    while ((ask = g_queue_pop_head(&peer->asks))) {
        ask->reply(answer, ask->opaque);
        g_free(ask);
    }
}

static void on_message(RouterPeer *peer, const char *text, size_t len)
{
    g_autoptr(JsonNode) node = json_parse(text, (gssize)len, NULL);
    JsonObject *object = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;

    if (!object || json_object_has_member(object, "QMP")) {
        return;
    }
    if (json_object_has_member(object, "event")) {
        if (peer->ops->event) {
            peer->ops->event(node, peer->opaque);
        }
        return;
    }
    Ask *ask = g_queue_pop_head(&peer->asks);
    if (ask) {
        ask->reply(object, ask->opaque);
        g_free(ask);
    }
}

static void on_data(const char *bytes, size_t size, void *opaque)
{
    RouterPeer *peer = opaque;
    bool too_long = false;
    size_t len;
    char *text;

    qmp_framer_add(peer->framer, bytes, size);
    while ((text = qmp_framer_next(peer->framer, &len, &too_long))) {
        on_message(peer, text, len);
        g_free(text);
    }
}

static void on_closed(void *opaque)
{
    RouterPeer *peer = opaque;

    g_clear_pointer(&peer->stream, stream_free);
    fail_all(peer);
    peer->ops->closed(peer->opaque);
}

static const StreamOps stream_ops = {.data = on_data, .closed = on_closed};

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

RouterPeer *router_peer_new(int fd, const char *what, const RouterPeerOps *ops, void *opaque)
{
    RouterPeer *peer = g_new0(RouterPeer, 1);

    peer->what = g_strdup(what);
    peer->ops = ops;
    peer->opaque = opaque;
    peer->framer = qmp_framer_new(SIZE_MAX);
    peer->stream = stream_new(fd, fd, G_PRIORITY_DEFAULT, &stream_ops, peer);
    router_peer_ask(peer, "qmp_capabilities", NULL, ignore_reply, NULL);
    return peer;
}

void router_peer_close(RouterPeer *peer)
{
    g_clear_pointer(&peer->stream, stream_free);
    fail_all(peer);
}

void router_peer_free(RouterPeer *peer)
{
    if (peer) {
        router_peer_close(peer);
        qmp_framer_free(peer->framer);
        g_free(peer->what);
        g_free(peer);
    }
}

bool router_peer_alive(const RouterPeer *peer)
{
    return peer->stream != NULL;
}

void router_peer_ask(RouterPeer *peer, const char *command, JsonObject *args, RouterReply *reply,
                     void *opaque)
{
    router_peer_ask_with_fd(peer, command, args, -1, reply, opaque);
}

void router_peer_ask_with_fd(RouterPeer *peer, const char *command, JsonObject *args, int fd,
                             RouterReply *reply, void *opaque)
{
    if (!peer->stream) {
        if (fd >= 0) {
            close(fd);
        }
        g_autoptr(JsonObject) answer = gone_answer(peer);
        reply(answer, opaque);
        return;
    }
    JsonObject *message = json_object_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Ask *ask = g_new0(Ask, 1);

    json_object_set_string_member(message, "execute", command);
    if (args) {
        json_object_set_object_member(message, "arguments", json_object_ref(args));
    }
    g_autoptr(JsonNode) node = qmp_object(message);
    qmp_json_print(text, node, false);
    g_string_append_c(text, '\n');
    ask->reply = reply;
    ask->opaque = opaque;
    g_queue_push_tail(&peer->asks, ask);
    stream_write_fds(peer->stream, text->str, text->len, &fd, fd >= 0 ? 1 : 0);
}

void router_peer_pause(RouterPeer *peer, bool paused)
{
    if (peer->stream) {
        stream_pause(peer->stream, paused);
    }
}
