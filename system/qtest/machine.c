/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/machine.h"
#include <string.h>
#include "block/secret-object.h"
#include "system/qtest/drives.h"
#include "system/qtest/migration.h"
#include "util/error.h"

static const char *machine_status(void *opaque)
{
    return ((QtestMachine *)opaque)->status;
}

static bool machine_is_running(void *opaque)
{
    return !strcmp(((QtestMachine *)opaque)->status, "running");
}

void qtest_machine_stop(QtestMachine *machine, const char *status)
{
    if (machine_is_running(machine)) {
        machine->status = status;
        monitor_event(machine->monitor, "STOP", NULL);
    }
}

/* Requests that were kept because of an error are tried again, those of a loaded state go on. */
bool qtest_machine_cont(QtestMachine *machine, GError **error)
{
    if (machine_is_running(machine)) {
        return true;
    }
    if (!migration_before_run(machine->migration, error)) {
        return false;
    }
    machine->status = "running";
    monitor_event(machine->monitor, "RESUME", NULL);
    for (guint i = 0; i < machine->drives->len; i++) {
        backend_resume(((QtestDrive *)g_ptr_array_index(machine->drives, i))->backend);
    }
    migration_after_run(machine->migration);
    return true;
}

static void machine_stop(void *opaque)
{
    QtestMachine *machine = opaque;

    if (!migration_set_autostart(machine->migration, false)) {
        qtest_machine_stop(machine, "paused");
        pc_drain(machine->pc);
    }
}

static bool machine_cont(void *opaque, GError **error)
{
    QtestMachine *machine = opaque;

    if (!strcmp(machine->status, "finish-migrate")) {
        return error_set(error, "Migration is not finalized yet");
    }
    return migration_set_autostart(machine->migration, true) || qtest_machine_cont(machine, error);
}

static bool machine_migrate(void *opaque, const char *uri, GError **error)
{
    return migration_start(((QtestMachine *)opaque)->migration, uri, error);
}

static bool machine_incoming(void *opaque, const char *uri, bool exit_on_error, GError **error)
{
    return migration_incoming(((QtestMachine *)opaque)->migration, uri, exit_on_error, error);
}

static void machine_migrate_cancel(void *opaque)
{
    migration_cancel(((QtestMachine *)opaque)->migration);
}

static JsonObject *machine_query_migrate(void *opaque)
{
    return migration_query(((QtestMachine *)opaque)->migration);
}

static MonitorMigrateSettings *machine_migrate_settings(void *opaque)
{
    return migration_settings(((QtestMachine *)opaque)->migration);
}

static void machine_reset(void *opaque)
{
    QtestMachine *machine = opaque;
    JsonObject *data = json_object_new();

    pc_reset(machine->pc);
    json_object_set_boolean_member(data, "guest", false);
    json_object_set_string_member(data, "reason", "host-qmp-system-reset");
    monitor_event(machine->monitor, "RESET", data);
}

static void machine_quit(void *opaque)
{
    QtestMachine *machine = opaque;
    JsonObject *data = json_object_new();

    json_object_set_boolean_member(data, "guest", false);
    json_object_set_string_member(data, "reason", "host-qmp-quit");
    monitor_event(machine->monitor, "SHUTDOWN", data);
    g_main_loop_quit(machine->loop);
}

static bool no_hot_plug(const char *bus, unsigned number, GError **error)
{
    return error_set(error, "Bus '%s.%u' does not support hotplugging", bus, number);
}

/* IDE buses take no drive while the machine runs, as QEMU's. */
static bool machine_device_add(void *opaque, Options *options, GError **error)
{
    QtestMachine *machine = opaque;
    const char *driver = options_get(options, "driver"), *bus = options_get(options, "bus");

    if (strcmp(driver, "ide-cd") != 0 && strcmp(driver, "ide-hd") != 0) {
        return error_set(error, "'%s' is not a valid device model name", driver);
    }
    const char *dot = bus ? strrchr(bus, '.') : NULL;
    g_autofree char *name = dot ? g_strndup(bus, dot - bus) : g_strdup(bus ? bus : "ide");
    if (!qtest_machine_find_controller(machine, name)) {
        return error_set(error, "Bus '%s' not found", bus ? bus : "ide.0");
    }
    return no_hot_plug(name, dot ? (unsigned)g_ascii_strtoull(dot + 1, NULL, 10) : 0, error);
}

static bool machine_device_del(void *opaque, const char *id, GError **error)
{
    QtestMachine *machine = opaque;

    for (guint i = 0; i < machine->drives->len; i++) {
        const QtestDrive *drive = g_ptr_array_index(machine->drives, i);
        if (!g_strcmp0(drive->backend->id, id) || !g_strcmp0(drive->backend->qdev, id)) {
            return no_hot_plug(drive->controller->id, drive->bus, error);
        }
    }
    g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", id);
    return false;
}

static bool machine_drive_add(void *opaque, Options *options, GError **error)
{
    return drive_add_later(opaque, options, error);
}

static const char *const *machine_types(void *opaque)
{
    static const char *const types[] = {"pc", "q35", "none", NULL};

    return types;
}

