/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/session.h"
#include <string.h>
#include <unistd.h>
#include "monitor/qmp-json.h"
#include "monitor/qmp.h"
#include "monitor/query.h"
#include "monitor/stream.h"
#include "util/error.h"
#include "util/json.h"

#define PENDING_COMMANDS (256 * 1024)  /* bytes unread by the client: no command is taken */
#define PENDING_EVENTS   (1024 * 1024) /* no event is sent */

typedef enum { QMP_NEGOTIATING, QMP_READY, QMP_CLOSING } QmpState;

struct QmpSession {
    Monitor *monitor;
    QmpState state;
    bool pretty;
    Stream *stream;
    QmpFramer *framer;
    JsonNode *id;  /* of the command under way, or NULL */
    bool running;  /* a command is under way */
    guint next;    /* source that takes the next one */
    unsigned refs; /* the owner, and the command under way */
    GArray *fds;   /* that came and were not asked for yet, the session's */
    void (*closed)(QmpSession *session, void *opaque);
    void *opaque;
};

static void session_schedule(QmpSession *session);

static void drop_fds(QmpSession *session)
{
    for (guint i = 0; i < session->fds->len; i++) {
        close(g_array_index(session->fds, int, i));
    }
    g_array_set_size(session->fds, 0);
}

static int take_fd(void *opaque)
{
    QmpSession *session = opaque;

    if (session->fds->len == 0) {
        return -1;
    }
    int fd = g_array_index(session->fds, int, 0);
    g_array_remove_index(session->fds, 0);
    return fd;
}

static void session_unref(QmpSession *session)
{
    if (--session->refs == 0) {
        g_clear_pointer(&session->id, json_node_unref);
        qmp_framer_free(session->framer);
        drop_fds(session);
        g_array_unref(session->fds);
        g_free(session);
    }
}

static void session_send(QmpSession *session, JsonNode *node)
{
    if (session->stream) {
        g_autoptr(GString) text = g_string_new(NULL);
        qmp_json_print(text, node, session->pretty);
        g_string_append(text, "\r\n");
        stream_write(session->stream, text->str, text->len);
    }
}

static void greet(QmpSession *session)
{
    JsonObject *greeting = json_object_new(), *qmp = json_object_new();

    json_object_set_object_member(qmp, "version", qmp_version_object());
    json_object_set_array_member(qmp, "capabilities", json_array_new());
    json_object_set_object_member(greeting, "QMP", qmp);
    g_autoptr(JsonNode) node = qmp_object(greeting);
    session_send(session, node);
}

static const char *error_class(const GError *error)
{
    static const char *const names[] = {"GenericError", "CommandNotFound", "DeviceNotActive",
                                        "DeviceNotFound"};

    return error->domain == SPINDLE_ERROR && error->code >= 0 && (size_t)error->code < G_N_ELEMENTS(names)
               ? names[error->code]
               : names[0];
}

/* value and error are taken over. */
static void session_answer(QmpSession *session, JsonNode *value, GError *error)
{
    JsonObject *answer = json_object_new();

    if (session->id) {
        json_object_set_member(answer, "id", g_steal_pointer(&session->id));
    }
    if (error) {
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "class", error_class(error));
        json_object_set_string_member(object, "desc", error->message);
        json_object_set_object_member(answer, "error", object);
        g_error_free(error);
    } else {
        json_object_set_member(answer, "return", value ? value : qmp_object(json_object_new()));
    }
    g_autoptr(JsonNode) node = qmp_object(answer);
    session_send(session, node);
}

static void command_done(JsonNode *value, GError *error, void *opaque)
{
    QmpSession *session = opaque;

    session->running = false;
    session_answer(session, value, error);
    session_schedule(session);
    session_unref(session);
}

/* No capability is offered. */
static bool negotiate(JsonObject *args, GError **error)
{
    JsonNode *enable = args ? json_object_get_member(args, "enable") : NULL;

    if (enable && !JSON_NODE_HOLDS_ARRAY(enable)) {
        return error_set(error, "Invalid parameter type for 'enable', expected: array");
    }
    for (guint i = 0; enable && i < json_array_get_length(json_node_get_array(enable)); i++) {
        JsonNode *name = json_array_get_element(json_node_get_array(enable), i);
        if (!JSON_NODE_HOLDS_VALUE(name) || json_node_get_value_type(name) != G_TYPE_STRING) {
            return error_set(error, "Invalid parameter type for 'enable[%u]', expected: string", i);
        }
        const char *text = json_node_get_string(name);
        return strcmp(text, "oob") == 0
                   ? error_set(error, "This monitor does not support Out-Of-Band (OOB)")
                   : error_set(error, "Parameter 'enable[%u]' does not accept value '%s'", i, text);
    }
    return true;
}

/* The members of a command. *ret_name and *ret_args stay the request's. */
static bool check_request(JsonNode *request, const char **ret_name, JsonObject **ret_args, GError **error)
{
    *ret_name = NULL;
    *ret_args = NULL;
    if (!JSON_NODE_HOLDS_OBJECT(request)) {
        return error_set(error, "QMP input must be a JSON object");
    }
    g_autoptr(GList) members = json_object_get_members(json_node_get_object(request));
    for (GList *l = members; l; l = l->next) {
        const char *key = l->data;
        JsonNode *node = json_object_get_member(json_node_get_object(request), key);
        if (!strcmp(key, "execute")) {
            if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING) {
                return error_set(error, "QMP input member '%s' must be a string", key);
            }
            *ret_name = json_node_get_string(node);
        } else if (!strcmp(key, "arguments")) {
            if (!JSON_NODE_HOLDS_OBJECT(node)) {
                return error_set(error, "QMP input member 'arguments' must be an object");
            }
            *ret_args = json_node_get_object(node);
        } else if (strcmp(key, "id") != 0) {
            return error_set(error, "QMP input member '%s' is unexpected", key);
        }
    }
    return *ret_name ? true : error_set(error, "QMP input lacks member 'execute'");
}

