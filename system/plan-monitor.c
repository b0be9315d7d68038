/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The QMP monitors in QEMU's command line. Their connections become the router's (system/router.h): QEMU gets
 * a listening socket of its own in their place, under the same name and with the same waiting for a client.
 */
#include "system/plan-int.h"
#include <string.h>

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

/* QEMU's end: a server that waits as the user's does. A client of the user's is connected from the start. */
static char *engine_options(Options *options, const char *label)
{
    g_autoptr(Options) copy = options_new();
    g_auto(GStrv) keys = options_keys(options);
    bool server = false, wait;

    options_get_bool(options, "server", false, &server, NULL);
    options_get_bool(options, "wait", server, &wait, NULL);
    options_set(copy, "backend", "socket");
    options_set(copy, "id", label);
    options_set(copy, "server", "on");
    options_set(copy, "wait", wait && !options_has(options, "nowait") ? "on" : "off");
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

/* `options`: of the chardev, `backend` first. */
static void add_monitor(PlanDraft *draft, Options *options, const char *label, bool pretty,
                        const char *origin)
{
    PlanMonitor *monitor = g_new0(PlanMonitor, 1);

    monitor->label = g_strdup(label);
    monitor->chardev = client_options(options);
    monitor->engine = engine_options(options, label);
    monitor->pretty = pretty;
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
static void take_chardev(PlanDraft *draft, const char *id, bool pretty, const char *origin)
{
    CmdItem *item = id ? find_chardev(draft, id) : NULL;
    Options *options = item ? item->parsed : NULL;
    const char *backend = options ? options_get(options, "backend") : NULL;

    if (!item || item->dropped) {
        return; /* QEMU will say so */
    }
    if (g_strcmp0(backend, "socket") || !keys_are_known(options)) {
        leave(draft, origin);
        return;
    }
    add_monitor(draft, options, id, pretty, item->origin);
    item->dropped = true;
}

/* As QEMU names the chardevs of -monitor, -qmp and -qmp-pretty: by their order. */
static char *item_label(PlanDraft *draft, const CmdItem *monitor)
{
    unsigned n = 0;

    for (guint i = 0; cmd_line_item(draft->line, i) != monitor; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        n += cmd_item_is(item, "monitor") || cmd_item_is(item, "qmp") || cmd_item_is(item, "qmp-pretty");
    }
    return g_strdup_printf("compat_monitor%u", n);
}

/* `-qmp unix:PATH,server=on`, `-qmp tcp:HOST:PORT,…`, `-qmp stdio` and the like. */
static void take_text(PlanDraft *draft, CmdItem *item, bool pretty)
{
    g_autoptr(Options) options = draft->hooks->chardev_options(item->arg, NULL);
    const char *backend = options ? options_get(options, "backend") : NULL;

    if (!strcmp(item->arg, "none")) {
        return;
    }
    if ((g_strcmp0(backend, "socket") && g_strcmp0(backend, "stdio")) || !keys_are_known(options)) {
        leave(draft, item->origin);
        return;
    }
    g_autofree char *label = item_label(draft, item);
    add_monitor(draft, options, label, pretty, item->origin);
    g_free(item->arg);
    item->arg = g_strconcat("chardev:", label, NULL);
}

static void take_item(PlanDraft *draft, CmdItem *item)
{
    bool pretty = cmd_item_is(item, "qmp-pretty");

    if (pretty || cmd_item_is(item, "qmp")) {
        if (g_str_has_prefix(item->arg, "chardev:")) {
            take_chardev(draft, item->arg + strlen("chardev:"), pretty, item->origin);
        } else {
            take_text(draft, item, pretty);
        }
        return;
    }
    bool object = cmd_item_is(item, "object") && item->parsed &&
                  !g_strcmp0(options_get(item->parsed, "qom-type"), "monitor-qmp");
    bool mon = cmd_item_is(item, "mon") && cmd_item_parse(item, "chardev") &&
               !g_strcmp0(options_get(item->parsed, "mode"), "control");
    if (object || mon) {
        options_get_bool(item->parsed, "pretty", false, &pretty, NULL);
        take_chardev(draft, options_get(item->parsed, "chardev"), pretty, item->origin);
    }
}

void plan_take_monitors(PlanDraft *draft)
{
    guint n = draft->line->items->len;

    for (guint i = 0; i < n; i++) {
        take_item(draft, cmd_line_item(draft->line, i));
    }
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
