/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/machine.h"
#include <string.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "monitor/objects.h"
#include "system/machine-int.h"
#include "util/error.h"
#include "util/log.h"

/* Of --chardev. */
typedef struct NamedChardev {
    char *id;
    Chardev *chardev; /* NULL: a monitor has it */
} NamedChardev;

/* The machine itself is elsewhere: `stop` only tells that it stands still, so that nothing is tried again
 * before `cont`. */
static const char *monitor_status(void *opaque)
{
    const Machine *machine = opaque;
    GPtrArray *backends = monitor_backends(machine->monitor);

    for (guint i = 0; i < backends->len && machine->stopped; i++) {
        if (((Backend *)g_ptr_array_index(backends, i))->io_status != BACKEND_IO_OK) {
            return "io-error";
        }
    }
    return machine->stopped ? "paused" : "running";
}

static bool monitor_is_running(void *opaque)
{
    return !((Machine *)opaque)->stopped;
}

void machine_set_stopped(Machine *machine, bool stopped)
{
    if (machine->stopped != stopped) {
        machine->stopped = stopped;
        monitor_event(machine->monitor, stopped ? "STOP" : "RESUME", NULL);
    }
    for (guint i = 0; i < machine->slots->len; i++) {
        drive_set_stopped(((Slot *)g_ptr_array_index(machine->slots, i))->drive, stopped);
    }
}

static void monitor_stop(void *opaque)
{
    machine_set_stopped(opaque, true);
}

static bool monitor_cont(void *opaque, GError **error)
{
    if (!machine_unpark(opaque, error)) {
        return false;
    }
    machine_set_stopped(opaque, false);
    return true;
}

static void monitor_quit(void *opaque)
{
    Machine *machine = opaque;

    machine_tell_shutdown(machine, "host-qmp-quit");
    machine->quit(machine->opaque);
}

void machine_tell_shutdown(Machine *machine, const char *reason)
{
    JsonObject *data = json_object_new();

    json_object_set_boolean_member(data, "guest", false);
    json_object_set_string_member(data, "reason", reason);
    monitor_event(machine->monitor, "SHUTDOWN", data);
}

static const MonitorMachine monitor_ops = {
    .status = monitor_status,
    .is_running = monitor_is_running,
    .stop = monitor_stop,
    .cont = monitor_cont,
    .quit = monitor_quit,
    .device_add = machine_plug,
    .device_del = machine_unplug,
    .save_state = machine_save_state,
    .load_state = machine_load_state,
};

static void chardev_item_free(gpointer data)
{
    NamedChardev *item = data;

    chardev_free(item->chardev);
    g_free(item->id);
    g_free(item);
}

Machine *machine_new(void (*quit)(void *opaque), void *opaque)
{
    Machine *machine = g_new0(Machine, 1);

    machine->monitor = monitor_new(&monitor_ops, machine);
    machine->chardevs = g_ptr_array_new_with_free_func(chardev_item_free);
    machine->controllers = g_ptr_array_new_with_free_func((GDestroyNotify)controller_free);
    machine->slots = g_ptr_array_new_with_free_func(machine_slot_free);
    machine->vanished = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    machine->quit = quit;
    machine->opaque = opaque;
    return machine;
}

void machine_free(Machine *machine)
{
    if (!machine) {
        return;
    }
    machine_abandon_save(machine);
    for (guint i = 0; i < machine->controllers->len; i++) {
        controller_close(g_ptr_array_index(machine->controllers, i));
    }
    g_ptr_array_unref(machine->slots);
    g_ptr_array_unref(machine->controllers);
    monitor_free(machine->monitor);
    g_ptr_array_unref(machine->chardevs);
    secret_object_clear();
    g_hash_table_unref(machine->vanished);
    g_free(machine);
}

bool machine_add_object(Machine *machine, Options *options, GError **error)
{
    return monitor_add_object(machine->monitor, options, error);
}

/* The disc of a saved machine may be gone by now: its drive is then found empty. */
static void note_vanished(Machine *machine, const char *name, GError *failure)
{
    log_warn("%s", failure->message);
    g_hash_table_insert(machine->vanished, g_strdup(name), g_strdup(failure->message));
    g_error_free(failure);
}

bool machine_add_node(Machine *machine, Options *options, GError **error)
{
    g_autofree char *name = g_strdup(options_get(options, "node-name"));
    GError *failure = NULL;

    if (!name) {
        return error_set(error, "'node-name' must be specified for the root node");
    }
    BlockNode *node = block_open(options, &failure);
    if (node) {
        monitor_own_node(machine->monitor, node);
    } else if (machine->parked) {
        note_vanished(machine, name, failure);
    } else {
        g_propagate_error(error, failure);
        return false;
    }
    return true;
}

