/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The human monitor's commands, through QMP's human-monitor-command. Their text is the command's result.
 */
#include "monitor/hmp.h"
#include <stdio.h>
#include <string.h>
#include "monitor/cmd-tray.h"
#include "util/error.h"

void hmp_print(HmpCall *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    for (const char *p = text; *p; p++) {
        if (*p == '\n') {
            g_string_append_c(call->output, '\r');
        }
        g_string_append_c(call->output, *p);
    }
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
    QmpCall *qmp = call->qmp;
    JsonNode *value = qmp_string(call->output->str);

    g_string_free(call->output, true);
    g_strfreev(call->words);
    g_free(call);
    qmp_call_finish(qmp, value, NULL);
}

/* One word at *text, moved behind it: plain, or in double quotes with QEMU's escapes. NULL: none left, or a
 * quote without its end (*ret_bad). */
static char *next_word(const char **text, bool *ret_bad)
{
    g_autoptr(GString) word = g_string_new(NULL);
    const char *p = *text + strspn(*text, " \t");

    if (!*p) {
        return NULL;
    }
    if (*p != '"') {
        size_t len = strcspn(p, " \t");
        *text = p + len;
        return g_strndup(p, len);
    }
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            g_string_append_c(word, *p == 'n' ? '\n' : *p == 'r' ? '\r' : *p);
        } else {
            g_string_append_c(word, *p);
        }
    }
    if (!*p) {
        *ret_bad = true;
        return NULL;
    }
    *text = p + 1;
    return g_strdup(word->str);
}

static char **split_words(const char *text, bool *ret_bad)
{
    GPtrArray *words = g_ptr_array_new();
    char *word;

    *ret_bad = false;
    while ((word = next_word(&text, ret_bad))) {
        g_ptr_array_add(words, word);
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, false);
}

static void info_status(HmpCall *call)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(call->monitor, &opaque);
    const char *status = machine->status(opaque);
    bool running = machine->is_running(opaque);

    hmp_print(call, "VM status: %s", running ? "running" : "paused");
    hmp_print(call, !running && strcmp(status, "paused") ? " (%s)\n" : "\n", status);
}

static void info_version(HmpCall *call)
{
    hmp_print(call, "10.0.0spindle-%s\n", SPINDLE_VERSION);
}

static const struct {
    const char *name;
    void (*run)(HmpCall *call);
} infos[] = {
    {"block", hmp_info_block},
    {"blockstats", hmp_info_blockstats},
    {"status", info_status},
    {"version", info_version},
};

static void run_info(HmpCall *call)
{
    const char *name = call->words[1];

    for (size_t i = 0; name && i < G_N_ELEMENTS(infos); i++) {
        if (!strcmp(infos[i].name, name)) {
            infos[i].run(call);
            return;
        }
    }
    if (name) {
        hmp_print(call, "unknown command: 'info %s'\n", name);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(infos); i++) {
        hmp_print(call, "info %s\n", infos[i].name);
    }
}

static void plain_done(JsonNode *value, GError *error, void *opaque)
{
    hmp_error(opaque, error);
    if (value) {
        json_node_unref(value);
    }
}

/* Commands that are QMP's own, without arguments. */
static void run_plain(HmpCall *call)
{
    qmp_call_run(call->monitor, qmp_call_client(call->qmp), call->words[0], NULL, plain_done, call);
}

/* "-f" or such among the words, taken out. */
static bool take_flag(HmpCall *call, const char *flag)
{
    for (char **word = call->words + 1; *word; word++) {
        if (!strcmp(*word, flag)) {
            g_free(*word);
            memmove(word, word + 1, g_strv_length(word) * sizeof *word);
            return true;
        }
    }
    return false;
}

static Backend *removable(HmpCall *call)
{
    GError *error = NULL;
    Backend *backend = call->words[1] ? backend_find(call->monitor, call->words[1]) : NULL;

    if (!call->words[1]) {
        error_set(&error, "device name expected");
    } else if (!backend) {
        error_set(&error, "Device '%s' not found", call->words[1]);
    } else if (!backend->mmc) {
        error_set(&error, "Device '%s' is not removable", call->words[1]);
        backend = NULL;
    }
    hmp_error(call, error);
    return backend;
}

static void run_eject(HmpCall *call)
{
    bool force = take_flag(call, "-f");
    Backend *backend = removable(call);
    GError *error = NULL;

    if (backend && tray_open_for_user(backend, force, &error)) {
        tray_remove_medium(backend, &error);
    }
    hmp_error(call, error);
}

static void change_done(GError *error, void *opaque)
{
    hmp_error(opaque, error);
    hmp_finish(opaque);
}

static void run_change(HmpCall *call)
{
    bool force = take_flag(call, "-f");
    Backend *backend = removable(call);

    if (backend && !call->words[2]) {
        hmp_print(call, "change: file name expected\n");
    } else if (backend) {
        call->deferred = true;
        tray_change(backend, call->words[2], call->words[3], force, change_done, call);
    }
}

static void run_help(HmpCall *call);

static const struct {
    const char *name, *usage, *help;
    void (*run)(HmpCall *call);
} commands[] = {
    {"change", "[-f] device filename [format]", "change a removable medium", run_change},
    {"cont", "", "resume emulation", run_plain},
    {"eject", "[-f] device", "eject a removable medium (use -f to force it)", run_eject},
    {"help", "", "show the help", run_help},
    {"info", "[subcommand]", "show various information about the system state", run_info},
    {"qemu-io", "[-d] device \"command\"", "run a qemu-io command on a block device", hmp_qemu_io},
    {"quit", "", "quit the emulator", run_plain},
    {"stop", "", "stop emulation", run_plain},
    {"system_reset", "", "reset the system", run_plain},
};

static void run_help(HmpCall *call)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        hmp_print(call, "%s %s -- %s\n", commands[i].name, commands[i].usage, commands[i].help);
    }
}

static void run_line(HmpCall *call, bool bad_quote)
{
    if (bad_quote) {
        hmp_print(call, "unterminated string\n");
        return;
    }
    for (size_t i = 0; call->words[0] && i < G_N_ELEMENTS(commands); i++) {
        if (!strcmp(commands[i].name, call->words[0])) {
            commands[i].run(call);
            return;
        }
    }
    if (call->words[0]) {
        hmp_print(call, "unknown command: '%s'\n", call->words[0]);
    }
}

static JsonNode *cmd_human_monitor_command(QmpCall *qmp, GError **error)
{
    HmpCall *call = g_new0(HmpCall, 1);
    bool bad_quote;

    call->qmp = qmp;
    call->monitor = qmp_call_monitor(qmp);
    call->output = g_string_new(NULL);
    call->words = split_words(qmp_arg_string(qmp, "command-line"), &bad_quote);
    qmp_call_defer(qmp);
    call->running = true;
    run_line(call, bad_quote);
    call->running = false;
    if (!call->deferred || call->finished) {
        hmp_finish(call);
    }
    return NULL;
}

const QmpCommand qmp_commands_hmp[] = {
    {.name = "human-monitor-command",
     .run = cmd_human_monitor_command,
     .returns = QMP_STRING,
     .args = {{"command-line", QMP_STRING}, {"cpu-index", QMP_INT, true}}},
    {NULL},
};
