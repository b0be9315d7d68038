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
    backend->writeback = true;
    backend->werror = ON_ERROR_ENOSPC;
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
    g_clear_pointer(&backend->props, options_unref);
    g_free(backend);
}

void backend_attach(Backend *backend, const char *type, const char *id, const char *qdev)
{
    backend->type = g_strdup(type);
    backend->id = g_strdup(id);
    backend->qdev = g_strdup(qdev);
}

/* Counters that only ever grow; `sign` of 1 adds, -1 takes off. */
static void add_stats(BlockStats *to, const BlockStats *from, int sign)
{
    for (size_t op = 0; op < G_N_ELEMENTS(to->ops); op++) {
        to->ops[op] += (uint64_t)sign * from->ops[op];
        to->bytes[op] += (uint64_t)sign * from->bytes[op];
        to->failed[op] += (uint64_t)sign * from->failed[op];
        to->ns[op] += (uint64_t)sign * from->ns[op];
    }
}

void backend_stats(const Backend *backend, BlockStats *ret)
{
    *ret = backend->past;
    if (backend->top) {
        add_stats(ret, block_stats(backend->top), 1);
        add_stats(ret, &backend->base, -1);
        ret->highest = block_stats(backend->top)->highest;
    }
}

/* Takes the reference over. */
static void set_top(Backend *backend, BlockNode *top)
{
    backend_stats(backend, &backend->past);
    backend->base = top ? *block_stats(top) : (BlockStats){0};
    block_unref(backend->top);
    backend->top = top;
}

/* The node behind the limits, if there are any; a new reference. */
static BlockNode *limited(const Backend *backend, BlockNode *node, GError **error)
{
    if (!backend->group) {
        return block_ref(node);
    }
    g_autoptr(Options) options = options_new();
    options_set(options, "driver", "throttle");
    options_set(options, "throttle-group", throttle_group_name(backend->group));
    options_set(options, "file", block_name(node));
    options_set(options, "discard", "unmap");
    if (block_info(node)->read_only) {
        options_set(options, "read-only", "on");
    }
    return block_open(options, error);
}

/* A drive of the host got or lost its disc. What clients themselves do is told by DEVICE_TRAY_MOVED. */
static void medium_changed(Backend *backend)
{
    JsonObject *data = json_object_new();
    bool present = backend->node && block_medium_present(backend->node);

    json_object_set_string_member(data, "device", backend->name);
    json_object_set_string_member(data, "id", backend_qdev(backend));
    json_object_set_boolean_member(data, "medium-present", present);
    if (present) {
        json_object_set_string_member(data, "node-name", block_name(backend->node));
        json_object_set_int_member(data, "size", (gint64)block_info(backend->node)->size);
    }
    monitor_event(backend->monitor, "SPINDLE_MEDIUM_CHANGED", data);
}

static void on_node_event(BlockNode *node, BlockEvent event, void *opaque)
{
    Backend *backend = opaque;

    if (!backend->qdev) {
        return;
    }
    if (event == BLOCK_EVENT_MEDIUM || event == BLOCK_EVENT_GONE) {
        medium_changed(backend);
    } else if (event == BLOCK_EVENT_EJECT_REQUEST) {
        JsonObject *data = json_object_new();
        json_object_set_string_member(data, "device", backend->name);
        json_object_set_string_member(data, "id", backend_qdev(backend));
        monitor_event(backend->monitor, "SPINDLE_EJECT_REQUEST", data);
    }
}

bool backend_set_node(Backend *backend, BlockNode *node, GError **error)
{
    BlockNode *top = node ? limited(backend, node, error) : NULL;

    if (node && !top) {
        return false;
    }
    if (node) {
        block_ref(node);
        block_listen(node, on_node_event, backend);
    }
    set_top(backend, top);
    if (backend->node) {
        block_unlisten(backend->node, on_node_event, backend);
        block_unref(backend->node);
    }
    backend->node = node;
    return true;
}

