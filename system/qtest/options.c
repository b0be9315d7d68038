/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/options.h"
#include <string.h>
#include "block/block.h"
#include "block/secret-object.h"
#include "block/tls-object.h"
#include "system/qemu-options.h"
#include "system/qtest/boot.h"
#include "system/qtest/choose.h"
#include "system/qtest/controllers.h"
#include "system/qtest/drives.h"
#include "util/error.h"
#include "util/log.h"
#include "util/trace.h"

#define MEMORY_DEFAULT (UINT64_C(128) << 20)
#define INDEX_MAX      32

/* The command line while it is worked off. */
typedef struct Build {
    CmdLine *line;
    QtestSettings *settings;
    QtestMachine *machine;
    PcModel model;
    uint64_t memory;
    bool nodefaults;
    Options *globals;
    BoardBoot boot;
    uint32_t used; /* indexes of if=ide drives */
} Build;

void qtest_settings_clear(QtestSettings *settings)
{
    g_free(settings->qtest);
    g_free(settings->qtest_log);
    g_free(settings->pidfile);
    g_free(settings->incoming);
    chardev_free(settings->qtest_chardev);
    *settings = (QtestSettings){0};
}

static bool with_origin(const CmdItem *item, GError **error)
{
    g_prefix_error(error, "%s: ", item->origin);
    return false;
}

/* A parsed argument, or NULL and an error with its origin. */
static Options *parse_item(CmdItem *item, const char *implied, GError **error)
{
    Options *options = cmd_item_parse(item, implied);

    if (!options) {
        g_autoptr(Options) again = options_parse(item->arg ? item->arg : "", implied, error);
        if (again) {
            error_set(error, "Invalid argument");
        }
        with_origin(item, error);
    }
    return options;
}

static bool read_machine_type(Build *build, CmdItem *item, GError **error)
{
    Options *options = parse_item(item, "type", error);
    const char *type = options ? options_get(options, "type") : NULL;

    if (!options) {
        return false;
    }
    if (!type || !strcmp(type, "pc") || g_str_has_prefix(type, "pc-i440fx-")) {
        build->model = type ? PC_I440FX : build->model;
    } else if (!strcmp(type, "q35") || g_str_has_prefix(type, "pc-q35-")) {
        build->model = PC_Q35;
    } else if (!strcmp(type, "none")) {
        build->model = PC_NONE;
    } else {
        error_set(error, "unsupported machine type: \"%s\" (with -accel qtest Spindle has pc, q35 and none)",
                  type);
        return with_origin(item, error);
    }
    return true;
}

static bool read_memory(Build *build, CmdItem *item, GError **error)
{
    Options *options = parse_item(item, "size", error);
    const char *text = options ? options_get(options, "size") : NULL;

    if (!options || !text) {
        return options != NULL;
    }
    /* A number without a suffix is in MiB. */
    g_autofree char *size =
        g_ascii_isdigit(text[strlen(text) - 1]) ? g_strconcat(text, "M", NULL) : g_strdup(text);
    if (options_parse_size(size, &build->memory) < 0 || build->memory > UINT64_C(1) << 46) {
        error_set(error, "Parameter 'size' expects a size");
        return with_origin(item, error);
    }
    build->memory = build->memory ? build->memory : MEMORY_DEFAULT;
    build->memory = (build->memory + 0x1fff) & ~UINT64_C(0x1fff);
    return true;
}

/* -global DRIVER.KEY=VALUE or driver=,property=,value=: into "DRIVER.KEY". */
static void read_global(Build *build, CmdItem *item)
{
    const char *equals = strchr(item->arg, '='), *dot = strchr(item->arg, '.');

    if (equals && dot && dot < equals) {
        g_autofree char *key = g_strndup(item->arg, equals - item->arg);
        options_set(build->globals, key, equals + 1);
    } else if (cmd_item_parse(item, NULL) && options_get(item->parsed, "driver") &&
               options_get(item->parsed, "property") && options_get(item->parsed, "value")) {
        g_autofree char *key = g_strdup_printf("%s.%s", options_get(item->parsed, "driver"),
                                               options_get(item->parsed, "property"));
        options_set(build->globals, key, options_get(item->parsed, "value"));
    }
}

