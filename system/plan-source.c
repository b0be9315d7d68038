/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * -drive, -cdrom and -hda as a chain of nodes: protocol, format and, where there are limits, a throttle node
 * on top.
 */
#include "system/plan-int.h"
#include <string.h>

/* Keys that are not the format driver's. */
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
    "copy-on-read",
    NULL,
};

/* What the limits were called before they were throttling.KEY. */
static const struct {
    const char *old, *name;
} limit_names[] = {
    {"bps", "bps-total"},
    {"bps_rd", "bps-read"},
    {"bps_wr", "bps-write"},
    {"iops", "iops-total"},
    {"iops_rd", "iops-read"},
    {"iops_wr", "iops-write"},
    {"bps_max", "bps-total-max"},
    {"bps_rd_max", "bps-read-max"},
    {"bps_wr_max", "bps-write-max"},
    {"iops_max", "iops-total-max"},
    {"iops_rd_max", "iops-read-max"},
    {"iops_wr_max", "iops-write-max"},
    {"iops_size", "iops-size"},
    {"group", "group"},
};

/* The name below throttling., or NULL. */
static const char *limit_name(const char *key)
{
    if (g_str_has_prefix(key, "throttling.")) {
        return key + strlen("throttling.");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(limit_names); i++) {
        if (!strcmp(limit_names[i].old, key)) {
            return limit_names[i].name;
        }
    }
    return NULL;
}

static const struct {
    const char *name, *direct, *no_flush;
    bool write_back;
} cache_modes[] = {
    {"writeback", "off", "off", true}, {"writethrough", "off", "off", false}, {"none", "on", "off", true},
    {"off", "on", "off", true},        {"directsync", "on", "off", false},    {"unsafe", "off", "on", true},
};

