/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A human monitor. Its lines are human-monitor-command on a session of their own, which is a port (see
 * router-port.c) whose user is this process; so the drives are seen here as by any other user. What a user of
 * QEMU's prompt is used to stays: greeting, prompt, `cpu`, completion.
 *
 * One user at a time; the session stays when one goes. Where QEMU is to wait for a first user, there is no
 * session before.
 */
#include "system/router-int.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "monitor/console.h"
#include "monitor/hmp-complete.h"
#include "monitor/hmp.h"
#include "util/cleanup.h"
#include "util/log.h"

struct RouterConsole {
    Router *router;
    const RouterConfigPort *config;
    RouterConfigPort inner;      /* the session's, whose user is `peer` */
    RouterPeer *peer;            /* NULL: not yet */
    char *greeting;              /* NULL: QEMU has not said what it is */
    Console *console;            /* NULL: nobody is here */
    int in, out;                 /* who waits for the greeting; -1: nobody */
    guint watch;                 /* of the listening socket */
    gint64 cpu;                  /* of the commands that look at one; -1: the first */
    GPtrArray *commands, *infos; /* char *: their names */
    GPtrArray *drives;           /* char *: names of drives and devices */
    RouterMux *mux;              /* NULL: the console has its connection to itself */
    struct Line *last;           /* `quit`: behind it there is no prompt */
};

static void watch_users(RouterConsole *console);

/* A line under way. */
typedef struct Line {
    RouterConsole *console;
    gint64 cpu; /* `cpu N`, or -1 */
    bool last;  /* `quit` */
    void (*done)(const char *text, void *opaque);
    void *opaque;
} Line;

static const char *answer_text(JsonObject *answer)
{
    return router_answer_failed(answer) ? ""
                                        : json_object_get_string_member_with_default(answer, "return", "");
}

static void ask_text(RouterConsole *console, const char *line, RouterReply *reply, void *opaque)
{
    g_autoptr(JsonObject) args = json_object_new();

    json_object_set_string_member(args, "command-line", line);
    if (console->cpu >= 0) {
        json_object_set_int_member(args, "cpu-index", console->cpu);
    }
    router_peer_ask(console->peer, "human-monitor-command", args, reply, opaque);
}

/* The names that help begins its lines with: "device_add driver[,prop=value] -- add a device". */
static void read_names(GPtrArray *names, const char *prefix, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    g_ptr_array_set_size(names, 0);
    for (char **line = lines; *line; line++) {
        const char *name = g_str_has_prefix(*line, prefix) ? *line + strlen(prefix) : NULL;
        size_t len = name ? strcspn(name, " |\r") : 0;
        if (len > 0 && name[0] != '\t' && strstr(name, " -- ")) {
            g_ptr_array_add(names, g_strndup(name, len));
        }
    }
}

static void commands_told(JsonObject *answer, void *opaque)
{
    read_names(((RouterConsole *)opaque)->commands, "", answer_text(answer));
}

static void infos_told(JsonObject *answer, void *opaque)
{
    read_names(((RouterConsole *)opaque)->infos, "info ", answer_text(answer));
}

static void add_names(GPtrArray *names, JsonObject *answer, const char *const *keys)
{
    JsonNode *value = json_object_get_member(answer, "return");
    JsonArray *array = value && JSON_NODE_HOLDS_ARRAY(value) ? json_node_get_array(value) : NULL;

    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *item = json_array_get_element(array, i);
        for (const char *const *key = keys; JSON_NODE_HOLDS_OBJECT(item) && *key; key++) {
            const char *name =
                json_object_get_string_member_with_default(json_node_get_object(item), *key, "");
            hmp_offer(names, name, "");
        }
    }
}

static void drives_told(JsonObject *answer, void *opaque)
{
    static const char *const keys[] = {"device", "qdev", NULL};
    RouterConsole *console = opaque;

    g_ptr_array_set_size(console->drives, 0);
    add_names(console->drives, answer, keys);
}

