/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=rbd`: an image of a Ceph cluster.
 */
#include "block/rbd.h"

#include <string.h>

#include "block/secret-object.h"
#include "util/error.h"

static ModuleLoader loader =
    MODULE_LOADER("spindle-rbd.so", RBD_MODULE_SYMBOL, REMOTE_MODULE_ABI, "An image of a Ceph cluster");

/* `server.0.host`, `server.0.port`, … joined; NULL: none. */
static char *get_monitors(Options *options)
{
    GString *list = g_string_new(NULL);
    for (unsigned i = 0;; i++) {
        g_autofree char *host_key = g_strdup_printf("server.%u.host", i);
        g_autofree char *port_key = g_strdup_printf("server.%u.port", i);
        const char *host = options_get(options, host_key), *port = options_get(options, port_key);
        if (!host) {
            return g_string_free(list, list->len == 0);
        }
        const bool v6 = strchr(host, ':') != NULL;
        g_string_append_printf(list, "%s%s%s%s", list->len ? "," : "", v6 ? "[" : "", host, v6 ? "]" : "");
        if (port) {
            g_string_append_printf(list, ":%s", port);
        }
    }
}

/* `auth-client-required.0`, … joined. */
static char *get_auth(Options *options, bool *ret_good, GError **error)
{
    GString *list = g_string_new(NULL);
    *ret_good = true;
    for (unsigned i = 0;; i++) {
        g_autofree char *key = g_strdup_printf("auth-client-required.%u", i);
        const char *mode = options_get(options, key);
        if (!mode) {
            return g_string_free(list, list->len == 0);
        }
        if (strcmp(mode, "cephx") && strcmp(mode, "none")) {
            *ret_good = error_set(error, "Parameter '%s' does not accept value '%s'", key, mode);
            return g_string_free(list, TRUE);
        }
        g_string_append_printf(list, "%s%s", list->len ? ";" : "", mode);
    }
}

/* `settings.0.name`, `settings.0.value`, … of the short form. */
static GPtrArray *get_settings(Options *options)
{
    GPtrArray *list = g_ptr_array_new();
    for (unsigned i = 0;; i++) {
        g_autofree char *name = g_strdup_printf("settings.%u.name", i);
        g_autofree char *value = g_strdup_printf("settings.%u.value", i);
        const char *is = options_get(options, name), *to = options_get(options, value);
        g_ptr_array_add(list, (char *)(to ? is : NULL));
        if (!is || !to) {
            return list;
        }
        g_ptr_array_add(list, (char *)to);
    }
}

static char *name_for_display(const RbdConfig *c)
{
    return g_strdup_printf("rbd:%s%s%s/%s%s%s", c->pool, c->name_space ? "/" : "",
                           c->name_space ? c->name_space : "", c->image, c->snapshot ? "@" : "",
                           c->snapshot ? c->snapshot : "");
}

static bool get_names(RbdConfig *config, Options *options, GError **error)
{
    config->pool = options_get(options, "pool");
    config->image = options_get(options, "image");
    config->name_space = options_get(options, "namespace");
    config->snapshot = options_get(options, "snapshot");
    config->user = options_get(options, "user");
    config->conf = options_get(options, "conf");
    if (!config->pool || !config->image) {
        return error_set(error, "Parameter '%s' is missing", config->pool ? "image" : "pool");
    }
    if (options_has_prefix(options, "encrypt")) {
        return error_set(error, "Parameter 'encrypt' is not supported: put a node of driver 'luks' above");
    }
    return true;
}

static bool rbd_open_node(BlockNode *node, Options *options, GError **error)
{
    RbdConfig config = {0};
    g_auto(CacheConfig) cache = {0};
    g_autoptr(Secret) key = NULL;
    RemoteOpen how = {.loader = &loader, .config = &config};
    bool good;
    if (!get_names(&config, options, error) || !remote_options_read(options, &how, &cache, error)) {
        return false;
    }
    g_autofree char *monitors = get_monitors(options);
    g_autofree char *auth = get_auth(options, &good, error);
    if (!good || !secret_object_take(options, "key-secret", &key, error)) {
        return false;
    }
    g_autoptr(GPtrArray) settings = get_settings(options);
    config.monitors = monitors;
    config.auth = auth;
    config.key = key;
    config.settings = (const char *const *)settings->pdata;
    config.timeout_s = how.wait_s;
    g_autofree char *name = name_for_display(&config);
    how.name = name;
    how.denied = "The image may not be written: use read-only=on";
    return remote_open(node, &how, error);
}

/* Up to the next `end` that no backslash precedes, which go; *text moves behind it. */
static char *next_token(const char **text, const char *ends)
{
    GString *token = g_string_new(NULL);
    const char *p = *text;
    for (; *p && !strchr(ends, *p); p++) {
        if (*p == '\\' && p[1]) {
            p++;
        }
        g_string_append_c(token, *p);
    }
    *text = p;
    return g_string_free(token, FALSE);
}

static bool has_end(const char **text, char end)
{
    if (**text != end) {
        return false;
    }
    (*text)++;
    return true;
}

/* `:NAME=VALUE` and so on. */
static bool parse_settings(Options *options, const char *text, GError **error)
{
    for (unsigned n = 0; has_end(&text, ':');) {
        g_autofree char *name = next_token(&text, "=:");
        if (!has_end(&text, '=')) {
            return error_set(error, "conf option %s has no value", name);
        }
        g_autofree char *value = next_token(&text, ":");
        if (!strcmp(name, "id")) {
            options_set(options, "user", value);
        } else if (!strcmp(name, "conf")) {
            options_set(options, "conf", value);
        } else {
            g_autofree char *name_key = g_strdup_printf("settings.%u.name", n);
            g_autofree char *value_key = g_strdup_printf("settings.%u.value", n++);
            options_set(options, name_key, name);
            options_set(options, value_key, value);
        }
    }
    return true;
}

Options *rbd_options_from_filename(const char *filename, GError **error)
{
    const char *text = filename + strlen("rbd:");
    g_autoptr(Options) options = options_new();
    g_autofree char *pool = next_token(&text, "/:");
    g_autofree char *first = has_end(&text, '/') ? next_token(&text, "/@:") : g_strdup("");
    g_autofree char *second = has_end(&text, '/') ? next_token(&text, "@:") : NULL;
    const char *image = second ? second : first;
    if (!pool[0] || !image[0]) {
        error_set(error, "'%s' has to be rbd:POOL/IMAGE", filename);
        return NULL;
    }
    options_set(options, "driver", "rbd");
    options_set(options, "pool", pool);
    options_set(options, "image", image);
    if (second && first[0]) {
        options_set(options, "namespace", first);
    }
    if (has_end(&text, '@')) {
        g_autofree char *snapshot = next_token(&text, ":");
        options_set(options, "snapshot", snapshot);
    }
    return parse_settings(options, text, error) ? g_steal_pointer(&options) : NULL;
}

static const char *const rbd_schemes[] = {"rbd", NULL};

const BlockDriver block_driver_rbd = {
    .name = "rbd",
    .protocols = rbd_schemes,
    .open = rbd_open_node,
    REMOTE_FUNCTIONS,
};
