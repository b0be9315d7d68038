/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qemu-options.h"
#include <string.h>
#include "util/error.h"
#include "util/json.h"

/* clang-format off */
const QemuOption qemu_option_table[] = {
    {"D", true}, {"L", true}, {"M", true}, {"S", false}, {"accel", true}, {"acpitable", true},
    {"action", true}, {"add-fd", true}, {"append", true}, {"audio", true}, {"audiodev", true},
    {"bios", true}, {"blockdev", true}, {"boot", true}, {"cdrom", true}, {"chardev", true},
    {"compat", true}, {"cpu", true}, {"d", true}, {"daemonize", false}, {"debugcon", true},
    {"device", true}, {"dfilter", true}, {"display", true}, {"drive", true}, {"dtb", true},
    {"dump-vmstate", true}, {"echr", true}, {"enable-kvm", false}, {"enable-sync-profile", false},
    {"fda", true}, {"fdb", true}, {"fsdev", true}, {"full-screen", false}, {"fw_cfg", true}, {"g", true},
    {"gdb", true}, {"global", true}, {"h", false}, {"hda", true}, {"hdb", true}, {"hdc", true},
    {"hdd", true}, {"help", false}, {"icount", true}, {"incoming", true}, {"initrd", true},
    {"iscsi", true}, {"jitdump", false}, {"k", true}, {"kernel", true}, {"loadvm", true}, {"m", true},
    {"machine", true}, {"mem-path", true}, {"mem-prealloc", false}, {"mon", true}, {"monitor", true},
    {"msg", true}, {"mtdblock", true}, {"name", true}, {"net", true}, {"netdev", true}, {"nic", true},
    {"no-fd-bootchk", false}, {"no-reboot", false}, {"no-shutdown", false}, {"no-user-config", false},
    {"nodefaults", false}, {"nographic", false}, {"numa", true}, {"object", true},
    {"only-migratable", false}, {"option-rom", true}, {"overcommit", true}, {"parallel", true},
    {"perfmap", false}, {"pflash", true}, {"pidfile", true}, {"plugin", true}, {"preconfig", false},
    {"prom-env", true}, {"qmp", true}, {"qmp-pretty", true}, {"qtest", true}, {"qtest-log", true},
    {"readconfig", true}, {"rtc", true}, {"run-with", true}, {"runas", true}, {"s", false}, {"sandbox", true},
    {"sd", true}, {"seed", true}, {"semihosting", false}, {"semihosting-config", true}, {"serial", true},
    {"set", true}, {"shim", true}, {"smbios", true}, {"smp", true}, {"snapshot", false}, {"spice", true},
    {"tpmdev", true}, {"trace", true}, {"usb", false}, {"usbdevice", true}, {"uuid", true},
    {"version", false}, {"vga", true}, {"virtfs", true}, {"vnc", true}, {"watchdog-action", true},
    {"win2k-hack", false}, {"xen-attach", false}, {"xen-domid", true}, {"xen-domid-restrict", false},
    {NULL, false},
};
/* clang-format on */

const QemuOption *qemu_option_find(const char *text)
{
    if (text[0] != '-') {
        return NULL;
    }
    text += text[1] == '-' ? 2 : 1;
    for (const QemuOption *option = qemu_option_table; option->name; option++) {
        if (!strcmp(option->name, text)) {
            return option;
        }
    }
    return NULL;
}

static void cmd_item_free(gpointer data)
{
    CmdItem *item = data;

    g_free(item->word);
    g_free(item->arg);
    g_free(item->origin);
    options_unref(item->parsed);
    g_free(item);
}

static CmdItem *cmd_line_add(CmdLine *line, const char *name, const char *word, const char *arg)
{
    CmdItem *item = g_new0(CmdItem, 1);

    item->name = name;
    item->word = g_strdup(word);
    item->arg = g_strdup(arg);
    item->origin = arg ? g_strdup_printf("%s %s", word, arg) : g_strdup(word);
    g_ptr_array_add(line->items, item);
    return item;
}

CmdLine *cmd_line_parse(const char *const *argv, GError **error)
{
    g_autoptr(CmdLine) line = g_new0(CmdLine, 1);

    line->items = g_ptr_array_new_with_free_func(cmd_item_free);
    for (; *argv; argv++) {
        const QemuOption *option = qemu_option_find(*argv);
        if (!option) {
            cmd_line_add(line, "", *argv, NULL);
        } else if (!option->has_arg) {
            cmd_line_add(line, option->name, *argv, NULL);
        } else if (argv[1]) {
            cmd_line_add(line, option->name, argv[0], argv[1]);
            argv++;
        } else {
            error_set(error, "%s: requires an argument", *argv);
            return NULL;
        }
    }
    return g_steal_pointer(&line);
}

void cmd_line_free(CmdLine *line)
{
    if (line) {
        g_ptr_array_unref(line->items);
        g_free(line);
    }
}

bool cmd_item_is(const CmdItem *item, const char *name)
{
    return !strcmp(item->name, name);
}

bool cmd_item_is_json(const CmdItem *item)
{
    return item->arg && item->arg[0] == '{';
}

Options *cmd_item_parse(CmdItem *item, const char *implied_key)
{
    if (!item->parsed && item->arg) {
        item->parsed = options_parse(item->arg, implied_key, NULL);
    }
    return item->parsed;
}

static void json_set(JsonObject *object, const char *key, const char *value)
{
    if (!value) {
        json_object_remove_member(object, key);
    } else if (!strcmp(value, "on") || !strcmp(value, "off")) {
        json_object_set_boolean_member(object, key, value[1] == 'n');
    } else {
        json_object_set_string_member(object, key, value);
    }
}

static char *json_arg_set(const char *arg, const char *key, const char *value)
{
    g_autoptr(JsonNode) node = json_parse(arg, -1, NULL);

    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        return g_strdup(arg);
    }
    json_set(json_node_get_object(node), key, value);
    return json_to_string(node, false);
}

void cmd_item_set(CmdItem *item, const char *key, const char *value)
{
    char *arg;

    if (cmd_item_is_json(item)) {
        arg = json_arg_set(item->arg, key, value);
    } else if (value) {
        options_set(item->parsed, key, value);
        arg = options_to_string(item->parsed);
    } else {
        options_remove(item->parsed, key);
        arg = options_to_string(item->parsed);
    }
    g_free(item->arg);
    item->arg = arg;
}

CmdItem *cmd_line_append(CmdLine *line, const char *name, const char *arg)
{
    g_autofree char *word = g_strconcat("-", name, NULL);

    return cmd_line_add(line, qemu_option_find(word)->name, word, arg);
}

char **cmd_line_to_argv(const CmdLine *line)
{
    GPtrArray *argv = g_ptr_array_new();

    for (guint i = 0; i < line->items->len; i++) {
        const CmdItem *item = cmd_line_item(line, i);
        if (item->dropped) {
            continue;
        }
        g_ptr_array_add(argv, g_strdup(item->word));
        if (item->arg) {
            g_ptr_array_add(argv, g_strdup(item->arg));
        }
    }
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, false);
}
