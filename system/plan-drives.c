/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finds the CD/DVD drives and IDE hard disks in QEMU's command line. Whatever is not understood in full (a
 * format that Spindle lacks, a property that the device does not have, a bus that is not there) stays QEMU's,
 * which then serves it or names the mistake in its own words.
 */
#include "system/plan-int.h"
#include <stdlib.h>
#include <string.h>
#include "system/drive-props.h"
#include "util/error.h"

#define DEFAULT_CD_INDEX 2 /* where QEMU puts an empty CD drive */

int plan_ide_buses(const PlanDraft *draft)
{
    return draft->machine == MACHINE_PC ? 2 : 6;
}

int plan_ide_units(const PlanDraft *draft)
{
    return draft->machine == MACHINE_PC ? 2 : 1;
}

int plan_model_units(const char *model)
{
    return strcmp(model, "ahci") ? 2 : 1;
}

const char *plan_controller_model(const char *driver)
{
    static const char *const models[][2] = {
        {"ahci", "ahci"}, {"ich9-ahci", "ahci"}, {"piix3-ide", "piix3-ide"}, {"piix4-ide", "piix4-ide"}};

    for (size_t i = 0; driver && i < G_N_ELEMENTS(models); i++) {
        if (!strcmp(models[i][0], driver)) {
            return models[i][1];
        }
    }
    return NULL;
}

CmdItem *plan_find_controller(PlanDraft *draft, const char *id, const char **ret_model)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "device") && cmd_item_parse(item, "driver") &&
            !g_strcmp0(options_get(item->parsed, "id"), id)) {
            const char *model = plan_controller_model(options_get(item->parsed, "driver"));
            if (model && ret_model) {
                *ret_model = model;
            }
            return model ? item : NULL;
        }
    }
    return NULL;
}

bool plan_parse_bus(PlanDraft *draft, const char *bus, char **ret_controller, int *ret_number)
{
    const char *dot = strrchr(bus, '.');
    g_autofree char *controller = dot ? g_strndup(bus, dot - bus) : NULL;
    const char *model;
    int buses;
    guint64 number;

    if (!controller) {
        return false;
    }
    if (plan_find_controller(draft, controller, &model)) {
        buses = plan_model_units(model) == 1 ? PLAN_PORTS : 2;
    } else if (!strcmp(controller, "ide")) {
        buses = plan_ide_buses(draft);
    } else {
        return false;
    }
    if (!g_ascii_string_to_unsigned(dot + 1, 10, 0, buses - 1, &number, NULL)) {
        return false;
    }
    *ret_controller = g_steal_pointer(&controller);
    *ret_number = (int)number;
    return true;
}

static PlanDrive *drive_new(PlanDraft *draft, DriveModel model, const char *origin)
{
    PlanDrive *drive = g_new0(PlanDrive, 1);

    drive->model = model;
    drive->props = options_new();
    drive->origin = origin;
    drive->unit = drive->bootindex = -1;
    g_ptr_array_add(draft->drives, drive);
    return drive;
}

/* An item that defines an if=ide drive: its -drive options, or the index that its name stands for. */
static Options *ide_drive_options(CmdItem *item, int *ret_index)
{
    static const char *const names[] = {"hda", "hdb", "hdc", "hdd"};
    Options *drive = cmd_item_is(item, "drive") ? cmd_item_parse(item, NULL) : NULL;

    *ret_index = -1;
    for (int i = 0; i < 4; i++) {
        if (cmd_item_is(item, names[i])) {
            *ret_index = i;
        }
    }
    if (cmd_item_is(item, "cdrom")) {
        *ret_index = 2;
    } else if (!item->name[0] && item->word[0] != '-') {
        *ret_index = 0;
    }
    if (drive) {
        const char *type = options_get(drive, "if");
        return !type || !strcmp(type, "ide") ? drive : NULL;
    }
    return NULL;
}

/* Bus and unit of an if=ide drive by QEMU's rules; `used` has a bit for each index. False: out of range,
 * or not numbers (QEMU will say so). */
