/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Block nodes: which chains Spindle can serve, and -drive as a chain of nodes.
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
static bool node_is_served(PlanDraft *draft, Options *options, int depth)
{
    const char *driver = options_get(options, "driver");
    const char *child = options_get(options, "file");

    if (!driver || !draft->hooks->has_driver(driver) || depth == CHAIN_MAX ||
        filename_is_private(options_get(options, "filename"))) {
        return false;
    }
    if (child) {
        CmdItem *item = plan_find_node(draft, child);
        return item && node_is_served(draft, item->parsed, depth + 1);
    }
    if (options_has_prefix(options, "file")) {
        g_autoptr(Options) sub = options_get_sub(options, "file");
        return node_is_served(draft, sub, depth + 1);
    }
    return true;
}

bool plan_node_is_served(PlanDraft *draft, CmdItem *blockdev)
{
    return node_is_served(draft, blockdev->parsed, 0);
}

static void take_object(PlanDraft *draft, const char *id);

/* Keys whose value is an object's id: key-secret, password-secret, cookie-secret, tls-creds, throttle-group,
 * …; in a secret keyid, in TLS credentials passwordid. */
static void take_objects(PlanDraft *draft, Options *options)
{
    g_auto(GStrv) keys = options_keys(options);

    for (char **key = keys; *key; key++) {
        if (g_str_has_suffix(*key, "-secret") || g_str_has_suffix(*key, "tls-creds") ||
            g_str_has_suffix(*key, "throttle-group") || !strcmp(*key, "keyid") ||
            !strcmp(*key, "passwordid")) {
            take_object(draft, options_get(options, *key));
        }
    }
}

static char *item_json(CmdItem *item)
{
    return cmd_item_is_json(item) ? g_strdup(item->arg) : plan_options_to_json(item->parsed);
}

/* Objects are small and only read: QEMU keeps its own. */
static void take_object(PlanDraft *draft, const char *id)
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

/* -drive keys that are not the format driver's. */
static const char *const drive_keys[] = {
    "file",
    "if",
    "bus",
    "unit",
    "index",
    "media",
    "format",
    "driver",
    "id",
    "cache",
    "aio",
    "readonly",
    "read-only",
    "discard",
    "detect-zeroes",
    "werror",
    "rerror",
    "cache.direct",
    "snapshot",
    "cache.no-flush",
    "cache.writeback",
    "node-name",
    "auto-read-only",
    NULL,
};

/* cache= as the two properties that block nodes know. False: QEMU will name the mistake. */
static bool node_set_cache(Options *node, const char *mode)
{
    static const struct {
        const char *name, *direct, *no_flush;
    } modes[] = {
        {"writeback", "off", "off"}, {"writethrough", "off", "off"}, {"none", "on", "off"},
        {"off", "on", "off"},        {"directsync", "on", "off"},    {"unsafe", "off", "on"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (!strcmp(modes[i].name, mode)) {
            options_set(node, "file.cache.direct", modes[i].direct);
            options_set(node, "file.cache.no-flush", modes[i].no_flush);
            return true;
        }
    }
    return false;
}

/* The node below: what file= says, then file.… */
static bool node_set_file(PlanDraft *draft, Options *node, Options *drive)
{
    const char *file = options_get(drive, "file");
    g_autoptr(Options) child = file ? draft->hooks->options_from_filename(file, NULL) : options_new();
    g_auto(GStrv) keys = options_keys(drive);

    if (!child) {
        return false;
    }
    for (char **key = keys; *key; key++) {
        if (g_str_has_prefix(*key, "file.")) {
            options_set(child, *key + strlen("file."), options_get(drive, *key));
        }
    }
    options_set(child, "read-only", "on");
    g_auto(GStrv) child_keys = options_keys(child);
    for (char **key = child_keys; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        options_set(node, name, options_get(child, *key));
    }
    return node_is_served(draft, child, 1);
}

static bool node_set_format(PlanDraft *draft, Options *node, Options *drive)
{
    const char *format = options_get(drive, "format");
    const char *filename = options_get(node, "file.filename");
    g_auto(GStrv) keys = options_keys(drive);

    if (!format) {
        format = options_get(drive, "driver");
    }
    if (!format) {
        format = filename ? draft->hooks->probe_format(filename) : "raw";
    }
    options_set(node, "driver", format);
    options_set(node, "read-only", "on");
    for (char **key = keys; *key; key++) {
        bool of_raw = !strcmp(*key, "offset") || !strcmp(*key, "size");
        if (g_strv_contains(drive_keys, *key) || g_str_has_prefix(*key, "file.")) {
            continue;
        }
        if (!strcmp(format, "raw") && !of_raw) {
            return false; /* throttling, copy-on-read, or a mistake */
        }
        options_set(node, *key, options_get(drive, *key));
    }
    return draft->hooks->has_driver(format);
}

static bool node_set_drive_switches(Options *node, Options *drive)
{
    static const char *const same[] = {"aio", "cache.direct", "cache.no-flush", NULL};
    const char *cache = options_get(drive, "cache");

    if (cache && !node_set_cache(node, cache)) {
        return false;
    }
    for (const char *const *key = same; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        if (options_has(drive, *key)) {
            options_set(node, name, options_get(drive, *key));
        }
    }
    return true;
}

/* The options of -cdrom FILE as QEMU has them; commas in the name are not doubled there. */
static Options *drive_options(CmdItem *item)
{
    if (cmd_item_is(item, "cdrom") && !item->parsed) {
        item->parsed = options_new();
        options_set(item->parsed, "file", item->arg);
        options_set(item->parsed, "media", "cdrom");
        options_set(item->parsed, "index", "2");
    }
    return cmd_item_parse(item, NULL);
}

PlanSource plan_drive_source(PlanDraft *draft, CmdItem *item, Options **ret_node)
{
    Options *drive = drive_options(item);
    g_autoptr(Options) node = options_new();

    if (!drive) {
        return PLAN_SOURCE_OTHER;
    }
    const char *file = options_get(drive, "file");
    if ((!file || !file[0]) && !options_has_prefix(drive, "file.driver")) {
        return options_has(drive, "format") || options_has(drive, "driver") ? PLAN_SOURCE_OTHER
                                                                            : PLAN_SOURCE_EMPTY;
    }
    if (!node_set_file(draft, node, drive) || !node_set_format(draft, node, drive) ||
        !node_set_drive_switches(node, drive)) {
        return PLAN_SOURCE_OTHER;
    }
    *ret_node = g_steal_pointer(&node);
    return PLAN_SOURCE_NODE;
}

void plan_add_node(PlanDraft *draft, Options *node, const char *node_name, const char *origin)
{
    options_set(node, "node-name", node_name);
    take_objects(draft, node);
    g_ptr_array_add(draft->nodes, plan_arg_new("--blockdev", plan_options_to_json(node), origin));
}
