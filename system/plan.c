/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/plan-int.h"
#include <string.h>
#include "util/trace.h"
#include "util/error.h"

static void plan_arg_free(gpointer data)
{
    PlanArg *arg = data;

    g_free(arg->name);
    g_free(arg->arg);
    g_free(arg->origin);
    g_free(arg);
}

PlanArg *plan_arg_new(const char *name, char *arg, const char *origin)
{
    PlanArg *new = g_new0(PlanArg, 1);

    new->name = g_strdup(name);
    new->arg = arg;
    new->origin = g_strdup(origin);
    return new;
}

void plan_note(PlanDraft *draft, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(draft->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

char *plan_options_to_json(const Options *options)
{
    g_autoptr(JsonObject) object = options_to_json(options);
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

    json_node_set_object(node, object);
    return json_to_string(node, false);
}

static Options *item_with_id(CmdItem *item)
{
    if (cmd_item_is(item, "device") || cmd_item_is(item, "blockdev")) {
        return cmd_item_parse(item, "driver");
    }
    if (cmd_item_is(item, "object")) {
        return cmd_item_parse(item, "qom-type");
    }
    return cmd_item_is(item, "drive") ? cmd_item_parse(item, NULL) : NULL;
}

bool plan_id_taken(PlanDraft *draft, const char *id)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        Options *options = item_with_id(cmd_line_item(draft->line, i));
        if (options && g_strcmp0(options_get(options, "id"), id) == 0) {
            return true;
        }
    }
    return false;
}

static void plan_monitor_free(gpointer data)
{
    PlanMonitor *monitor = data;

    g_free(monitor->label);
    g_free(monitor->chardev);
    g_free(monitor->engine);
    g_free(monitor->origin);
    g_free(monitor);
}

static void plan_port_free(gpointer data)
{
    PlanPort *port = data;

    g_free(port->device);
    g_free(port->user_id);
    g_free(port);
}

static void plan_drive_free(gpointer data)
{
    PlanDrive *drive = data;

    options_unref(drive->props);
    g_free(drive->node);
    g_free(drive->name);
    g_free(drive->bus);
    g_free(drive);
}

static void plan_controller_free(gpointer data)
{
    PlanController *controller = data;

    g_free(controller->id);
    g_free(controller->user_id);
    g_free(controller);
}

/* `-trace` of an event that is Spindle's by name goes to the drive process; patterns are QEMU's. */
static void plan_take_traces(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        Options *trace = cmd_item_is(item, "trace") ? cmd_item_parse(item, "enable") : NULL;
        const char *event = trace ? options_get(trace, "enable") : NULL;
        if (event && trace_exists(event)) {
            item->taken = item->dropped = true;
            g_ptr_array_add(draft->nodes, plan_arg_new("--trace", g_strdup(item->arg), item->origin));
        }
    }
}

/* What follows from the drives: the rest of QEMU's line and of the drive process's. */
static bool plan_finish(PlanDraft *draft, GError **error)
{
    if (!plan_place_drives(draft, error)) {
        return false;
    }
    plan_share_memory(draft);
    plan_take_traces(draft);
    plan_order_boot(draft);
    if (!draft->nodefaults && draft->no_default_cd) {
        /* Without a CD drive of its own in sight QEMU makes an empty one; a -global that mentions ide-cd,
         * here with the default value, tells it not to. */
        cmd_line_append(draft->line, "global", "ide-cd.write-cache=auto");
    }
    plan_attach_controllers(draft);
    plan_take_monitors(draft);
    if (draft->monitors->len) {
        plan_take_secrets(draft);
    }
    return true;
}

static void plan_draft_clear(PlanDraft *draft)
{
    cmd_line_free(draft->line);
    g_clear_pointer(&draft->drives, g_ptr_array_unref);
    g_clear_pointer(&draft->controllers, g_ptr_array_unref);
    g_clear_pointer(&draft->nodes, g_ptr_array_unref);
    g_clear_pointer(&draft->notes, g_ptr_array_unref);
    g_clear_pointer(&draft->sockets, g_ptr_array_unref);
    g_clear_pointer(&draft->monitors, g_ptr_array_unref);
    g_clear_pointer(&draft->ports, g_ptr_array_unref);
}

static bool plan_draft_init(PlanDraft *draft, const char *const *argv, const char *socket_dir,
                            const PlanHooks *hooks, GError **error)
{
    draft->hooks = hooks;
    draft->socket_dir = socket_dir;
    draft->drives = g_ptr_array_new_with_free_func(plan_drive_free);
    draft->controllers = g_ptr_array_new_with_free_func(plan_controller_free);
    draft->nodes = g_ptr_array_new_with_free_func(plan_arg_free);
    draft->notes = g_ptr_array_new_with_free_func(g_free);
    draft->sockets = g_ptr_array_new_with_free_func(g_free);
    draft->monitors = g_ptr_array_new_with_free_func(plan_monitor_free);
    draft->ports = g_ptr_array_new_with_free_func(plan_port_free);
    draft->line = cmd_line_parse(argv, error);
    return draft->line != NULL;
}