static void set_text(char **text, const char *value)
{
    g_free(*text);
    *text = g_strdup(value);
}

static bool read_tracing(CmdItem *item, GError **error)
{
    bool help = false, ok = true;

    if (cmd_item_is(item, "trace")) {
        ok = trace_parse(item->arg, error);
    } else if (cmd_item_is(item, "D")) {
        ok = log_set_file(item->arg, error);
    } else if (cmd_item_is(item, "d") && g_str_has_prefix(item->arg, "trace:")) {
        ok = trace_parse_debug(item->arg, &help, error);
    }
    return ok || with_origin(item, error);
}

/* What the machine is made from. */
static bool read_setting(Build *build, CmdItem *item, GError **error)
{
    QtestSettings *settings = build->settings;

    if (!item->name[0] && item->word[0] == '-') {
        return error_set(error, "%s: invalid option", item->word);
    }
    if (item->name[0] && !qtest_knows_option(item->name)) {
        return error_set(error, "%s: not served with -accel qtest", item->origin);
    }
    if (cmd_item_is(item, "machine") || cmd_item_is(item, "M")) {
        return read_machine_type(build, item, error);
    } else if (cmd_item_is(item, "m")) {
        return read_memory(build, item, error);
    } else if (cmd_item_is(item, "qtest")) {
        set_text(&settings->qtest, item->arg);
    } else if (cmd_item_is(item, "qtest-log")) {
        set_text(&settings->qtest_log, item->arg);
    } else if (cmd_item_is(item, "pidfile")) {
        set_text(&settings->pidfile, item->arg);
    } else if (cmd_item_is(item, "incoming")) {
        set_text(&settings->incoming, item->arg);
        block_open_released(true);
    } else if (cmd_item_is(item, "S")) {
        settings->paused = true;
    } else if (cmd_item_is(item, "nodefaults")) {
        build->nodefaults = true;
    } else if (cmd_item_is(item, "global")) {
        read_global(build, item);
    }
    return read_tracing(item, error);
}

static bool add_object(Build *build, CmdItem *item, GError **error)
{
    Options *options = parse_item(item, "qom-type", error);
    const char *type = options ? options_get(options, "qom-type") : NULL;
    bool ok = true;

    if (!options) {
        return false;
    }
    g_autofree char *kind = g_strdup(type);
    options_remove(options, "qom-type");
    if (!g_strcmp0(kind, "secret")) {
        ok = secret_object_add(options, error);
    } else if (tls_object_is(kind)) {
        ok = tls_object_add(kind, options, error);
    } else if (!g_strcmp0(kind, "throttle-group")) {
        ThrottleGroup *group = throttle_group_new_from_options(options, error);
        ok = group != NULL;
        if (group) {
            monitor_own_group(build->machine->monitor, group);
        }
    } else if (g_strcmp0(kind, "iothread") && (!kind || !g_str_has_prefix(kind, "memory-backend-"))) {
        ok = error_set(error, "Parameter 'qom-type' does not accept value '%s'", kind ? kind : "");
    }
    return ok || with_origin(item, error);
}

static bool add_blockdev(Build *build, CmdItem *item, GError **error)
{
    Options *options = parse_item(item, "driver", error);

    if (!options) {
        return false;
    }
    if (!options_has(options, "node-name")) {
        error_set(error, "'node-name' must be specified for the root node");
        return with_origin(item, error);
    }
    BlockNode *node = block_open(options, error);
    if (!node) {
        return with_origin(item, error);
    }
    monitor_own_node(build->machine->monitor, node);
    return true;
}

/* The options of a drive in whichever form, and the index that its form stands for (-1: none). NULL: the item
 * is no drive, or its argument is bad (*error). */
