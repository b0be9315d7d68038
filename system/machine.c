/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/machine.h"
#include <string.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "block/throttle.h"
#include "hw/ide/ahci.h"
#include "hw/ide/atapi.h"
#include "hw/remote/vfio-user.h"
#include "system/drive-props.h"
#include "util/error.h"

typedef struct Controller {
    char *id;
    char *path;
    VfuDmaMode dma;
    AhciController *ahci;
    VfuServer *server; /* NULL until machine_listen() */
} Controller;

typedef struct Drive {
    char *id; /* NULL: none */
    Controller *controller;
    unsigned port;
    MmcDrive *mmc;
    IdeDevice *device;
} Drive;

struct Machine {
    GPtrArray *groups; /* ThrottleGroup, one reference each */
    GPtrArray *nodes;  /* BlockNode, one reference each */
    GPtrArray *controllers;
    GPtrArray *drives;
};

/* Drives go before the controllers that they are attached to, see machine_free(). */
static void drive_free(gpointer data)
{
    Drive *drive = data;

    if (drive->controller) {
        ahci_detach(drive->controller->ahci, drive->port);
    }
    ide_device_free(drive->device);
    mmc_drive_free(drive->mmc);
    g_free(drive->id);
    g_free(drive);
}

static void controller_free(gpointer data)
{
    Controller *controller = data;

    vfu_server_free(controller->server);
    ahci_free(controller->ahci);
    g_free(controller->id);
    g_free(controller->path);
    g_free(controller);
}

Machine *machine_new(void)
{
    Machine *machine = g_new0(Machine, 1);

    machine->groups = g_ptr_array_new_with_free_func((GDestroyNotify)throttle_group_unref);
    machine->nodes = g_ptr_array_new_with_free_func((GDestroyNotify)block_unref);
    machine->controllers = g_ptr_array_new_with_free_func(controller_free);
    machine->drives = g_ptr_array_new_with_free_func(drive_free);
    return machine;
}

void machine_free(Machine *machine)
{
    if (!machine) {
        return;
    }
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        g_clear_pointer(&controller->server, vfu_server_free);
    }
    g_ptr_array_unref(machine->drives);
    g_ptr_array_unref(machine->controllers);
    g_ptr_array_unref(machine->nodes);
    g_ptr_array_unref(machine->groups);
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
            g_ptr_array_add(machine->groups, group);
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
        g_ptr_array_add(machine->nodes, node);
    }
    return node != NULL;
}

static Controller *find_controller(Machine *machine, const char *id)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        if (!strcmp(controller->id, id)) {
            return controller;
        }
    }
    return NULL;
}

bool machine_add_controller(Machine *machine, Options *options, GError **error)
{
    static const char *const models[] = {"ahci", NULL};
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
    if (!options_get_enum(options, "controller", models, 0, &model, error)) {
        return false;
    }
    if (dma && !vfu_dma_mode_parse(dma, &mode)) {
        return error_set(error, "Parameter 'dma' does not accept value '%s'", dma);
    }
    if (!options_check_unused(options, error)) {
        return false;
    }
    Controller *controller = g_new0(Controller, 1);
    controller->id = g_strdup(id);
    controller->path = g_strdup(path);
    controller->dma = mode;
    controller->ahci = ahci_new(AHCI_PORTS_MAX);
    g_ptr_array_add(machine->controllers, controller);
    return true;
}

static bool port_is_free(Machine *machine, Controller *controller, unsigned port)
{
    for (guint i = 0; i < machine->drives->len; i++) {
        const Drive *drive = g_ptr_array_index(machine->drives, i);
        if (drive->controller == controller && drive->port == port) {
            return false;
        }
    }
    return true;
}

