/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/drives.h"
#include <string.h>
#include "block/block.h"
#include "hw/ide/atapi.h"
#include "monitor/objects.h"
#include "system/drive-config.h"
#include "system/qtest/drive-node.h"
#include "util/error.h"
#include "util/log.h"

/* QEMU's numbers of the first drive's QOM path on bare machines. */
#define FIRST_ON_PC  4
#define FIRST_ON_Q35 13

static const char *const on_error_names[] = {"report", "ignore", "stop", "enospc", "auto", NULL};

/* werror= and rerror=; `auto` and absence leave *ret as it is. */
static bool read_on_error(Options *options, const char *key, bool is_read, OnError *ret, GError **error)
{
    int choice;

    if (!options_get_enum(options, key, on_error_names, 4, &choice, error)) {
        return false;
    }
    if (choice == ON_ERROR_ENOSPC && is_read) {
        return error_set(error, "Parameter '%s' does not accept value 'enospc'", key);
    }
    if (choice < 4) {
        *ret = (OnError)choice;
    }
    return true;
}

static bool read_limits(Backend *backend, Options *options, GError **error)
{
    ThrottleLimits limits;

    throttle_limits_init(&limits);
    return throttle_limits_read(&limits, options, "throttling.", error) &&
           backend_set_limits(backend, &limits, options_get(options, "throttling.group"), error);
}

/* The disc of a machine that is to come may be gone: then the drive is found empty. */
static bool open_node(Backend *backend, Options *options, bool cd, GError **error)
{
    GError *failure = NULL;
    BlockNode *node = block_open(options, &failure);

    if (failure && cd && block_opens_released()) {
        log_gerror(failure, NULL);
        return true;
    }
    if (failure) {
        g_propagate_error(error, failure);
    }
    bool ok = node && backend_set_node(backend, node, error);

    block_unref(node);
    return ok;
}

