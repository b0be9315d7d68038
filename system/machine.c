/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/machine.h"
#include <string.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "block/throttle.h"
#include "monitor/backend.h"
#include "system/controller.h"
#include "system/drive-props.h"
#include "system/drive.h"
#include "util/error.h"

/* A drive and its place. */
typedef struct Slot {
    Drive *drive;
    Controller *controller;
    unsigned bus, unit;
    Backend *backend; /* the monitor's */
} Slot;

/* Of --chardev. */
typedef struct NamedChardev {
    char *id;
    Chardev *chardev; /* NULL: a monitor has it */
} NamedChardev;

struct Machine {
    Monitor *monitor; /* has the nodes and throttle groups */
    GPtrArray *chardevs;
    GPtrArray *controllers;
    GPtrArray *slots;   /* those in use */
    unsigned anonymous; /* devices without an id, so far */
    void (*quit)(void *opaque);
    void *opaque;
};

static const char *monitor_status(void *opaque)
{
    return "running";
}

static bool monitor_is_running(void *opaque)
{
    return true;
}

static void monitor_quit(void *opaque)
{
    Machine *machine = opaque;

    machine->quit(machine->opaque);
}

static const MonitorMachine monitor_ops = {
    .status = monitor_status, .is_running = monitor_is_running, .quit = monitor_quit};

/* Drives go before the controllers that they are attached to, see machine_free(). */
static void slot_free(gpointer data)
{
    Slot *slot = data;

    controller_detach(slot->controller, slot->bus, slot->unit);
    drive_free(slot->drive);
    backend_remove(slot->backend);
    g_free(slot);
}

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
    machine->slots = g_ptr_array_new_with_free_func(slot_free);
    machine->quit = quit;
    machine->opaque = opaque;
    return machine;
}

void machine_free(Machine *machine)
{
    if (!machine) {
        return;
    }
    for (guint i = 0; i < machine->controllers->len; i++) {
        controller_close(g_ptr_array_index(machine->controllers, i));
    }
    g_ptr_array_unref(machine->slots);
    g_ptr_array_unref(machine->controllers);
    monitor_free(machine->monitor);
    g_ptr_array_unref(machine->chardevs);
    secret_object_clear();
    g_free(machine);
}

bool machine_add_object(Machine *machine, Options *options, GError **error)
{
    const char *type = options_get(options, "qom-type");

    if (!type) {
        return error_set(error, "Parameter 'qom-type' is missing");
    }
    g_autofree char *kind = g_strdup(type);
    options_remove(options, "qom-type");
    if (!strcmp(kind, "secret")) {
        return secret_object_add(options, error);
    }
    if (!strcmp(kind, "throttle-group")) {
        ThrottleGroup *group = throttle_group_new_from_options(options, error);
        if (group) {
            monitor_own_group(machine->monitor, group);
        }
        return group != NULL;
    }
    return error_set(error, "Parameter 'qom-type' does not accept value '%s'", kind);
}

bool machine_add_node(Machine *machine, Options *options, GError **error)
{
    if (!options_has(options, "node-name")) {
        return error_set(error, "'node-name' must be specified for the root node");
    }
    BlockNode *node = block_open(options, error);
    if (node) {
        monitor_own_node(machine->monitor, node);
    }
    return node != NULL;
}

static Controller *find_controller(Machine *machine, const char *id)
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
    if (find_controller(machine, id)) {
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
    g_ptr_array_add(machine->controllers, controller_new((ControllerModel)model, id, path, mode));
    return true;
}

/* The first free unit of a bus, or the number of units. */
static unsigned free_unit(const Controller *controller, unsigned bus)
{
    unsigned unit = 0, units = controller_units(controller);

    while (unit < units && controller_device(controller, bus, unit)) {
        unit++;
    }
    return unit;
}

/* "ide.2": bus 2 of the controller "ide". */
static bool find_bus(Machine *machine, const char *bus, Controller **ret_controller, unsigned *ret_bus,
                     GError **error)
{
    const char *dot = strrchr(bus, '.');
    g_autofree char *id = dot ? g_strndup(bus, dot - bus) : g_strdup(bus);
    Controller *controller = find_controller(machine, id);
    guint64 number;

    if (!controller || !dot ||
        !g_ascii_string_to_unsigned(dot + 1, 10, 0, controller_buses(controller) - 1, &number, NULL)) {
        return error_set(error, "Bus '%s' not found", bus);
    }
    *ret_controller = controller;
    *ret_bus = (unsigned)number;
    return true;
}

static bool find_free_bus(Machine *machine, const DriveProps *props, Controller **ret_controller,
                          unsigned *ret_bus, GError **error)
{
    const char *driver = drive_model_name(props->model);

    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        for (unsigned bus = 0; bus < controller_buses(controller); bus++) {
            if (free_unit(controller, bus) < controller_units(controller)) {
                *ret_controller = controller;
                *ret_bus = bus;
                return true;
            }
        }
    }
    return machine->controllers->len
               ? error_set(error, "No free 'IDE' bus found for device '%s'", driver)
               : error_set(error, "No 'IDE' bus found for device '%s': give --vfio-user", driver);
}

