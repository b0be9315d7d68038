/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tables of the human monitor's commands, and what needs no file of its own.
 */
#include <stdio.h>
#include <string.h>
#include "monitor/hmp.h"
#include "monitor/qmp-json.h"

static void info_status(HmpCall *call)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(call->monitor, &opaque);
    const char *status = machine->status(opaque);
    bool running = machine->is_running(opaque);

    hmp_print(call, "VM status: %s", running ? "running" : "paused");
    hmp_print(call, !running && strcmp(status, "paused") ? " (%s)\n" : "\n", status);
}

static void info_version(HmpCall *call)
{
    hmp_print(call, "10.0.0spindle-%s\n", SPINDLE_VERSION);
}

static void info_name(HmpCall *call)
{
    if (monitor_name(call->monitor)) {
        hmp_print(call, "%s\n", monitor_name(call->monitor));
    }
}

static void info_uuid(HmpCall *call)
{
    const char *uuid = monitor_uuid(call->monitor);

    hmp_print(call, "%s\n", uuid ? uuid : "00000000-0000-0000-0000-000000000000");
}

const HmpCommand hmp_infos[] = {
    {"block", "nodes:-n,verbose:-v,device:B?", "[-n] [-v] [device]",
     "show info of one block device or all block devices (-n: show named nodes; -v: show details)",
     hmp_info_block, NULL},
    {"blockstats", "", "", "show block device statistics", hmp_info_blockstats, NULL},
    {"name", "", "", "show the current VM name", info_name, NULL},
    {"remote", "", "", "show how nodes on servers are doing", hmp_info_remote, NULL},
    {"status", "", "", "show the current VM status (running|paused)", info_status, NULL},
    {"uuid", "", "", "show the current VM UUID", info_uuid, NULL},
    {"version", "", "", "show the version", info_version, NULL},
    {NULL},
};

/* device_add, object_add: options as on the command line. */
static void run_options(HmpCall *call, const char *implied_key)
{
    const char *text = hmp_arg(call, "options");
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(text ? text : "", implied_key, &error);

    if (options) {
        hmp_run_qmp_with(call, options_to_json(options), NULL);
    } else {
        hmp_error(call, error);
    }
}

static void run_device_add(HmpCall *call)
{
    run_options(call, "driver");
}

static void run_object_add(HmpCall *call)
{
    run_options(call, "qom-type");
}

static void show_properties(HmpCall *call, JsonNode *value)
{
    JsonArray *array = json_node_get_array(value);

    for (guint i = 0; i < json_array_get_length(array); i++) {
        JsonObject *property = json_array_get_object_element(array, i);
        hmp_print(call, "%s (%s)\n", json_object_get_string_member(property, "name"),
                  json_object_get_string_member(property, "type"));
    }
}

static void show_value(HmpCall *call, JsonNode *value)
{
    qmp_json_print(call->output, value, true);
    hmp_print(call, "\n");
}

static void run_qom_list(HmpCall *call)
{
    if (!hmp_arg(call, "path")) {
        json_object_set_string_member(call->args, "path", "/");
    }
    hmp_run_qmp_with(call, json_object_ref(call->args), show_properties);
}

static void run_qom_get(HmpCall *call)
{
    hmp_run_qmp_with(call, json_object_ref(call->args), show_value);
}

static void print_help(HmpCall *call, const char *prefix, const HmpCommand *command)
{
    hmp_print(call, "%s%s %s -- %s\n", prefix, command->name, command->usage, command->help);
}

static void print_table(HmpCall *call, const char *prefix, const HmpCommand *table)
{
    for (; table->name; table++) {
        if (hmp_available(table, call->monitor)) {
            print_help(call, prefix, table);
        }
    }
}

static void run_info(HmpCall *call)
{
    print_table(call, "info ", hmp_infos);
}

static void run_help(HmpCall *call)
{
    const char *name = hmp_arg(call, "name"), *sub = hmp_arg(call, "sub");
    const HmpCommand *command = name ? hmp_find(hmp_commands, name) : NULL;
    bool info = command && !strcmp(command->name, "info");

    if (!name) {
        print_table(call, "", hmp_commands);
    } else if (info && !sub) {
        run_info(call);
    } else if (info && hmp_find(hmp_infos, sub)) {
        print_help(call, "info ", hmp_find(hmp_infos, sub));
    } else if (!info && command && hmp_available(command, call->monitor)) {
        print_help(call, "", command);
    } else {
        hmp_print(call, "unknown command: '%s%s%s'\n", name, info ? " " : "", info ? sub : "");
    }
}

#define LIMITS "bps:l,bps_rd:l,bps_wr:l,iops:l,iops_rd:l,iops_wr:l"

const HmpCommand hmp_commands[] = {
    {"block_resize", "device:B,size:o", "device size", "resize a block image", hmp_run_qmp, "block_resize"},
    {"block_set_io_throttle", "device:B," LIMITS, "device bps bps_rd bps_wr iops iops_rd iops_wr",
     "change I/O throttle limits for a block drive", hmp_run_qmp, "block_set_io_throttle"},
    {"change", "device:B,force:-f,filename:F,format:s?,read-only-mode:s?",
     "device [-f] filename [format [read-only-mode]]",
     "change a removable medium, optional format, use -f to force the operation", hmp_run_qmp,
     "blockdev-change-medium"},
    {"closefd", "fdname:s", "closefd name", "close a file descriptor previously passed via SCM rights",
     hmp_run_qmp, "closefd"},
    {"cont|c", "", "", "resume emulation", hmp_run_qmp, "cont"},
    {"device_add", "options:S?", "driver[,prop=value][,...]", "add device, like -device on the command line",
     run_device_add, "device_add"},
    {"device_del", "id:s", "device", "remove device", hmp_run_qmp, "device_del"},
    {"drive_add", "node:-n,pci_addr:s,opts:s", "[-n] slot [file=file][,if=none][,media=d][,…]",
     "add a drive that no device uses yet (-n: a node)", hmp_drive_add, "blockdev-add", hmp_has_drive_add},
    {"drive_del", "id:B", "device", "remove host block device", hmp_drive_del, "blockdev-del",
     hmp_has_drive_add},
    {"eject", "force:-f,device:B", "[-f] device", "eject a removable medium (use -f to force it)",
     hmp_run_qmp, "eject"},
    {"help|?", "name:s?,sub:s?", "[cmd]", "show the help", run_help, NULL},
    {"info", "", "[subcommand]", "show various information about the system state", run_info, NULL},
    {"object_add", "options:S", "[qom-type=]type,id=str[,prop=value][,...]", "create QOM object",
     run_object_add, "object-add"},
    {"object_del", "id:s", "id", "destroy QOM object", hmp_run_qmp, "object-del"},
    {"qemu-io", "qdev:-d,device:B,command:s", "[-d] [device] \"[command]\"",
     "run a qemu-io command on a block device\n"
     "\t\t\t-d: [device] is a device ID rather than a drive ID or node name",
     hmp_qemu_io, NULL},
    {"qom-get", "path:s,property:s", "path property", "print QOM property", run_qom_get, "qom-get"},
    {"qom-list", "path:s?", "path", "list QOM properties", run_qom_list, "qom-list"},
    {"quit|q", "", "", "quit the emulator", hmp_run_qmp, "quit"},
    {"stop|s", "", "", "stop emulation", hmp_run_qmp, "stop"},
    {"system_reset", "", "", "reset the system", hmp_run_qmp, "system_reset"},
    {NULL},
};
