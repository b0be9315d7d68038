/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/server.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "block/block.h"
#include "monitor/stream.h"
#include "system/qtest/protocol.h"
#include "util/error.h"

#define PRIORITY    (G_PRIORITY_DEFAULT + 50) /* behind completions and monitors */
#define OUTPUT_HIGH (1024 * 1024) /* bytes not taken by the client: no more commands until they are */

struct QtestServer {
    Chardev *chardev;
    Stream *stream;
    QtestProtocol *protocol;
    GString *input;
    size_t at;       /* of input: done with what is before */
    size_t searched; /* of input: no line end before this */
    guint source;    /* runs the next command */
    FILE *log;
    gint64 start;
};

static void server_log(QtestServer *server, const char *prefix, const char *line)
{
    if (server->log) {
        gint64 us = g_get_monotonic_time() - server->start;
        size_t len = strcspn(line, "\n");
        fprintf(server->log, "[%s+%" G_GINT64_FORMAT ".%06d] %.*s\n", prefix, us / G_USEC_PER_SEC,
                (int)(us % G_USEC_PER_SEC), (int)MIN(len, INT32_MAX), line);
        fflush(server->log);
    }
}

static void send_line(const char *line, void *opaque)
{
    QtestServer *server = opaque;

    server_log(server, "S ", line);
    if (server->stream) {
        stream_write(server->stream, line, strlen(line));
    }
}

/* The next complete line, or NULL; what was done is let go of now and then. */
static char *next_line(QtestServer *server)
{
    GString *input = server->input;
    char *end = memchr(input->str + server->searched, '\n', input->len - server->searched);
    char *line = input->str + server->at;

    if (!end) {
        g_string_erase(input, 0, (gssize)server->at);
        server->at = 0;
        server->searched = input->len;
        return NULL;
    }
    *end = '\0';
    if (end > line && end[-1] == '\r') {
        end[-1] = '\0';
    }
    server->at = server->searched = (size_t)(end + 1 - input->str);
    return line;
}

static gboolean on_command(gpointer data)
{
    QtestServer *server = data;
    char *line = next_line(server);

    if (!line || stream_pending(server->stream) > OUTPUT_HIGH) {
        if (line) { /* again when the client has read */
            server->at = server->searched = (size_t)(line - server->input->str);
            line[strlen(line)] = '\n';
        }
        server->source = 0;
        return G_SOURCE_REMOVE;
    }
    server_log(server, "R ", line);
    qtest_protocol_run(server->protocol, line);
    block_deliver_ready();
    return G_SOURCE_CONTINUE;
}

static void schedule(QtestServer *server)
{
    if (!server->source) {
        server->source = g_idle_add_full(PRIORITY, on_command, server, NULL);
    }
}

static void on_data(const char *bytes, size_t size, void *opaque)
{
    QtestServer *server = opaque;

    if (server->input->len - server->at > QTEST_LINE_MAX) {
        g_string_truncate(server->input, server->searched = server->at);
        send_line("FAIL line too long\n", server);
        return;
    }
    g_string_append_len(server->input, bytes, (gssize)size);
    schedule(server);
}

static void on_drained(void *opaque)
{
    schedule(opaque);
}

static void on_closed(void *opaque)
{
    QtestServer *server = opaque;
    char *line;

    while ((line = next_line(server))) { /* what was sent before */
        server_log(server, "R ", line);
        qtest_protocol_run(server->protocol, line);
    }
    server_log(server, "I ", "CLOSED");
    g_clear_pointer(&server->stream, stream_free);
    if (server->source) {
        g_source_remove(server->source);
        server->source = 0;
    }
    qtest_protocol_reset(server->protocol);
    chardev_disconnected(server->chardev);
}

static const StreamOps stream_ops = {.data = on_data, .drained = on_drained, .closed = on_closed};

static void on_connected(int in, int out, void *opaque)
{
    QtestServer *server = opaque;

    g_string_truncate(server->input, server->at = server->searched = 0);
    server->stream = stream_new(in, out, PRIORITY, &stream_ops, server);
    server_log(server, "I ", "OPENED");
}

QtestServer *qtest_server_new(Pc *pc, Chardev *chardev, const char *log, GError **error)
{
    QtestServer *server = g_new0(QtestServer, 1);

    server->chardev = chardev;
    server->input = g_string_new(NULL);
    server->start = g_get_monotonic_time();
    server->protocol = qtest_protocol_new(pc, send_line, server);
    server->log = !log ? stderr : strcmp(log, "none") ? fopen(log, "w") : NULL;
    if (!server->log && g_strcmp0(log, "none")) {
        error_set_errno(error, errno, "-qtest-log %s: Could not open '%s'", log, log);
        qtest_server_free(server);
        return NULL;
    }
    return server;
}

bool qtest_server_open(QtestServer *server, GError **error)
{
    return chardev_open(server->chardev, on_connected, server, error);
}

void qtest_server_free(QtestServer *server)
{
    if (!server) {
        return;
    }
    if (server->source) {
        g_source_remove(server->source);
    }
    stream_free(server->stream);
    chardev_free(server->chardev);
    qtest_protocol_free(server->protocol);
    g_string_free(server->input, true);
    if (server->log && server->log != stderr) {
        fclose(server->log);
    }
    g_free(server);
}
