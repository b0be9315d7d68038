/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What there is, told from the tables of commands and events: query-commands, query-events, and
 * query-qmp-schema in QEMU's form (an array of SchemaInfo; made types go by numbers).
 */
#include "monitor/events.h"
#include "monitor/qmp.h"

typedef struct Schema {
    JsonArray *infos;
    unsigned types; /* made so far */
} Schema;

static const char *type_of(QmpType type)
{
    static const char *const names[] = {"0", "str", "bool", "int", "int", "number", "any", "[any]", "any"};

    return names[type];
}

static JsonObject *add_info(Schema *schema, const char *name, const char *meta)
{
    JsonObject *info = json_object_new();

    json_object_set_string_member(info, "name", name);
    json_object_set_string_member(info, "meta-type", meta);
    json_array_add_object_element(schema->infos, info);
    return info;
}

/* A made type's name; the next one. */
static char *new_name(Schema *schema)
{
    return g_strdup_printf("%u", schema->types++);
}

static JsonArray *add_object(Schema *schema, const char *name)
{
    JsonArray *members = json_array_new();

    json_object_set_array_member(add_info(schema, name, "object"), "members", members);
    return members;
}

static void add_member(JsonArray *members, const char *name, const char *type, bool optional)
{
    JsonObject *member = json_object_new();

    json_object_set_string_member(member, "name", name);
    if (optional) {
        json_object_set_null_member(member, "default");
    }
    json_object_set_string_member(member, "type", type);
    json_array_add_object_element(members, member);
}

/* The names as an enum type, whose name it returns. */
static char *add_enum(Schema *schema, char **cases)
{
    char *name = new_name(schema);
    JsonObject *info = add_info(schema, name, "enum");
    JsonArray *members = json_array_new(), *values = json_array_new();

    for (char **value = cases; *value; value++) {
        JsonObject *member = json_object_new();
        json_object_set_string_member(member, "name", *value);
        json_array_add_object_element(members, member);
        json_array_add_string_element(values, *value);
    }
    json_object_set_array_member(info, "members", members);
    json_object_set_array_member(info, "values", values);
    return name;
}

/* An object with one branch for each value of its first member. Any options may follow, which no type here
 * can say: the branches have no members of their own. */
static void set_branches(JsonObject *info, const char *tag, char **cases)
{
    JsonArray *variants = json_array_new();

    for (char **value = cases; *value; value++) {
        JsonObject *variant = json_object_new();
        json_object_set_string_member(variant, "case", *value);
        json_object_set_string_member(variant, "type", "0");
        json_array_add_object_element(variants, variant);
    }
    json_object_set_string_member(info, "tag", tag);
    json_object_set_array_member(info, "variants", variants);
}

/* The type of arguments, whose name it returns. */
static char *add_args(Schema *schema, const QmpArg *args, char **(*cases)(void))
{
    if (!args->name) {
        return g_strdup("0");
    }
    char *name = new_name(schema);
    JsonArray *members = json_array_new();
    JsonObject *info = add_info(schema, name, "object");
    g_auto(GStrv) values = cases ? cases() : NULL;
    g_autofree char *tag_type = values ? add_enum(schema, values) : NULL;

    for (const QmpArg *arg = args; arg->name; arg++) {
        add_member(members, arg->name, tag_type && arg == args ? tag_type : type_of(arg->type),
                   arg->optional);
    }
    json_object_set_array_member(info, "members", members);
    if (values) {
        set_branches(info, args->name, values);
    }
    return name;
}

static void add_command(Schema *schema, const QmpCommand *command)
{
    g_autofree char *args = add_args(schema, command->args, command->cases);
    JsonObject *info = add_info(schema, command->name, "command");

    json_object_set_string_member(info, "arg-type", args);
    json_object_set_string_member(info, "ret-type", type_of(command->returns));
    json_object_set_boolean_member(info, "allow-oob", false);
}

static void add_builtins(Schema *schema)
{
    static const char *const builtins[][2] = {{"str", "string"},   {"int", "int"},   {"number", "number"},
                                              {"bool", "boolean"}, {"null", "null"}, {"any", "value"}};

    for (size_t i = 0; i < G_N_ELEMENTS(builtins); i++) {
        json_object_set_string_member(add_info(schema, builtins[i][0], "builtin"), "json-type",
                                      builtins[i][1]);
    }
    json_object_set_string_member(add_info(schema, "[any]", "array"), "element-type", "any");
    add_object(schema, "0");
    schema->types = 1;
}

static JsonNode *cmd_query_schema(QmpCall *call, GError **error)
{
    Schema schema = {.infos = json_array_new()};
    const QmpCommand *command;

    add_builtins(&schema);
    for (unsigned n = 0; (command = qmp_command_nth(n)); n++) {
        if (qmp_command_available(command, qmp_call_monitor(call))) {
            add_command(&schema, command);
        }
    }
    for (const QmpEvent *event = qmp_events; event->name; event++) {
        g_autofree char *args = add_args(&schema, event->args, NULL);
        json_object_set_string_member(add_info(&schema, event->name, "event"), "arg-type", args);
    }
    return qmp_array(schema.infos);
}

static void add_name(JsonArray *array, const char *name)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", name);
    json_array_add_object_element(array, object);
}

static JsonNode *cmd_query_commands(QmpCall *call, GError **error)
{
    JsonArray *array = json_array_new();
    const QmpCommand *command;

    for (unsigned n = 0; (command = qmp_command_nth(n)); n++) {
        if (qmp_command_available(command, qmp_call_monitor(call))) {
            add_name(array, command->name);
        }
    }
    return qmp_array(array);
}

static JsonNode *cmd_query_events(QmpCall *call, GError **error)
{
    JsonArray *array = json_array_new();

    for (const QmpEvent *event = qmp_events; event->name; event++) {
        add_name(array, event->name);
    }
    return qmp_array(array);
}

const QmpCommand qmp_commands_schema[] = {
    {.name = "query-commands", .run = cmd_query_commands, .returns = QMP_ARRAY},
    {.name = "query-events", .run = cmd_query_events, .returns = QMP_ARRAY},
    {.name = "query-qmp-schema", .run = cmd_query_schema, .returns = QMP_ARRAY},
    {NULL},
};