/* Index of a cache= mode, or -1. */
static int find_cache_mode(const char *mode)
{
    for (size_t i = 0; mode && i < G_N_ELEMENTS(cache_modes); i++) {
        if (!strcmp(cache_modes[i].name, mode)) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_off(Options *drive, const char *key)
{
    bool on = true;

    return options_get_bool(drive, key, false, &on, NULL) && !on;
}

static bool is_one_of(Options *drive, const char *key, const char *const *words)
{
    const char *value = options_get(drive, key);

    return !value || g_strv_contains(words, value);
}

/* What Spindle cannot do, or QEMU would refuse: it will say so. */
static bool switches_are_sound(PlanDraft *draft, Options *drive, DriveModel model)
{
    static const char *const write_policies[] = {"ignore", "enospc", "stop", "report", NULL};
    static const char *const read_policies[] = {"ignore", "stop", "report", NULL};
    static const char *const discards[] = {"ignore", "off", "unmap", "on", NULL};
    static const char *const detections[] = {"off", "on", "unmap", NULL};
    static const char *const on_off[] = {"on", "off", NULL};
    static const char *const ways[] = {"threads", "native", "io_uring", NULL};

    if (!is_one_of(drive, "aio", ways) || !is_one_of(drive, "werror", write_policies) ||
        !is_one_of(drive, "rerror", read_policies) || !is_one_of(drive, "discard", discards) ||
        !is_one_of(drive, "detect-zeroes", detections) || !is_one_of(drive, "cache.writeback", on_off) ||
        !is_one_of(drive, "readonly", on_off) || !is_one_of(drive, "read-only", on_off) ||
        !is_one_of(drive, "auto-read-only", on_off) || !is_one_of(drive, "snapshot", on_off) ||
        !is_off(drive, "copy-on-read") ||
        (options_has(drive, "cache") && find_cache_mode(options_get(drive, "cache")) < 0)) {
        return false;
    }
    return model == DRIVE_CD || (!draft->snapshot && is_off(drive, "snapshot") && is_off(drive, "readonly") &&
                                 is_off(drive, "read-only"));
}

/* The node below: what file= says, then file.… */
static bool node_set_file(PlanDraft *draft, Options *node, Options *drive, DriveModel model)
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
    if (model == DRIVE_CD) {
        options_set(child, "read-only", "on");
    }
    g_auto(GStrv) child_keys = options_keys(child);
    for (char **key = child_keys; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        options_set(node, name, options_get(child, *key));
    }
    return plan_options_are_served(draft, child, 1);
}

/* The format of an image of which it was not said. A disk that is raw by guess only is watched (see
 * block/raw.c), so that its guest cannot make another format of it. NULL: cannot be told here. */
static const char *guess_format(PlanDraft *draft, Options *node, DriveModel model)
{
    const char *filename = options_get(node, "file.filename");
    const char *format;

    if (!filename) {
        return model == DRIVE_CD ? "raw" : NULL;
    }
    if (model == DRIVE_CD && !g_strcmp0(options_get(node, "file.driver"), "host_cdrom")) {
        return "raw"; /* whatever disc comes; and the drive may take its time */
    }
    format = draft->hooks->probe_format(filename);
    if (model == DRIVE_HD && !strcmp(format, "cue")) {
        format = "raw";
    }
    if (model == DRIVE_HD && !strcmp(format, "raw")) {
        options_set(node, "probed", "on");
    }
    return format;
}

static bool node_set_format(PlanDraft *draft, Options *node, Options *drive, DriveModel model)
{
    const char *format = options_get(drive, "format");
    g_auto(GStrv) keys = options_keys(drive);

    if (!format) {
        format = options_get(drive, "driver");
    }
    if (!format) {
        format = guess_format(draft, node, model);
    }
    if (!format) {
        return false;
    }
    options_set(node, "driver", format);
    if (model == DRIVE_CD) {
        options_set(node, "read-only", "on");
    }
    for (char **key = keys; *key; key++) {
        bool of_raw = !strcmp(*key, "offset") || !strcmp(*key, "size");
        if (g_strv_contains(drive_keys, *key) || g_str_has_prefix(*key, "file.") || limit_name(*key)) {
            continue;
        }
        if (!strcmp(format, "raw") && !of_raw) {
            return false; /* a mistake */
        }
        options_set(node, *key, options_get(drive, *key));
    }
    return draft->hooks->has_driver(format);
}

static void node_set_switches(Options *node, Options *drive, DriveModel model)
{
    static const char *const same[] = {"aio", "cache.direct", "cache.no-flush", NULL};
    const char *discard = options_get(drive, "discard");
    int mode = find_cache_mode(options_get(drive, "cache"));

    if (mode >= 0) {
        options_set(node, "file.cache.direct", cache_modes[mode].direct);
        options_set(node, "file.cache.no-flush", cache_modes[mode].no_flush);
    }
    for (const char *const *key = same; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        if (options_has(drive, *key)) {
            options_set(node, name, options_get(drive, *key));
        }
    }
    if (model == DRIVE_HD && discard) {
        bool unmap = !strcmp(discard, "unmap") || !strcmp(discard, "on");
        options_set(node, "discard", unmap ? "unmap" : "ignore");
        options_set(node, "file.discard", unmap ? "unmap" : "ignore");
    }
    if (model == DRIVE_HD && options_has(drive, "detect-zeroes")) {
        options_set(node, "detect-zeroes", options_get(drive, "detect-zeroes"));
    }
}

/* The options that -cdrom FILE, -hda FILE or a bare FILE stand for; commas in the name are not doubled there.
 */
static Options *drive_options(CmdItem *item)
{
    bool bare = !item->name[0];

    if (!item->parsed && (bare || cmd_item_is(item, "cdrom") || g_str_has_prefix(item->name, "hd"))) {
        item->parsed = options_new();
        options_set(item->parsed, "file", bare ? item->word : item->arg);
        options_set(item->parsed, "media", cmd_item_is(item, "cdrom") ? "cdrom" : "disk");
    }
    return cmd_item_parse(item, NULL);
}

/* The limits' group: its own name, or the drive's. */
static const char *limits_group(Options *drive, const char *node_name)
{
    const char *group = options_get(drive, "throttling.group");

    group = group ? group : options_get(drive, "group");
    return group ? group : options_get(drive, "id") ? options_get(drive, "id") : node_name;
}

static bool has_limits(Options *drive)
{
    g_auto(GStrv) keys = options_keys(drive);

    for (char **key = keys; *key; key++) {
        if (limit_name(*key)) {
            return true;
        }
    }
    return false;
}

/* A group that is an -object of the user's has limits of its own, and QEMU its rules for which hold. */
static bool limits_are_served(PlanDraft *draft, Options *drive)
{
    const char *group = limits_group(drive, NULL);

    if (!has_limits(drive)) {
        return true;
    }
    for (guint i = 0; group && i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "object") && item->parsed &&
            !g_strcmp0(options_get(item->parsed, "id"), group)) {
            return false;
        }
    }
    return draft->hooks->has_driver("throttle");
}

