/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * human-monitor-command: a line goes to whom it concerns. Most go as they are; those whose command does more
 * here than QEMU would (saving, plugging in, objects that both have) become that command of QMP's.
 */
#include "system/router-int.h"
#include <string.h>
#include "monitor/hmp.h"
#include "monitor/qmp.h"
#include "util/options.h"

/* The line by its words; switches are left out. */
typedef struct Line {
    const char *text;
    const char *rest; /* behind the first word */
    char *words[4];   /* "" : none */
} Line;

static Line *line_new(const char *text)
{
    Line *line = g_new0(Line, 1);
    const char *at = text;
    bool bad = false;
    char *word;
    size_t n = 0;

    line->text = line->rest = text;
    while (n < G_N_ELEMENTS(line->words) && (word = hmp_next_word(&at, &bad))) {
        if (n > 0 && word[0] == '-') {
            g_free(word);
            continue;
        }
        line->words[n++] = word;
        if (n == 1) {
            line->rest = at + strspn(at, " \t");
        }
    }
    for (; n < G_N_ELEMENTS(line->words); n++) {
        line->words[n] = g_strdup("");
    }
    return line;
}

static void line_free(Line *line)
{
    for (size_t i = 0; i < G_N_ELEMENTS(line->words); i++) {
        g_free(line->words[i]);
    }
    g_free(line);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Line, line_free)

static void pass(RouterCall *call)
{
    router_call_pass(call, NULL);
}

static void ask(RouterCall *call)
{
    router_call_ask(call, router_call_answer);
}

static char *nothing(JsonNode *value)
{
    return g_strdup("");
}

/* As QEMU's `info status`. */
static char *status_text(JsonNode *value)
{
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(value) ? json_node_get_object(value) : NULL;
    const char *status = object ? json_object_get_string_member_with_default(object, "status", "") : "";

    if (object && json_object_get_boolean_member_with_default(object, "running", false)) {
        return g_strdup("VM status: running\r\n");
    }
    return strcmp(status, "paused") ? g_strdup_printf("VM status: paused (%s)\r\n", status)
                                    : g_strdup("VM status: paused\r\n");
}

static bool is_ours(const Router *router, const char *name)
{
    return name[0] && (router_has_drive(router, name) || router_node_is_ours(router, name));
}

static void route_info(RouterCall *call, const Line *line)
{
    const Router *router = call->port->router;
    bool lists = !strcmp(line->words[1], "block") || !strcmp(line->words[1], "blockstats");

    if (lists && !line->words[2][0]) {
        router_merge_text(call);
    } else if ((lists && is_ours(router, line->words[2])) || !strcmp(line->words[1], "remote")) {
        ask(call);
    } else if (!strcmp(line->words[1], "status")) {
        router_call_translate(call, "query-status", json_object_new(), status_text);
        router_route(call);
    } else {
        pass(call);
    }
}

/* A command of QMP's with one argument. */
static void translate(RouterCall *call, const char *name, const char *key, const char *value)
{
    JsonObject *args = json_object_new();

    if (key) {
        json_object_set_string_member(args, key, value);
    }
    router_call_translate(call, name, args, nothing);
    router_route(call);
}

static void route_cont(RouterCall *call, const Line *line)
{
    translate(call, "cont", NULL, NULL);
}

static void route_migrate(RouterCall *call, const Line *line)
{
    if (line->words[1][0]) {
        translate(call, "migrate", "uri", line->words[1]);
    } else {
        pass(call);
    }
}

static void route_migrate_incoming(RouterCall *call, const Line *line)
{
    if (line->words[1][0]) {
        translate(call, "migrate-incoming", "uri", line->words[1]);
    } else {
        pass(call);
    }
}

static void refuse_snapshot(RouterCall *call, const Line *line)
{
    router_call_return(call, qmp_string("Error: " ROUTER_NO_SNAPSHOTS "\r\n"));
}

static void route_device_add(RouterCall *call, const Line *line)
{
    g_autoptr(Options) options = options_parse(line->rest, "driver", NULL);
    const char *driver = options ? options_get(options, "driver") : NULL;
    bool drive = driver && (!strcmp(driver, "ide-cd") || !strcmp(driver, "ide-hd"));

    if (drive && router_bus_controller(call->port->router, options_get(options, "bus"))) {
        router_call_translate(call, "device_add", options_to_json(options), nothing);
        router_route(call);
    } else if (options && options_get(options, "drive")) {
        router_nodes_need(call, options_get(options, "drive"), true, pass);
    } else {
        pass(call);
    }
}

static void object_copied(RouterCall *call, JsonObject *failure)
{
    router_call_return(call, qmp_string(""));
}

/* QEMU's silence is success: then the drive process gets the same line. */
static void object_added(RouterCall *call, JsonObject *answer)
{
    static bool ignored;

    if (json_object_get_string_member_with_default(answer, "return", "?")[0]) {
        router_call_answer(call, answer);
        return;
    }
    router_call_add_step(call, false, "human-monitor-command", call->args, &ignored);
    router_call_run_script(call, object_copied);
}

static void route_object_add(RouterCall *call, const Line *line)
{
    router_call_pass(call, object_added);
}

/* One that a node in the drive process uses stays with both. */
static void object_deleted_here(RouterCall *call, JsonObject *answer)
{
    if (strstr(json_object_get_string_member_with_default(answer, "return", ""), "in use")) {
        router_call_answer(call, answer);
    } else {
        pass(call);
    }
}

static void route_object_del(RouterCall *call, const Line *line)
{
    router_call_ask(call, object_deleted_here);
}

static const struct {
    const char *name;
    void (*route)(RouterCall *call, const Line *line);
} routes[] = {
    {"c", route_cont},
    {"cont", route_cont},
    {"device_add", route_device_add},
    {"info", route_info},
    {"loadvm", refuse_snapshot},
    {"migrate", route_migrate},
    {"migrate_incoming", route_migrate_incoming},
    {"object_add", route_object_add},
    {"object_del", route_object_del},
    {"savevm", refuse_snapshot},
};

/* What names a drive first: those that Spindle's have, and those that they have not. */
static bool route_by_drive(RouterCall *call, const Line *line)
{
    static const char *const here[] = {
        "eject",      "change",   "qemu-io", "block_resize", "block_set_io_throttle",
        "device_del", "qom-list", "qom-get", "qom-set",      NULL};
    static const char *const nowhere[] = {"commit",       "snapshot_blkdev", "snapshot_blkdev_internal",
                                          "drive_mirror", "drive_backup",    "block_stream",
                                          "drive_del",    "nbd_server_add",  NULL};

    if (!is_ours(call->port->router, line->words[1])) {
        return false;
    }
    if (g_strv_contains(here, line->words[0])) {
        ask(call);
        return true;
    }
    if (g_strv_contains(nowhere, line->words[0])) {
        g_autofree char *text = g_strdup_printf(
            "Error: Spindle's drives and their nodes do not support '%s'\r\n", line->words[0]);
        router_call_return(call, qmp_string(text));
        return true;
    }
    return false;
}

void router_text_route(RouterCall *call)
{
    const char *text = router_call_arg(call, "command-line");

    if (!text || !router_drives_alive(call->port->router)) {
        pass(call);
        return;
    }
    g_autoptr(Line) line = line_new(text);
    if (route_by_drive(call, line)) {
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(routes); i++) {
        if (!strcmp(routes[i].name, line->words[0])) {
            routes[i].route(call, line);
            return;
        }
    }
    pass(call);
}
