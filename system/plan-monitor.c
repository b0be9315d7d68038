/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The monitors in QEMU's command line. Their connections become the router's (system/router.h): QEMU gets a
 * listening socket of its own in their place, under the same name and with the same waiting for a client. A
 * human monitor becomes a QMP one for QEMU, and the router has the prompt.
 */
#include "system/plan-int.h"
#include <string.h>

#define LABEL "compat_monitor" /* what QEMU names the chardevs of -monitor, -qmp and -qmp-pretty */

#define CONSOLE "spindle-console"

/* Keys of `-chardev socket` that say where it is connected. */
static const char *const address_keys[] = {"path", "host", "port", "fd", "ipv4", "ipv6", "nodelay", NULL};
/* Others that can be left to QEMU's new one. */
static const char *const other_keys[] = {"backend", "id",      "server",    "wait",
                                         "nowait",  "logfile", "logappend", NULL};

static bool keys_are_known(const Options *options)
{
    g_auto(GStrv) keys = options_keys(options);

    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(address_keys, *key) && !g_strv_contains(other_keys, *key)) {
            return false;
        }
    }
    return true;
}

static bool waits(Options *options)
{
    bool server = false, wait;

    options_get_bool(options, "server", false, &server, NULL);
    options_get_bool(options, "wait", server, &wait, NULL);
    return wait && !options_has(options, "nowait");
}

/* QEMU's end: a server that waits as the user's does. A client of the user's is connected from the start. */
static char *engine_options(Options *options, const char *label)
{
    g_autoptr(Options) copy = options_new();
    g_auto(GStrv) keys = options_keys(options);

    options_set(copy, "backend", "socket");
    options_set(copy, "id", label);
    options_set(copy, "server", "on");
    options_set(copy, "wait", waits(options) ? "on" : "off");
    for (char **key = keys; *key; key++) {
        if (g_str_has_prefix(*key, "log")) {
            options_set(copy, *key, options_get(options, *key));
        }
    }
    g_autofree char *text = options_to_string(copy);
    return g_strdup(text + strlen("backend="));
}

static char *client_options(Options *options)
{
    g_autoptr(Options) copy = options_new();
    g_auto(GStrv) keys = options_keys(options);

    options_set(copy, "backend", options_get(options, "backend")); /* first, where its key is implied */
    for (char **key = keys; *key; key++) {
        if (!g_str_has_prefix(*key, "log") && strcmp(*key, "id") && strcmp(*key, "nowait")) {
            options_set(copy, *key, options_get(options, *key));
        }
    }
    g_autofree char *text = options_to_string(copy);
    return g_strdup(text + strlen("backend="));
}

typedef enum { MONITOR_PLAIN, MONITOR_PRETTY, MONITOR_HUMAN } MonitorKind;

/* `options`: of the chardev, `backend` first. */
static void add_monitor(PlanDraft *draft, Options *options, const char *label, MonitorKind kind,
                        const char *origin)
{
    PlanMonitor *monitor = g_new0(PlanMonitor, 1);

    monitor->label = g_strdup(label);
    monitor->chardev = client_options(options);
    monitor->engine = engine_options(options, label);
    monitor->pretty = kind == MONITOR_PRETTY;
    monitor->human = kind == MONITOR_HUMAN;
    monitor->wait = waits(options);
    monitor->origin = g_strdup(origin);
    g_ptr_array_add(draft->monitors, monitor);
}

static CmdItem *find_chardev(PlanDraft *draft, const char *id)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "chardev") && cmd_item_parse(item, "backend") &&
            !g_strcmp0(options_get(item->parsed, "id"), id)) {
            return item;
        }
    }
    return NULL;
}

static void leave(PlanDraft *draft, const char *origin)
{
    plan_note(draft, "%s: this kind of connection is QEMU's own: there Spindle's drives are not seen",
              origin);
}

