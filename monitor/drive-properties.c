/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/drive-properties.h"
#include <string.h>
#include "util/json.h"

#define ON_OFF      "on/off"
#define ON_OFF_AUTO "on/off/auto"
#define ON_ERROR    "Error handling policy (report/ignore/enospc/stop/auto)"
#define BLOCK_SIZE  "A power of two between 512 B and 2 MiB"
#define CHS         "Logical CHS translation algorithm, auto/none/lba/large/rechs"

typedef enum { CD = 1, HD = 2, BOTH = 3 } Models;

/* `initial`: JSON; NULL: there is none to tell. `shown`: what a drive shows that was given none, where that
 * is something else. */
static const struct {
    const char *name, *type, *initial, *shown, *description;
    Models models;
} properties[] = {
    {"account-failed", "OnOffAuto", "\"auto\"", NULL, ON_OFF_AUTO, BOTH},
    {"account-invalid", "OnOffAuto", "\"auto\"", NULL, ON_OFF_AUTO, BOTH},
    {"backend_defaults", "OnOffAuto", "\"auto\"", NULL, ON_OFF_AUTO, BOTH},
    {"bios-chs-trans", "BiosAtaTranslation", "\"auto\"", NULL, CHS, HD},
    {"bootindex", "int32", NULL, "-1", NULL, BOTH},
    {"cyls", "uint32", "0", NULL, NULL, HD},
    {"discard_granularity", "size", "4294967295", NULL, NULL, BOTH},
    {"drive", "str", NULL, NULL, "Node name or ID of a block device to use as a backend", BOTH},
    {"heads", "uint32", "0", NULL, NULL, HD},
    {"lcyls", "uint32", "0", NULL, NULL, HD},
    {"lheads", "uint32", "0", NULL, NULL, HD},
    {"logical_block_size", "size", "0", "512", BLOCK_SIZE, BOTH},
    {"lsecs", "uint32", "0", NULL, NULL, HD},
    {"min_io_size", "size", "0", NULL, NULL, BOTH},
    {"model", "str", NULL, "\"\"", NULL, BOTH},
    {"opt_io_size", "size", "0", NULL, NULL, BOTH},
    {"physical_block_size", "size", "0", "512", BLOCK_SIZE, BOTH},
    {"rerror", "BlockdevOnError", "\"auto\"", NULL, ON_ERROR, BOTH},
    {"rotation_rate", "uint16", "0", NULL, NULL, HD},
    {"secs", "uint32", "0", NULL, NULL, HD},
    {"serial", "str", NULL, "\"\"", NULL, BOTH},
    {"share-rw", "bool", "false", NULL, ON_OFF, BOTH},
    {"stats-intervals", "list", "[]", NULL, NULL, BOTH},
    {"unit", "uint32", "4294967295", "0", NULL, BOTH},
    {"ver", "str", NULL, "\"\"", NULL, BOTH},
    {"werror", "BlockdevOnError", "\"auto\"", NULL, ON_ERROR, BOTH},
    {"win2k-install-hack", "bool", "false", NULL, ON_OFF, BOTH},
    {"write-cache", "OnOffAuto", "\"auto\"", NULL, ON_OFF_AUTO, BOTH},
    {"wwn", "uint64", "0", NULL, NULL, BOTH},
};

/* Of every device. */
static const struct {
    const char *name, *type;
} common[] = {{"type", "string"}, {"realized", "bool"}, {"hotplugged", "bool"}, {"hotpluggable", "bool"}};

static Models model_of(const char *type)
{
    return !strcmp(type, "ide-cd") ? CD : !strcmp(type, "ide-hd") ? HD : 0;
}

static JsonObject *add_property(JsonArray *array, const char *name, const char *type)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "type", type);
    json_array_add_object_element(array, object);
    return object;
}

JsonArray *drive_properties_list(const Backend *backend)
{
    JsonArray *array = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(common); i++) {
        add_property(array, common[i].name, common[i].type);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(properties); i++) {
        if (properties[i].models & model_of(backend->type)) {
            add_property(array, properties[i].name, properties[i].type);
        }
    }
    return array;
}

JsonArray *drive_type_properties(const char *type)
{
    Models model = model_of(type);
    JsonArray *array = model ? json_array_new() : NULL;

    for (size_t i = 0; array && i < G_N_ELEMENTS(properties); i++) {
        if (!(properties[i].models & model)) {
            continue;
        }
        JsonObject *object = add_property(array, properties[i].name, properties[i].type);
        if (properties[i].initial) {
            json_object_set_member(object, "default-value", json_parse(properties[i].initial, -1, NULL));
        }
        if (properties[i].description) {
            json_object_set_string_member(object, "description", properties[i].description);
        }
    }
    return array;
}

static JsonNode *string_node(const char *text)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_string(node, text);
    return node;
}

static JsonNode *bool_node(bool value)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_boolean(node, value);
    return node;
}

/* As the command line had it. */
static JsonNode *given_value(const char *type, const char *text)
{
    uint64_t number;

    if (!strcmp(type, "bool")) {
        return bool_node(!strcmp(text, "on"));
    }
    if ((strstr(type, "int") || !strcmp(type, "size")) && options_parse_size(text, &number) == 0) {
        JsonNode *node = json_node_new(JSON_NODE_VALUE);
        json_node_set_int(node, (gint64)number);
        return node;
    }
    return string_node(text);
}

static JsonNode *common_value(const Backend *backend, const char *name)
{
    if (!strcmp(name, "type")) {
        return string_node(backend->type);
    }
    if (!strcmp(name, "realized")) {
        return bool_node(true);
    }
    if (!strcmp(name, "hotplugged")) {
        return bool_node(backend->hotplugged);
    }
    if (!strcmp(name, "hotpluggable")) {
        return bool_node(backend->hotpluggable);
    }
    if (!strcmp(name, "serial") && backend->mmc) {
        return string_node(mmc_drive_serial(backend->mmc));
    }
    if (!strcmp(name, "drive")) {
        return string_node(backend->name[0] ? backend->name : backend->node ? block_name(backend->node) : "");
    }
    return NULL;
}

JsonNode *drive_property_get(const Backend *backend, const char *name)
{
    JsonNode *value = common_value(backend, name);

    for (size_t i = 0; !value && i < G_N_ELEMENTS(properties); i++) {
        if (strcmp(properties[i].name, name) != 0 || !(properties[i].models & model_of(backend->type))) {
            continue;
        }
        const char *given = backend->props ? options_get(backend->props, name) : NULL;
        const char *shown = properties[i].shown ? properties[i].shown : properties[i].initial;
        value = given ? given_value(properties[i].type, given) : json_parse(shown ? shown : "null", -1, NULL);
    }
    return value;
}