static bool ide_drive_position(PlanDraft *draft, Options *drive, uint32_t used, int *ret_bus, int *ret_unit)
{
    int units = plan_ide_units(draft);
    int slots = units * plan_ide_buses(draft);
    uint64_t index, bus, unit;

    if (!options_get_uint(drive, "index", 0, 31, UINT64_MAX, &index, NULL) ||
        !options_get_uint(drive, "bus", 0, 31, 0, &bus, NULL) ||
        !options_get_uint(drive, "unit", 0, units - 1, UINT64_MAX, &unit, NULL)) {
        return false;
    }
    if (index != UINT64_MAX) {
        if (bus != 0 || unit != UINT64_MAX) {
            return false;
        }
    } else if (unit != UINT64_MAX) {
        index = bus * units + unit;
    } else {
        for (index = bus * units; index < (uint64_t)slots && used & 1u << index; index++) {
        }
    }
    if (index >= (uint64_t)slots) {
        return false;
    }
    *ret_bus = (int)index / units;
    *ret_unit = (int)index % units;
    return true;
}

/* -global ide-cd.KEY=VALUE, -global driver=ide-cd,property=KEY,value=VALUE: for every drive that does not
 * say otherwise. */
static void apply_globals(PlanDraft *draft, DriveModel model, Options *props)
{
    const char *driver = drive_model_name(model);
    size_t len = strlen(driver);

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        g_autofree char *key = NULL;
        const char *value = NULL;

        if (!cmd_item_is(item, "global")) {
            continue;
        }
        const char *equals = strchr(item->arg, '=');
        if (equals && g_str_has_prefix(item->arg, driver) && item->arg[len] == '.') {
            key = g_strndup(item->arg + len + 1, equals - item->arg - len - 1);
            value = equals + 1;
        } else if (cmd_item_parse(item, NULL) && !g_strcmp0(options_get(item->parsed, "driver"), driver)) {
            key = g_strdup(options_get(item->parsed, "property"));
            value = options_get(item->parsed, "value");
        }
        if (key && value && !options_has(props, key)) {
            options_set(props, key, value);
        }
    }
}

/* The drive of an if=ide item at its place, if it is one for Spindle. */
static void take_ide_drive(PlanDraft *draft, CmdItem *item, DriveModel model, int bus, int unit)
{
    g_autoptr(Options) node = NULL;
    PlanSource source = plan_drive_source(draft, item, model, &node);

    if (source == PLAN_SOURCE_OTHER) {
        return;
    }
    PlanDrive *drive = drive_new(draft, model, item->origin);
    const char *id = options_get(item->parsed, "id");
    const char *node_name = options_get(item->parsed, "node-name");
    g_autofree char *generated = g_strdup_printf("ide%d-%s%d", bus, model == DRIVE_HD ? "hd" : "cd", unit);
    drive->source = item;
    drive->name = g_strdup(id ? id : generated);
    drive->bus = g_strdup_printf("ide.%d", bus);
    drive->unit = unit;
    options_set(drive->props, "id", id ? id : generated);
    plan_drive_props(item, model, drive->props);
    apply_globals(draft, model, drive->props);
    if (source == PLAN_SOURCE_NODE) {
        drive->node = g_strdup(node_name ? node_name : id ? id : generated);
        plan_add_drive_node(draft, item, node, drive->node);
    }
    draft->no_default_cd |= model == DRIVE_CD || bus * plan_ide_units(draft) + unit == DEFAULT_CD_INDEX;
    item->taken = item->dropped = true;
}

/* By media=, which is `disk` by default. False: QEMU will name the mistake. */
static bool ide_drive_model(CmdItem *item, Options *options, DriveModel *ret_model)
{
    const char *media = options ? options_get(options, "media") : NULL;
    bool cd = cmd_item_is(item, "cdrom") || !g_strcmp0(media, "cdrom");

    *ret_model = cd ? DRIVE_CD : DRIVE_HD;
    return cd || !media || !strcmp(media, "disk");
}

static bool take_ide_drives(PlanDraft *draft, GError **error)
{
    uint32_t used = 0;

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        int index, units = plan_ide_units(draft);
        Options *options = ide_drive_options(item, &index);
        int bus = index / units, unit = index % units;

        if (index < 0 && (!options || !ide_drive_position(draft, options, used, &bus, &unit))) {
            continue;
        }
        index = bus * units + unit;
        if (used & 1u << index) {
            return error_set(error, "%s: drive with bus=%d, unit=%d (index=%d) exists", item->origin, bus,
                             unit, index);
        }
        used |= 1u << index;
        DriveModel model;
        if (ide_drive_model(item, options, &model)) {
            take_ide_drive(draft, item, model, bus, unit);
        }
    }
    return true;
}

static bool props_are_known(DriveModel model, Options *props)
{
    g_auto(GStrv) keys = options_keys(props);

    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(drive_model_props(model), *key)) {
            return false;
        }
    }
    return true;
}