static Options *drive_item_options(CmdItem *item, int *ret_index, GError **error)
{
    static const char *const names[] = {"hda", "hdb", "hdc", "hdd"};

    *ret_index = -1;
    for (int i = 0; i < 4; i++) {
        *ret_index = cmd_item_is(item, names[i]) ? i : *ret_index;
    }
    if (cmd_item_is(item, "drive")) {
        return parse_item(item, NULL, error);
    }
    *ret_index = cmd_item_is(item, "cdrom") ? 2 : !item->name[0] ? 0 : *ret_index;
    if (*ret_index < 0) {
        return NULL;
    }
    item->parsed = options_new();
    options_set(item->parsed, "file", item->arg ? item->arg : item->word);
    if (cmd_item_is(item, "cdrom")) {
        options_set(item->parsed, "media", "cdrom");
    }
    return item->parsed;
}

/* bus, unit, index of an if=ide drive by QEMU's rules. */
static bool place_ide_drive(Build *build, QtestDriveSpec *spec, int index, GError **error)
{
    QtestController *controller =
        build->machine->controllers->len ? g_ptr_array_index(build->machine->controllers, 0) : NULL;
    unsigned units = controller ? qtest_controller_units(controller) : 1;
    unsigned slots = controller ? units * qtest_controller_buses(controller) : 0;
    uint64_t given, bus, unit;

    if (!options_get_uint(spec->options, "index", 0, INDEX_MAX - 1, index < 0 ? UINT64_MAX : (uint64_t)index,
                          &given, error) ||
        !options_get_uint(spec->options, "bus", 0, INDEX_MAX - 1, 0, &bus, error) ||
        !options_get_uint(spec->options, "unit", 0, INDEX_MAX - 1, UINT64_MAX, &unit, error)) {
        return false;
    }
    if (given != UINT64_MAX && (bus != 0 || unit != UINT64_MAX)) {
        return error_set(error, "index cannot be used with bus and unit");
    }
    if (unit != UINT64_MAX && unit >= units) {
        return error_set(error, "unit %u too big (max is %u)", (unsigned)unit, units - 1);
    }
    if (given == UINT64_MAX) {
        given = bus * units + (unit == UINT64_MAX ? 0 : unit);
        while (unit == UINT64_MAX && given < slots && build->used & 1u << given) {
            given++;
        }
    }
    spec->bus = (unsigned)given / units;
    spec->unit = (unsigned)given % units;
    if (given >= slots) {
        return error_set(error, "machine type does not support if=ide,bus=%u,unit=%u", spec->bus, spec->unit);
    }
    if (build->used & 1u << given) {
        return error_set(error, "drive with bus=%u, unit=%u (index=%u) exists", spec->bus, spec->unit,
                         (unsigned)given);
    }
    build->used |= 1u << given;
    return true;
}

static bool add_drive(Build *build, CmdItem *item, GError **error)
{
    static const char *const media[] = {"disk", "cdrom", NULL};
    GError *failure = NULL;
    int index, medium;
    QtestDriveSpec spec = {.options = drive_item_options(item, &index, &failure), .origin = item->origin};

    if (!spec.options) {
        if (failure) {
            g_propagate_error(error, failure);
        }
        return !failure;
    }
    const char *type = options_get(spec.options, "if");
    spec.ide = !type || !strcmp(type, "ide");
    if (!spec.ide && strcmp(type, "none") != 0) {
        error_set(error, "if=%s is not served with -accel qtest: ide and none are", type);
        return with_origin(item, error);
    }
    if (!options_get_enum(spec.options, "media", media, 0, &medium, error)) {
        return with_origin(item, error);
    }
    spec.cd = medium == 1;
    if (spec.ide) {
        if (!place_ide_drive(build, &spec, index, error)) {
            return with_origin(item, error);
        }
    } else {
        static const char *const places[] = {"index", "bus", "unit"};
        for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
            options_get(spec.options, places[i]);
        }
        spec.unit = build->machine->unnamed++;
    }
    return drive_add(build->machine, &spec, build->globals, error) || with_origin(item, error);
}

