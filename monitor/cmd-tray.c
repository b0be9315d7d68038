/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * QMP commands on trays and media.
 */
#include "monitor/cmd-tray.h"
#include <string.h>
#include "monitor/qmp.h"
#include "util/error.h"

static Backend *removable(QmpCall *call, GError **error)
{
    Backend *backend = backend_find_either(qmp_call_monitor(call), qmp_arg_string(call, "device"),
                                           qmp_arg_string(call, "id"), error);

    if (backend && !backend->mmc) {
        error_set(error, "Device '%s' is not removable", backend_title(backend));
        return NULL;
    }
    return backend;
}

bool tray_open_for_user(Backend *backend, bool force, GError **error)
{
    return mmc_drive_tray_open(backend->mmc) || mmc_drive_open_tray(backend->mmc, force, error);
}

static bool check_open(Backend *backend, GError **error)
{
    return mmc_drive_tray_open(backend->mmc) ||
           error_set(error, "Tray of device '%s' is not open", backend_title(backend));
}

bool tray_remove_medium(Backend *backend, GError **error)
{
    return check_open(backend, error) && mmc_drive_insert(backend->mmc, NULL, true, error) &&
           backend_set_node(backend, NULL, error);
}

bool tray_insert_medium(Backend *backend, BlockNode *node, GError **error)
{
    if (backend_of_node(backend->monitor, node)) {
        return error_set(error, "Node '%s' is already in use", block_name(node));
    }
    if (!check_open(backend, error)) {
        return false;
    }
    if (backend->node) {
        return error_set(error, "There already is a medium in device '%s'", backend_title(backend));
    }
    if (!backend_set_node(backend, node, error)) {
        return false;
    }
    if (!mmc_drive_insert(backend->mmc, backend->top, true, error)) {
        backend_set_node(backend, NULL, NULL);
        return false;
    }
    return true;
}

static JsonNode *cmd_open_tray(QmpCall *call, GError **error)
{
    Backend *backend = removable(call, error);

    /* A locked one is no error: the guest has been asked, and DEVICE_TRAY_MOVED tells when it has done it. */
    if (backend) {
        tray_open_for_user(backend, qmp_arg_bool(call, "force", false), NULL);
    }
    return NULL;
}

static JsonNode *cmd_close_tray(QmpCall *call, GError **error)
{
    Backend *backend = removable(call, error);

    if (backend && mmc_drive_tray_open(backend->mmc)) {
        mmc_drive_close_tray(backend->mmc);
    }
    return NULL;
}

static JsonNode *cmd_remove_medium(QmpCall *call, GError **error)
{
    Backend *backend = removable(call, error);

    if (backend) {
        tray_remove_medium(backend, error);
    }
    return NULL;
}

static JsonNode *cmd_insert_medium(QmpCall *call, GError **error)
{
    const char *name = qmp_arg_string(call, "node-name");
    Backend *backend = removable(call, error);
    BlockNode *node = backend ? block_find(name) : NULL;

    if (backend && !node) {
        error_set(error, "Node '%s' not found", name);
    } else if (backend) {
        tray_insert_medium(backend, node, error);
    }
    return NULL;
}

static JsonNode *cmd_eject(QmpCall *call, GError **error)
{
    Backend *backend = removable(call, error);

    if (backend && tray_open_for_user(backend, qmp_arg_bool(call, "force", false), error)) {
        tray_remove_medium(backend, error);
    }
    return NULL;
}

/* A change under way: the image is being opened. */
typedef struct Change {
    Monitor *monitor;
    char *device, *id; /* the drive may be gone by then */
    bool force;
    TrayChanged done;
    void *opaque;
} Change;

static bool change_medium(Backend *backend, BlockNode *node, bool force, GError **error)
{
    if (!tray_open_for_user(backend, force, error) || !tray_remove_medium(backend, error) ||
        !tray_insert_medium(backend, node, error)) {
        return false;
    }
    mmc_drive_close_tray(backend->mmc);
    return true;
}

static void on_opened(BlockNode *node, GError *error, void *opaque)
{
    Change *change = opaque;
    Backend *backend = node ? backend_find_either(change->monitor, change->device, change->id, &error) : NULL;

    if (backend) {
        change_medium(backend, node, change->force, &error);
    }
    block_unref(node);
    change->done(error, change->opaque);
    g_free(change->device);
    g_free(change->id);
    g_free(change);
}

void tray_change(Backend *backend, const char *filename, const char *format, bool force, TrayChanged done,
                 void *opaque)
{
    GError *error = NULL;
    g_autoptr(Options) file = block_options_from_filename(filename, &error);

    if (!file) {
        done(error, opaque);
        return;
    }
    g_autoptr(Options) node = options_new();
    g_auto(GStrv) keys = options_keys(file);
    options_set(node, "driver", format ? format : "raw");
    options_set(node, "read-only", "on");
    for (char **key = keys; *key; key++) {
        g_autofree char *name = g_strconcat("file.", *key, NULL);
        options_set(node, name, options_get(file, *key));
    }
    Change *change = g_new0(Change, 1);
    change->monitor = backend->monitor;
    change->device = backend->name[0] ? g_strdup(backend->name) : NULL;
    change->id = change->device ? NULL : g_strdup(backend->id ? backend->id : backend->qdev);
    change->force = force;
    change->done = done;
    change->opaque = opaque;
    block_open_async(node, on_opened, change);
}

static void change_done(GError *error, void *opaque)
{
    qmp_call_finish(opaque, NULL, error);
}

static JsonNode *cmd_change_medium(QmpCall *call, GError **error)
{
    const char *mode = qmp_arg_string(call, "read-only-mode");
    Backend *backend = removable(call, error);

    if (!backend) {
        return NULL;
    }
    if (mode && strcmp(mode, "retain") && strcmp(mode, "read-only") && strcmp(mode, "read-write")) {
        error_set(error, "Parameter 'read-only-mode' does not accept value '%s'", mode);
        return NULL;
    }
    qmp_call_defer(call);
    tray_change(backend, qmp_arg_string(call, "filename"), qmp_arg_string(call, "format"),
                qmp_arg_bool(call, "force", false), change_done, call);
    return NULL;
}

#define DEVICE_OR_ID                                                                                         \
    {"device", QMP_STRING, true},                                                                            \
    {                                                                                                        \
        "id", QMP_STRING, true                                                                               \
    }

const QmpCommand qmp_commands_tray[] = {
    {.name = "blockdev-change-medium",
     .run = cmd_change_medium,
     .args = {DEVICE_OR_ID,
              {"filename", QMP_STRING},
              {"format", QMP_STRING, true},
              {"force", QMP_BOOL, true},
              {"read-only-mode", QMP_STRING, true}}},
    {.name = "blockdev-close-tray", .run = cmd_close_tray, .args = {DEVICE_OR_ID}},
    {.name = "blockdev-insert-medium",
     .run = cmd_insert_medium,
     .args = {{"id", QMP_STRING}, {"node-name", QMP_STRING}}},
    {.name = "blockdev-open-tray", .run = cmd_open_tray, .args = {DEVICE_OR_ID, {"force", QMP_BOOL, true}}},
    {.name = "blockdev-remove-medium", .run = cmd_remove_medium, .args = {{"id", QMP_STRING}}},
    {.name = "eject", .run = cmd_eject, .args = {DEVICE_OR_ID, {"force", QMP_BOOL, true}}},
    {NULL},
};