static const MonitorMachine monitor_ops = {
    .machines = machine_types,
    .status = machine_status,
    .is_running = machine_is_running,
    .stop = machine_stop,
    .cont = machine_cont,
    .reset = machine_reset,
    .quit = machine_quit,
    .device_add = machine_device_add,
    .device_del = machine_device_del,
    .drive_add = machine_drive_add,
    .migrate = machine_migrate,
    .incoming = machine_incoming,
    .migrate_cancel = machine_migrate_cancel,
    .query_migrate = machine_query_migrate,
    .migrate_settings = machine_migrate_settings,
};

void qtest_drive_free(QtestDrive *drive)
{
    QtestController *controller = drive->controller;

    if (controller && controller->ide) {
        pci_ide_detach(controller->ide, drive->bus, drive->unit);
    } else if (controller) {
        ahci_detach(controller->ahci, drive->bus);
    }
    drive->backend->mmc = NULL;
    drive->backend->disk = NULL;
    ide_device_free(drive->device);
    hard_disk_free(drive->disk);
    mmc_drive_free(drive->mmc);
    g_free(drive);
}

static void drive_free(gpointer data)
{
    qtest_drive_free(data);
}

static void controller_free(gpointer data)
{
    QtestController *controller = data;

    if (controller->own) {
        pci_ide_free(controller->ide);
        ahci_free(controller->ahci);
    }
    g_free(controller->id);
    g_free(controller);
}

QtestMachine *qtest_machine_new(PcModel model, uint64_t ram_size, GError **error)
{
    Pc *pc = pc_new(model, ram_size, error);

    if (!pc) {
        return NULL;
    }
    QtestMachine *machine = g_new0(QtestMachine, 1);
    machine->pc = pc;
    machine->status = "running";
    machine->monitor = monitor_new(&monitor_ops, machine);
    machine->controllers = g_ptr_array_new_with_free_func(controller_free);
    machine->drives = g_ptr_array_new_with_free_func(drive_free);
    machine->loop = g_main_loop_new(NULL, false);
    machine->migration = migration_new(machine);
    if (model != PC_NONE) {
        qtest_machine_add_controller(machine, "ide", pc_ide(pc), pc_ahci(pc));
    }
    return machine;
}

/* The PC goes before the controllers that were added, whose functions it names. */
void qtest_machine_free(QtestMachine *machine)
{
    if (machine) {
        migration_free(machine->migration);
        g_ptr_array_unref(machine->drives);
        monitor_free(machine->monitor);
        pc_free(machine->pc);
        g_ptr_array_unref(machine->controllers);
        secret_object_clear();
        g_main_loop_unref(machine->loop);
        g_free(machine);
    }
}

unsigned qtest_controller_buses(const QtestController *controller)
{
    return controller->ide ? 2 : QTEST_AHCI_BUSES;
}

unsigned qtest_controller_units(const QtestController *controller)
{
    return controller->ide ? 2 : 1;
}

QtestController *qtest_machine_add_controller(QtestMachine *machine, const char *id, PciIde *ide,
                                              AhciController *ahci)
{
    QtestController *controller = g_new0(QtestController, 1);

    controller->id = g_strdup(id);
    controller->ide = ide;
    controller->ahci = ahci;
    controller->own = (!ide || ide != pc_ide(machine->pc)) && (!ahci || ahci != pc_ahci(machine->pc));
    g_ptr_array_add(machine->controllers, controller);
    return controller;
}

QtestController *qtest_machine_find_controller(QtestMachine *machine, const char *id)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        QtestController *controller = g_ptr_array_index(machine->controllers, i);
        if (!g_strcmp0(controller->id, id)) {
            return controller;
        }
    }
    return NULL;
}

QtestDrive *qtest_machine_drive_at(QtestMachine *machine, const QtestController *controller, unsigned bus,
                                   unsigned unit)
{
    for (guint i = 0; i < machine->drives->len; i++) {
        QtestDrive *drive = g_ptr_array_index(machine->drives, i);
        if (drive->controller == controller && drive->bus == bus && drive->unit == unit) {
            return drive;
        }
    }
    return NULL;
}

static void request_failed(QtestDrive *drive, BlockOp op, int error, OnError action)
{
    backend_io_error(drive->backend, op, error, action);
    if (action == ON_ERROR_STOP) {
        qtest_machine_stop(drive->machine, "io-error");
    }
}

static void on_disk_failed(HardDisk *disk, BlockOp op, int error, OnError action, void *opaque)
{
    request_failed(opaque, op, error, action);
}

static void on_disc_failed(MmcDrive *mmc, int error, OnError action, void *opaque)
{
    request_failed(opaque, BLOCK_READ, error, action);
}

static void on_tray_moved(MmcDrive *mmc, bool open, void *opaque)
{
    backend_tray_moved(opaque, open);
}

void qtest_machine_add_drive(QtestMachine *machine, QtestDrive *drive)
{
    QtestController *controller = drive->controller;

    drive->machine = machine;
    drive->backend->mmc = drive->mmc;
    drive->backend->disk = drive->disk;
    if (drive->disk) {
        hard_disk_on_failed(drive->disk, on_disk_failed, drive);
    } else {
        mmc_drive_on_tray_moved(drive->mmc, on_tray_moved, drive->backend);
        mmc_drive_on_failed(drive->mmc, on_disc_failed, drive);
    }
    if (controller->ide) {
        pci_ide_attach(controller->ide, drive->bus, drive->unit, drive->device);
    } else {
        ahci_attach(controller->ahci, drive->bus, drive->device);
    }
    g_ptr_array_add(machine->drives, drive);
}
