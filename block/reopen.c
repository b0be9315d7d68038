/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/reopen.h"
#include <string.h>
#include "block/core.h"
#include "util/error.h"

/* Those that block_reopen() looks at itself. */
static const char *const generic_names[] = {
    "auto-read-only", "cache.direct", "cache.no-flush", "detect-zeroes", "discard",
    "driver",         "force-share",  "node-name",      "read-only",     NULL};

static bool refuse(const char *key, GError **error)
{
    return error_set(error, "Cannot change the option '%s'", key);
}

/* `file=NODE` names the child that the node has: then nothing more is said of it. */
static bool names_child(BlockNode *node, Options *options, const char *role)
{
    return node->child && !strcmp(role, node->priv->child_role) &&
           !g_strcmp0(options_get(options, role), block_name(node->child));
}

/* Whether the key is the child's description. */
static bool is_of_child(const BlockNode *node, const char *key)
{
    const char *role = node->child ? node->priv->child_role : NULL;

    return role && g_str_has_prefix(key, role) && (!key[strlen(role)] || key[strlen(role)] == '.');
}

static bool check_key(BlockNode *node, Options *options, const char *key, GError **error)
{
    const char *now = options_get(options, key), *before = options_get(node->priv->options, key);

    if (g_strv_contains(generic_names, key) || !g_strcmp0(now, before) ||
        (is_of_child(node, key) && names_child(node, options, node->priv->child_role)) ||
        (node->driver->reopen && g_strv_contains(node->driver->reopen_names, key))) {
        return true;
    }
    return refuse(key, error);
}

static bool check_keys(BlockNode *node, Options *options, GError **error)
{
    g_auto(GStrv) now = options_keys(options), before = options_keys(node->priv->options);
    char **const lists[] = {now, before};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (char **key = lists[i]; *key; key++) {
            if (!check_key(node, options, *key, error)) {
                return false;
            }
        }
    }
    return true;
}

static bool check_generic(BlockNode *node, const GenericOptions *now, GError **error)
{
    const GenericOptions *before = &node->priv->generic;

    if (now->direct != before->direct) {
        return refuse("cache.direct", error);
    }
    if (now->force_share != before->force_share) {
        return refuse("force-share", error);
    }
    if (!now->read_only && node->priv->opened_read_only && !now->auto_read_only) {
        return error_set(error, "Node '%s' was opened for reading only: add it anew to write to it",
                         block_name(node));
    }
    return true;
}

bool block_reopen(BlockNode *node, Options *options, bool apply, GError **error)
{
    const GenericOptions none = {0};
    GenericOptions generic;
    const char *driver = options_get(options, "driver");

    if (g_strcmp0(driver, node->driver->name) != 0) {
        return driver ? refuse("driver", error) : error_set(error, "Parameter 'driver' is missing");
    }
    if (!node_parse_generic(options, &none, &generic, error) || !check_generic(node, &generic, error) ||
        !check_keys(node, options, error) ||
        (node->driver->reopen && !node->driver->reopen(node, options, apply, error))) {
        return false;
    }
    if (apply) {
        node->priv->generic = generic;
        node->info.read_only = node->priv->opened_read_only || generic.read_only;
    }
    return true;
}