static bool add_device(Build *build, CmdItem *item, bool drives, GError **error)
{
    Options *options = parse_item(item, "driver", error);
    const char *driver = options ? options_get(options, "driver") : NULL;
    bool ok = true;

    if (!driver) {
        return options ? error_set(error, "%s: Parameter 'driver' is missing", item->origin) : false;
    }
    bool is_drive = !strcmp(driver, "ide-hd") || !strcmp(driver, "ide-cd");
    bool is_controller = controller_is(driver);
    if (!is_drive && !is_controller) {
        ok = error_set(error, "'%s' is not a device of Spindle's machine for -accel qtest", driver);
    } else if (is_drive && drives) {
        ok = drive_add_device(build->machine, options, build->globals, error);
    } else if (is_controller && !drives) {
        ok = controller_add(build->machine, build->model, options, error);
    }
    return ok || with_origin(item, error);
}

/* QEMU's machines have an empty CD drive at index 2 unless the user says anything about drives there. */
static bool add_default_cd(Build *build, GError **error)
{
    bool wanted = !build->nodefaults && build->model != PC_NONE && !(build->used & 1u << 2);

    for (guint i = 0; i < build->line->items->len; i++) {
        CmdItem *item = cmd_line_item(build->line, i);
        if (cmd_item_is(item, "device") && item->parsed &&
            g_str_has_prefix(options_get(item->parsed, "driver"), "ide-")) {
            wanted = false;
        }
    }
    if (!wanted) {
        return true;
    }
    g_autoptr(Options) options = options_new();
    QtestDriveSpec spec = {.options = options, .origin = "", .cd = true, .ide = true};
    return place_ide_drive(build, &spec, 2, error) && drive_add(build->machine, &spec, build->globals, error);
}

/* The -chardev with this id. */
static Chardev *find_chardev(Build *build, const char *id, GError **error)
{
    for (guint i = 0; i < build->line->items->len; i++) {
        CmdItem *item = cmd_line_item(build->line, i);
        if (cmd_item_is(item, "chardev") && parse_item(item, "backend", NULL) &&
            !g_strcmp0(options_get(item->parsed, "id"), id)) {
            Chardev *chardev = chardev_new(item->parsed, error);
            if (!chardev) {
                with_origin(item, error);
            }
            return chardev;
        }
    }
    error_set(error, "chardev \"%s\" not found", id);
    return NULL;
}

static Chardev *chardev_of_text(Build *build, const char *text, GError **error)
{
    return g_str_has_prefix(text, "chardev:") ? find_chardev(build, text + strlen("chardev:"), error)
                                              : chardev_new_from_text(text, error);
}

static bool add_mon(Build *build, CmdItem *item, GError **error)
{
    static const char *const modes[] = {"readline", "control", NULL};
    Options *options = parse_item(item, "chardev", error);
    bool pretty;
    int mode;

    if (!options) {
        return false;
    }
    const char *id = options_get(options, "chardev");
    if (!id || !options_get_enum(options, "mode", modes, 0, &mode, error) ||
        !options_get_bool(options, "pretty", false, &pretty, error)) {
        if (!id) {
            error_set(error, "Parameter 'chardev' is missing");
        }
        return with_origin(item, error);
    }
    Chardev *chardev = find_chardev(build, id, error);
    if (!chardev) {
        return with_origin(item, error);
    }
    monitor_add_server(build->machine->monitor, chardev,
                       mode == 0 ? MONITOR_HUMAN
                       : pretty  ? MONITOR_QMP_PRETTY
                                 : MONITOR_QMP);
    return true;
}