/* The group that is to be kept from now on; a new reference. */
static ThrottleGroup *find_group(const Backend *backend, const ThrottleLimits *limits, const char *name,
                                 GError **error)
{
    name = name ? name : backend->group ? throttle_group_name(backend->group) : backend_title(backend);
    ThrottleGroup *group = throttle_group_find(name);

    if (!group) {
        return throttle_group_new(name, limits, error);
    }
    if (!throttle_group_set_limits(group, limits, error)) {
        g_clear_pointer(&group, throttle_group_unref);
    }
    return group;
}

/* The device goes on behind other limits: requests under way end where they are, and soon. */
static bool change_top(Backend *backend, GError **error)
{
    BlockNode *top = backend->node ? limited(backend, backend->node, error) : NULL;

    if (!top) {
        return !backend->node;
    }
    if (backend->mmc) {
        mmc_drive_replace_node(backend->mmc, top);
    } else if (backend->disk) {
        hard_disk_replace_node(backend->disk, top);
    }
    if (backend->top != backend->node) {
        block_unlimit(backend->top, true);
    }
    set_top(backend, top);
    return true;
}

bool backend_set_limits(Backend *backend, const ThrottleLimits *limits, const char *name, GError **error)
{
    ThrottleGroup *before = backend->group, *group = NULL;

    if (!throttle_limits_check(limits, error)) {
        return false;
    }
    if (throttle_limits_enabled(limits)) {
        group = find_group(backend, limits, name, error);
        if (!group) {
            return false;
        }
    }
    backend->group = group;
    if (group != before && !change_top(backend, error)) {
        backend->group = before;
        throttle_group_unref(group);
        return false;
    }
    throttle_group_unref(before);
    return true;
}

/* As large as `node`, and nothing on it can be read or written. */
static BlockNode *failing_node(BlockNode *node, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "fault,fail-every=1,errno=%d,cache.no-flush=on,file.driver=null-co,file.size=%" G_GUINT64_FORMAT,
        ENOMEDIUM, block_info(node)->size);
    g_autoptr(Options) options = options_parse(text, "driver", error);

    return options ? block_open(options, error) : NULL;
}

bool backend_disown(Backend *backend, GError **error)
{
    if (backend->disk && backend->node) {
        BlockNode *node = failing_node(backend->node, error);
        if (!node) {
            return false;
        }
        hard_disk_replace_node(backend->disk, node);
        hard_disk_report_errors(backend->disk);
        block_unref(node);
    } else if (backend->mmc && backend->node && !mmc_drive_insert(backend->mmc, NULL, true, error)) {
        return false;
    }
    backend->rerror = backend->werror = ON_ERROR_REPORT;
    g_free(backend->name);
    backend->name = g_strdup("");
    return backend_set_node(backend, NULL, error);
}

static const char *const operations[] = {"read", "write", "write", "write", "write"};

/* Those that stop the machine are told of by themselves: they must not come late. */
static char *io_error_key(const Backend *backend, OnError action)
{
    return g_strconcat(backend_title(backend), action == ON_ERROR_STOP ? " stop" : "", NULL);
}

void backend_io_error(Backend *backend, BlockOp op, int error, OnError action)
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
    if (action == ON_ERROR_STOP && backend->io_status == BACKEND_IO_OK) {
        backend->io_status = ABS(error) == ENOSPC ? BACKEND_IO_NOSPACE : BACKEND_IO_FAILED;
    }
    g_autofree char *key = io_error_key(backend, action);
    monitor_event_limited(backend->monitor, "BLOCK_IO_ERROR", data, key);
}

void backend_resume(Backend *backend)
{
    g_autofree char *key = io_error_key(backend, ON_ERROR_STOP);

    monitor_event_forget(backend->monitor, "BLOCK_IO_ERROR", key);
    backend->io_status = BACKEND_IO_OK;
    if (backend->disk) {
        hard_disk_resume(backend->disk);
    } else if (backend->mmc) {
        mmc_drive_resume(backend->mmc);
    }
}

void backend_tray_moved(Backend *backend, bool open)
{
    JsonObject *data = json_object_new();

    json_object_set_string_member(data, "device", backend->name);
    json_object_set_string_member(data, "id", backend_qdev(backend) ? backend_qdev(backend) : "");
    json_object_set_boolean_member(data, "tray-open", open);
    monitor_event(backend->monitor, "DEVICE_TRAY_MOVED", data);
}
