/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/backend.h"
#include <errno.h>
#include <string.h>
#include "util/error.h"

static void not_found(GError **error, const char *name)
{
    g_set_error(error, SPINDLE_ERROR, SPINDLE_ERROR_DEVICE_NOT_FOUND, "Device '%s' not found", name);
}

Backend *backend_find(const Monitor *monitor, const char *name)
{
    GPtrArray *all = monitor_backends(monitor);

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        if (backend->name[0] && !strcmp(backend->name, name)) {
            return backend;
        }
    }
    return NULL;
}

Backend *backend_find_device(const Monitor *monitor, const char *id)
{
    GPtrArray *all = monitor_backends(monitor);

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        if (!g_strcmp0(backend->id, id) || !g_strcmp0(backend->qdev, id)) {
            return backend;
        }
    }
    return NULL;
}

Backend *backend_find_either(const Monitor *monitor, const char *device, const char *id, GError **error)
{
    if (!device == !id) {
        error_set(error, "Need exactly one of 'device' and 'id'");
        return NULL;
    }
    Backend *backend = device ? backend_find(monitor, device) : backend_find_device(monitor, id);
    if (!backend) {
        not_found(error, device ? device : id);
    }
    return backend;
}

Backend *backend_of_node(const Monitor *monitor, const BlockNode *node)
{
    GPtrArray *all = monitor_backends(monitor);

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        if (backend->node == node) {
            return backend;
        }
    }
    return NULL;
}

const char *backend_title(const Backend *backend)
{
    return backend->name[0] ? backend->name : backend->id ? backend->id : backend->qdev ? backend->qdev : "";
}

const char *backend_qdev(const Backend *backend)
{
    return backend->id ? backend->id : backend->qdev;
}

/* The limits' group goes by the drive's name, as QEMU's own; one without a name gets another. */
static ThrottleGroup *new_group(const char *name)
{
    ThrottleLimits limits;

    throttle_limits_init(&limits);
    for (unsigned i = 0;; i++) {
        g_autofree char *title = i == 0 && name[0] ? g_strdup(name) : g_strdup_printf("#limits%u", i);
        ThrottleGroup *group = throttle_group_new(title, &limits, NULL);
        if (group || i > 1000) {
            return group;
        }
    }
}

Backend *backend_new(Monitor *monitor, const char *name, GError **error)
{
    name = name ? name : "";
    if (name[0] && backend_find(monitor, name)) {
        error_set(error, "Duplicate ID '%s' for drive", name);
        return NULL;
    }
    Backend *backend = g_new0(Backend, 1);
    backend->monitor = monitor;
    backend->name = g_strdup(name);
    backend->group = new_group(name);
    backend->writeback = true;
    backend->werror = HARD_DISK_ENOSPC;
    g_ptr_array_add(monitor_backends(monitor), backend);
    return backend;
}

void backend_remove(Backend *backend)
{
    g_ptr_array_remove(monitor_backends(backend->monitor), backend);
    backend_set_node(backend, NULL, NULL);
    throttle_group_unref(backend->group);
    g_free(backend->name);
    g_free(backend->id);
    g_free(backend->qdev);
    g_free(backend->type);
    g_free(backend);
}

void backend_attach(Backend *backend, const char *type, const char *id, const char *qdev)
{
    backend->type = g_strdup(type);
    backend->id = g_strdup(id);
    backend->qdev = g_strdup(qdev);
}

static const char *group_name(Backend *backend)
{
    return throttle_group_name(backend->group);
}

bool backend_set_node(Backend *backend, BlockNode *node, GError **error)
{
    BlockNode *top = NULL;

    if (node && backend->plain) {
        top = block_ref(node);
    } else if (node) {
        g_autoptr(Options) options = options_new();
        options_set(options, "driver", "throttle");
        options_set(options, "throttle-group", group_name(backend));
        options_set(options, "file", block_name(node));
        if (block_info(node)->read_only) {
            options_set(options, "read-only", "on");
        }
        top = block_open(options, error);
        if (!top) {
            return false;
        }
    }
    if (node) {
        block_ref(node);
    }
    block_unref(backend->top);
    block_unref(backend->node);
    backend->top = top;
    backend->node = node;
    return true;
}

static const char *const operations[] = {"read", "write", "write", "write", "write"};

void backend_io_error(Backend *backend, BlockOp op, int error, HardDiskOnError action)
{
    static const char *const actions[] = {"report", "ignore", "stop", "report"};
    JsonObject *data = json_object_new();

    json_object_set_string_member(data, "device", backend->name);
    if (backend->qdev) {
        json_object_set_string_member(data, "qom-path", backend->qdev);
    }
    if (backend->node) {
        json_object_set_string_member(data, "node-name", block_name(backend->node));
    }
    json_object_set_string_member(data, "reason", g_strerror(ABS(error)));
    json_object_set_string_member(data, "operation", operations[op]);
    json_object_set_string_member(data, "action", actions[action]);
    json_object_set_boolean_member(data, "nospace", ABS(error) == ENOSPC);
    if (action == HARD_DISK_STOP && backend->io_status == BACKEND_IO_OK) {
        backend->io_status = ABS(error) == ENOSPC ? BACKEND_IO_NOSPACE : BACKEND_IO_FAILED;
    }
    monitor_event(backend->monitor, "BLOCK_IO_ERROR", data);
}

void backend_tray_moved(Backend *backend, bool open)
{
    JsonObject *data = json_object_new();

    json_object_set_string_member(data, "device", backend->name);
    json_object_set_string_member(data, "id", backend_qdev(backend) ? backend_qdev(backend) : "");
    json_object_set_boolean_member(data, "tray-open", open);
    monitor_event(backend->monitor, "DEVICE_TRAY_MOVED", data);
}
