/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The object tree as far as there is one: drives at QEMU's paths, secrets and throttle groups.
 */
#include <string.h>
#include "block/secret-object.h"
#include "monitor/drive-properties.h"
#include "monitor/qmp.h"
#include "util/error.h"

/* The containers, each with those below it; what users made comes by itself. */
static const struct {
    const char *path, *type, *children[4];
} containers[] = {
    {"/", "container", {"machine", "objects"}},
    {"/machine", "machine", {"peripheral", "peripheral-anon", "unattached"}},
    {"/machine/peripheral", "container", {NULL}},
    {"/machine/peripheral-anon", "container", {NULL}},
    {"/machine/unattached", "container", {NULL}},
    {"/objects", "container", {NULL}},
};

static const char objects_path[] = "/objects/";

/* What a path names: at most one of these. */
typedef struct Object {
    const char *container; /* its type */
    const Backend *backend;
    ThrottleGroup *group; /* reference held */
    bool secret;
} Object;

static void object_clear(Object *object)
{
    throttle_group_unref(object->group);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Object, object_clear)

static bool secret_exists(const char *id)
{
    g_auto(GStrv) ids = secret_object_list();

    return g_strv_contains((const char *const *)ids, id);
}

static bool find_object(Monitor *monitor, const char *path, Object *ret, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++) {
        if (!strcmp(path, containers[i].path)) {
            ret->container = containers[i].type;
            return true;
        }
    }
    ret->backend = backend_find_device(monitor, path);
    if (!ret->backend && g_str_has_prefix(path, objects_path)) {
        const char *id = path + strlen(objects_path);
        ret->group = monitor_find_group(monitor, id);
        ret->secret = !ret->group && secret_exists(id);
    }
    if (!ret->backend && !ret->group && !ret->secret) {
        g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", path);
        return false;
    }
    return true;
}

static void add_property(JsonArray *array, const char *name, const char *type)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "type", type);
    json_array_add_object_element(array, object);
}

static void list_drives(JsonArray *array, Monitor *monitor, const char *path)
{
    GPtrArray *all = monitor_backends(monitor);
    size_t len = strlen(path);

    for (guint i = 0; i < all->len; i++) {
        const Backend *backend = g_ptr_array_index(all, i);
        if (backend->qdev && !strncmp(backend->qdev, path, len) && backend->qdev[len] == '/') {
            g_autofree char *type = g_strdup_printf("child<%s>", backend->type);
            add_property(array, backend->qdev + len + 1, type);
        }
    }
}

static void list_objects(JsonArray *array, Monitor *monitor)
{
    g_auto(GStrv) groups = monitor_group_names(monitor), secrets = secret_object_list();

    for (char **name = groups; *name; name++) {
        add_property(array, *name, "child<throttle-group>");
    }
    for (char **name = secrets; *name; name++) {
        add_property(array, *name, "child<secret>");
    }
}

static JsonArray *list_container(Monitor *monitor, const char *path)
{
    JsonArray *array = json_array_new();

    add_property(array, "type", "string");
    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++) {
        for (const char *const *child = containers[i].children; !strcmp(path, containers[i].path) && *child;
             child++) {
            add_property(array, *child, "child<container>");
        }
    }
    list_drives(array, monitor, path);
    if (!strcmp(path, "/objects")) {
        list_objects(array, monitor);
    }
    return array;
}

static JsonNode *cmd_qom_list(QmpCall *call, GError **error)
{
    const char *path = qmp_arg_string(call, "path");
    Monitor *monitor = qmp_call_monitor(call);
    g_auto(Object) object = {0};

    if (!find_object(monitor, path, &object, error)) {
        return NULL;
    }
    if (object.container) {
        return qmp_array(list_container(monitor, path));
    }
    if (object.backend) {
        return qmp_array(drive_properties_list(object.backend));
    }
    JsonArray *array = json_array_new();
    add_property(array, "type", "string");
    if (object.group) {
        add_property(array, "limits", "ThrottleLimits");
    }
    return qmp_array(array);
}

static const char *object_type(const Object *object)
{
    return object->container ? object->container
           : object->backend ? object->backend->type
           : object->group   ? "throttle-group"
                             : "secret";
}

static JsonNode *group_limits(ThrottleGroup *group)
{
    static const char *const names[THROTTLE_BUCKETS] = {"bps-total",  "bps-read",  "bps-write",
                                                        "iops-total", "iops-read", "iops-write"};
    ThrottleLimits limits;
    JsonObject *object = json_object_new();

    throttle_group_get_limits(group, &limits);
    for (size_t i = 0; i < THROTTLE_BUCKETS; i++) {
        g_autofree char *max = g_strconcat(names[i], "-max", NULL);
        g_autofree char *length = g_strconcat(names[i], "-max-length", NULL);
        json_object_set_int_member(object, names[i], (gint64)limits.bucket[i].average);
        json_object_set_int_member(object, max, (gint64)limits.bucket[i].max);
        json_object_set_int_member(object, length, (gint64)limits.bucket[i].length);
    }
    json_object_set_int_member(object, "iops-size", (gint64)limits.iops_size);
    return qmp_object(object);
}