static void devices_told(JsonObject *answer, void *opaque)
{
    static const char *const keys[] = {"name", NULL};

    add_names(((RouterConsole *)opaque)->drives, answer, keys);
}

/* For completion, which cannot wait. */
static void ask_names(RouterConsole *console)
{
    g_autoptr(JsonObject) args = json_object_new();

    json_object_set_string_member(args, "path", "/machine/peripheral");
    router_peer_ask(console->peer, "query-block", NULL, drives_told, console);
    router_peer_ask(console->peer, "qom-list", args, devices_told, console);
}

static void line_answered(JsonObject *answer, void *opaque)
{
    g_autofree Line *line = opaque;
    RouterConsole *console = line->console;
    const char *text = answer_text(answer);

    if (!console->last && (line->last || !router_peer_alive(console->peer))) {
        console->last = g_steal_pointer(&line);
        return;
    }
    if (router_answer_failed(answer)) {
        g_autofree char *error = g_strdup_printf("Error: %s\r\n", router_answer_text(answer));
        line->done(error, line->opaque);
        return;
    }
    if (line->cpu >= 0 && !text[0]) {
        console->cpu = line->cpu;
    }
    ask_names(console);
    line->done(text, line->opaque);
}

/* QEMU forgets which one it was behind each human-monitor-command. */
static gint64 chosen_cpu(const char *text)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \t", -1);
    guint64 number = 0;

    return !g_strcmp0(words[0], "cpu") && words[1] &&
                   g_ascii_string_to_unsigned(words[1], 10, 0, G_MAXINT, &number, NULL)
               ? (gint64)number
               : -1;
}

static bool is_quit(const char *text)
{
    g_autofree char *word = g_strndup(text, strcspn(text, " \t"));

    return !strcmp(word, "q") || !strcmp(word, "quit");
}

static void run(const char *text, void (*done)(const char *text, void *opaque), void *done_opaque,
                void *opaque)
{
    RouterConsole *console = opaque;

    text += strspn(text, " \t");
    if (!text[0]) {
        done("", done_opaque);
        return;
    }
    Line *line = g_new0(Line, 1);
    line->console = console;
    line->cpu = chosen_cpu(text);
    line->last = is_quit(text);
    line->done = done;
    line->opaque = done_opaque;
    ask_text(console, text, line_answered, line);
}

static void offer_all(GPtrArray *words, const GPtrArray *names, const char *prefix)
{
    for (guint i = 0; i < names->len; i++) {
        hmp_offer(words, g_ptr_array_index(names, i), prefix);
    }
}

static char **complete(const char *before, const char *prefix, void *opaque)
{
    RouterConsole *console = opaque;
    GPtrArray *words = g_ptr_array_new();
    g_autofree char *first = NULL;
    unsigned n = 0;
    bool bad = false;
    char *word;

    while ((word = hmp_next_word(&before, &bad))) {
        n += word[0] != '-';
        first = first ? first : g_strdup(word);
        g_free(word);
    }
    if (n == 0 || (n == 1 && (!strcmp(first, "help") || !strcmp(first, "?")))) {
        offer_all(words, console->commands, prefix);
    } else if (n == 1 && !strcmp(first, "info")) {
        offer_all(words, console->infos, prefix);
    } else if (n == 2 && !strcmp(first, "change")) {
        hmp_offer_files(words, prefix);
    } else {
        offer_all(words, console->drives, prefix);
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, false);
}

static void user_gone(Console *user, void *opaque)
{
    RouterConsole *console = opaque;

    console->console = NULL;
    console_free(user);
    console->cpu = -1;
    if (console->config->server && !console->router->ended) {
        watch_users(console);
    }
}

static const ConsoleOps ops = {.prompt = "(qemu) ",
                               .endless = true,
                               .echo = true,
                               .run = run,
                               .complete = complete,
                               .closed = user_gone};

/* Whoever waits for the greeting gets it. */
static void greet(RouterConsole *console)
{
    if (console->greeting && console->in >= 0 && !console->console) {
        int in = steal_fd(&console->in), out = steal_fd(&console->out);
        console->console = console_new(&ops, console, console->greeting, in, out);
    }
}

