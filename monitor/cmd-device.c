/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands that plug drives in and pull them out.
 */
#include "block/block.h"
#include "monitor/qmp.h"
#include "util/buffer.h"
#include "util/error.h"

#define FIRST_BYTES 512 /* where a disk's geometry may be written */

/* A drive on its way in. */
typedef struct Plug {
    QmpCall *call;
    Options *options;
    BlockRequest request;
    uint8_t first[FIRST_BYTES];
} Plug;

static bool plug_now(QmpCall *call, Options *options, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(qmp_call_monitor(call), &opaque);

    return machine->device_add(opaque, options, error);
}

static void on_read(BlockRequest *request)
{
    Plug *plug = request->opaque;
    GError *error = NULL;

    if (monitor_is_closed(qmp_call_monitor(plug->call))) {
        error_set(&error, "The machine has gone");
    } else {
        plug_now(plug->call, plug->options, &error);
    }
    qmp_call_finish(plug->call, NULL, error);
    options_unref(plug->options);
    g_free(plug);
}

/* The device looks at the first sector; that is at hand then, however slow its source is. */
static void plug_after_read(QmpCall *call, Options *options, BlockNode *node)
{
    Plug *plug = g_new0(Plug, 1);

    plug->call = call;
    plug->options = options_ref(options);
    qmp_call_defer(call);
    block_request_init(&plug->request, node, BLOCK_READ, 0, plug->first,
                       MIN(sizeof plug->first, block_info(node)->size), on_read, plug);
    block_submit(&plug->request);
}

static JsonNode *cmd_device_add(QmpCall *call, GError **error)
{
    g_autoptr(Options) options = options_from_json(qmp_args(call), error);

    if (!options) {
        return NULL;
    }
    const char *drive = options_get(options, "drive");
    BlockNode *node = drive ? block_find(drive) : NULL;
    if (node) {
        plug_after_read(call, options, node);
    } else {
        plug_now(call, options, error);
    }
    return NULL;
}

static JsonNode *cmd_device_del(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = monitor_machine(qmp_call_monitor(call), &opaque);

    machine->device_del(opaque, qmp_arg_string(call, "id"), error);
    return NULL;
}

const QmpCommand qmp_commands_device[] = {
    {.name = "device_add",
     .run = cmd_device_add,
     .needs = QMP_NEEDS(device_add),
     .any_args = true,
     .args = {{"driver", QMP_STRING}, {"bus", QMP_STRING, true}, {"id", QMP_STRING, true}}},
    {.name = "device_del",
     .run = cmd_device_del,
     .needs = QMP_NEEDS(device_del),
     .args = {{"id", QMP_STRING}}},
    {NULL},
};