/* `-set device.ID.KEY=VALUE`, `-set drive.ID.KEY=VALUE` on options that are going to be looked at here. The
 * item stays for QEMU unless its target is taken (drop_sets). */
static CmdItem *set_target(PlanDraft *draft, CmdItem *item, char **ret_key, const char **ret_value)
{
    const char *equals = strchr(item->arg, '=');
    g_auto(GStrv) path = equals ? g_strsplit(item->arg, ".", 3) : NULL;

    if (!path || g_strv_length(path) != 3 || (strcmp(path[0], "device") && strcmp(path[0], "drive"))) {
        return NULL;
    }
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *target = cmd_line_item(draft->line, i);
        if (cmd_item_is(target, path[0]) && target->parsed && !cmd_item_is_json(target) &&
            !g_strcmp0(options_get(target->parsed, "id"), path[1])) {
            *ret_key = g_strndup(path[2], strcspn(path[2], "="));
            *ret_value = equals + 1;
            return target;
        }
    }
    return NULL;
}

static void apply_sets(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "set")) {
            g_autofree char *key = NULL;
            const char *value;
            CmdItem *target = set_target(draft, item, &key, &value);
            if (target) {
                options_set(target->parsed, key, value);
            }
        }
    }
}

static void drop_sets(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "set")) {
            g_autofree char *key = NULL;
            const char *value;
            CmdItem *target = set_target(draft, item, &key, &value);
            item->dropped = target && target->dropped;
        }
    }
}

/* What drive= names: -drive if=none by id or node name, or a -blockdev. NULL: nothing. */
static CmdItem *find_source(PlanDraft *draft, const char *name)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "drive") && item->parsed &&
            (!g_strcmp0(options_get(item->parsed, "id"), name) ||
             !g_strcmp0(options_get(item->parsed, "node-name"), name))) {
            return item;
        }
    }
    return plan_find_node(draft, name);
}

/* A source is served once; a -blockdev may have several read-only users. */
static bool source_is_free(CmdItem *source, CmdItem *device, GError **error)
{
    const char *id = options_get(source->parsed, "id");
    const char *type = options_get(source->parsed, "if");

    if (!cmd_item_is(source, "drive")) {
        return true;
    }
    if (g_strcmp0(type, "none")) {
        return error_set(error,
                         "%s: Drive '%s' is already in use because it has been automatically connected to "
                         "another device (did you need 'if=none' in the drive options?)",
                         device->origin, id);
    }
    return !source->taken ||
           error_set(error, "%s: Drive '%s' is already in use by another device", device->origin, id);
}

/* The node name that the drive gets, or NULL: it is not for Spindle. */
static bool take_source(PlanDraft *draft, CmdItem *source, DriveModel model, char **ret_node, Options *props)
{
    g_autoptr(Options) node = NULL;

    if (cmd_item_is(source, "blockdev")) {
        if (!plan_node_is_served(draft, source)) {
            return false;
        }
        plan_take_node(draft, source);
        *ret_node = g_strdup(options_get(source->parsed, "node-name"));
        return true;
    }
    const char *media = options_get(source->parsed, "media");
    if (model == DRIVE_HD && media && strcmp(media, "disk")) {
        return false; /* read-only, which QEMU will say */
    }
    PlanSource kind = plan_drive_source(draft, source, model, &node);
    if (kind == PLAN_SOURCE_OTHER) {
        return false;
    }
    if (kind == PLAN_SOURCE_NODE) {
        const char *node_name = options_get(source->parsed, "node-name");
        *ret_node = g_strdup(node_name ? node_name : options_get(source->parsed, "id"));
        plan_add_drive_node(draft, source, node, *ret_node);
    }
    plan_drive_props(source, model, props);
    source->taken = source->dropped = true;
    return true;
}

/* Whether QEMU has a place for the device, and its bootindex is a number. */
static bool device_is_sound(PlanDraft *draft, DriveModel model, Options *options)
{
    const char *bus = options_get(options, "bus");
    g_autofree char *controller = NULL;
    const char *controller_model = NULL;
    uint64_t unit, bootindex;
    int number, units = plan_ide_units(draft);

    if (bus && !plan_parse_bus(draft, bus, &controller, &number)) {
        return false;
    }
    if (controller && plan_find_controller(draft, controller, &controller_model)) {
        units = plan_model_units(controller_model);
    }
    return props_are_known(model, options) &&
           options_get_uint(options, "unit", 0, units - 1, 0, &unit, NULL) &&
           options_get_uint(options, "bootindex", 0, INT32_MAX, 0, &bootindex, NULL);
}

