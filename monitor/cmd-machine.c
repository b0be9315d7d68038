/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on the machine as a whole.
 */
#include "monitor/qmp.h"

static const MonitorMachine *machine_of(QmpCall *call, void **ret_opaque)
{
    return monitor_machine(qmp_call_monitor(call), ret_opaque);
}

static JsonNode *cmd_query_status(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);
    JsonObject *status = json_object_new();

    json_object_set_string_member(status, "status", machine->status(opaque));
    json_object_set_boolean_member(status, "running", machine->is_running(opaque));
    return qmp_object(status);
}

static JsonNode *cmd_stop(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    machine->stop(opaque);
    return NULL;
}

static JsonNode *cmd_cont(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    machine->cont(opaque, error);
    return NULL;
}

static JsonNode *cmd_system_reset(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    machine->reset(opaque);
    return NULL;
}

static JsonNode *cmd_quit(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);

    machine->quit(opaque);
    return NULL;
}

static JsonNode *cmd_query_machines(QmpCall *call, GError **error)
{
    void *opaque;
    const MonitorMachine *machine = machine_of(call, &opaque);
    const char *const *names = machine->machines(opaque);
    JsonArray *array = json_array_new();

    for (const char *const *name = names; *name; name++) {
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", *name);
        json_object_set_int_member(object, "cpu-max", 1);
        json_object_set_boolean_member(object, "hotpluggable-cpus", false);
        json_object_set_boolean_member(object, "numa-mem-supported", false);
        json_object_set_boolean_member(object, "deprecated", false);
        json_object_set_boolean_member(object, "acpi", false);
        if (name == names) {
            json_object_set_boolean_member(object, "is-default", true);
        }
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

static JsonNode *cmd_query_target(QmpCall *call, GError **error)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "arch", "x86_64");
    return qmp_object(object);
}

const QmpCommand qmp_commands_machine[] = {
    {.name = "cont", .run = cmd_cont, .needs = QMP_NEEDS(cont)},
    {.name = "query-machines",
     .run = cmd_query_machines,
     .returns = QMP_ARRAY,
     .needs = QMP_NEEDS(machines),
     .args = {{"compat-props", QMP_BOOL, true}}},
    {.name = "query-target", .run = cmd_query_target, .returns = QMP_OBJECT, .needs = QMP_NEEDS(machines)},
    {.name = "query-status", .run = cmd_query_status, .returns = QMP_OBJECT},
    {.name = "quit", .run = cmd_quit},
    {.name = "stop", .run = cmd_stop, .needs = QMP_NEEDS(stop)},
    {.name = "system_reset", .run = cmd_system_reset, .needs = QMP_NEEDS(reset)},
    {NULL},
};