/* No key that an empty drive could do nothing with, such as a mistyped one: QEMU will say so. */
static bool suits_empty_drive(Options *drive)
{
    g_auto(GStrv) keys = options_keys(drive);

    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(drive_keys, *key) && !limit_name(*key)) {
            return false;
        }
    }
    return !options_has(drive, "format") && !options_has(drive, "driver");
}

PlanSource plan_drive_source(PlanDraft *draft, CmdItem *item, DriveModel model, Options **ret_node)
{
    Options *drive = drive_options(item);
    g_autoptr(Options) node = options_new();

    if (!drive) {
        return PLAN_SOURCE_OTHER;
    }
    const char *file = options_get(drive, "file");
    if ((!file || !file[0]) && !options_has_prefix(drive, "file.driver")) {
        return model == DRIVE_CD && suits_empty_drive(drive) ? PLAN_SOURCE_EMPTY : PLAN_SOURCE_OTHER;
    }
    if (!switches_are_sound(draft, drive, model) || !node_set_file(draft, node, drive, model) ||
        !node_set_format(draft, node, drive, model) || !limits_are_served(draft, drive)) {
        return PLAN_SOURCE_OTHER;
    }
    node_set_switches(node, drive, model);
    *ret_node = g_steal_pointer(&node);
    return PLAN_SOURCE_NODE;
}

/* Those of a -device go before those of its -drive. */
static void set_default(Options *props, const char *key, const char *value)
{
    const char *now = options_get(props, key);

    if (value && (!now || !strcmp(now, "auto"))) {
        options_set(props, key, value);
    }
}

void plan_drive_props(CmdItem *item, DriveModel model, Options *props)
{
    Options *drive = item->parsed;
    int mode = find_cache_mode(options_get(drive, "cache"));
    bool write_back = mode < 0 || cache_modes[mode].write_back;

    set_default(props, "werror", options_get(drive, "werror"));
    set_default(props, "rerror", options_get(drive, "rerror"));
    options_get_bool(drive, "cache.writeback", write_back, &write_back, NULL);
    if (model == DRIVE_HD && !write_back) {
        set_default(props, "write-cache", "off");
    }
}

static void add_limits(PlanDraft *draft, CmdItem *item, const char *group)
{
    g_autoptr(Options) object = options_new();
    g_auto(GStrv) keys = options_keys(item->parsed);
    bool any = false, known = false;

    options_set(object, "qom-type", "throttle-group");
    options_set(object, "id", group);
    for (char **key = keys; *key; key++) {
        const char *name = limit_name(*key);
        if (name && strcmp(name, "group")) {
            g_autofree char *limit = g_strconcat("limits.", name, NULL);
            options_set(object, limit, options_get(item->parsed, *key));
            any = true;
        }
    }
    /* A group that several drives name has the limits of the last that gives some. */
    for (guint i = draft->nodes->len; i-- > 0;) {
        PlanArg *arg = g_ptr_array_index(draft->nodes, i);
        g_autoptr(Options) other = strcmp(arg->name, "--object") ? NULL : options_parse(arg->arg, NULL, NULL);
        if (!other || g_strcmp0(options_get(other, "id"), group)) {
            continue;
        }
        if (any) {
            g_free(arg->arg);
            arg->arg = plan_options_to_json(object);
        }
        known = true;
    }
    if (!known) {
        g_ptr_array_add(draft->nodes, plan_arg_new("--object", plan_options_to_json(object), item->origin));
    }
}

void plan_add_drive_node(PlanDraft *draft, CmdItem *item, Options *node, const char *node_name)
{
    static const char *const both[] = {"read-only", "discard", NULL};
    g_auto(GStrv) keys = options_keys(node);

    if (options_has(node, "probed")) {
        plan_note(draft,
                  "WARNING: Image format was not specified for '%s' and probing guessed raw. Automatically "
                  "detecting the format is dangerous for raw images, write operations on block 0 will be "
                  "restricted. Specify the 'raw' format explicitly to remove the restrictions.",
                  options_get(node, "file.filename"));
    }
    if (!has_limits(item->parsed)) {
        plan_add_node(draft, node, node_name, item->origin);
        return;
    }
    g_autoptr(Options) top = options_new();
    const char *group = limits_group(item->parsed, node_name);
    add_limits(draft, item, group);
    options_set(top, "driver", "throttle");
    options_set(top, "throttle-group", group);
    for (const char *const *key = both; *key; key++) {
        if (options_has(node, *key)) {
            options_set(top, *key, options_get(node, *key));
        }
    }
    for (char **key = keys; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        options_set(top, name, options_get(node, *key));
    }
    plan_add_node(draft, top, node_name, item->origin);
}
