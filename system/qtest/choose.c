/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/choose.h"
#include <string.h>
#include <unistd.h>
#include "system/qemu-options.h"

/* What the PC is built from. */
static const char *const used_options[] = {
    "boot",      "no-fd-bootchk", "accel",    "machine", "M",      "m",   "qtest",
    "qtest-log", "chardev",       "mon",      "name",    "uuid",   "S",   "pidfile",
    "incoming",  "nodefaults",    "global",   "drive",   "hda",    "hdb", "hdc",
    "hdd",       "cdrom",         "blockdev", "device",  "object", "qmp", "qmp-pretty",
    "monitor",   "trace",         "d",        "D",       NULL,
};

/* Taken without effect: there is nothing here that they could change. */
static const char *const idle_options[] = {
    "action",
    "audio",
    "audiodev",
    "bios",

    "compat",
    "cpu",
    "display",
    "enable-kvm",
    "g",
    "k",
    "L",
    "msg",
    "net",
    "netdev",
    "nic",

    "no-reboot",
    "no-shutdown",
    "no-user-config",
    "nographic",
    "only-migratable",
    "overcommit",
    "parallel",
    "rtc",
    "run-with",
    "sandbox",
    "seed",
    "serial",
    "smp",
    "usb",
    "vga",
    NULL,
};

bool qtest_knows_option(const char *name)
{
    return g_strv_contains(used_options, name) || g_strv_contains(idle_options, name);
}

/* 1: qtest, 0: another one that can be had, -1: none that can be had. `names` may be several, with colons. */
static int first_accel(const char *names)
{
    g_auto(GStrv) list = g_strsplit(names, ":", -1);

    for (char **name = list; *name; name++) {
        if (!strcmp(*name, "qtest")) {
            return 1;
        }
        if (strcmp(*name, "kvm") || !access("/dev/kvm", R_OK | W_OK)) {
            return 0;
        }
    }
    return -1;
}

static bool is_qtest_wanted(const CmdLine *line)
{
    for (guint i = 0; i < line->items->len; i++) {
        CmdItem *item = cmd_line_item(line, i);
        const char *names = NULL;
        if (cmd_item_is(item, "accel") && cmd_item_parse(item, "accel")) {
            names = options_get(item->parsed, "accel");
        } else if ((cmd_item_is(item, "machine") || cmd_item_is(item, "M")) && cmd_item_parse(item, "type")) {
            names = options_get(item->parsed, "accel");
        }
        int found = names ? first_accel(names) : cmd_item_is(item, "enable-kvm") ? first_accel("kvm") : -1;
        if (found >= 0) {
            return found;
        }
    }
    return false;
}

/* The value of a key is in QEMU's hands: not in the list, or a call for help. */
static bool is_foreign(CmdItem *item, const char *implied, const char *key, const char *const *known)
{
    Options *options = cmd_item_parse(item, implied);
    const char *value = options ? options_get(options, key) : NULL;

    return options && (options_has(options, "help") || (value && !g_strv_contains(known, value)));
}

static bool is_foreign_machine(CmdItem *item)
{
    static const char *const known[] = {"pc", "q35", "none", NULL};
    Options *options = cmd_item_parse(item, "type");
    const char *type = options ? options_get(options, "type") : NULL;

    return type && !g_str_has_prefix(type, "pc-i440fx-") && !g_str_has_prefix(type, "pc-q35-") &&
           !g_strv_contains(known, type);
}

static bool is_foreign_item(CmdItem *item)
{
    static const char *const devices[] = {"ahci",   "ich9-ahci", "piix3-ide", "piix4-ide",
                                          "ide-hd", "ide-cd",    NULL};
    static const char *const interfaces[] = {"ide", "none", NULL};
    static const char *const objects[] = {"secret",
                                          "throttle-group",
                                          "tls-creds-psk",
                                          "tls-creds-x509",
                                          "iothread",
                                          "memory-backend-file",
                                          "memory-backend-memfd",
                                          "memory-backend-ram",
                                          "memory-backend-shm",
                                          NULL};

    if (item->name[0] && !qtest_knows_option(item->name)) {
        return true;
    }
    if (cmd_item_is(item, "machine") || cmd_item_is(item, "M")) {
        return is_foreign_machine(item);
    }
    return (cmd_item_is(item, "device") && is_foreign(item, "driver", "driver", devices)) ||
           (cmd_item_is(item, "drive") && is_foreign(item, NULL, "if", interfaces)) ||
           (cmd_item_is(item, "object") && is_foreign(item, "qom-type", "qom-type", objects));
}

QtestChoice qtest_choose(const char *const *argv, char **ret_reason)
{
    g_autoptr(CmdLine) line = cmd_line_parse(argv, NULL);

    if (!line || !is_qtest_wanted(line)) {
        return QTEST_NOT;
    }
    for (guint i = 0; i < line->items->len; i++) {
        CmdItem *item = cmd_line_item(line, i);
        if (is_foreign_item(item)) {
            *ret_reason = g_strdup(item->origin);
            return QTEST_ENGINE;
        }
    }
    return QTEST_OWN;
}