/* The chardev of a monitor becomes the router's, if it is of a kind that the router has. */
static bool take_chardev(PlanDraft *draft, const char *id, MonitorKind kind, const char *origin)
{
    CmdItem *item = id ? find_chardev(draft, id) : NULL;
    Options *options = item ? item->parsed : NULL;
    const char *backend = options ? options_get(options, "backend") : NULL;

    if (!item || item->dropped) {
        return false; /* QEMU will say so */
    }
    if ((g_strcmp0(backend, "socket") && g_strcmp0(backend, "stdio")) || !keys_are_known(options)) {
        leave(draft, origin);
        return false;
    }
    add_monitor(draft, options, id, kind, item->origin);
    item->dropped = true;
    return true;
}

/* As QEMU names the chardevs of -monitor, -qmp and -qmp-pretty: by their order. */
static char *item_label(PlanDraft *draft, const CmdItem *monitor)
{
    unsigned n = 0;

    for (guint i = 0; cmd_line_item(draft->line, i) != monitor; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        n += cmd_item_is(item, "monitor") || cmd_item_is(item, "qmp") || cmd_item_is(item, "qmp-pretty");
    }
    return g_strdup_printf(LABEL "%u", n);
}

/* `-qmp unix:PATH,server=on`, `-qmp tcp:HOST:PORT,…`, `-qmp stdio` and the like. */
static void take_text(PlanDraft *draft, CmdItem *item, MonitorKind kind)
{
    g_autoptr(Options) options = draft->hooks->chardev_options(item->arg, NULL);
    const char *backend = options ? options_get(options, "backend") : NULL;

    if (!strcmp(item->arg, "none") || !strcmp(item->arg, "null")) {
        return;
    }
    if ((g_strcmp0(backend, "socket") && g_strcmp0(backend, "stdio")) || !keys_are_known(options)) {
        leave(draft, item->origin);
        return;
    }
    g_autofree char *label = item_label(draft, item);
    add_monitor(draft, options, label, kind, item->origin);
    g_free(item->arg);
    item->arg = g_strconcat("chardev:", label, NULL);
}

/* -qmp, -qmp-pretty and -monitor. A human monitor is asked for by `-qmp` then. */
static void take_short(PlanDraft *draft, CmdItem *item, MonitorKind kind)
{
    guint before = draft->monitors->len;

    if (g_str_has_prefix(item->arg, "chardev:")) {
        take_chardev(draft, item->arg + strlen("chardev:"), kind, item->origin);
    } else {
        take_text(draft, item, kind);
    }
    if (kind == MONITOR_HUMAN && draft->monitors->len > before) {
        g_free(item->word);
        item->word = g_strdup("-qmp");
    }
}

/* -mon and -object monitor-qmp, monitor-hmp: by their chardev. */
static void take_long(PlanDraft *draft, CmdItem *item)
{
    const char *type =
        cmd_item_is(item, "object") && item->parsed ? options_get(item->parsed, "qom-type") : NULL;
    bool mon = cmd_item_is(item, "mon") && cmd_item_parse(item, "chardev");
    bool control = mon && !g_strcmp0(options_get(item->parsed, "mode"), "control");
    bool human = (mon && !control) || !g_strcmp0(type, "monitor-hmp"), pretty = false;

    if (!mon && !human && g_strcmp0(type, "monitor-qmp") != 0) {
        return;
    }
    options_get_bool(item->parsed, "pretty", false, &pretty, NULL);
    MonitorKind kind = human ? MONITOR_HUMAN : pretty ? MONITOR_PRETTY : MONITOR_PLAIN;
    if (!take_chardev(draft, options_get(item->parsed, "chardev"), kind, item->origin) || !human) {
        return;
    }
    cmd_item_set(item, mon ? "mode" : "qom-type", mon ? "control" : "monitor-qmp");
    cmd_item_set(item, "readline", NULL);
}

static void take_item(PlanDraft *draft, CmdItem *item)
{
    static const char *const names[] = {"qmp", "qmp-pretty", "monitor"}; /* as MonitorKind */

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (cmd_item_is(item, names[i])) {
            take_short(draft, item, (MonitorKind)i);
            return;
        }
    }
    take_long(draft, item);
}

