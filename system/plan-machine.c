/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which machine, accelerator and firmware the command line asks for.
 */
#include "system/plan-int.h"
#include <string.h>

/* Options whose argument may be a question; QEMU answers and exits. */
static bool item_asks_for_help(const CmdItem *item)
{
    static const char *const askable[] = {"device", "machine", "M",     "cpu",       "accel",    "object",
                                          "netdev", "nic",     "net",   "chardev",   "audio",    "audiodev",
                                          "drive",  "display", "vga",   "d",         "trace",    "tpmdev",
                                          "numa",   "smp",     "audio", "usbdevice", "blockdev", NULL};

    if (cmd_item_is(item, "h") || cmd_item_is(item, "help") || cmd_item_is(item, "version")) {
        return true;
    }
    if (!item->arg || !g_strv_contains(askable, item->name)) {
        return false;
    }
    return !strcmp(item->arg, "help") || !strcmp(item->arg, "?") || g_str_has_suffix(item->arg, ",help") ||
           g_str_has_suffix(item->arg, ",?");
}

static MachineFamily machine_family(const char *type)
{
    if (!type || !strcmp(type, "pc") || g_str_has_prefix(type, "pc-i440fx-")) {
        return MACHINE_PC;
    }
    return !strcmp(type, "q35") || g_str_has_prefix(type, "pc-q35-") ? MACHINE_Q35 : MACHINE_OTHER;
}

/* Several accelerators ("kvm:tcg", two -accel) mean that it is not known before QEMU has tried. */
static void add_accel(PlanDraft *draft, const char *name, bool *seen)
{
    Accel accel = !strcmp(name, "kvm") ? ACCEL_KVM : !strcmp(name, "tcg") ? ACCEL_TCG : ACCEL_UNSURE;

    draft->accel = *seen && accel != draft->accel ? ACCEL_UNSURE : accel;
    *seen = true;
}

static void read_machine_item(PlanDraft *draft, CmdItem *item, const char **type, bool *seen)
{
    Options *options = cmd_item_parse(item, "type");

    if (!options) {
        return;
    }
    if (options_has(options, "type")) {
        *type = options_get(options, "type");
    }
    if (options_has(options, "accel")) {
        add_accel(draft, options_get(options, "accel"), seen);
    }
    if (options_has(options, "pflash0")) {
        draft->uefi = true;
    }
}

/* Spindle's own: what the machine's IDE drives are behind. */
#define OWN_CONTROLLER "spindle.controller="

static void read_item(PlanDraft *draft, CmdItem *item, const char **type, bool *seen)
{
    if (cmd_item_is(item, "machine") || cmd_item_is(item, "M")) {
        read_machine_item(draft, item, type, seen);
    } else if (cmd_item_is(item, "accel") && cmd_item_parse(item, "accel")) {
        const char *accel = options_get(item->parsed, "accel");
        add_accel(draft, accel ? accel : "", seen);
    } else if (cmd_item_is(item, "enable-kvm")) {
        add_accel(draft, "kvm", seen);
    } else if (cmd_item_is(item, "nodefaults")) {
        draft->nodefaults = true;
    } else if (cmd_item_is(item, "global") && g_str_has_prefix(item->arg, OWN_CONTROLLER)) {
        draft->ide_item = item;
        draft->ide_model = plan_controller_model(item->arg + strlen(OWN_CONTROLLER));
        item->dropped = true;
    } else if (cmd_item_is(item, "snapshot")) {
        draft->snapshot = true;
    } else if (cmd_item_is(item, "bios")) {
        draft->uefi = draft->hooks->firmware_is_uefi(item->arg);
    } else if (cmd_item_is(item, "pflash")) {
        draft->uefi = true;
    } else if (cmd_item_is(item, "drive") && cmd_item_parse(item, NULL)) {
        draft->uefi |= g_strcmp0(options_get(item->parsed, "if"), "pflash") == 0;
    }
}

bool plan_read_machine(PlanDraft *draft)
{
    const char *type = NULL;
    bool accel_seen = false;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (item_asks_for_help(item)) {
            return false;
        }
        read_item(draft, item, &type, &accel_seen);
    }
    draft->machine = machine_family(type);
    return draft->machine != MACHINE_OTHER;
}