/* The place in `slot` that the properties ask for. */
static bool find_place(Machine *machine, const DriveProps *props, Slot *slot, GError **error)
{
    if (props->bus ? !find_bus(machine, props->bus, &slot->controller, &slot->bus, error)
                   : !find_free_bus(machine, props, &slot->controller, &slot->bus, error)) {
        return false;
    }
    unsigned units = controller_units(slot->controller);
    slot->unit = props->unit >= 0 ? (unsigned)props->unit : free_unit(slot->controller, slot->bus);
    if (slot->unit >= units && (units == 1 || props->unit >= 0)) {
        return error_set(error, "Can't create IDE unit %u, bus supports only %u units", slot->unit, units);
    }
    slot->unit = MIN(slot->unit, units - 1); /* as QEMU, which then finds it in use */
    return !controller_device(slot->controller, slot->bus, slot->unit) ||
           error_set(error, "IDE unit %u is in use", slot->unit);
}

/* A hard disk's node is its own. */
static bool check_sharing(Machine *machine, const DriveProps *props, const BlockNode *node, GError **error)
{
    for (guint i = 0; node && i < machine->slots->len; i++) {
        const Slot *slot = g_ptr_array_index(machine->slots, i);
        bool written = drive_model(slot->drive) == DRIVE_HD;
        if (slot->backend->node != node || (!written && props->model != DRIVE_HD)) {
            continue;
        }
        const char *other = drive_id(slot->drive) ? drive_id(slot->drive) : "";
        const char *this = props->id ? props->id : "";
        return error_set(error,
                         "Permission conflict on node '%s': permissions 'write' are both required by block "
                         "device '%s' (uses node '%s' as 'root' child) and unshared by block device '%s' "
                         "(uses node '%s' as 'root' child).",
                         block_name(node), written ? other : this, block_name(node), written ? this : other,
                         block_name(node));
    }
    return true;
}

static bool device_id_taken(Machine *machine, const char *id)
{
    for (guint i = 0; i < machine->slots->len; i++) {
        const Slot *slot = g_ptr_array_index(machine->slots, i);
        if (!g_strcmp0(drive_id(slot->drive), id)) {
            return true;
        }
    }
    return false;
}

/* Limits are the throttle driver's: a drive has none of its own, and reads its node without a detour. */
static Backend *add_backend(Machine *machine, const DriveProps *props, BlockNode *node, Drive *drive)
{
    Backend *backend = backend_new(machine->monitor, NULL, NULL);
    g_autofree char *path =
        props->id ? g_strdup_printf("/machine/peripheral/%s", props->id)
                  : g_strdup_printf("/machine/peripheral-anon/device[%u]", machine->anonymous++);

    backend->plain = true;
    backend->writeback = props->write_back;
    backend_attach(backend, drive_model_name(props->model), props->id, path);
    backend_set_node(backend, node, NULL); /* a plain one takes any */
    drive_set_backend(drive, backend);
    return backend;
}

bool machine_add_device(Machine *machine, Options *options, GError **error)
{
    DriveProps props;
    Slot slot = {0};

    if (!drive_props_parse(options, &props, error)) {
        return false;
    }
    if (props.id && device_id_taken(machine, props.id)) {
        return error_set(error, "Duplicate ID '%s' for device", props.id);
    }
    if (!find_place(machine, &props, &slot, error)) {
        return false;
    }
    BlockNode *node = props.drive ? block_find(props.drive) : NULL;
    if (props.drive && !node) {
        return error_set(error, "Property '%s.drive' can't find value '%s'", drive_model_name(props.model),
                         props.drive);
    }
    if (!check_sharing(machine, &props, node, error)) {
        return false;
    }
    slot.drive = drive_new(&props, node, error);
    if (!slot.drive) {
        return false;
    }
    slot.backend = add_backend(machine, &props, node, slot.drive);
    controller_attach(slot.controller, slot.bus, slot.unit, drive_device(slot.drive));
    g_ptr_array_add(machine->slots, g_memdup2(&slot, sizeof slot));
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

bool machine_add_monitor(Machine *machine, Options *options, GError **error)
{
    static const char *const modes[] = {"control", "readline", NULL};
    const char *id = options_get(options, "chardev");
    NamedChardev *item = id ? find_chardev(machine, id) : NULL;
    bool pretty;
    int mode;

    options_get(options, "id");
    if (!id) {
        return error_set(error, "Parameter 'chardev' is missing");
    }
    if (!options_get_enum(options, "mode", modes, 0, &mode, error) ||
        !options_get_bool(options, "pretty", false, &pretty, error) ||
        !options_check_unused(options, error)) {
        return false;
    }
    if (mode != 0) {
        return error_set(error, "Only mode=control (QMP) is supported");
    }
    if (!item) {
        return error_set(error, "chardev \"%s\" not found", id);
    }
    if (!item->chardev) {
        return error_set(error, "Device '%s' is in use", id);
    }
    monitor_add_qmp(machine->monitor, g_steal_pointer(&item->chardev), pretty);
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