static bool add_monitor(Build *build, CmdItem *item, GError **error)
{
    bool qmp = cmd_item_is(item, "qmp"), pretty = cmd_item_is(item, "qmp-pretty");

    if (cmd_item_is(item, "mon")) {
        return add_mon(build, item, error);
    }
    bool human = cmd_item_is(item, "monitor") && strcmp(item->arg, "none") && strcmp(item->arg, "null");
    if (cmd_item_is(item, "name") && cmd_item_parse(item, "guest")) {
        monitor_set_name(build->machine->monitor, options_get(item->parsed, "guest"));
    } else if (cmd_item_is(item, "uuid")) {
        if (!g_uuid_string_is_valid(item->arg)) {
            return error_set(error, "%s: failed to parse UUID string: wrong format", item->origin);
        }
        monitor_set_uuid(build->machine->monitor, item->arg);
    }
    if (!qmp && !pretty && !human) {
        return true;
    }
    Chardev *chardev = chardev_of_text(build, item->arg, error);
    if (!chardev) {
        return with_origin(item, error);
    }
    monitor_add_server(build->machine->monitor, chardev,
                       human    ? MONITOR_HUMAN
                       : pretty ? MONITOR_QMP_PRETTY
                                : MONITOR_QMP);
    return true;
}

typedef enum {
    PASS_SETTINGS,
    PASS_OBJECTS,
    PASS_BLOCKDEVS,
    PASS_DRIVES,
    PASS_CONTROLLERS,
    PASS_DEVICES,
    PASS_MONITORS
} Pass;

static bool run_item(Build *build, CmdItem *item, Pass pass, GError **error)
{
    switch (pass) {
    case PASS_SETTINGS:
        return read_setting(build, item, error);
    case PASS_OBJECTS:
        return !cmd_item_is(item, "object") || add_object(build, item, error);
    case PASS_BLOCKDEVS:
        return !cmd_item_is(item, "blockdev") || add_blockdev(build, item, error);
    case PASS_DRIVES:
        return add_drive(build, item, error);
    case PASS_CONTROLLERS:
    case PASS_DEVICES:
        return !cmd_item_is(item, "device") || add_device(build, item, pass == PASS_DEVICES, error);
    default:
        return add_monitor(build, item, error);
    }
}

static bool run_pass(Build *build, Pass pass, GError **error)
{
    for (guint i = 0; i < build->line->items->len; i++) {
        if (!run_item(build, cmd_line_item(build->line, i), pass, error)) {
            return false;
        }
    }
    return true;
}

static bool build_machine(Build *build, GError **error)
{
    if (!run_pass(build, PASS_SETTINGS, error) || !boot_order_read(build->line, &build->boot, error)) {
        return false;
    }
    build->machine = qtest_machine_new(build->model, build->memory, error);
    if (!build->machine) {
        return false;
    }
    for (Pass pass = PASS_OBJECTS; pass <= PASS_DRIVES; pass++) {
        if (!run_pass(build, pass, error)) {
            return false;
        }
    }
    for (guint i = 0; i < build->line->items->len; i++) {
        CmdItem *item = cmd_line_item(build->line, i);
        if (cmd_item_is(item, "device")) {
            cmd_item_parse(item, "driver");
        }
    }
    if (!add_default_cd(build, error)) {
        return false;
    }
    for (Pass pass = PASS_CONTROLLERS; pass <= PASS_MONITORS; pass++) {
        if (!run_pass(build, pass, error)) {
            return false;
        }
    }
    if (build->settings->qtest) {
        build->settings->qtest_chardev = chardev_of_text(build, build->settings->qtest, error);
        return build->settings->qtest_chardev != NULL;
    }
    return true;
}

QtestMachine *qtest_options_build(const char *const *argv, QtestSettings *ret_settings, GError **error)
{
    Build build = {.settings = ret_settings, .model = PC_I440FX, .memory = MEMORY_DEFAULT};

    *ret_settings = (QtestSettings){0};
    build.line = cmd_line_parse(argv, error);
    if (!build.line) {
        return NULL;
    }
    build.globals = options_new();
    if (!build_machine(&build, error)) {
        qtest_machine_free(build.machine);
        build.machine = NULL;
        qtest_settings_clear(ret_settings);
    } else {
        pc_reset(build.machine->pc); /* as at power-on: the drives were always there */
        board_set_boot(pc_board(build.machine->pc), &build.boot);
        const char *uuid = monitor_uuid(build.machine->monitor);
        board_set_uuid(pc_board(build.machine->pc), uuid ? uuid : "");
    }
    options_unref(build.globals);
    cmd_line_free(build.line);
    return build.machine;
}
