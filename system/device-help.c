/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/device-help.h"
#include <stdio.h>
#include <string.h>
#include "monitor/drive-properties.h"
#include "system/drive-props.h"
#include "util/error.h"
#include "util/json.h"

/* "help", or "?", as one of the parts. JSON never asks. */
bool device_help_wanted(const char *arg)
{
    g_auto(GStrv) parts = g_strsplit(arg, ",", -1);

    return arg[0] != '{' && (g_strv_contains((const char *const *)parts, "help") ||
                             g_strv_contains((const char *const *)parts, "?"));
}

/* As it is written on the command line. */
static char *value_text(JsonNode *node)
{
    switch (json_node_get_value_type(node)) {
    case G_TYPE_BOOLEAN:
        return g_strdup(json_node_get_boolean(node) ? "on" : "off");
    case G_TYPE_STRING:
        return json_node_dup_string(node);
    default:
        return json_to_string(node, false);
    }
}

static void print_property(const char *name, const char *type, const char *description, JsonNode *initial)
{
    g_autofree char *head = g_strdup_printf("  %s=<%s>", name, type);
    g_autofree char *value = initial ? value_text(initial) : NULL;

    if (value) {
        printf("%-24s - %s (default: %s)\n", head, description ? description : "", value);
    } else if (description) {
        printf("%-24s - %s\n", head, description);
    } else {
        puts(head);
    }
}

bool device_help_print(const char *arg, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(arg, ",", -1);
    const char *driver = g_str_has_prefix(parts[0], "driver=") ? parts[0] + strlen("driver=") : parts[0];
    DriveModel model;

    if (!strcmp(driver, "help") || !strcmp(driver, "?")) {
        puts("Storage devices:\n"
             "name \"ide-cd\", bus IDE, desc \"CD/DVD drive\"\n"
             "name \"ide-hd\", bus IDE, desc \"hard disk\"");
        return true;
    }
    if (!drive_model_parse(driver, &model)) {
        return error_set(error, "'%s' is not a valid device model name", driver);
    }
    g_autoptr(JsonArray) properties = drive_type_properties(driver);
    printf("%s options:\n", driver);
    print_property("bus", "str", "controller and bus, such as ide.0", NULL);
    for (guint i = 0; i < json_array_get_length(properties); i++) {
        JsonObject *property = json_array_get_object_element(properties, i);
        print_property(json_object_get_string_member(property, "name"),
                       json_object_get_string_member(property, "type"),
                       json_object_get_string_member_with_default(property, "description", NULL),
                       json_object_get_member(property, "default-value"));
    }
    if (model == DRIVE_CD) {
        print_property("passthrough", "str", "off/safe/burn (default: safe)", NULL);
    }
    return true;
}