/* "ide.2": port 2 of the controller "ide". */
static bool find_bus(Machine *machine, const char *bus, Controller **ret_controller, unsigned *ret_port,
                     GError **error)
{
    const char *dot = strrchr(bus, '.');
    g_autofree char *id = dot ? g_strndup(bus, dot - bus) : g_strdup(bus);
    Controller *controller = find_controller(machine, id);
    guint64 port;

    if (!controller || !dot || !g_ascii_string_to_unsigned(dot + 1, 10, 0, AHCI_PORTS_MAX - 1, &port, NULL)) {
        return error_set(error, "Bus '%s' not found", bus);
    }
    if (!port_is_free(machine, controller, (unsigned)port)) {
        return error_set(error, "Can't create IDE unit 1, bus supports only 1 units");
    }
    *ret_controller = controller;
    *ret_port = (unsigned)port;
    return true;
}

static bool find_free_bus(Machine *machine, Controller **ret_controller, unsigned *ret_port, GError **error)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        for (unsigned port = 0; port < AHCI_PORTS_MAX; port++) {
            if (port_is_free(machine, controller, port)) {
                *ret_controller = controller;
                *ret_port = port;
                return true;
            }
        }
    }
    return error_set(error, machine->controllers->len
                                ? "No free 'IDE' bus found for device 'ide-cd'"
                                : "No 'IDE' bus found for device 'ide-cd': give --vfio-user");
}

static bool drive_insert(Drive *drive, const char *node_name, GError **error)
{
    BlockNode *node = block_find(node_name);

    if (!node) {
        return error_set(error, "Property 'ide-cd.drive' can't find value '%s'", node_name);
    }
    return mmc_drive_insert(drive->mmc, node, false, error);
}

static bool device_id_taken(Machine *machine, const char *id)
{
    for (guint i = 0; i < machine->drives->len; i++) {
        const Drive *drive = g_ptr_array_index(machine->drives, i);
        if (!g_strcmp0(drive->id, id)) {
            return true;
        }
    }
    return false;
}

static Drive *drive_new(const DriveProps *props)
{
    MmcDriveConfig config = {
        .id = props->id, .revision = props->ver, .serial = props->serial, .read_ahead = true};
    IdeIdentity identity = {
        .serial = props->serial, .model = props->model, .firmware = props->ver, .wwn = props->wwn};
    Drive *drive = g_new0(Drive, 1);

    drive->id = g_strdup(props->id);
    drive->mmc = mmc_drive_new(&config);
    drive->device = atapi_new(drive->mmc, &identity);
    return drive;
}

bool machine_add_device(Machine *machine, Options *options, GError **error)
{
    DriveProps props;
    Controller *controller = NULL;
    unsigned port = 0;

    if (!drive_props_parse(options, &props, error)) {
        return false;
    }
    if (props.id && device_id_taken(machine, props.id)) {
        return error_set(error, "Duplicate ID '%s' for device", props.id);
    }
    if (props.bus ? !find_bus(machine, props.bus, &controller, &port, error)
                  : !find_free_bus(machine, &controller, &port, error)) {
        return false;
    }
    Drive *drive = drive_new(&props);
    if (props.drive && !drive_insert(drive, props.drive, error)) {
        drive_free(drive);
        return false;
    }
    ahci_attach(controller->ahci, port, drive->device);
    drive->controller = controller;
    drive->port = port;
    g_ptr_array_add(machine->drives, drive);
    return true;
}

bool machine_listen(Machine *machine, unsigned *ret_failed, GError **error)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        Controller *controller = g_ptr_array_index(machine->controllers, i);
        PciDevice *pci = ahci_pci(controller->ahci);
        controller->server = vfu_server_new(pci, controller->path, controller->dma, error);
        if (!controller->server) {
            *ret_failed = i;
            return false;
        }
        vfu_server_set_deliver(controller->server, block_deliver_ready);
    }
    return true;
}

pid_t machine_client_pid(const Machine *machine)
{
    for (guint i = 0; i < machine->controllers->len; i++) {
        const Controller *controller = g_ptr_array_index(machine->controllers, i);
        pid_t pid = controller->server ? vfu_server_client_pid(controller->server) : 0;
        if (pid > 0) {
            return pid;
        }
    }
    return 0;
}
