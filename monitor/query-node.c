/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What queries tell of nodes and drives.
 */
#include "monitor/query.h"

#define MEMORY_ALIGN 4096 /* of the buffers that requests come with */
#define IOV_ENTRIES  1024 /* that a request may have */

static void set_limit(JsonObject *object, const char *name, const ThrottleLimits *limits,
                      ThrottleBucketIndex index)
{
    g_autofree char *max = g_strconcat(name, "_max", NULL);
    g_autofree char *length = g_strconcat(name, "_max_length", NULL);

    json_object_set_int_member(object, name, (gint64)limits->bucket[index].average);
    if (limits->bucket[index].max) {
        json_object_set_int_member(object, max, (gint64)limits->bucket[index].max);
        json_object_set_int_member(object, length, (gint64)limits->bucket[index].length);
    }
}

static void set_limits(JsonObject *object, const Backend *backend)
{
    ThrottleLimits limits;
    ThrottleGroup *group = backend ? backend->group : NULL;

    throttle_limits_init(&limits);
    if (group) {
        throttle_group_get_limits(group, &limits);
        json_object_set_string_member(object, "group", throttle_group_name(group));
    }
    set_limit(object, "bps", &limits, THROTTLE_BPS_TOTAL);
    set_limit(object, "bps_rd", &limits, THROTTLE_BPS_READ);
    set_limit(object, "bps_wr", &limits, THROTTLE_BPS_WRITE);
    set_limit(object, "iops", &limits, THROTTLE_IOPS_TOTAL);
    set_limit(object, "iops_rd", &limits, THROTTLE_IOPS_READ);
    set_limit(object, "iops_wr", &limits, THROTTLE_IOPS_WRITE);
    if (limits.iops_size) {
        json_object_set_int_member(object, "iops_size", (gint64)limits.iops_size);
    }
}

static JsonObject *limits_object(const BlockInfo *info)
{
    JsonObject *limits = json_object_new();

    json_object_set_int_member(limits, "request-alignment", info->align);
    json_object_set_int_member(limits, "min-mem-alignment", info->align);
    json_object_set_int_member(limits, "opt-mem-alignment", MEMORY_ALIGN);
    json_object_set_int_member(limits, "max-iov", IOV_ENTRIES);
    return limits;
}

/* Whether files or devices of this host are at the bottom; of others QEMU knows no more. */
static bool is_local(BlockNode *node)
{
    static const char *const local[] = {"file", "host_device", "host_cdrom", NULL};
    BlockNode *child;

    while ((child = block_child(node, "file")) || (child = block_child(node, "image"))) {
        node = child;
    }
    return g_strv_contains(local, block_info(node)->driver);
}

static JsonObject *image_object(const BlockMeasure *measure, BlockNode *node)
{
    const BlockInfo *info = block_info(node);
    JsonObject *image = json_object_new();

    json_object_set_object_member(image, "limits", limits_object(info));
    json_object_set_int_member(image, "virtual-size", (gint64)info->size);
    json_object_set_string_member(image, "filename", info->filename);
    json_object_set_string_member(image, "format", info->driver);
    if (measure && measure->allocated >= 0) {
        json_object_set_int_member(image, "actual-size", measure->allocated);
    }
    if (measure && measure->specific) {
        json_object_set_object_member(image, "format-specific", json_object_ref(measure->specific));
    }
    if (g_str_equal(info->driver, "luks")) {
        json_object_set_boolean_member(image, "encrypted", true);
    }
    if (is_local(node)) {
        json_object_set_boolean_member(image, "dirty-flag", false);
    }
    return image;
}

static JsonArray *children_array(BlockNode *node)
{
    static const char *const roles[] = {"file", "image"};
    JsonArray *children = json_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++) {
        BlockNode *child = block_child(node, roles[i]);
        if (child) {
            JsonObject *object = json_object_new();
            json_object_set_string_member(object, "node-name", block_name(child));
            json_object_set_string_member(object, "child", roles[i]);
            json_array_add_object_element(children, object);
        }
    }
    return children;
}

JsonObject *query_node_object(const GArray *measures, BlockNode *node, const Backend *backend)
{
    const BlockInfo *info = block_info(node);
    BlockSettings settings = block_settings(node);
    JsonObject *object = json_object_new(), *cache = json_object_new();

    set_limits(object, backend);
    json_object_set_string_member(object, "detect_zeroes", settings.detect_zeroes);
    json_object_set_boolean_member(object, "active", true);
    json_object_set_object_member(object, "image", image_object(block_measure_find(measures, node), node));
    json_object_set_boolean_member(object, "ro", info->read_only);
    json_object_set_array_member(object, "children", children_array(node));
    json_object_set_string_member(object, "node-name", block_name(node));
    json_object_set_int_member(object, "backing_file_depth", 0);
    json_object_set_string_member(object, "drv", info->driver);
    json_object_set_int_member(object, "write_threshold", (gint64)block_write_threshold(node));
    json_object_set_boolean_member(object, "encrypted", g_str_equal(info->driver, "luks"));
    json_object_set_boolean_member(cache, "no-flush", settings.no_flush);
    json_object_set_boolean_member(cache, "direct", settings.direct);
    json_object_set_boolean_member(cache, "writeback", backend ? backend->writeback : true);
    json_object_set_object_member(object, "cache", cache);
    json_object_set_string_member(object, "file", info->filename);
    return object;
}

const char *backend_io_status_name(const Backend *backend)
{
    static const char *const names[] = {"ok", "failed", "nospace"};

    return names[backend->io_status];
}

/* Only a drive whose errors can stop the machine has one, as QEMU's. */
static bool keeps_io_status(const Backend *backend)
{
    return backend->werror == ON_ERROR_ENOSPC || backend->werror == ON_ERROR_STOP ||
           backend->rerror == ON_ERROR_STOP;
}

JsonObject *query_drive_object(const GArray *measures, Backend *backend)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "device", backend->name);
    json_object_set_string_member(object, "type", "unknown");
    json_object_set_boolean_member(object, "removable", backend->mmc || !backend->qdev);
    json_object_set_boolean_member(object, "locked", backend->mmc && mmc_drive_locked(backend->mmc));
    if (backend->qdev) {
        json_object_set_string_member(object, "qdev", backend_qdev(backend));
        if (keeps_io_status(backend)) {
            json_object_set_string_member(object, "io-status", backend_io_status_name(backend));
        }
    }
    if (backend->mmc) {
        json_object_set_boolean_member(object, "tray_open", mmc_drive_tray_open(backend->mmc));
    }
    if (backend->node) {
        json_object_set_object_member(object, "inserted",
                                      query_node_object(measures, backend->node, backend));
    }
    return object;
}

bool backend_is_limit_node(const Monitor *monitor, const BlockNode *node)
{
    GPtrArray *all = monitor_backends(monitor);

    for (guint i = 0; i < all->len; i++) {
        const Backend *backend = g_ptr_array_index(all, i);
        if (backend->top == node && backend->node != node) {
            return true;
        }
    }
    return false;
}
