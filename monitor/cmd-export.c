/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on exports of nodes. There is no server here: a node is served to a guest, or by qemu-nbd and
 * nbdkit from the same image.
 */
#include "monitor/qmp.h"
#include "util/error.h"

static JsonNode *cmd_query_exports(QmpCall *call, GError **error)
{
    return qmp_array(json_array_new());
}

static JsonNode *cmd_export_add(QmpCall *call, GError **error)
{
    const char *type = qmp_arg_string(call, "type");

    if (g_str_equal(type, "nbd")) {
        error_set(error, "Exports of type 'nbd' are not supported: serve the image with qemu-nbd or nbdkit");
    } else {
        error_set(error, "Parameter 'type' does not accept value '%s'", type);
    }
    return NULL;
}

static JsonNode *cmd_export_del(QmpCall *call, GError **error)
{
    error_set(error, "Export '%s' is not found", qmp_arg_string(call, "id"));
    return NULL;
}

const QmpCommand qmp_commands_export[] = {
    {.name = "block-export-add",
     .run = cmd_export_add,
     .any_args = true,
     .args = {{"type", QMP_STRING}, {"id", QMP_STRING}, {"node-name", QMP_STRING}}},
    {.name = "block-export-del",
     .run = cmd_export_del,
     .args = {{"id", QMP_STRING}, {"mode", QMP_STRING, true}}},
    {.name = "query-block-exports", .run = cmd_query_exports, .returns = QMP_ARRAY},
    {NULL},
};
