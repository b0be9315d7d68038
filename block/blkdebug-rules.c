/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/blkdebug.h"
#include "util/cleanup.h"
#include "util/error.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* By BlockDebugEvent. */
static const char *const event_names[BLOCK_DEBUG_EVENTS] = {
    "none",         "read_aio",     "write_aio",   "pwritev",
    "pwritev_zero", "pwritev_done", "flush_to_os", "flush_to_disk",
};

/* QEMU's others: of formats that we do not have. */
static const char *const other_events[] = {
    "l1_update",
    "l1_grow_alloc_table",
    "l1_grow_write_table",
    "l1_grow_activate_table",
    "l2_load",
    "l2_update",
    "l2_update_compressed",
    "l2_alloc_cow_read",
    "l2_alloc_write",
    "read_backing_aio",
    "read_compressed",
    "write_compressed",
    "vmstate_load",
    "vmstate_save",
    "cow_read",
    "cow_write",
    "reftable_load",
    "reftable_grow",
    "reftable_update",
    "refblock_load",
    "refblock_update",
    "refblock_update_part",
    "refblock_alloc",
    "refblock_alloc_hookup",
    "refblock_alloc_write",
    "refblock_alloc_write_blocks",
    "refblock_alloc_write_table",
    "refblock_alloc_switch_table",
    "cluster_alloc",
    "cluster_alloc_bytes",
    "cluster_free",
    "pwritev_rmw_head",
    "pwritev_rmw_after_head",
    "pwritev_rmw_tail",
    "pwritev_rmw_after_tail",
    "empty_image_prepare",
    "l1_shrink_write_table",
    "l1_shrink_free_l2_clusters",
    "cor_write",
    "cluster_alloc_space",
};

static const char *const iotype_names[] = {"read",         "write", "write-zeroes", "discard", "flush",
                                           "block-status", NULL};

bool blkdebug_find_event(const char *name, int *ret_event)
{
    for (int i = 0; i < BLOCK_DEBUG_EVENTS; i++) {
        if (!strcmp(event_names[i], name)) {
            *ret_event = i;
            return true;
        }
    }
    for (guint i = 0; i < G_N_ELEMENTS(other_events); i++) {
        if (!strcmp(other_events[i], name)) {
            *ret_event = -1;
            return true;
        }
    }
    return false;
}

static bool read_event(BlkdebugRule *rule, Options *options, GError **error)
{
    const char *name = options_get(options, "event");
    uint64_t state;
    if (!name) {
        return error_set(error, "Parameter 'event' is missing");
    }
    if (!blkdebug_find_event(name, &rule->event)) {
        return error_set(error, "Parameter 'event' does not accept value '%s'", name);
    }
    if (!options_get_uint(options, "state", 0, INT_MAX, 0, &state, error)) {
        return false;
    }
    rule->state = (int)state;
    return true;
}

static bool read_inject(BlkdebugRule *rule, Options *options, GError **error)
{
    uint64_t number, sector;
    bool immediately; /* QEMU: without a turn of its loop; here an error always comes from a worker */
    int iotype;
    if (!options_get_uint(options, "errno", 0, 4095, EIO, &number, error) ||
        !options_get_uint(options, "sector", 0, INT64_MAX / 512, UINT64_MAX, &sector, error) ||
        !options_get_uint(options, "delay-ns", 0, INT64_MAX, 0, &rule->delay_ns, error) ||
        !options_get_bool(options, "once", false, &rule->once, error) ||
        !options_get_bool(options, "immediately", false, &immediately, error) ||
        !options_get_enum(options, "iotype", iotype_names, -1, &iotype, error)) {
        return false;
    }
    rule->error = (int)number;
    rule->offset = sector == UINT64_MAX ? UINT64_MAX : sector * 512;
    rule->iotypes = iotype < 0 ? (1u << BLKDEBUG_BLOCK_STATUS) - 1 : 1u << iotype;
    return true;
}

