/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=nbd`: an export of an NBD server.
 */
#include "block/nbd.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

#define NBD_NAME_MAX 4096 /* the protocol's longest string */

static ModuleLoader loader =
    MODULE_LOADER("spindle-nbd.so", NBD_MODULE_SYMBOL, REMOTE_MODULE_ABI, "An NBD server");

/* `server.…`, or the older `host`, `port`, `path`. */
static bool get_server(NbdConfig *config, Options *options, GError **error)
{
    const char *type = options_get(options, "server.type");
    const char *path = options_get(options, type ? "server.path" : "path");
    const char *host = options_get(options, type ? "server.host" : "host");
    const char *port = options_get(options, type ? "server.port" : "port");
    if (type && strcmp(type, "inet") && strcmp(type, "unix")) {
        return error_set(error, "Parameter 'server.type' does not accept value '%s'", type);
    }
    if (!type && path && host) {
        return error_set(error, "path and host may not be used at the same time");
    }
    if (!type && !path && !host) {
        return error_set(error, "NBD server address missing");
    }
    if (type && !strcmp(type, "unix") ? !path : type && (!host || !port)) {
        return error_set(error, "Parameter 'server.%s' is missing",
                         !strcmp(type, "unix") ? "path"
                         : host                ? "port"
                                               : "host");
    }
    config->path = type && !strcmp(type, "inet") ? NULL : path;
    config->host = host;
    config->port = port ? port : "10809";
    return true;
}

/* libnbd checks a certificate's name against the host that it connects to, and nothing over a UNIX socket. */
static bool get_tls(NbdConfig *config, TlsCreds **ret, Options *options, GError **error)
{
    const char *id = options_get(options, "tls-creds");
    const char *name = options_get(options, "tls-hostname");
    if (!id) {
        return true;
    }
    *ret = tls_object_get(id, error);
    if (!*ret) {
        return false;
    }
    if (!(*ret)->psk && (*ret)->verify && config->path) {
        return error_set(error, "The certificate of a server on a UNIX socket cannot be verified: use "
                                "server.type=inet, tls-creds-psk, or verify-peer=off");
    }
    if (name && !(*ret)->psk && (*ret)->verify && g_strcmp0(name, config->host)) {
        return error_set(error, "Parameter 'tls-hostname' is not supported: 'server.host' has to be the name "
                                "in the certificate");
    }
    config->tls = *ret;
    return true;
}

static bool get_options(NbdConfig *config, TlsCreds **tls, RemoteOpen *how, CacheConfig *cache,
                        Options *options, GError **error)
{
    uint64_t reconnect;
    if (!get_server(config, options, error) || !remote_options_read(options, how, cache, error) ||
        !options_get_uint(options, "reconnect-delay", 0, G_MAXUINT32, 0, &reconnect, error) ||
        !get_tls(config, tls, options, error)) {
        return false;
    }
    if (reconnect) { /* QEMU's word for how long requests wait while there is no connection */
        cache->deadline_s = reconnect;
    }
    config->timeout_s = how->wait_s;
    config->export_name = options_get(options, "export");
    config->export_name = config->export_name ? config->export_name : "";
    if (strlen(config->export_name) > NBD_NAME_MAX) {
        return error_set(error, "export name too long to send to server");
    }
    return true;
}

static char *name_for_display(const NbdConfig *config)
{
    const char *e = config->export_name;
    if (config->path) {
        return g_strdup_printf("nbd+unix://%s%s?socket=%s", e[0] ? "/" : "", e, config->path);
    }
    return g_strdup_printf("nbd://%s:%s%s%s", config->host, config->port, e[0] ? "/" : "", e);
}

static bool nbd_open(BlockNode *node, Options *options, GError **error)
{
    NbdConfig config = {0};
    g_auto(CacheConfig) cache = {0};
    g_autoptr(TlsCreds) tls = NULL;
    RemoteOpen how = {.loader = &loader, .config = &config};
    if (!get_options(&config, &tls, &how, &cache, options, error)) {
        return false;
    }
    g_autofree char *name = name_for_display(&config);
    how.name = name;
    how.denied = "request on write denied without write permission";
    return remote_open(node, &how, error);
}

static const char *const nbd_schemes[] = {"nbd", "nbd+tcp", "nbd+unix", NULL};

const BlockDriver block_driver_nbd = {
    .name = "nbd",
    .protocols = nbd_schemes,
    .open = nbd_open,
    REMOTE_FUNCTIONS,
};
