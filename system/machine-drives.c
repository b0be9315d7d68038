/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drives of the machine: their places, and how they come and go.
 */
#include <string.h>
#include "block/block.h"
#include "monitor/backend.h"
#include "system/drive-config.h"
#include "system/drive-props.h"
#include "system/machine-int.h"
#include "util/error.h"

void machine_slot_free(gpointer data)
{
    Slot *slot = data;

    controller_detach(slot->controller, slot->bus, slot->unit);
    drive_free(slot->drive);
    backend_remove(slot->backend);
    g_free(slot);
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
    Controller *controller = machine_find_controller(machine, id);
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

/* Numbered from the one behind the last that was told. */
static char *anonymous_path(Machine *machine, const char *told)
{
    const char *number = told ? strrchr(told, '[') : NULL;

    if (number) {
        machine->anonymous = (unsigned)g_ascii_strtoull(number + 1, NULL, 10) + 1;
        return g_strdup(told);
    }
    return g_strdup_printf("/machine/peripheral-anon/device[%u]", machine->anonymous++);
}

static Backend *add_backend(Machine *machine, const DriveProps *props, const char *name, const char *told,
                            BlockNode *node, Drive *drive)
{
    Backend *backend = backend_new(machine->monitor, name, NULL); /* the name is free */
    g_autofree char *path =
        props->id ? g_strdup_printf("/machine/peripheral/%s", props->id) : anonymous_path(machine, told);

    backend->writeback = props->write_back;
    backend->rerror = drive_on_error(props->rerror, ON_ERROR_REPORT);
    backend->werror = drive_on_error(props->werror, ON_ERROR_ENOSPC);
    backend_attach(backend, drive_model_name(props->model), props->id, path);
    backend_set_node(backend, node, NULL); /* without limits it takes any */
    drive_set_backend(drive, backend);
    return backend;
}

/* `name`: of the backend, or NULL. `path`: of a drive without an id, or NULL. `hot`: the guest runs. */
static bool add_device(Machine *machine, Options *options, const char *name, const char *path, bool hot,
                       GError **error)
{
    DriveProps props;
    Slot slot = {0};

    if (name && backend_find(machine->monitor, name)) {
        return error_set(error, "Duplicate ID '%s' for drive", name);
    }
    if (!drive_props_parse(options, &props, error)) {
        return false;
    }
    if (props.id && device_id_taken(machine, props.id)) {
        return error_set(error, "Duplicate ID '%s' for device", props.id);
    }
    if (!find_place(machine, &props, &slot, error)) {
        return false;
    }
    if (hot && !controller_hot_plugs(slot.controller)) {
        return error_set(error, "Bus '%s.%u' does not support hotplugging", controller_id(slot.controller),
                         slot.bus);
    }
    BlockNode *node = props.drive ? block_find(props.drive) : NULL;
    const char *why = props.drive && !node ? g_hash_table_lookup(machine->vanished, props.drive) : NULL;
    if (props.drive && !node && (!why || props.model == DRIVE_HD)) {
        return error_set(error, "Property '%s.drive' can't find value '%s'%s%s",
                         drive_model_name(props.model), props.drive, why ? ": " : "", why ? why : "");
    }
    if (!check_sharing(machine, &props, node, error)) {
        return false;
    }
    slot.drive = drive_new(&props, node, machine->parked, error);
    if (!slot.drive) {
        return false;
    }
    slot.backend = add_backend(machine, &props, name, path, node, slot.drive);
    slot.backend->props = options_ref(options);
    slot.backend->hotplugged = hot;
    slot.backend->hotpluggable = controller_hot_plugs(slot.controller);
    controller_attach(slot.controller, slot.bus, slot.unit, drive_device(slot.drive));
    g_ptr_array_add(machine->slots, g_memdup2(&slot, sizeof slot));
    return true;
}

bool machine_add_device(Machine *machine, Options *options, GError **error)
{
    g_autofree char *name = g_strdup(options_get(options, "backend"));

    options_remove(options, "backend");
    g_autofree char *path = g_strdup(options_get(options, "qdev"));
    options_remove(options, "qdev");
    return add_device(machine, options, name, path, false, error);
}

bool machine_plug(void *opaque, Options *options, GError **error)
{
    return add_device(opaque, options, NULL, NULL, true, error);
}

static Slot *find_slot(Machine *machine, const Backend *backend)
{
    for (guint i = 0; i < machine->slots->len; i++) {
        Slot *slot = g_ptr_array_index(machine->slots, i);
        if (slot->backend == backend) {
            return slot;
        }
    }
    return NULL;
}

bool machine_unplug(void *opaque, const char *id, GError **error)
{
    Machine *machine = opaque;
    Backend *backend = backend_find_device(machine->monitor, id);
    Slot *slot = backend ? find_slot(machine, backend) : NULL;

    if (!slot) {
        g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", id);
        return false;
    }
    if (!controller_hot_plugs(slot->controller)) {
        return error_set(error, "Bus '%s.%u' does not support hotplugging", controller_id(slot->controller),
                         slot->bus);
    }
    JsonObject *data = json_object_new();
    if (backend->id) {
        json_object_set_string_member(data, "device", backend->id);
    }
    json_object_set_string_member(data, "path", backend->qdev);
    g_ptr_array_remove(machine->slots, slot);
    monitor_event(machine->monitor, "DEVICE_DELETED", data);
    return true;
}
