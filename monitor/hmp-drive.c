/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `drive_add` and `drive_del`.
 */
#include "block/block.h"
#include "monitor/hmp.h"
#include "util/error.h"

bool hmp_has_drive_add(const MonitorMachine *machine)
{
    return machine && machine->drive_add;
}

/* With -n a node is added, as by blockdev-add. */
void hmp_drive_add(HmpCall *call)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(call->monitor, &opaque);
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(hmp_arg(call, "opts"), NULL, &error);

    if (options && hmp_flag(call, "node")) {
        hmp_run_qmp_with(call, options_to_json(options), NULL);
    } else if (options && machine->drive_add(opaque, options, &error)) {
        hmp_print(call, "OK\n");
    } else {
        hmp_error(call, error);
    }
}

/* A drive, or a node that users made. */
void hmp_drive_del(HmpCall *call)
{
    const char *id = hmp_arg(call, "id");
    Backend *backend = backend_find(call->monitor, id);
    GError *error = NULL;

    if (block_find(id)) {
        JsonObject *args = json_object_new();
        json_object_set_string_member(args, "node-name", id);
        hmp_run_qmp_with(call, args, NULL);
    } else if (!backend) {
        error_set(&error, "Device '%s' not found", id);
        hmp_error(call, error);
    } else if (!backend->qdev) {
        backend_remove(backend);
    } else if (!backend_disown(backend, &error)) {
        hmp_error(call, error);
    }
}
