/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/json.h"
#include "util/options-int.h"

static bool flatten_node(Options *options, const char *key, JsonNode *node, GError **error);

static bool flatten_object(Options *options, const char *prefix, JsonObject *object, GError **error)
{
    g_autoptr(GList) names = json_object_get_members(object);
    for (GList *link = names; link; link = link->next) {
        const char *name = link->data;
        g_autofree char *key = prefix ? g_strdup_printf("%s.%s", prefix, name) : g_strdup(name);
        if (!options_check_key(key, error) ||
            !flatten_node(options, key, json_object_get_member(object, name), error)) {
            return false;
        }
    }
    return true;
}

static bool flatten_array(Options *options, const char *prefix, JsonArray *array, GError **error)
{
    for (guint i = 0; i < json_array_get_length(array); i++) {
        g_autofree char *key = g_strdup_printf("%s.%u", prefix, i);
        if (!flatten_node(options, key, json_array_get_element(array, i), error)) {
            return false;
        }
    }
    return true;
}

static char *scalar_to_text(JsonNode *node)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    switch (json_node_get_value_type(node)) {
    case G_TYPE_BOOLEAN:
        return g_strdup(json_node_get_boolean(node) ? "on" : "off");
    case G_TYPE_INT64:
        return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node));
    case G_TYPE_DOUBLE:
        return g_strdup(g_ascii_dtostr(number, sizeof number, json_node_get_double(node)));
    default:
        return g_strdup(json_node_get_string(node));
    }
}

static bool flatten_node(Options *options, const char *key, JsonNode *node, GError **error)
{
    switch (json_node_get_node_type(node)) {
    case JSON_NODE_OBJECT:
        return flatten_object(options, key, json_node_get_object(node), error);
    case JSON_NODE_ARRAY:
        return flatten_array(options, key, json_node_get_array(node), error);
    case JSON_NODE_NULL:
        options_set(options, key, "");
        return true;
    case JSON_NODE_VALUE:
    default: {
        g_autofree char *text = scalar_to_text(node);
        options_set(options, key, text);
        return true;
    }
    }
}

Options *options_from_json(JsonObject *object, GError **error)
{
    g_autoptr(Options) options = options_new();
    if (!flatten_object(options, NULL, object, error)) {
        return NULL;
    }
    return g_steal_pointer(&options);
}

Options *options_parse_json(const char *text, GError **error)
{
    g_autoptr(JsonNode) root = json_parse(text, -1, error);
    if (!root) {
        return NULL;
    }
    if (!JSON_NODE_HOLDS_OBJECT(root)) {
        error_set(error, "Invalid JSON object given");
        return NULL;
    }
    return options_from_json(json_node_get_object(root), error);
}

/* The object below `name`, made when absent or when a plain value stands there. */
static JsonObject *object_below(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, name);
    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        json_object_set_object_member(object, name, json_object_new());
        node = json_object_get_member(object, name);
    }
    return json_node_get_object(node);
}

static void insert_value(JsonObject *object, const char *key, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(key, ".", -1);
    guint last = g_strv_length(parts) - 1;
    for (guint i = 0; i < last; i++) {
        object = object_below(object, parts[i]);
    }
    JsonNode *there = json_object_get_member(object, parts[last]);
    if (!there || !JSON_NODE_HOLDS_OBJECT(there)) {
        json_object_set_string_member(object, parts[last], value);
    }
}

/* The members as an array when they are named 0, 1, … without a gap, else NULL. */
static JsonArray *array_from_members(JsonObject *object)
{
    guint size = json_object_get_size(object);
    JsonArray *array = json_array_sized_new(size);
    for (guint i = 0; i < size; i++) {
        char name[16];
        g_snprintf(name, sizeof name, "%u", i);
        JsonNode *node = json_object_get_member(object, name);
        if (!node) {
            json_array_unref(array);
            return NULL;
        }
        json_array_add_element(array, json_node_copy(node));
    }
    return array;
}

/* Turns objects with the keys of an array into arrays, innermost first. */
static void fold_arrays(JsonObject *object)
{
    g_autoptr(GList) names = json_object_get_members(object);
    for (GList *link = names; link; link = link->next) {
        JsonNode *node = json_object_get_member(object, link->data);
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            continue;
        }
        fold_arrays(json_node_get_object(node));
        JsonArray *array = array_from_members(json_node_get_object(node));
        if (array) {
            json_object_set_array_member(object, link->data, array);
        }
    }
}

JsonObject *options_to_json(const Options *options)
{
    JsonObject *object = json_object_new();
    g_auto(GStrv) keys = options_keys(options);
    for (char **key = keys; *key; key++) {
        insert_value(object, *key, options_peek(options, *key));
    }
    fold_arrays(object);
    return object;
}