/* Names that -drive had before. */
static void rename_old(Options *options)
{
    static const char *const names[][2] = {
        {"iops", "iops-total"},
        {"iops_rd", "iops-read"},
        {"iops_wr", "iops-write"},
        {"bps", "bps-total"},
        {"bps_rd", "bps-read"},
        {"bps_wr", "bps-write"},
        {"iops_max", "iops-total-max"},
        {"iops_rd_max", "iops-read-max"},
        {"iops_wr_max", "iops-write-max"},
        {"bps_max", "bps-total-max"},
        {"bps_rd_max", "bps-read-max"},
        {"bps_wr_max", "bps-write-max"},
        {"iops_size", "iops-size"},
        {"group", "group"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = options_get(options, names[i][0]);
        if (value) {
            g_autofree char *key = g_strconcat("throttling.", names[i][1], NULL);
            options_set(options, key, value);
        }
    }
}

/* The backend of a -drive. */
static Backend *add_backend(QtestMachine *machine, QtestDriveSpec *spec, const char *name, GError **error)
{
    Backend *backend = backend_new(machine->monitor, name, error);
    GError *failure = NULL;

    if (!backend) {
        return NULL;
    }
    rename_old(spec->options);
    if (drive_node_writeback(spec->options, &backend->writeback, &failure) &&
        read_on_error(spec->options, "rerror", true, &backend->rerror, &failure) &&
        read_on_error(spec->options, "werror", false, &backend->werror, &failure) &&
        read_limits(backend, spec->options, &failure)) {
        g_autoptr(Options) node = drive_node_options(spec->options, spec->cd, &failure);
        if (!failure && (!node || open_node(backend, node, spec->cd, &failure)) &&
            options_check_unused(spec->options, &failure)) {
            return backend;
        }
    }
    g_propagate_error(error, failure);
    backend_remove(backend);
    return NULL;
}

/* Where a device goes: bus= and unit=, or else, as on QEMU, the first free unit of the last bus that has one.
 */
static bool find_place(QtestMachine *machine, Options *options, QtestDrive *drive, GError **error)
{
    const char *bus = options_get(options, "bus"), *dot = bus ? strrchr(bus, '.') : NULL;
    g_autofree char *name = dot ? g_strndup(bus, dot - bus) : NULL;
    uint64_t unit = UINT64_MAX, number = UINT64_MAX;

    if (!options_get_uint(options, "unit", 0, UINT32_MAX, UINT64_MAX, &unit, error) ||
        (dot && !options_parse_uint(dot + 1, &number) && number > 15)) {
        return error && *error ? false : error_set(error, "Bus '%s' not found", bus);
    }
    for (guint i = 0; i < machine->controllers->len; i++) {
        QtestController *controller = g_ptr_array_index(machine->controllers, i);
        unsigned buses = qtest_controller_buses(controller), units = qtest_controller_units(controller);
        if (bus && (g_strcmp0(controller->id, name) || number >= buses)) {
            continue;
        }
        if (unit != UINT64_MAX && unit >= units) {
            return error_set(error, "Can't create IDE unit %u, bus supports only %u units", (unsigned)unit,
                             units);
        }
        for (unsigned place = 0; place < buses * units; place++) {
            drive->controller = controller;
            drive->bus = buses - 1 - place / units;
            drive->unit = place % units;
            if ((!bus || drive->bus == number) && (unit == UINT64_MAX || drive->unit == unit) &&
                !qtest_machine_drive_at(machine, controller, drive->bus, drive->unit)) {
                return true;
            }
        }
        if (bus) {
            return error_set(error,
                             unit == UINT64_MAX ? "Can't create IDE unit %u, bus supports only %u units"
                                                : "IDE unit %u is in use",
                             unit == UINT64_MAX ? units : (unsigned)unit, units);
        }
    }
    drive->controller = NULL;
    return bus ? error_set(error, "Bus '%s' not found", bus)
               : error_set(error, machine->controllers->len ? "No free 'IDE' bus found for device"
                                                            : "No 'IDE' bus found for device");
}

static bool make_disk(QtestDrive *drive, const DriveProps *props, GError **error)
{
    Backend *backend = drive->backend;
    AtaDiskConfig ata = drive_ata_config(props);

    if (!backend->top) {
        return error_set(error, "Device needs media, but drive is empty");
    }
    HardDiskConfig config = {.id = backend_title(backend),
                             .node = backend->top,
                             .rerror = backend->rerror,
                             .werror = backend->werror,
                             .released = block_opens_released(),
                             .write_back = backend->writeback};
    drive->disk = hard_disk_new(&config, error);
    drive->device = drive->disk ? ata_disk_new(drive->disk, &ata, error) : NULL;
    return drive->device != NULL;
}

static bool make_cd(QtestDrive *drive, const DriveProps *props, const char *serial, GError **error)
{
    Backend *backend = drive->backend;
    MmcDriveConfig config = {.id = backend_title(backend),
                             .revision = props->ver,
                             .serial = props->serial ? props->serial : serial,
                             .passthrough = props->passthrough,
                             .rerror = backend->rerror,
                             .no_power_on = true};

    if (!drive_check_passthrough(props, backend->node, error)) {
        return false;
    }
    drive->mmc = mmc_drive_new(&config);
    if (backend->top && !mmc_drive_insert(drive->mmc, backend->top, false, error)) {
        return false;
    }
    IdeIdentity identity = drive_identity(props);
    drive->device = atapi_new(drive->mmc, &identity);
    return true;
}

/* QEMU numbers drives by their place, two to a bus. */
static char *default_serial(const QtestDrive *drive)
{
    return g_strdup_printf("QM%05u", 2 * drive->bus + drive->unit + 1);
}

static void tell_firmware(QtestMachine *machine, const QtestDrive *drive)
{
    unsigned number = 2 * drive->bus + drive->unit;

    if (drive->disk && drive->controller == g_ptr_array_index(machine->controllers, 0) && number < 4) {
        board_set_disk(pc_board(machine->pc), number, ata_disk_geometry(drive->device));
    }
}

/* What the device's properties say overrides what -drive said. */
static void take_policies(Backend *backend, const DriveProps *props, const char *write_cache)
{
    backend->rerror = drive_on_error(props->rerror, backend->rerror);
    backend->werror = drive_on_error(props->werror, backend->werror);
    if (props->model == DRIVE_HD && write_cache && strcmp(write_cache, "auto") != 0) {
        backend->writeback = props->write_back;
    }
}

/* The device of a backend at its place: all but the backend is undone on failure. */
static bool make_device(QtestMachine *machine, QtestDrive *drive, Options *options, GError **error)
{
    g_autofree char *serial = default_serial(drive);
    DriveProps props;

    bool ok = drive_props_parse(options, &props, error);
    if (ok) {
        take_policies(drive->backend, &props, options_get(options, "write-cache"));
        if (props.model == DRIVE_HD && !props.serial) {
            props.serial = serial;
        }
        ok =
            props.model == DRIVE_CD ? make_cd(drive, &props, serial, error) : make_disk(drive, &props, error);
    }
    if (ok) {
        qtest_machine_add_drive(machine, drive);
        tell_firmware(machine, drive);
        return true;
    }
    drive->controller = NULL;
    qtest_drive_free(drive);
    return false;
}

static void apply_globals(Options *options, Options *globals, const char *driver)
{
    g_autoptr(Options) mine = options_get_sub(globals, driver);
    g_auto(GStrv) keys = options_keys(mine);

    for (char **key = keys; *key; key++) {
        if (!options_has(options, *key)) {
            options_set(options, *key, options_get(mine, *key));
        }
    }
}

bool drive_add(QtestMachine *machine, QtestDriveSpec *spec, Options *globals, GError **error)
{
    const char *driver = spec->cd ? "ide-cd" : "ide-hd", *id = options_get(spec->options, "id");
    unsigned units =
        machine->controllers->len ? qtest_controller_units(g_ptr_array_index(machine->controllers, 0)) : 1;
    g_autofree char *name = id           ? g_strdup(id)
                            : !spec->ide ? g_strdup_printf("none%u", spec->unit)
                            : units > 1  ? g_strdup_printf("ide%u-%s%u", spec->bus, driver + 4, spec->unit)
                                         : g_strdup_printf("ide%u-%s0", spec->bus, driver + 4);
    g_autofree char *path =
        g_strdup_printf("/machine/unattached/device[%u]",
                        (pc_model(machine->pc) == PC_Q35 ? FIRST_ON_Q35 : FIRST_ON_PC) + machine->built_in);

    Backend *backend = add_backend(machine, spec, name, error);
    if (!backend || !spec->ide) {
        return backend != NULL;
    }
    g_autoptr(Options) props = options_new();
    apply_globals(props, globals, driver);
    QtestDrive *drive = g_new0(QtestDrive, 1);
    drive->backend = backend;
    drive->controller = g_ptr_array_index(machine->controllers, 0);
    drive->bus = spec->bus;
    drive->unit = spec->unit;
    backend_attach(backend, driver, NULL, path);
    machine->built_in++;
    options_set(props, "driver", driver);
    return make_device(machine, drive, props, error);
}

bool drive_add_later(QtestMachine *machine, Options *options, GError **error)
{
    static const char *const types[] = {"none", "ide", "scsi",   "floppy", "pflash",
                                        "mtd",  "sd",  "virtio", "xen",    NULL};
    static const char *const media[] = {"disk", "cdrom", NULL};
    const char *id = options_get(options, "id");
    QtestDriveSpec spec = {.options = options};
    int type, medium;

    if (!options_get_enum(options, "if", types, 1, &type, error) ||
        !options_get_enum(options, "media", media, 0, &medium, error)) {
        return false;
    }
    if (type != 0) {
        return error_set(error, "Can't hot-add drive to type %d", type);
    }
    if (id && backend_find(machine->monitor, id)) {
        return error_set(error, "Duplicate ID '%s' for drive", id);
    }
    if (id && !options_is_id(id)) {
        return error_set(error, "Parameter 'id' expects an identifier");
    }
    spec.cd = medium == 1;
    spec.unit = machine->unnamed++;
    return drive_add(machine, &spec, NULL, error);
}

/* What drive= names: a -drive without a device, or a node. */
static Backend *claim_backend(QtestMachine *machine, const char *driver, const char *name, bool *ret_new,
                              GError **error)
{
    Backend *backend = name && name[0] ? backend_find(machine->monitor, name) : NULL;
    BlockNode *node = name && name[0] && !backend ? block_find(name) : NULL;

    *ret_new = !backend;
    if (backend && backend->qdev) {
        error_set(error, "Drive '%s' is already in use by another device", name);
        return NULL;
    }
    if (backend) {
        return backend;
    }
    if (name && name[0] && !node) {
        error_set(error, "Property '%s.drive' can't find value '%s'", driver, name);
        return NULL;
    }
    backend = backend_new(machine->monitor, NULL, error);
    if (backend && !backend_set_node(backend, node, error)) {
        backend_remove(backend);
        backend = NULL;
    }
    return backend;
}

bool drive_add_device(QtestMachine *machine, Options *options, Options *globals, GError **error)
{
    g_autofree char *driver = g_strdup(options_get(options, "driver"));
    g_autofree char *id = g_strdup(options_get(options, "id"));
    const char *name = options_get(options, "drive");
    bool cd = !strcmp(driver, "ide-cd"), is_new;
    QtestDrive place = {0};

    apply_globals(options, globals, driver);
    if (id && backend_find_device(machine->monitor, id)) {
        return error_set(error, "Duplicate ID '%s' for device", id);
    }
    if (!find_place(machine, options, &place, error)) {
        return false;
    }
    if (!cd && !(name && name[0])) {
        return error_set(error, "No drive specified");
    }
    place.backend = claim_backend(machine, driver, name, &is_new, error);
    if (!place.backend) {
        return false;
    }
    g_autofree char *path = id ? g_strdup_printf("/machine/peripheral/%s", id)
                               : g_strdup_printf("/machine/peripheral-anon/device[%u]", machine->anonymous);
    machine->anonymous += !id;
    Backend *backend = place.backend;
    backend_attach(backend, driver, id, path);
    if (make_device(machine, g_memdup2(&place, sizeof place), options, error)) {
        return true;
    }
    if (is_new) {
        backend_remove(backend);
    } else {
        g_clear_pointer(&backend->qdev, g_free);
        g_clear_pointer(&backend->id, g_free);
        g_clear_pointer(&backend->type, g_free);
    }
    return false;
}
