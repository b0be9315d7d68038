/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The object tree as far as there is one: the drives, at QEMU's paths.
 */
#include <string.h>
#include "monitor/backend.h"
#include "monitor/qmp.h"
#include "util/error.h"

static void add_property(JsonArray *array, const char *name, const char *type)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "type", type);
    json_array_add_object_element(array, object);
}

/* The containers, each with those below it; drives come by their paths. */
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

static const struct {
    const char *name, *type;
} drive_properties[] = {
    {"type", "string"}, {"drive", "str"}, {"id", "string"}, {"realized", "bool"}, {"hotplugged", "bool"}};

static void not_found(GError **error, const char *path)
{
    g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", path);
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

static JsonNode *cmd_qom_list(QmpCall *call, GError **error)
{
    const char *path = qmp_arg_string(call, "path");
    Monitor *monitor = qmp_call_monitor(call);
    g_autoptr(JsonArray) array = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++) {
        if (strcmp(path, containers[i].path) == 0) {
            add_property(array, "type", "string");
            for (const char *const *child = containers[i].children; *child; child++) {
                add_property(array, *child, "child<container>");
            }
            list_drives(array, monitor, path);
            return qmp_array(g_steal_pointer(&array));
        }
    }
    if (!backend_find_device(monitor, path)) {
        not_found(error, path);
        return NULL;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(drive_properties); i++) {
        add_property(array, drive_properties[i].name, drive_properties[i].type);
    }
    return qmp_array(g_steal_pointer(&array));
}

static JsonNode *drive_property(const Backend *backend, const char *name)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    if (!strcmp(name, "type")) {
        json_node_set_string(node, backend->type);
    } else if (!strcmp(name, "drive")) {
        json_node_set_string(node, backend->name[0] ? backend->name
                                   : backend->node  ? block_name(backend->node)
                                                    : "");
    } else if (!strcmp(name, "id")) {
        json_node_set_string(node, backend->id ? backend->id : "");
    } else if (!strcmp(name, "realized") || !strcmp(name, "hotplugged")) {
        json_node_set_boolean(node, name[0] == 'r');
    } else {
        json_node_unref(node);
        return NULL;
    }
    return node;
}

static JsonNode *cmd_qom_get(QmpCall *call, GError **error)
{
    const char *path = qmp_arg_string(call, "path"), *name = qmp_arg_string(call, "property");
    Backend *backend = backend_find_device(qmp_call_monitor(call), path);

    for (size_t i = 0; i < G_N_ELEMENTS(containers) && !backend; i++) {
        if (!strcmp(path, containers[i].path) && !strcmp(name, "type")) {
            return qmp_string(containers[i].type);
        }
    }
    if (!backend) {
        not_found(error, path);
        return NULL;
    }
    JsonNode *value = drive_property(backend, name);
    if (!value) {
        error_set(error, "Property '%s.%s' not found", backend->type, name);
    }
    return value;
}

static JsonNode *cmd_qom_list_types(QmpCall *call, GError **error)
{
    static const char *const types[] = {"ide-cd", "ide-hd", "ich9-ahci", "piix3-ide", "piix4-ide"};
    JsonArray *array = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "name", types[i]);
        json_object_set_string_member(object, "parent", i < 2 ? "ide-device" : "pci-device");
        json_array_add_object_element(array, object);
    }
    return qmp_array(array);
}

const QmpCommand qmp_commands_qom[] = {
    {.name = "qom-get",
     .run = cmd_qom_get,
     .returns = QMP_ANY,
     .args = {{"path", QMP_STRING}, {"property", QMP_STRING}}},
    {.name = "qom-list", .run = cmd_qom_list, .returns = QMP_ARRAY, .args = {{"path", QMP_STRING}}},
    {.name = "qom-list-types",
     .run = cmd_qom_list_types,
     .returns = QMP_ARRAY,
     .args = {{"implements", QMP_STRING, true}, {"abstract", QMP_BOOL, true}}},
    {NULL},
};
