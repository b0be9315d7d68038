/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drive process needs the guest's memory shared to map it; memory that is not is reached by messages
 * only, which works but is slower. So QEMU's default memory becomes a memfd, and the user's own backends
 * are shared where that changes nothing else.
 */
#include "system/plan-int.h"
#include <string.h>

#define DEFAULT_RAM (128ull << 20) /* of pc and q35 */
#define RAM_GRAIN   8192           /* QEMU rounds up to it */

/* The last value of a key of -machine, or NULL. */
static const char *machine_get(PlanDraft *draft, const char *key)
{
    const char *value = NULL;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if ((cmd_item_is(item, "machine") || cmd_item_is(item, "M")) && item->parsed &&
            options_has(item->parsed, key)) {
            value = options_get(item->parsed, key);
        }
    }
    return value;
}

/* Without a suffix -m means MiB. 0: not a size. */
static uint64_t parse_ram_size(Options *options, const char *key, bool mebibytes)
{
    const char *text = options_get(options, key);
    uint64_t size;

    if (!text || !text[0] || !options_get_size(options, key, 0, &size, NULL)) {
        return 0;
    }
    if (mebibytes && g_ascii_isdigit(text[strlen(text) - 1])) {
        return size > UINT64_MAX >> 20 ? 0 : size << 20;
    }
    return size;
}

/* False: a -m that QEMU will refuse. */
static bool guest_ram_size(PlanDraft *draft, uint64_t *ret_size)
{
    uint64_t size = DEFAULT_RAM;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        bool machine = cmd_item_is(item, "machine") || cmd_item_is(item, "M");
        const char *key = machine ? "memory.size" : "size";
        if (!machine && !cmd_item_is(item, "m")) {
            continue;
        }
        if (!cmd_item_parse(item, machine ? "type" : "size") || !options_has(item->parsed, key)) {
            continue;
        }
        size = parse_ram_size(item->parsed, key, !machine);
        if (!size && strcmp(options_get(item->parsed, key), "0")) {
            return false;
        }
        size = size ? size : DEFAULT_RAM;
    }
    *ret_size = (size + RAM_GRAIN - 1) / RAM_GRAIN * RAM_GRAIN;
    return true;
}

/* -mem-path, taken off: with a folder (hugetlbfs) the memory can be shared; a file would be written to. */
static const char *take_mem_path(PlanDraft *draft)
{
    const char *path = NULL;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "mem-path") && draft->hooks->is_directory(item->arg)) {
            path = item->arg;
            item->dropped = true;
        } else if (cmd_item_is(item, "mem-path")) {
            return NULL;
        }
    }
    return path;
}

static bool has_mem_path(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "mem-path") && !item->dropped) {
            return true;
        }
    }
    return false;
}

static void add_backend(PlanDraft *draft)
{
    /* The name that QEMU itself would use, so that saved machine states keep fitting. */
    const char *id = plan_id_taken(draft, "pc.ram") ? "spindle-ram" : "pc.ram";
    const char *mem_path = take_mem_path(draft);
    g_autoptr(Options) object = options_new();
    g_autofree char *machine = g_strdup_printf("memory-backend=%s", id);
    uint64_t size;

    if (has_mem_path(draft)) {
        plan_note(draft, "memory in a file is left as it is; the drives reach it by messages");
        return;
    }
    if (!guest_ram_size(draft, &size)) {
        return;
    }
    g_autofree char *size_text = g_strdup_printf("%" G_GUINT64_FORMAT, size);
    options_set(object, "qom-type", mem_path ? "memory-backend-file" : "memory-backend-memfd");
    options_set(object, "id", id);
    options_set(object, "size", size_text);
    if (mem_path) {
        options_set(object, "mem-path", mem_path);
    }
    options_set(object, "share", "on");
    g_autofree char *text = options_to_string(object);
    const char *value = text + strlen("qom-type=");
    cmd_line_append(draft->line, "object", value);
    cmd_line_append(draft->line, "machine", machine);
}

static void backend_share(PlanDraft *draft, CmdItem *item)
{
    const char *type = options_get(item->parsed, "qom-type");

    if (!strcmp(type, "memory-backend-ram")) {
        cmd_item_set(item, "qom-type", "memory-backend-memfd");
        cmd_item_set(item, "share", "on");
    } else if (!strcmp(type, "memory-backend-memfd")) {
        if (options_has(item->parsed, "share")) {
            cmd_item_set(item, "share", "on");
        }
    } else if (!strcmp(type, "memory-backend-file")) {
        const char *path = options_get(item->parsed, "mem-path");
        if (!options_has(item->parsed, "share") && path && draft->hooks->is_directory(path)) {
            cmd_item_set(item, "share", "on");
        }
    }
}

void plan_share_memory(PlanDraft *draft)
{
    bool numa = false;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "object") && item->parsed && options_has(item->parsed, "qom-type")) {
            backend_share(draft, item);
        } else if (cmd_item_is(item, "numa") && cmd_item_parse(item, "type")) {
            numa |= options_has(item->parsed, "memdev");
        }
    }
    if (!numa && !machine_get(draft, "memory-backend")) {
        add_backend(draft);
    }
}