static void plan_read_switches(Plan *plan, const CmdLine *line)
{
    for (guint i = 0; i < line->items->len; i++) {
        CmdItem *item = cmd_line_item(line, i);
        if (cmd_item_is(item, "daemonize")) {
            plan->daemonize = true;
        } else if (cmd_item_is(item, "S")) {
            plan->paused = true;
        } else if (cmd_item_is(item, "no-shutdown")) {
            plan->no_shutdown = true;
        } else if (cmd_item_is(item, "action") && cmd_item_parse(item, NULL)) {
            plan->no_shutdown |= !g_strcmp0(options_get(item->parsed, "shutdown"), "pause");
        } else if (cmd_item_is(item, "sandbox") && cmd_item_parse(item, "enable")) {
            plan->no_spawn = !g_strcmp0(options_get(item->parsed, "enable"), "on") &&
                             !g_strcmp0(options_get(item->parsed, "spawn"), "deny");
        } else if (cmd_item_is(item, "msg") && cmd_item_parse(item, "timestamp")) {
            options_get_bool(item->parsed, "timestamp", false, &plan->timestamp, NULL);
        }
    }
}

/* The state of the drives comes ahead of QEMU's; so QEMU waits, and does not run before they have theirs. */
static void plan_take_incoming(Plan *plan, CmdLine *line)
{
    for (guint i = 0; i < line->items->len; i++) {
        CmdItem *item = cmd_line_item(line, i);
        if (cmd_item_is(item, "incoming")) {
            g_free(plan->incoming);
            plan->incoming = g_strdup(item->arg);
            g_free(item->arg);
            item->arg = g_strdup("defer");
        }
    }
    if (plan->incoming && !plan->paused) {
        cmd_line_append(line, "S", NULL);
    }
}

static bool plan_check_controller(const PlanDraft *draft, GError **error)
{
    if (draft->ide_item && !draft->ide_model) {
        return error_set(error, "%s: must be one of ahci, piix3-ide, piix4-ide", draft->ide_item->origin);
    }
    if (draft->ide_model && plan_model_units(draft->ide_model) > 1 && draft->machine != MACHINE_PC) {
        return error_set(error, "%s: only machine type 'pc' has its IDE drives in pairs",
                         draft->ide_item->origin);
    }
    return true;
}

Plan *plan_new(const char *const *argv, const char *socket_dir, const PlanHooks *hooks, GError **error)
{
    PlanDraft draft = {0};
    g_autoptr(Plan) plan = g_new0(Plan, 1);
    bool ok = plan_draft_init(&draft, argv, socket_dir, hooks, error);

    if (ok) {
        plan_read_switches(plan, draft.line);
    }
    if (ok && plan_read_machine(&draft)) {
        ok = plan_check_controller(&draft, error) && plan_take_drives(&draft, error);
        plan->serves = draft.drives->len > 0;
        ok = ok && (!plan->serves || plan_finish(&draft, error));
        if (ok && plan->serves) {
            plan_take_incoming(plan, draft.line);
        }
    }
    if (ok) {
        plan->qemu_argv =
            plan->serves || draft.ide_item ? cmd_line_to_argv(draft.line) : g_strdupv((char **)argv);
        plan->drive = g_steal_pointer(&draft.nodes);
        plan->sockets = g_steal_pointer(&draft.sockets);
        plan->monitors = g_steal_pointer(&draft.monitors);
        plan->ports = g_steal_pointer(&draft.ports);
        plan->notes = g_steal_pointer(&draft.notes);
    }
    plan_draft_clear(&draft);
    return ok ? g_steal_pointer(&plan) : NULL;
}

static bool is_anonymous(const char *device)
{
    g_autoptr(Options) options = device ? options_parse(device, "driver", NULL) : NULL;

    return options && !options_has(options, "id");
}

char *plan_device_path(const Plan *plan, guint index)
{
    const PlanArg *arg = g_ptr_array_index(plan->drive, index);
    unsigned number = 0;

    if (strcmp(arg->name, "--device") != 0 || !is_anonymous(arg->arg)) {
        return NULL;
    }
    for (char **word = plan->qemu_argv; word[0] && word[1]; word++) {
        number += (!strcmp(*word, "-device") || !strcmp(*word, "--device")) && is_anonymous(word[1]);
    }
    for (guint i = 0; i < index; i++) {
        const PlanArg *other = g_ptr_array_index(plan->drive, i);
        number += !strcmp(other->name, "--device") && is_anonymous(other->arg);
    }
    return g_strdup_printf("/machine/peripheral-anon/device[%u]", number);
}

void plan_free(Plan *plan)
{
    if (plan) {
        g_strfreev(plan->qemu_argv);
        g_free(plan->incoming);
        g_clear_pointer(&plan->drive, g_ptr_array_unref);
        g_clear_pointer(&plan->sockets, g_ptr_array_unref);
        g_clear_pointer(&plan->monitors, g_ptr_array_unref);
        g_clear_pointer(&plan->ports, g_ptr_array_unref);
        g_clear_pointer(&plan->notes, g_ptr_array_unref);
        g_free(plan);
    }
}