Controller *machine_find_controller(const Machine *machine, const char *id)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        if (!strcmp(controller_id(controller), id)) {
            return controller;
        }
    }
    return NULL;
}

bool machine_add_controller(Machine *machine, Options *options, GError **error)
{
    const char *path = options_get(options, "path");
    const char *id = options_get(options, "id");
    const char *dma = options_get(options, "dma");
    VfuDmaMode mode = VFU_DMA_MODE_AUTO;
    int model;

    if (!path || !path[0]) {
        return error_set(error, "Parameter 'path' is missing");
    }
    if (!id && machine->controllers->len > 0) {
        return error_set(error, "Parameter 'id' is missing");
    }
    id = id ? id : "ide";
    if (machine_find_controller(machine, id)) {
        return error_set(error, "Duplicate ID '%s' for controller", id);
    }
    if (!options_get_enum(options, "controller", controller_model_names, CONTROLLER_AHCI, &model, error)) {
        return false;
    }
    if (dma && !vfu_dma_mode_parse(dma, &mode)) {
        return error_set(error, "Parameter 'dma' does not accept value '%s'", dma);
    }
    if (!options_check_unused(options, error)) {
        return false;
    }
    Controller *controller = controller_new((ControllerModel)model, id, path, mode);
    g_ptr_array_add(machine->controllers, controller);
    if (machine->parked) {
        controller_pci(controller)->ops->park(controller_pci(controller), true);
    }
    return true;
}

static NamedChardev *find_chardev(Machine *machine, const char *id)
{
    for (guint i = 0; i < machine->chardevs->len; i++) {
        NamedChardev *item = g_ptr_array_index(machine->chardevs, i);
        if (!strcmp(item->id, id)) {
            return item;
        }
    }
    return NULL;
}

bool machine_add_chardev(Machine *machine, Options *options, GError **error)
{
    const char *id = options_get(options, "id");

    if (!id) {
        return error_set(error, "Parameter 'id' is missing");
    }
    if (find_chardev(machine, id)) {
        return error_set(error, "Chardev with id '%s' already exists", id);
    }
    Chardev *chardev = chardev_new(options, error);
    if (!chardev) {
        return false;
    }
    NamedChardev *item = g_new0(NamedChardev, 1);
    item->id = g_strdup(id);
    item->chardev = chardev;
    g_ptr_array_add(machine->chardevs, item);
    return true;
}

/* `stdio` needs no --chardev. */
static Chardev *take_chardev(Machine *machine, const char *id, GError **error)
{
    NamedChardev *item = find_chardev(machine, id);

    if (!item && !strcmp(id, "stdio")) {
        return chardev_new_from_text(id, error);
    }
    if (!item) {
        error_set(error, "chardev \"%s\" not found", id);
        return NULL;
    }
    if (!item->chardev) {
        error_set(error, "Device '%s' is in use", id);
    }
    return g_steal_pointer(&item->chardev);
}

bool machine_add_monitor(Machine *machine, Options *options, GError **error)
{
    static const char *const modes[] = {"control", "readline", NULL};
    const char *id = options_get(options, "chardev");
    bool pretty;
    int mode;

    options_get(options, "id");
    if (!id) {
        return error_set(error, "Parameter 'chardev' is missing");
    }
    if (!options_get_enum(options, "mode", modes, !strcmp(id, "stdio"), &mode, error) ||
        !options_get_bool(options, "pretty", false, &pretty, error) ||
        !options_check_unused(options, error)) {
        return false;
    }
    Chardev *chardev = take_chardev(machine, id, error);
    if (!chardev) {
        return false;
    }
    monitor_add_server(machine->monitor, chardev,
                       mode == 1 ? MONITOR_HUMAN
                       : pretty  ? MONITOR_QMP_PRETTY
                                 : MONITOR_QMP);
    return true;
}

bool machine_open_monitors(Machine *machine, GError **error)
{
    return monitor_open(machine->monitor, error);
}

bool machine_listen(Machine *machine, unsigned *ret_failed, GError **error)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        if (!controller_listen(controller, error)) {
            *ret_failed = i;
            return false;
        }
    }
    return true;
}

pid_t machine_client_pid(const Machine *machine)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        pid_t pid = controller_client_pid(g_ptr_array_index(machine->controllers, i));
        if (pid > 0) {
            return pid;
        }
    }
    return 0;
}
