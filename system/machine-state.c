/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the drive process's devices.
 *
 *             save, load, or a state is expected
 *     RUNNING -------------------------------> PARKED
 *        ^----------------- cont -----------------'
 *
 * PARKED: no command is begun, nothing is tried again, and the images are anybody's: no locks are held.
 */
#include "monitor/qmp.h"
#include "system/machine-int.h"
#include "util/bytes.h"
#include "util/error.h"

#define CFG_COMMAND 0x04
#define MSI_CONTROL 2

static DeviceSet *devices_of(const Machine *machine)
{
    DeviceSet *set = device_set_new();

    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        device_set_add_function(set, controller_id(controller), controller_pci(controller));
    }
    for (guint i = 0; i < machine->slots->len; i++) {
        const Slot *slot = g_ptr_array_index(machine->slots, i);
        if (drive_disk(slot->drive)) {
            device_set_add_disk(set, backend_title(slot->backend), drive_disk(slot->drive));
        } else {
            device_set_add_cd(set, drive_mmc(slot->drive));
        }
    }
    return set;
}

static void park(Machine *machine, DeviceSet *devices)
{
    machine->parked = true;
    device_set_park(devices, true);
    machine_set_stopped(machine, true);
    block_release_images();
}

void machine_expect_state(Machine *machine)
{
    machine->parked = machine->stopped = true;
    block_open_released(true);
}

void machine_abandon_save(Machine *machine)
{
    GError *error = NULL;

    if (machine->saving) {
        g_clear_pointer(&machine->saving, device_set_free);
        error_set(&error, "The drive process ends");
        machine->saved(NULL, error, machine->saved_opaque);
    }
}

static void on_settled(DeviceSet *devices, GError *error, void *opaque)
{
    Machine *machine = opaque;
    GBytes *bytes = NULL;

    if (!error) {
        StateIo *io = state_writer_new();
        state_save(io, &device_set_state, devices);
        bytes = state_writer_finish(io, &error);
    }
    if (bytes) {
        park(machine, devices);
    }
    machine->saving = NULL;
    device_set_free(devices);
    machine->saved(bytes, error, machine->saved_opaque);
}

void machine_save_state(void *opaque, MonitorStateSaved saved, void *saved_opaque)
{
    Machine *machine = opaque;
    GError *error = NULL;

    if (machine->saving) {
        error_set(&error, "The state is being saved already");
        saved(NULL, error, saved_opaque);
        return;
    }
    machine->saved = saved;
    machine->saved_opaque = saved_opaque;
    machine->saving = devices_of(machine);
    device_set_settle(machine->saving, on_settled, machine);
}

/* What the guest wrote into the configuration space, as the writes that bring it there: a client keeps a copy
 * of it and is told by nobody else. */

static void add_write(JsonArray *writes, unsigned offset, unsigned size, uint32_t value)
{
    JsonObject *write = json_object_new();

    json_object_set_int_member(write, "offset", offset);
    json_object_set_int_member(write, "size", size);
    json_object_set_int_member(write, "value", value);
    json_array_add_object_element(writes, write);
}

static void add_config(const char *name, PciDevice *pci, void *opaque)
{
    JsonObject *function = json_object_new();
    JsonArray *writes = json_array_new();

    for (unsigned at = 0; at < PCI_CONFIG_SIZE; at += 4) {
        if (load_le32(pci->wmask + at) && at != CFG_COMMAND && (!pci->msi_cap || at != pci->msi_cap)) {
            add_write(writes, at, 4, load_le32(pci->config + at));
        }
    }
    if (pci->msi_cap) {
        add_write(writes, pci->msi_cap + MSI_CONTROL, 2, load_le16(pci->config + pci->msi_cap + MSI_CONTROL));
    }
    add_write(writes, CFG_COMMAND, 2, load_le16(pci->config + CFG_COMMAND));
    json_object_set_string_member(function, "id", name);
    json_object_set_array_member(function, "pci-config", writes);
    json_array_add_object_element(opaque, function);
}

JsonNode *machine_load_state(void *opaque, GBytes *bytes, GError **error)
{
    Machine *machine = opaque;
    StateIo *io = state_reader_new(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), error);
    DeviceSet *devices;
    JsonNode *value = NULL;

    if (!io) {
        return NULL;
    }
    devices = devices_of(machine);
    void *image = state_load(io, &device_set_state, devices);
    if (state_reader_finish(io, error)) {
        JsonObject *object = json_object_new();
        JsonArray *functions = json_array_new();

        park(machine, devices);
        state_commit(&device_set_state, devices, image);
        device_set_each_function(devices, add_config, functions);
        json_object_set_array_member(object, "controllers", functions);
        value = qmp_object(object);
    } else if (image) {
        state_discard(&device_set_state, image);
    }
    device_set_free(devices);
    return value;
}

bool machine_unpark(Machine *machine, GError **error)
{
    DeviceSet *devices;
    bool ok;

    if (!machine->parked) {
        return true;
    }
    devices = devices_of(machine);
    ok = device_set_hold_images(devices, error);
    if (ok) {
        machine->parked = false;
        block_open_released(false);
        device_set_park(devices, false);
    }
    device_set_free(devices);
    return ok;
}
