/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=nbd`: an export of an NBD server, read-only, through the cache.
 */
#include "block/nbd.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "block/block-int.h"
#include "block/module.h"
#include "util/error.h"

#define TIMEOUT_DEFAULT 5 /* seconds */
#define TIMEOUT_MAX     10000

typedef struct NbdState {
    const NbdModule *module;
    NbdSource *source;
    BlockCache *cache;
} NbdState;

static struct {
    pthread_mutex_t lock;
    const NbdModule *module; /* once loaded, for good */
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const NbdModule *nbd_module_get(GError **error)
{
    pthread_mutex_lock(&loaded.lock);
    if (!loaded.module) {
        loaded.module =
            block_module_load("spindle-nbd.so", NBD_MODULE_SYMBOL, NBD_MODULE_ABI, "An NBD server", error);
    }
    const NbdModule *module = loaded.module;
    pthread_mutex_unlock(&loaded.lock);
    return module;
}

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

static bool get_options(NbdConfig *config, CacheConfig *cache, Options *options, GError **error)
{
    uint64_t timeout, reconnect, open_timeout;
    if (!get_server(config, options, error) || !cache_config_read(cache, options, error) ||
        !options_get_uint(options, "timeout", 1, TIMEOUT_MAX, TIMEOUT_DEFAULT, &timeout, error) ||
        !options_get_uint(options, "reconnect-delay", 0, G_MAXUINT32, 0, &reconnect, error) ||
        !options_get_uint(options, "open-timeout", 0, G_MAXUINT32, 0, &open_timeout, error)) {
        return false;
    }
    if (options_has(options, "tls-creds")) {
        return error_set(error, "TLS is not supported for NBD yet: tunnel it, or use https");
    }
    if (reconnect) { /* QEMU's word for how long requests wait while there is no connection */
        cache->deadline_s = reconnect;
    }
    config->timeout_s = open_timeout ? MIN(open_timeout, TIMEOUT_MAX) : timeout;
    config->export_name = options_get(options, "export");
    config->export_name = config->export_name ? config->export_name : "";
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
    NbdState *s = node->state;
    NbdConfig config = {0};
    g_auto(CacheConfig) cache = {0};
    uint64_t size;
    if (!get_options(&config, &cache, options, error)) {
        return false;
    }
    if (block_node_wants_write(node) && !block_node_auto_read_only(node)) {
        return error_set(error, "Block driver 'nbd' does not support writes yet: use read-only=on");
    }
    g_autofree char *name = name_for_display(&config);
    block_node_set_filename(node, name);
    s->module = nbd_module_get(error);
    s->source = s->module ? s->module->open(&config, &size, error) : NULL;
    if (!s->source) {
        return false;
    }
    const CacheSource source = {.opaque = s->source, .fetch = s->module->fetch, .stop = s->module->stop};
    s->cache = block_cache_new(&cache, &source, name, NULL, size, false, error);
    if (!s->cache) {
        s->module->close(s->source);
        return false;
    }
    node->info.size = size;
    node->info.slow = cache.readahead == 0;
    return true;
}

static void nbd_close_node(BlockNode *node)
{
    NbdState *s = node->state;
    block_cache_free(s->cache);
    s->module->close(s->source);
}

static int nbd_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return block_cache_preadv(((NbdState *)node->state)->cache, offset, bytes, iov, niov);
}

static int nbd_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    return block_cache_read_now(((NbdState *)node->state)->cache, offset, bytes, iov, niov);
}

static int nbd_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                      unsigned *ret_status)
{
    NbdState *s = node->state;
    return s->module->status(s->source, offset, bytes, ret_bytes, ret_status);
}

static void nbd_interrupt(BlockNode *node)
{
    block_cache_interrupt(((NbdState *)node->state)->cache);
}

static void nbd_remote_stats(BlockNode *node, BlockRemoteStats *ret)
{
    NbdState *s = node->state;
    *ret = (BlockRemoteStats){0};
    block_cache_stats(s->cache, ret);
}

static const char *const nbd_schemes[] = {"nbd", "nbd+tcp", "nbd+unix", NULL};

const BlockDriver block_driver_nbd = {
    .name = "nbd",
    .parallel = true,
    .state_size = sizeof(NbdState),
    .protocols = nbd_schemes,
    .open = nbd_open,
    .close = nbd_close_node,
    .preadv = nbd_preadv,
    .read_now = nbd_read_now,
    .status = nbd_status,
    .interrupt = nbd_interrupt,
    .remote_stats = nbd_remote_stats,
};