static void version_told(JsonObject *answer, void *opaque)
{
    RouterConsole *console = opaque;
    JsonNode *value = json_object_get_member(answer, "return");
    JsonObject *version = value && JSON_NODE_HOLDS_OBJECT(value)
                              ? json_object_get_object_member(json_node_get_object(value), "qemu")
                              : NULL;

    if (version) {
        console->greeting =
            g_strdup_printf("QEMU %d.%d.%d monitor - type 'help' for more information\r\n",
                            (int)json_object_get_int_member_with_default(version, "major", 0),
                            (int)json_object_get_int_member_with_default(version, "minor", 0),
                            (int)json_object_get_int_member_with_default(version, "micro", 0));
        greet(console);
    }
}

/* QEMU has ended, and the router soon will. */
static void on_peer_closed(void *opaque)
{
}

static const RouterPeerOps peer_ops = {.closed = on_peer_closed};

static void open_session(RouterConsole *console)
{
    int fds[2];

    if (console->peer) {
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
        log_error("Could not make a socket pair: %s", g_strerror(errno));
        return;
    }
    console->inner = *console->config;
    console->inner.in = console->inner.out = fds[0];
    console->inner.server = console->inner.pretty = false;
    console->inner.remove = NULL;
    g_ptr_array_add(console->router->ports, router_port_new(console->router, &console->inner));
    console->peer = router_peer_new(fds[1], "QEMU", &peer_ops, console);
    router_peer_ask(console->peer, "query-version", NULL, version_told, console);
    ask_text(console, "help", commands_told, console);
    ask_text(console, "info", infos_told, console);
    ask_names(console);
}

static gboolean on_user(gint fd, GIOCondition condition, gpointer data)
{
    RouterConsole *console = data;
    int user = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (user < 0) {
        return G_SOURCE_CONTINUE;
    }
    console->watch = 0;
    console->in = console->out = user;
    open_session(console);
    greet(console);
    return G_SOURCE_REMOVE;
}

static void watch_users(RouterConsole *console)
{
    if (!console->watch) {
        console->watch = g_unix_fd_add(console->config->in, G_IO_IN, on_user, console);
    }
}

RouterConsole *router_console_new(Router *router, const RouterConfigPort *config)
{
    RouterConsole *console = g_new0(RouterConsole, 1);

    console->router = router;
    console->config = config;
    console->in = console->out = -1;
    console->cpu = -1;
    console->commands = g_ptr_array_new_with_free_func(g_free);
    console->infos = g_ptr_array_new_with_free_func(g_free);
    console->drives = g_ptr_array_new_with_free_func(g_free);
    if (config->server) {
        fcntl(config->in, F_SETFD, FD_CLOEXEC);
        g_unix_set_fd_nonblocking(config->in, true, NULL);
        watch_users(console);
    } else {
        console->in = config->in;
        console->out = config->out;
    }
    if (config->serial >= 0) {
        int user = -1;
        console->mux = router_mux_new(router, config->in, config->out, config->serial, &user);
        console->in = console->out = user;
    }
    if (!config->server || !config->wait) {
        open_session(console);
    }
    return console;
}

void router_console_restore(RouterConsole *console)
{
    if (console->mux) {
        router_mux_restore(console->mux);
    }
}

void router_console_free(RouterConsole *console)
{
    g_clear_handle_id(&console->watch, g_source_remove);
    console_free(console->console);
    router_mux_free(console->mux);
    router_peer_free(console->peer);
    if (console->last) {
        console->last->done("", console->last->opaque);
        g_free(console->last);
    }
    if (console->config->server) {
        close(console->config->in);
    }
    if (console->config->remove) {
        unlink(console->config->remove);
    }
    if (console->out >= 0 && console->out != console->in) {
        close(console->out);
    }
    if (console->in >= 0) {
        close(console->in);
    }
    g_ptr_array_unref(console->commands);
    g_ptr_array_unref(console->infos);
    g_ptr_array_unref(console->drives);
    g_free(console->greeting);
    g_free(console);
}
