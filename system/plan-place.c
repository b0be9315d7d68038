/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Ports and controllers: for each of QEMU's IDE or AHCI controllers that has a drive of Spindle's, one
 * controller in the drive process (AHCI for the machine's own), with the drives at the ports that they had;
 * one more when six ports do not suffice.
 *
 * A controller of the user's whose drives are all Spindle's is replaced where it stands (id, bus and
 * address stay). The others come last, so that PCI addresses that QEMU deals out stay as they were.
 */
#include "system/plan-int.h"
#include <string.h>
#include "util/error.h"

static int controller_ports(const PlanController *controller)
{
    return controller->units > 1 ? 4 : PLAN_PORTS;
}

static PlanController *controller_get(PlanDraft *draft, const char *user_id)
{
    const char *model = draft->ide_model ? draft->ide_model : "ahci";

    for (guint i = 0; i < draft->controllers->len; i++) {
        PlanController *controller = g_ptr_array_index(draft->controllers, i);
        if (!strcmp(controller->user_id, user_id)) {
            return controller;
        }
    }
    PlanController *controller = g_new0(PlanController, 1);
    plan_find_controller(draft, user_id, &model);
    controller->user_id = g_strdup(user_id);
    controller->model = model;
    controller->units = plan_model_units(model);
    controller->bootindex = -1;
    g_ptr_array_add(draft->controllers, controller);
    return controller;
}

/* `bus` and `unit` as a port; the built-in controller of pc has two drives on a bus, as have piix3-ide and
 * piix4-ide. *ret_ports: from there on, how many will do. */
static PlanController *drive_controller(PlanDraft *draft, PlanDrive *drive, int *ret_port, int *ret_ports)
{
    g_autofree char *id = NULL;
    int number, units;

    if (!drive->bus || !plan_parse_bus(draft, drive->bus, &id, &number)) {
        PlanController *own = controller_get(draft, "ide");
        *ret_port = 0;
        *ret_ports = controller_ports(own);
        return own;
    }
    PlanController *controller = controller_get(draft, id);
    units = strcmp(id, "ide") ? controller->units : plan_ide_units(draft);
    *ret_port = number * units + (drive->unit > 0 ? drive->unit : 0);
    *ret_ports = drive->unit >= 0 ? 1 : units;
    return controller;
}

static bool place_at(PlanController *controller, int port, int ports, PlanDrive *drive)
{
    for (int i = port; i < port + ports; i++) {
        if (!controller->ports[i]) {
            controller->ports[i] = drive;
            return true;
        }
    }
    return false;
}

static bool place_drive(PlanDraft *draft, PlanDrive *drive, GError **error)
{
    int port, ports, extra = 0;
    PlanController *controller = drive_controller(draft, drive, &port, &ports);

    if (place_at(controller, port, ports, drive)) {
        return true;
    }
    if (drive->bus) {
        /* A bus of two is full when QEMU tries the second. */
        bool two =
            controller->units == 2 || (!strcmp(controller->user_id, "ide") && plan_ide_units(draft) == 2);
        return two ? error_set(error, "%s: IDE unit %d is in use", drive->origin,
                               drive->unit >= 0 ? drive->unit : 1)
                   : error_set(error, "%s: Can't create IDE unit %d, bus supports only %d units",
                               drive->origin, ports, ports);
    }
    do {
        g_autofree char *id = g_strdup_printf("more%d", extra++);
        controller = controller_get(draft, id);
    } while (!place_at(controller, 0, controller_ports(controller), drive));
    return true;
}

/* Whether a device that QEMU keeps sits on this controller. */
static bool controller_has_others(PlanDraft *draft, const char *id)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        g_autofree char *controller = NULL;
        int number;
        if (!cmd_item_is(item, "device") || item->dropped || !item->parsed ||
            !options_has(item->parsed, "bus")) {
            continue;
        }
        if (plan_parse_bus(draft, options_get(item->parsed, "bus"), &controller, &number) &&
            !strcmp(controller, id)) {
            return true;
        }
    }
    return false;
}

/* What a controller may have for a vfio-user-pci device to stand in for it. */
static bool controller_is_replaceable(CmdItem *item)
{
    static const char *const keys[] = {"driver", "id",         "bus",    "addr",    "multifunction",
                                       "busnr",  "acpi-index", "rombar", "romfile", NULL};
    g_auto(GStrv) used = options_keys(item->parsed);

    for (char **key = used; *key; key++) {
        if (!g_strv_contains(keys, *key)) {
            return false;
        }
    }
    return true;
}

bool plan_place_drives(PlanDraft *draft, GError **error)
{
    /* Those with a bus of their own first: the others take what is left. */
    for (int with_bus = 1; with_bus >= 0; with_bus--) {
        for (guint i = 0; i < draft->drives->len; i++) {
            PlanDrive *drive = g_ptr_array_index(draft->drives, i);
            if (!!drive->bus == with_bus && !place_drive(draft, drive, error)) {
                return false;
            }
        }
    }
    for (guint i = 0; i < draft->controllers->len; i++) {
        PlanController *controller = g_ptr_array_index(draft->controllers, i);
        CmdItem *user = plan_find_controller(draft, controller->user_id, NULL);
        if (user && controller_is_replaceable(user) && !controller_has_others(draft, controller->user_id)) {
            controller->replaces = user;
        }
    }
    return true;
}