static void run_request(QmpSession *session, JsonNode *request, GError *error)
{
    const char *name = NULL;
    JsonObject *args = NULL;

    if (!error && JSON_NODE_HOLDS_OBJECT(request)) {
        JsonNode *id = json_object_get_member(json_node_get_object(request), "id");
        session->id = id ? json_node_copy(id) : NULL;
    }
    if (error || !check_request(request, &name, &args, &error)) {
        session_answer(session, NULL, error);
    } else if (session->state == QMP_READY && strcmp(name, "qmp_capabilities")) {
        session->running = true;
        session->refs++;
        qmp_call_run(session->monitor, &(QmpClient){take_fd, session}, name, args, command_done, session);
    } else if (session->state == QMP_READY) {
        g_set_error(&error, SPINDLE_ERROR, SPINDLE_ERROR_COMMAND_NOT_FOUND,
                    "Capabilities negotiation is already complete, command ignored");
        session_answer(session, NULL, error);
    } else if (strcmp(name, "qmp_capabilities") != 0) {
        g_set_error(&error, SPINDLE_ERROR, SPINDLE_ERROR_COMMAND_NOT_FOUND,
                    "Expecting capabilities negotiation with 'qmp_capabilities'");
        session_answer(session, NULL, error);
    } else {
        if (negotiate(args, &error)) {
            session->state = QMP_READY;
        }
        session_answer(session, NULL, error);
    }
}

static void session_close(QmpSession *session)
{
    if (session->state != QMP_CLOSING) {
        session->state = QMP_CLOSING;
        g_clear_pointer(&session->stream, stream_free);
        if (session->next) {
            g_source_remove(session->next);
            session->next = 0;
        }
        session->closed(session, session->opaque);
    }
}

/* Takes one command. */
static gboolean take_next(gpointer data)
{
    QmpSession *session = data;
    bool too_long = false;
    size_t len;

    session->next = 0;
    if (session->running || session->state == QMP_CLOSING ||
        stream_pending(session->stream) > PENDING_COMMANDS) {
        return G_SOURCE_REMOVE;
    }
    g_autofree char *text = qmp_framer_next(session->framer, &len, &too_long);
    if (too_long) {
        GError *error = NULL;
        error_set(&error, "JSON parse error, value is longer than %d bytes", JSON_MAX_SIZE);
        session_answer(session, NULL, error);
        session_close(session);
        return G_SOURCE_REMOVE;
    }
    if (!text) {
        stream_pause(session->stream, false);
        return G_SOURCE_REMOVE;
    }
    GError *error = NULL;
    g_autoptr(JsonNode) request = json_parse(text, (gssize)len, &error);
    session->refs++;
    run_request(session, request, error);
    session_schedule(session);
    session_unref(session);
    return G_SOURCE_REMOVE;
}

static void session_schedule(QmpSession *session)
{
    if (!session->next && session->state != QMP_CLOSING && !session->running) {
        session->next = g_idle_add_full(G_PRIORITY_DEFAULT, take_next, session, NULL);
    }
}

/* What was read is worked off before more is read. */
static void on_data(const char *bytes, size_t size, void *opaque)
{
    QmpSession *session = opaque;

    qmp_framer_add(session->framer, bytes, size);
    stream_pause(session->stream, true);
    session_schedule(session);
}

/* As in QEMU, those that come with one message take the place of earlier ones that nobody wanted. */
static void on_fds(const int *fds, unsigned count, void *opaque)
{
    QmpSession *session = opaque;

    drop_fds(session);
    g_array_append_vals(session->fds, fds, count);
}

static void on_drained(void *opaque)
{
    session_schedule(opaque);
}

static void on_closed(void *opaque)
{
    session_close(opaque);
}

static const StreamOps stream_ops = {
    .data = on_data, .fds = on_fds, .drained = on_drained, .closed = on_closed};

QmpSession *qmp_session_new(Monitor *monitor, int in, int out, bool pretty,
                            void (*closed)(QmpSession *session, void *opaque), void *opaque)
{
    QmpSession *session = g_new0(QmpSession, 1);

    session->monitor = monitor;
    session->pretty = pretty;
    session->refs = 1;
    session->closed = closed;
    session->opaque = opaque;
    session->fds = g_array_new(false, false, sizeof(int));
    session->framer = qmp_framer_new(JSON_MAX_SIZE);
    session->stream = stream_new(in, out, G_PRIORITY_DEFAULT, &stream_ops, session);
    greet(session);
    return session;
}

void qmp_session_free(QmpSession *session)
{
    if (session) {
        session->state = QMP_CLOSING;
        g_clear_pointer(&session->stream, stream_free);
        if (session->next) {
            g_source_remove(session->next);
            session->next = 0;
        }
        session_unref(session);
    }
}

void qmp_session_event(QmpSession *session, JsonNode *event)
{
    if (session->state == QMP_READY && stream_pending(session->stream) <= PENDING_EVENTS) {
        session_send(session, event);
    }
}