static JsonNode *object_property(const Object *object, const char *name)
{
    if (object->backend) {
        return drive_property_get(object->backend, name);
    }
    if (object->group && !strcmp(name, "limits")) {
        return group_limits(object->group);
    }
    return !strcmp(name, "type") ? qmp_string(object_type(object)) : NULL;
}

static bool no_property(const Object *object, const char *name, GError **error)
{
    return error_set(error, "Property '%s.%s' not found", object_type(object), name);
}

static JsonNode *cmd_qom_get(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "property");
    g_auto(Object) object = {0};

    if (!find_object(qmp_call_monitor(call), qmp_arg_string(call, "path"), &object, error)) {
        return NULL;
    }
    JsonNode *value = object_property(&object, name);
    if (!value) {
        no_property(&object, name, error);
    }
    return value;
}

/* What is not given stays. */
static void set_group_limits(ThrottleGroup *group, JsonNode *value, GError **error)
{
    ThrottleLimits limits;

    if (!JSON_NODE_HOLDS_OBJECT(value)) {
        error_set(error, "Invalid parameter type for 'limits', expected: object");
        return;
    }
    g_autoptr(Options) options = options_from_json(json_node_get_object(value), error);
    throttle_group_get_limits(group, &limits);
    if (!options || !throttle_limits_read(&limits, options, "", error)) {
        return;
    }
    if (options_check_expected(options, error)) {
        throttle_group_set_limits(group, &limits, error);
    }
}

static JsonNode *cmd_qom_set(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "property");
    g_auto(Object) object = {0};

    if (!find_object(qmp_call_monitor(call), qmp_arg_string(call, "path"), &object, error)) {
        return NULL;
    }
    if (object.group && !strcmp(name, "limits")) {
        set_group_limits(object.group, json_object_get_member(qmp_args(call), "value"), error);
        return NULL;
    }
    JsonNode *value = object_property(&object, name);
    if (!value) {
        no_property(&object, name, error);
    } else if (object.backend) {
        error_set(error, "Attempt to set property '%s' on device '%s' (type '%s') after it was realized",
                  name, object.backend->id ? object.backend->id : "", object.backend->type);
    } else {
        error_set(error, "Insufficient permission to perform this operation");
    }
    g_clear_pointer(&value, json_node_unref);
    return NULL;
}

/* A type comes before those that are derived from it. */
static const struct QomType {
    const char *name, *parent;
    bool abstract;
} qom_types[] = {
    {"device", "object", true},         {"pci-device", "device", true},
    {"ide-device", "device", true},     {"ide-cd", "ide-device", false},
    {"ide-hd", "ide-device", false},    {"ich9-ahci", "pci-device", false},
    {"piix3-ide", "pci-device", false}, {"piix4-ide", "pci-device", false},
};

static bool type_is(const char *name, const char *ancestor)
{
    for (size_t i = G_N_ELEMENTS(qom_types); i > 0; i--) {
        const struct QomType *type = &qom_types[i - 1];
        if (!strcmp(name, ancestor)) {
            return true;
        }
        name = !strcmp(type->name, name) ? type->parent : name;
    }
    return !strcmp(name, ancestor);
}

/* As with QEMU, abstract types are there only when they are asked for. */
static JsonNode *cmd_qom_list_types(QmpCall *call, GError **error)
{
    const char *ancestor = qmp_arg_string(call, "implements");
    JsonArray *array = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(qom_types); i++) {
        const struct QomType *type = &qom_types[i];
        if ((type->abstract && !qmp_arg_bool(call, "abstract", false)) ||
            (ancestor && !type_is(type->name, ancestor))) {
            continue;
        }
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", type->name);
        json_object_set_string_member(object, "parent", type->parent);
        if (type->abstract) {
            json_object_set_boolean_member(object, "abstract", true);
        }
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

static JsonNode *cmd_device_list_properties(QmpCall *call, GError **error)
{
    const char *type = qmp_arg_string(call, "typename");
    JsonArray *array = drive_type_properties(type);

    if (!array) {
        g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", type);
        return NULL;
    }
    return qmp_array(array);
}

const QmpCommand qmp_commands_qom[] = {
    {.name = "device-list-properties",
     .run = cmd_device_list_properties,
     .returns = QMP_ARRAY,
     .args = {{"typename", QMP_STRING}}},
    {.name = "qom-get",
     .run = cmd_qom_get,
     .returns = QMP_ANY,
     .args = {{"path", QMP_STRING}, {"property", QMP_STRING}}},
    {.name = "qom-list", .run = cmd_qom_list, .returns = QMP_ARRAY, .args = {{"path", QMP_STRING}}},
    {.name = "qom-list-types",
     .run = cmd_qom_list_types,
     .returns = QMP_ARRAY,
     .args = {{"implements", QMP_STRING, true}, {"abstract", QMP_BOOL, true}}},
    {.name = "qom-set",
     .run = cmd_qom_set,
     .args = {{"path", QMP_STRING}, {"property", QMP_STRING}, {"value", QMP_ANY}}},
    {NULL},
};