static int int_or(Options *options, const char *key, int fallback)
{
    const char *text = options_get(options, key);

    return text ? atoi(text) : fallback;
}

static void add_device(PlanDraft *draft, CmdItem *item, DriveModel model, Options *props, CmdItem *source,
                       char *node)
{
    static const char *const placed[] = {"driver", "drive", "bus", "unit", "bootindex", NULL};
    PlanDrive *drive = drive_new(draft, model, item->origin);
    g_auto(GStrv) keys = options_keys(props);

    drive->device = item;
    drive->source = source;
    drive->name = source && cmd_item_is(source, "drive") ? g_strdup(options_get(source->parsed, "id")) : NULL;
    drive->node = node;
    drive->bus = g_strdup(options_get(props, "bus"));
    drive->unit = int_or(props, "unit", -1);
    drive->bootindex = int_or(props, "bootindex", -1);
    for (char **key = keys; *key; key++) {
        if (!g_strv_contains(placed, *key)) {
            options_set(drive->props, *key, options_get(props, *key));
        }
    }
    draft->no_default_cd = true;
    item->taken = item->dropped = true;
}

/* A disk that others write to as well is QEMU's, as is one without an image, to say so. */
static bool disk_is_ours(Options *props, const char *name)
{
    bool share = true;

    return name && name[0] && options_get_bool(props, "share-rw", false, &share, NULL) && !share;
}

static bool take_device(PlanDraft *draft, CmdItem *item, DriveModel model, GError **error)
{
    g_autoptr(Options) props = options_new();
    g_auto(GStrv) keys = options_keys(item->parsed);
    const char *name = options_get(item->parsed, "drive");
    CmdItem *source = name && name[0] ? find_source(draft, name) : NULL;
    char *node = NULL;

    for (char **key = keys; *key; key++) {
        options_set(props, *key, options_get(item->parsed, *key));
    }
    apply_globals(draft, model, props);
    if (!device_is_sound(draft, model, props) || (model == DRIVE_HD && !disk_is_ours(props, name))) {
        return true;
    }
    if (name && name[0] && !source) {
        return error_set(error, "%s: Property '%s.drive' can't find value '%s'", item->origin,
                         drive_model_name(model), name);
    }
    if (source && (!source_is_free(source, item, error))) {
        return false;
    }
    if (!source || take_source(draft, source, model, &node, props)) {
        add_device(draft, item, model, props, source, node);
    }
    return true;
}

/* One id, one device: QEMU no longer sees those that are taken. */
static bool check_ids(PlanDraft *draft, const char *option, const char *key, const char *format,
                      GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        const char *id = cmd_item_is(item, option) && item->parsed ? options_get(item->parsed, key) : NULL;
        if (id && !g_hash_table_add(seen, (char *)id)) {
            g_autofree char *before = g_strdup_printf("%s: ", item->origin);
            g_auto(GStrv) parts = g_strsplit(format, "%s", 2);
            return error_set(error, "%s%s%s%s", before, parts[0], id, parts[1]);
        }
    }
    return true;
}

static void parse_items(PlanDraft *draft)
{
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        if (cmd_item_is(item, "device") || cmd_item_is(item, "blockdev")) {
            cmd_item_parse(item, "driver");
        } else if (cmd_item_is(item, "drive")) {
            cmd_item_parse(item, NULL);
        } else if (cmd_item_is(item, "object")) {
            cmd_item_parse(item, "qom-type");
        }
    }
}

bool plan_take_drives(PlanDraft *draft, GError **error)
{
    parse_items(draft);
    apply_sets(draft);
    if (!check_ids(draft, "drive", "id", "Duplicate ID '%s' for drive", error) ||
        !check_ids(draft, "device", "id", "Duplicate ID '%s' for device", error) ||
        !check_ids(draft, "blockdev", "node-name", "Duplicate nodes with node-name='%s'", error) ||
        !take_ide_drives(draft, error)) {
        return false;
    }
    for (guint i = 0; i < draft->line->items->len; i++) {
        CmdItem *item = cmd_line_item(draft->line, i);
        DriveModel model;
        if (cmd_item_is(item, "device") && item->parsed &&
            drive_model_parse(options_get(item->parsed, "driver"), &model) &&
            !take_device(draft, item, model, error)) {
            return false;
        }
    }
    plan_keep_shared_nodes(draft);
    drop_sets(draft);
    return true;
}