/* The name that QEMU makes up for a -mon without one is that of the first of -monitor and -qmp, which does
 * not matter to it unless those are `chardev:`, as they are now. */
static void name_monitors(PlanDraft *draft)
{
    bool clash = false;

    for (guint i = 0; i < draft->monitors->len; i++) {
        const PlanMonitor *monitor = g_ptr_array_index(draft->monitors, i);
        clash |= g_str_has_prefix(monitor->label, LABEL);
    }
    if (!clash) {
        return;
    }
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "mon") && cmd_item_parse(item, "chardev") && !options_has(item->parsed, "id")) {
            g_autofree char *id = g_strdup_printf("spindle-mon%u", i);
            cmd_item_set(item, "id", id);
        }
    }
}

static bool has_any(PlanDraft *draft, const char *const *names)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        const char *driver =
            cmd_item_is(item, "device") && item->parsed ? options_get(item->parsed, "driver") : NULL;
        const char *type =
            cmd_item_is(item, "object") && item->parsed ? options_get(item->parsed, "qom-type") : NULL;
        if (g_strv_contains(names, item->name) || (type && g_str_has_prefix(type, "monitor-")) ||
            !g_strcmp0(driver, "isa-serial")) {
            return true;
        }
    }
    return false;
}

static CmdItem *find_option(PlanDraft *draft, const char *name, const char *arg)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, name) && (!arg || !strcmp(item->arg, arg))) {
            return item;
        }
    }
    return NULL;
}

/* QEMU then has the human monitor on standard input: by itself, or with the first serial line. */
static bool monitor_by_default(PlanDraft *draft)
{
    static const char *const others[] = {"monitor",    "qmp",       "qmp-pretty", "mon",
                                         "nodefaults", "daemonize", NULL};

    return find_option(draft, "nographic", NULL) && !has_any(draft, others);
}

/* The option that puts the first serial line and the human monitor on one terminal: -serial mon:stdio, or
 * -nographic where nothing is said of either. */
static CmdItem *find_mux(PlanDraft *draft)
{
    CmdItem *serial = find_option(draft, "serial", "mon:stdio");
    CmdItem *any = find_option(draft, "serial", NULL);

    return serial ? serial : any || !monitor_by_default(draft) ? NULL : find_option(draft, "nographic", NULL);
}

/* The router shares the terminal out in QEMU's place; QEMU has a socket for each. Where nobody sits at a
 * terminal all stays with QEMU: its output then ends when it ends. */
static void take_mux(PlanDraft *draft)
{
    CmdItem *item = draft->hooks->on_terminal() ? find_mux(draft) : NULL;
    g_autoptr(Options) options = options_new();

    if (!item) {
        return;
    }
    if (item->arg) {
        g_free(item->arg);
        item->arg = g_strdup("chardev:" PLAN_SERIAL);
    } else {
        cmd_line_append(draft->line, "serial", "chardev:" PLAN_SERIAL);
    }
    options_set(options, "backend", "stdio");
    add_monitor(draft, options, CONSOLE, MONITOR_HUMAN, item->origin);
    ((PlanMonitor *)g_ptr_array_index(draft->monitors, draft->monitors->len - 1))->mux = true;
    cmd_line_append(draft->line, "qmp", "chardev:" CONSOLE);
}

void plan_take_monitors(PlanDraft *draft)
{
    if (find_option(draft, "serial", NULL) && !find_option(draft, "serial", "stdio") &&
        !find_option(draft, "serial", "mon:stdio") && monitor_by_default(draft)) {
        cmd_line_append(draft->line, "monitor", "stdio");
    }
    guint n = draft->line->items->len;

    for (guint i = 0; i < n; i++) {
        take_item(draft, cmd_line_item(draft->line, i));
    }
    take_mux(draft);
    name_monitors(draft);
}

/* A medium that is encrypted may come later, with a key that these wrap. */
void plan_take_secrets(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "object") && item->parsed &&
            !g_strcmp0(options_get(item->parsed, "qom-type"), "secret")) {
            plan_take_object(draft, options_get(item->parsed, "id"));
        }
    }
}
