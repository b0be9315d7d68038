/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/hmp.h"
#include <string.h>
#include "util/error.h"

void hmp_print(HmpCall *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_string_append_vprintf(call->output, format, args);
    va_end(args);
}

void hmp_error(HmpCall *call, GError *error)
{
    if (error) {
        hmp_print(call, "Error: %s\n", error->message);
        g_error_free(error);
    }
}

void hmp_finish(HmpCall *call)
{
    if (call->running) {
        call->finished = true;
        return;
    }
    g_autofree char *text = g_string_free(call->output, false);
    call->done(text, call->opaque);
    json_object_unref(call->args);
    g_free(call);
}

const char *hmp_arg(const HmpCall *call, const char *name)
{
    return json_object_get_string_member_with_default(call->args, name, NULL);
}

bool hmp_flag(const HmpCall *call, const char *name)
{
    return json_object_has_member(call->args, name);
}

const HmpCommand *hmp_find(const HmpCommand *table, const char *name)
{
    for (; name && table->name; table++) {
        g_auto(GStrv) names = g_strsplit(table->name, "|", -1);
        if (g_strv_contains((const char *const *)names, name)) {
            return table;
        }
    }
    return NULL;
}

bool hmp_available(const HmpCommand *command, const Monitor *monitor)
{
    const QmpCommand *qmp = command->qmp ? qmp_command_find(command->qmp) : NULL;
    void *opaque;

    return (!qmp || qmp_command_available(qmp, monitor)) &&
           (!command->has || command->has(monitor_machine(monitor, &opaque)));
}

typedef struct AsQmp {
    HmpCall *call;
    void (*shown)(HmpCall *call, JsonNode *value);
} AsQmp;

static void qmp_done(JsonNode *value, GError *error, void *opaque)
{
    AsQmp *as = opaque;
    HmpCall *call = as->call;

    if (value && as->shown) {
        as->shown(call, value);
    }
    g_clear_pointer(&value, json_node_unref);
    hmp_error(call, error);
    g_free(as);
    hmp_finish(call);
}

void hmp_run_qmp_with(HmpCall *call, JsonObject *args, void (*shown)(HmpCall *call, JsonNode *value))
{
    AsQmp *as = g_new0(AsQmp, 1);

    as->call = call;
    as->shown = shown;
    call->deferred = true;
    qmp_call_run(call->monitor, NULL, call->command->qmp, args, qmp_done, as);
    json_object_unref(args);
}

static bool takes(const QmpCommand *command, const char *name)
{
    const QmpArg *arg = command->args;

    while (arg->name && strcmp(arg->name, name) != 0) {
        arg++;
    }
    return arg->name;
}

/* People name a drive by its device where it has no name of its own. */
static void rename_device(const HmpCall *call, JsonObject *args)
{
    const QmpCommand *command = qmp_command_find(call->command->qmp);
    const char *device = json_object_get_string_member_with_default(args, "device", NULL);

    if (!device || backend_find(call->monitor, device)) {
        return;
    }
    g_autofree char *name = g_strdup(device);
    const char *other = takes(command, "id") && backend_find_device(call->monitor, name) ? "id"
                        : takes(command, "node-name") && block_find(name)                ? "node-name"
                                                                                         : NULL;
    if (other) {
        json_object_remove_member(args, "device");
        json_object_set_string_member(args, other, name);
    }
}

void hmp_run_qmp(HmpCall *call)
{
    rename_device(call, call->args);
    hmp_run_qmp_with(call, json_object_ref(call->args), NULL);
}

/* The command that the line begins with, *text moved behind it. NULL: the output says why. */
static const HmpCommand *find_command(HmpCall *call, const char **text, char **ret_called)
{
    bool bad = false;
    g_autofree char *word = hmp_next_word(text, &bad);
    const HmpCommand *command = hmp_find(hmp_commands, word);
    const char *rest = *text;

    if (command && !strcmp(command->name, "info")) {
        g_autofree char *sub = hmp_next_word(&rest, &bad);
        if (!sub && !bad) {
            *ret_called = g_strdup(word);
            return command;
        }
        g_free(word);
        word = g_strconcat("info ", bad ? *text + strspn(*text, " \t") : sub, NULL);
        command = hmp_find(hmp_infos, sub);
        *text = rest;
    }
    if (command && hmp_available(command, call->monitor)) {
        *ret_called = g_strdup(g_str_has_prefix(word, "info ") ? word + strlen("info ") : word);
        return command;
    }
    if (word) {
        hmp_print(call, "unknown command: '%s'\n", word);
    }
    return NULL;
}

void hmp_run_line(Monitor *monitor, const char *line, void (*done)(const char *text, void *opaque),
                  void *opaque)
{
    HmpCall *call = g_new0(HmpCall, 1);
    g_autofree char *called = NULL, *message = NULL;

    call->monitor = monitor;
    call->args = json_object_new();
    call->output = g_string_new(NULL);
    call->done = done;
    call->opaque = opaque;
    call->running = true;
    call->command = find_command(call, &line, &called);
    if (call->command && hmp_parse(call->command, called, line, call->args, &message)) {
        call->command->run(call);
    }
    hmp_print(call, "%s", message ? message : "");
    call->running = false;
    if (!call->deferred || call->finished) {
        hmp_finish(call);
    }
}

/* human-monitor-command: lines end with CR and LF there. */
static void line_done(const char *text, void *opaque)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *joined = g_strjoinv("\r\n", lines);

    qmp_call_finish(opaque, qmp_string(joined), NULL);
}

static JsonNode *cmd_human_monitor_command(QmpCall *qmp, GError **error)
{
    qmp_call_defer(qmp);
    hmp_run_line(qmp_call_monitor(qmp), qmp_arg_string(qmp, "command-line"), line_done, qmp);
    return NULL;
}

const QmpCommand qmp_commands_hmp[] = {
    {.name = "human-monitor-command",
     .run = cmd_human_monitor_command,
     .returns = QMP_STRING,
     .args = {{"command-line", QMP_STRING}, {"cpu-index", QMP_INT, true}}},
    {NULL},
};