static bool read_set_state(BlkdebugRule *rule, Options *options, GError **error)
{
    uint64_t new_state;
    if (!options_has(options, "new_state")) {
        return error_set(error, "Parameter 'new_state' is missing");
    }
    if (!options_get_uint(options, "new_state", 1, INT_MAX, 0, &new_state, error)) {
        return false;
    }
    rule->new_state = (int)new_state;
    return true;
}

static const struct {
    const char *name;
    BlkdebugAction action;
    bool (*read)(BlkdebugRule *rule, Options *options, GError **error);
} sections[] = {
    {"inject-error", BLKDEBUG_INJECT, read_inject},
    {"set-state", BLKDEBUG_SET_STATE, read_set_state},
};

static int find_section(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(sections); i++) {
        if (!strcmp(sections[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

static bool read_rule(GList **rules, int section, Options *options, GError **error)
{
    BlkdebugRule *rule = g_new0(BlkdebugRule, 1);
    rule->action = sections[section].action;
    if (!read_event(rule, options, error) || !sections[section].read(rule, options, error)) {
        blkdebug_rule_free(rule);
        return false;
    }
    *rules = g_list_prepend(*rules, rule);
    const char *unused = options_first_unused(options);
    return !unused || error_set(error, "Parameter '%s' is unexpected", unused);
}

bool blkdebug_read_options(GList **rules, Options *options, GError **error)
{
    for (guint section = 0; section < G_N_ELEMENTS(sections); section++) {
        for (int i = 0;; i++) {
            g_autofree char *prefix = g_strdup_printf("%s.%d", sections[section].name, i);
            if (!options_has_prefix(options, prefix)) {
                break;
            }
            g_autoptr(Options) rule = options_get_sub(options, prefix);
            if (!read_rule(rules, (int)section, rule, error)) {
                block_error_name_parameter(error, prefix);
                return false;
            }
        }
    }
    return true;
}

/* A line of the file: fills *ret_section for a header, else key and value. */
static bool parse_line(char *line, int *ret_section, Options *options, GError **error)
{
    if (line[0] == '[' && g_str_has_suffix(line, "]")) {
        line[strlen(line) - 1] = '\0';
        char *name = g_strstrip(line + 1);
        *ret_section = find_section(name);
        return *ret_section >= 0 || error_set(error, "There is no option group '%s'", name);
    }
    char *value = strchr(line, '=');
    if (!value) {
        return error_set(error, "'%s' is neither a [section] nor key = \"value\"", line);
    }
    *value++ = '\0';
    value = g_strstrip(value);
    size_t n = strlen(value);
    if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
        value[n - 1] = '\0';
        value++;
    }
    options_set(options, g_strstrip(line), value);
    return true;
}

/* The rule of a section that is over. */
static bool end_section(GList **rules, int section, Options *options, GError **error)
{
    return section < 0 || read_rule(rules, section, options, error);
}

bool blkdebug_read_config(GList **rules, const char *path, GError **error)
{
    g_autofree char *text = NULL;
    auto_fd fd = block_open_fd(path, O_RDONLY);
    if (fd < 0) { /* first, for the system's own word on why */
        return error_set_errno(error, fd, "Could not open '%s'", path);
    }
    if (!g_file_get_contents(path, &text, NULL, error)) {
        return false;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(Options) options = options_new();
    int section = -1, number = 0;
    bool good = true;
    for (char **line = lines; good && *line; line++, number++) {
        g_strstrip(*line);
        if (!**line || **line == '#') {
            continue;
        }
        if (**line == '[') {
            good = end_section(rules, section, options, error);
            options_unref(options);
            options = options_new();
        } else if (section < 0) {
            good = error_set(error, "no group defined");
        }
        good = good && parse_line(*line, &section, options, error);
    }
    good = good && end_section(rules, section, options, error);
    if (!good) {
        g_prefix_error(error, "%s:%d: ", path, number);
    }
    return good;
}
