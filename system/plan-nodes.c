/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Block nodes: which chains Spindle can serve, and how they come to the drive process.
 */
#include "system/plan-int.h"
#include <string.h>

#define CHAIN_MAX 32

CmdItem *plan_find_node(PlanDraft *draft, const char *node_name)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "blockdev") && cmd_item_parse(item, "driver") &&
            g_strcmp0(options_get(item->parsed, "node-name"), node_name) == 0) {
            return item;
        }
    }
    return NULL;
}

/* Names that mean something to QEMU only: descriptors that it was handed, or is going to be. */
static bool filename_is_private(const char *filename)
{
    static const char *const places[] = {"/dev/fdset/", "/dev/fd/", "/proc/self/fd/", "/dev/stdin"};

    for (size_t i = 0; filename && i < G_N_ELEMENTS(places); i++) {
        if (g_str_has_prefix(filename, places[i])) {
            return true;
        }
    }
    return false;
}

/* `options` describe a node; its child is another -blockdev or described in place. */
bool plan_options_are_served(PlanDraft *draft, Options *options, int depth)
{
    const char *driver = options_get(options, "driver");
    const char *child = options_get(options, "file");

    if (!driver || !draft->hooks->has_driver(driver) || depth == CHAIN_MAX ||
        filename_is_private(options_get(options, "filename"))) {
        return false;
    }
    if (child) {
        CmdItem *item = plan_find_node(draft, child);
        return item && plan_options_are_served(draft, item->parsed, depth + 1);
    }
    if (options_has_prefix(options, "file")) {
        g_autoptr(Options) sub = options_get_sub(options, "file");
        return plan_options_are_served(draft, sub, depth + 1);
    }
    return true;
}

bool plan_node_is_served(PlanDraft *draft, CmdItem *blockdev)
{
    return plan_options_are_served(draft, blockdev->parsed, 0);
}

/* Keys whose value is an object's id: key-secret, password-secret, cookie-secret, tls-creds, throttle-group,
 * …; in a secret keyid, in TLS credentials passwordid. */
static void take_objects(PlanDraft *draft, Options *options)
{
    g_auto(GStrv) keys = options_keys(options);

    for (char **key = keys; *key; key++) {
        if (g_str_has_suffix(*key, "-secret") || g_str_has_suffix(*key, "tls-creds") ||
            g_str_has_suffix(*key, "throttle-group") || !strcmp(*key, "keyid") ||
            !strcmp(*key, "passwordid")) {
            plan_take_object(draft, options_get(options, *key));
        }
    }
}

static char *item_json(CmdItem *item)
{
    return cmd_item_is_json(item) ? g_strdup(item->arg) : plan_options_to_json(item->parsed);
}

/* Objects are small and only read: QEMU keeps its own. */
void plan_take_object(PlanDraft *draft, const char *id)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "object") && cmd_item_parse(item, "qom-type") && !item->taken &&
            g_strcmp0(options_get(item->parsed, "id"), id) == 0) {
            item->taken = true;
            take_objects(draft, item->parsed);
            g_ptr_array_add(draft->nodes, plan_arg_new("--object", item_json(item), item->origin));
        }
    }
}

void plan_take_node(PlanDraft *draft, CmdItem *blockdev)
{
    const char *child = options_get(blockdev->parsed, "file");

    if (blockdev->taken) {
        return;
    }
    blockdev->taken = blockdev->dropped = true;
    if (child) {
        plan_take_node(draft, plan_find_node(draft, child));
    }
    take_objects(draft, blockdev->parsed);
    g_ptr_array_add(draft->nodes, plan_arg_new("--blockdev", item_json(blockdev), blockdev->origin));
}

/* Whether an option that QEMU keeps has a value that is this name. */
static bool name_is_used(PlanDraft *draft, const char *name)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (item->dropped || !item->parsed) {
            continue;
        }
        g_auto(GStrv) keys = options_keys(item->parsed);
        for (char **key = keys; *key; key++) {
            if (!g_strcmp0(options_get(item->parsed, *key), name)) {
                return true;
            }
        }
    }
    return false;
}

void plan_keep_shared_nodes(PlanDraft *draft)
{
    bool changed = true;

    /* A node that is kept keeps what is below it, in the next turn. */
    while (changed) {
        changed = false;
        for (guint i = 0; i < draft->line->items->len; i++) {
            CmdItem *item = cmd_line_item(draft->line, i);
            if (cmd_item_is(item, "blockdev") && item->taken && item->dropped &&
                name_is_used(draft, options_get(item->parsed, "node-name"))) {
                item->dropped = false;
                changed = true;
            }
        }
    }
}

void plan_add_node(PlanDraft *draft, Options *node, const char *node_name, const char *origin)
{
    options_set(node, "node-name", node_name);
    take_objects(draft, node);
    g_ptr_array_add(draft->nodes, plan_arg_new("--blockdev", plan_options_to_json(node), origin));
}
