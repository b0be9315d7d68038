/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=nfs`: a file on an NFS server, without mounting it.
 */
#include "block/nfs.h"

#include <string.h>

#include "util/error.h"

#define SYN_COUNT_MAX 255

static ModuleLoader loader =
    MODULE_LOADER("spindle-nfs.so", NFS_MODULE_SYMBOL, REMOTE_MODULE_ABI, "A file by NFS");

/* Numbers of the options, and what libnfs calls them in a URL. */
static bool add_numbers(GString *query, Options *options, GError **error)
{
    static const struct {
        const char *key, *name;
        uint64_t max;
    } numbers[] = {{"user", "uid", G_MAXINT32},
                   {"group", "gid", G_MAXINT32},
                   {"tcp-syn-count", "tcp-syncnt", SYN_COUNT_MAX},
                   {"version", "version", 4},
                   {"server.port", "nfsport", 65535}};
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        uint64_t value;
        if (!options_get_uint(options, numbers[i].key, 0, numbers[i].max, 0, &value, error)) {
            return false;
        }
        if (options_has(options, numbers[i].key)) {
            g_string_append_printf(query, "%c%s=%" G_GUINT64_FORMAT, query->len ? '&' : '?', numbers[i].name,
                                   value);
        }
    }
    return true;
}

/* Taken for QEMU's sake: the cache's options do it. */
static bool skip_numbers(Options *options, GError **error)
{
    static const char *const keys[] = {"readahead-size", "page-cache-size", "debug"};
    uint64_t value;
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!options_get_uint(options, keys[i], 0, G_MAXINT32, 0, &value, error)) {
            return false;
        }
    }
    return true;
}

static bool nfs_open_node(BlockNode *node, Options *options, GError **error)
{
    static const char *const types[] = {"inet", NULL};
    g_auto(CacheConfig) cache = {0};
    NfsConfig config = {0};
    RemoteOpen how = {.loader = &loader, .config = &config};
    const char *host = options_get(options, "server.host"), *path = options_get(options, "path");
    g_autoptr(GString) query = g_string_new(NULL);
    int type;
    if (!host) {
        return error_set(error, "NFS server address missing");
    }
    if (!path || path[0] != '/') {
        return error_set(error, "No path was specified, or it does not begin with '/'");
    }
    if (!options_get_enum(options, "server.type", types, 0, &type, error) ||
        !add_numbers(query, options, error) || !skip_numbers(options, error) ||
        !remote_options_read(options, &how, &cache, error)) {
        return false;
    }
    const char *port = options_get(options, "server.port");
    g_autofree char *url = g_strdup_printf("nfs://%s%s", host, query->str);
    g_autofree char *name = g_strdup_printf("nfs://%s%s%s%s", host, port ? ":" : "", port ? port : "", path);
    config.host = host;
    config.version4 = !g_strcmp0(options_get(options, "version"), "4");
    config.path = path;
    config.url = url;
    config.timeout_s = how.wait_s;
    config.name = how.name = name;
    how.denied = "The file may not be written: use read-only=on";
    return remote_open(node, &how, error);
}

static bool from_query(Options *options, const char *query, GError **error)
{
    static const char *const names[][2] = {{"uid", "user"},
                                           {"gid", "group"},
                                           {"tcp-syncnt", "tcp-syn-count"},
                                           {"readahead", "readahead-size"},
                                           {"pagecache", "page-cache-size"},
                                           {"debug", "debug"},
                                           {"version", "version"},
                                           {"nfsport", "server.port"}};
    GUriParamsIter iter;
    char *name, *value;
    g_uri_params_iter_init(&iter, query, -1, "&", G_URI_PARAMS_NONE);
    while (g_uri_params_iter_next(&iter, &name, &value, NULL)) {
        const char *key = NULL;
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
            key = strcmp(name, names[i][0]) ? key : names[i][1];
        }
        if (key) {
            options_set(options, key, value);
        } else {
            error_set(error, "Unknown NFS parameter name: %s", name);
        }
        g_free(name);
        g_free(value);
        if (!key) {
            return false;
        }
    }
    return true;
}

Options *nfs_options_from_filename(const char *filename, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(filename, G_URI_FLAGS_NONE, NULL);
    g_autoptr(Options) options = remote_options_from_url("nfs", uri);
    if (!options) {
        error_set(error, "Invalid URI '%s': it has to be nfs://HOST/PATH", filename);
        return NULL;
    }
    options_set(options, "server.type", "inet");
    if (g_uri_get_query(uri) && !from_query(options, g_uri_get_query(uri), error)) {
        return NULL;
    }
    return g_steal_pointer(&options);
}

static const char *const nfs_schemes[] = {"nfs", NULL};

const BlockDriver block_driver_nfs = {
    .name = "nfs",
    .protocols = nfs_schemes,
    .open = nfs_open_node,
    REMOTE_FUNCTIONS,
};
