/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From options to a chain of nodes: the generic options, children, names.
 */
#include "block/core.h"
#include "util/checked.h"
#include "util/error.h"
#include "util/fdset.h"
#include "util/trace.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define NODE_NAME_MAX 31 /* characters, as in QEMU */

int block_open_fd(const char *filename, int flags)
{
    if (fdset_is_path(filename)) {
        return fdset_open(filename, flags);
    }
    int fd = open(filename, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool name_check(const char *name, GError **error)
{
    if (!options_is_id(name)) {
        return error_set(error, "Invalid node-name: '%s'", name);
    }
    return strlen(name) <= NODE_NAME_MAX || error_set(error, "Node name too long");
}

bool node_parse_generic(Options *options, const GenericOptions *inherit, GenericOptions *ret, GError **error)
{
    static const char *const discard_names[] = {"ignore", "unmap", "off", "on", NULL};
    static const char *const detect_names[] = {"off", "on", "unmap", NULL};
    GenericOptions g = {0};
    int discard;
    if (!options_get_bool(options, "read-only", inherit->read_only, &g.read_only, error) ||
        !options_get_bool(options, "auto-read-only", inherit->auto_read_only, &g.auto_read_only, error) ||
        !options_get_bool(options, "cache.direct", inherit->direct, &g.direct, error) ||
        !options_get_bool(options, "cache.no-flush", inherit->no_flush, &g.no_flush, error) ||
        !options_get_bool(options, "force-share", inherit->force_share, &g.force_share, error) ||
        !options_get_enum(options, "discard", discard_names, inherit->discard, &discard, error) ||
        !options_get_enum(options, "detect-zeroes", detect_names, DETECT_ZEROES_OFF, &g.detect_zeroes,
                          error)) {
        return false;
    }
    g.discard = discard & 1;
    if (g.detect_zeroes == DETECT_ZEROES_UNMAP && !g.discard) {
        return error_set(
            error,
            "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap");
    }
    if (g.force_share && !g.read_only) {
        return error_set(error, "force-share=on can only be used with read-only images");
    }
    *ret = g;
    return true;
}

/* What the driver left open, and sanity. */
static bool finish_info(BlockNode *node, GError **error)
{
    BlockInfo *info = &node->info;
    if (info->size > BLOCK_SIZE_MAX) {
        return error_set(error,
                         "Image size %" G_GUINT64_FORMAT
                         " of '%s' is too large (the limit is %" G_GUINT64_FORMAT ")",
                         info->size, info->filename, (uint64_t)BLOCK_SIZE_MAX);
    }
    if (!is_power_of_2(info->align) || info->align > BUFFER_MAX) {
        return error_set(error, "Driver '%s' needs an impossible alignment of %u bytes", info->driver,
                         info->align);
    }
    info->read_only |= node->priv->generic.read_only || !node->driver->pwritev;
    info->opt_transfer = MIN(MAX(info->opt_transfer, info->align), BUFFER_MAX);
    if (info->align > 1) {
        node->priv->bounce_size = MAX(info->opt_transfer, 2 * info->align);
        node->priv->bounce = buffer_pool_new(node->priv->bounce_size, info->align, 4);
    }
    return true;
}

/* Undoes an open: the node was never listed. */
static void abort_open(BlockNode *node, bool opened)
{
    bool deferred = node->priv->deferred;
    if (opened && node->driver->close) {
        node->driver->close(node);
    }
    node_unref_failed(node->child, deferred);
    for (guint i = 0; i < node->priv->extras->len; i++) {
        node_unref_failed(node->priv->extras->pdata[i], deferred);
    }
    node_free(node);
}

static BlockNode *node_open(Options *options, const GenericOptions *inherit, bool deferred, GError **error)
{
    const char *driver_name = options_get(options, "driver");
    if (!driver_name) {
        error_set(error, "Parameter 'driver' is missing");
        return NULL;
    }
    const BlockDriver *driver = block_driver_find(driver_name);
    if (!driver) {
        error_set(error, "Unknown driver '%s'", driver_name);
        return NULL;
    }
    GenericOptions generic;
    const char *name = options_get(options, "node-name");
    if ((name && !name_check(name, error)) || !node_parse_generic(options, inherit, &generic, error)) {
        return NULL;
    }
    if (name && block_find(name)) { /* again in node_list(), but this comes before any effect of the open */
        error_set(error, "Duplicate nodes with node-name='%s'", name);
        return NULL;
    }
    BlockNode *node = node_new(driver, &generic);
    node->priv->deferred = deferred;
    if (!driver->open(node, options, error)) {
        abort_open(node, false);
        return NULL;
    }
    if (!options_check_expected(options, error) || !finish_info(node, error) ||
        !node_list(node, name, error)) {
        abort_open(node, true);
        return NULL;
    }
    node->priv->options = options_ref(options);
    node->priv->opened_read_only = node->info.read_only;
    trace(block_open, node->name, driver->name, node->info.size);
    return node;
}

BlockNode *block_open(Options *options, GError **error)
{
    const GenericOptions none = {0};
    return node_open(options, &none, false, error);
}

void block_error_name_parameter(GError **error, const char *prefix)
{
    static const char start[] = "Parameter '";
    if (error && g_str_has_prefix((*error)->message, start)) {
        char *message = g_strdup_printf("%s%s.%s", start, prefix, (*error)->message + strlen(start));
        g_free((*error)->message);
        (*error)->message = message;
    }
}

/* The node that a reference or the inline options name; a new reference. */
static BlockNode *open_child(BlockNode *node, Options *options, const char *role, GError **error)
{
    g_autoptr(Options) sub = options_get_sub(options, role);
    g_auto(GStrv) keys = options_keys(sub);
    const char *name = options_get(options, role);
    if (name && keys[0]) {
        error_set(error,
                  "Cannot reference an existing block device with additional options or a new filename");
        return NULL;
    }
    if (name) {
        BlockNode *child = node_find_ref(name);
        if (!child) {
            error_set(error, "Cannot find device='%s' nor node-name='%s'", name, name);
        }
        return child;
    }
    if (!keys[0]) {
        error_set(error, "Parameter '%s' is missing", role);
        return NULL;
    }
    /* QEMU's inheritance: how to cache and whether to write; a discard that the parent lets through is meant
     * to reach the file. */
    GenericOptions inherit = node->priv->generic;
    inherit.discard = true;
    BlockNode *child = node_open(sub, &inherit, node->priv->deferred, error);
    if (!child) {
        block_error_name_parameter(error, role);
    }
    return child;
}

/* A writable node needs a writable child. */
static bool check_child(BlockNode *node, const BlockNode *child, GError **error)
{
    if (!child->info.read_only || node->priv->generic.read_only) {
        return true;
    }
    if (node->priv->generic.auto_read_only) {
        node->info.read_only = true;
        return true;
    }
    return error_set(error, "Block node '%s' is read-only", child->name);
}

BlockNode *block_node_open_extra_child(BlockNode *node, Options *options, const char *role, GError **error)
{
    BlockNode *child = open_child(node, options, role, error);
    if (!child) {
        return NULL;
    }
    if (!check_child(node, child, error)) {
        node_unref_failed(child, node->priv->deferred);
        return NULL;
    }
    g_ptr_array_add(node->priv->extras, child);
    return child;
}

bool block_node_open_child(BlockNode *node, Options *options, const char *role, GError **error)
{
    BlockNode *child = open_child(node, options, role, error);
    if (!child) {
        return false;
    }
    if (!check_child(node, child, error)) {
        node_unref_failed(child, node->priv->deferred);
        return false;
    }
    node->child = child;
    node->priv->child_role = role;
    node->info.slow = child->info.slow;
    node->info.removable = child->info.removable;
    block_node_set_filename(node, child->filename);
    return true;
}

typedef struct AsyncOpen {
    Work work;
    Options *options;
    BlockOpened done;
    void *opaque;
    BlockNode *node;
    GError *error;
} AsyncOpen;

static void async_open_run(Work *work)
{
    AsyncOpen *job = (AsyncOpen *)work;
    const GenericOptions none = {0};
    job->node = node_open(job->options, &none, true, &job->error);
}

static void async_open_done(Work *work)
{
    AsyncOpen *job = (AsyncOpen *)work;
    options_unref(job->options);
    job->done(job->node, job->error, job->opaque);
    g_free(job);
    boundary_pending_done();
}

void block_open_async(Options *options, BlockOpened done, void *opaque)
{
    AsyncOpen *job = g_new0(AsyncOpen, 1);
    *job = (AsyncOpen){.options = options_ref(options), .done = done, .opaque = opaque};
    job->work.run = async_open_run;
    job->work.done = async_open_done;
    boundary_pending_begin();
    boundary_submit_urgent(&job->work);
}