/* JSON members that QEMU wants as booleans or numbers come as text from the k=v form. */
static void json_add_property(JsonObject *object, const char *key, const char *value)
{
    if (!strcmp(key, "multifunction")) {
        json_object_set_boolean_member(object, key, !strcmp(value, "on"));
    } else if (!strcmp(key, "acpi-index") || !strcmp(key, "rombar")) {
        json_object_set_int_member(object, key, g_ascii_strtoll(value, NULL, 0));
    } else {
        json_object_set_string_member(object, key, value);
    }
}

static char *device_json(PlanController *controller, const char *id, const char *socket_path)
{
    g_autoptr(JsonObject) object = json_object_new();
    JsonObject *socket = json_object_new();
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

    json_object_set_string_member(object, "driver", "vfio-user-pci");
    json_object_set_string_member(object, "id", id);
    if (controller->replaces) {
        Options *user = controller->replaces->parsed;
        g_auto(GStrv) keys = options_keys(user);
        for (char **key = keys; *key; key++) {
            if (strcmp(*key, "driver") && strcmp(*key, "id")) {
                json_add_property(object, *key, options_get(user, *key));
            }
        }
    }
    if (controller->bootindex >= 0) {
        json_object_set_int_member(object, "bootindex", controller->bootindex);
    }
    json_object_set_string_member(socket, "type", "unix");
    json_object_set_string_member(socket, "path", socket_path);
    json_object_set_object_member(object, "socket", socket);
    json_node_set_object(node, object);
    return json_to_string(node, false);
}

/* spindle0, spindle1, … */
static char *fresh_id(PlanDraft *draft)
{
    for (int i = 0;; i++) {
        g_autofree char *id = g_strdup_printf("spindle%d", i);
        if (!plan_id_taken(draft, id)) {
            return g_steal_pointer(&id);
        }
    }
}

static void attach_controller(PlanDraft *draft, PlanController *controller)
{
    static const char *const dma[] = {[ACCEL_TCG] = "message", [ACCEL_KVM] = "mmap", [ACCEL_UNSURE] = "auto"};
    g_autofree char *file = g_strconcat(controller->user_id, ".sock", NULL);
    char *path = g_build_filename(draft->socket_dir, file, NULL);
    g_autofree char *id = controller->replaces ? g_strdup(controller->user_id) : fresh_id(draft);
    g_autofree char *json = device_json(controller, id, path);
    g_autoptr(Options) server = options_new();

    if (controller->replaces) {
        g_free(controller->replaces->arg);
        controller->replaces->arg = g_steal_pointer(&json);
    } else {
        cmd_item_parse(cmd_line_append(draft->line, "device", json), NULL);
    }
    options_set(server, "id", controller->user_id);
    options_set(server, "path", path);
    options_set(server, "controller", controller->model);
    options_set(server, "dma", dma[draft->accel]);
    g_ptr_array_add(draft->nodes, plan_arg_new("--vfio-user", plan_options_to_json(server), NULL));
    g_ptr_array_add(draft->sockets, path);
    PlanPort *port = g_new0(PlanPort, 1);
    port->device = g_steal_pointer(&id);
    port->user_id = g_strdup(controller->user_id);
    port->hidden = !controller->replaces;
    g_ptr_array_add(draft->ports, port);
}

static void attach_drive(PlanDraft *draft, PlanController *controller, int port)
{
    PlanDrive *drive = controller->ports[port];
    g_autoptr(Options) device = options_new();
    g_autofree char *bus = g_strdup_printf("%s.%d", controller->user_id, port / controller->units);
    g_auto(GStrv) keys = options_keys(drive->props);

    options_set(device, "driver", drive_model_name(drive->model));
    options_set(device, "bus", bus);
    if (controller->units > 1) {
        options_set(device, "unit", port % controller->units ? "1" : "0");
    }
    if (drive->node) {
        options_set(device, "drive", drive->node);
    }
    if (drive->name) {
        options_set(device, "backend", drive->name);
    }
    for (char **key = keys; *key; key++) {
        options_set(device, *key, options_get(drive->props, *key));
    }
    g_ptr_array_add(draft->nodes, plan_arg_new("--device", plan_options_to_json(device), drive->origin));
}

void plan_attach_controllers(PlanDraft *draft)
{
    for (guint i = 0; i < draft->controllers->len; i++) {
        PlanController *controller = g_ptr_array_index(draft->controllers, i);
        attach_controller(draft, controller);
        for (int port = 0; port < PLAN_PORTS; port++) {
            if (controller->ports[port]) {
                attach_drive(draft, controller, port);
            }
        }
    }
}
