/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=http` (https, ftp, ftps): a file on a server, read-only, through the cache. The network itself is
 * in the curl module (curl.h).
 */
#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "block/block-int.h"
#include "block/curl.h"
#include "block/module.h"
#include "block/secret-object.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/iov.h"

#define STALL_DEFAULT   5 /* seconds */
#define STALL_MAX       10000
#define CONNECT_DEFAULT 10
#define OPEN_TRIES_US   (10 * G_USEC_PER_SEC) /* an open tries so long */
#define OPEN_PAUSE_US   200000

typedef struct HttpState {
    const CurlModule *module;
    CurlSource *source;
    BlockCache *cache; /* or all of it, where the server did not say how much there is: */
    int fd;
} HttpState;

/* The options, and what they hold. */
typedef struct HttpOptions {
    CurlConfig curl;
    CacheConfig cache;
    Secret *password, *proxy_password, *cookie;
    GPtrArray *headers;
} HttpOptions;

static ModuleLoader loader = MODULE_LOADER("spindle-curl.so", CURL_MODULE_SYMBOL, CURL_MODULE_ABI, "A URL");

static void http_options_clear(HttpOptions *o)
{
    secret_free(o->password);
    secret_free(o->proxy_password);
    secret_free(o->cookie);
    cache_config_clear(&o->cache);
    if (o->headers) {
        g_ptr_array_unref(o->headers);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(HttpOptions, http_options_clear)

static bool get_cookie(HttpOptions *o, Options *options, GError **error)
{
    o->curl.cookie = options_get(options, "cookie");
    if (o->curl.cookie && options_has(options, "cookie-secret")) {
        return error_set(error, "curl driver cannot handle both cookie and cookie secret");
    }
    if (!secret_object_take(options, "cookie-secret", &o->cookie, error)) {
        return false;
    }
    if (o->cookie) {
        o->curl.cookie = (const char *)o->cookie->data;
    }
    return true;
}

/* `header` or `header.0`, `header.1`, … */
static bool get_headers(HttpOptions *o, Options *options, GError **error)
{
    o->headers = g_ptr_array_new();
    const char *one = options_get(options, "header");
    for (unsigned i = 0; one; i++) {
        if (!strchr(one, ':') || strpbrk(one, "\r\n")) {
            return error_set(error, "Parameter 'header' expects 'Name: value'");
        }
        g_ptr_array_add(o->headers, (char *)one);
        g_autofree char *key = g_strdup_printf("header.%u", i);
        one = options_get(options, key);
    }
    const char *first = o->headers->len ? NULL : options_get(options, "header.0");
    for (unsigned i = 1; first; i++) {
        if (!strchr(first, ':') || strpbrk(first, "\r\n")) {
            return error_set(error, "Parameter 'header.%u' expects 'Name: value'", i - 1);
        }
        g_ptr_array_add(o->headers, (char *)first);
        g_autofree char *key = g_strdup_printf("header.%u", i);
        first = options_get(options, key);
    }
    g_ptr_array_add(o->headers, NULL);
    o->curl.headers = (char **)o->headers->pdata;
    return true;
}

static bool get_url(HttpOptions *o, const char *driver, Options *options, GError **error)
{
    const char *url = options_get(options, "url");
    url = url ? url : options_get(options, "filename");
    if (!url) {
        return error_set(error, "curl block driver requires an 'url' option");
    }
    g_autofree char *start = g_strconcat(driver, "://", NULL);
    if (g_ascii_strncasecmp(url, start, strlen(start)) != 0) {
        return error_set(error, "%s curl driver cannot handle the URL '%s' (does not start with '%s')",
                         driver, url, start);
    }
    o->curl.url = url;
    return true;
}

static bool get_options(HttpOptions *o, const char *driver, Options *options, GError **error)
{
    uint64_t stall, connect;
    bool force_range;
    if (!get_url(o, driver, options, error) || !cache_config_read(&o->cache, options, error) ||
        !options_get_bool(options, "sslverify", true, &o->curl.sslverify, error) ||
        !options_get_uint(options, "timeout", 1, STALL_MAX, STALL_DEFAULT, &stall, error) ||
        !options_get_uint(options, "connect-timeout", 1, STALL_MAX, CONNECT_DEFAULT, &connect, error) ||
        !options_get_bool(options, "force-range", false, &force_range, error) ||
        !get_cookie(o, options, error) || !get_headers(o, options, error) ||
        !secret_object_take(options, "password-secret", &o->password, error) ||
        !secret_object_take(options, "proxy-password-secret", &o->proxy_password, error)) {
        return false;
    }
    if (o->cache.readahead % 512) {
        return error_set(error, "HTTP_READAHEAD_SIZE %" G_GUINT64_FORMAT " is not a multiple of 512",
                         o->cache.readahead);
    }
    o->curl.stall_s = stall;
    o->curl.connect_s = connect;
    o->curl.cafile = options_get(options, "cafile");
    o->curl.username = options_get(options, "username");
    o->curl.proxy_username = options_get(options, "proxy-username");
    o->curl.password = o->password;
    o->curl.proxy_password = o->proxy_password;
    return true;
}

/* For people: without what may be secret in it. */
static char *url_for_display(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    return at ? g_strdup_printf("%.*s%s", (int)(host - url), url, at + 1) : g_strdup(url);
}

/* Opens, again if the server is only busy. */
static CurlSource *open_source(const CurlModule *module, const HttpOptions *o, CurlFound *found,
                               GError **error)
{
    const int64_t end = g_get_monotonic_time() + OPEN_TRIES_US;
    for (uint64_t tries = 0;; tries++) {
        g_autoptr(GError) why = NULL;
        CurlSource *source = module->open(&o->curl, found, &why);
        const int64_t pause = MAX((int64_t)found->delay_ms * 1000, OPEN_PAUSE_US << MIN(tries, 4));
        if (source) {
            return source;
        }
        if (!found->worth_retrying || tries >= o->cache.retries || g_get_monotonic_time() + pause > end) {
            g_propagate_error(error, g_steal_pointer(&why));
            return NULL;
        }
        g_usleep(pause);
    }
}

/* What names the content, for a cache file. NULL: nothing does. */
static char *identity_of(const char *url, const CurlFound *found)
{
    if (!found->etag && !found->last_modified) {
        return NULL;
    }
    return g_strdup_printf("%s\n%" G_GINT64_FORMAT "\n%s\n%s", url, found->size,
                           found->etag ? found->etag : "", found->last_modified ? found->last_modified : "");
}

typedef struct Download {
    int fd;
    uint64_t bytes, limit;
    int error;
} Download;

static bool put_download(void *opaque, const void *data, size_t bytes)
{
    Download *d = opaque;
    if (bytes > d->limit - d->bytes) {
        d->error = EFBIG;
        return false;
    }
    if (pwrite(d->fd, data, bytes, d->bytes) != (ssize_t)bytes) {
        d->error = errno ? errno : ENOSPC;
        return false;
    }
    d->bytes += bytes;
    return true;
}

/* The length is known only when all is here: into memory within the cache's size, or an unnamed file beside
 * the cache file. -1 and an error. */
static int download_all(HttpState *s, const HttpOptions *o, uint64_t *ret_size, GError **error)
{
    g_autofree char *folder = o->cache.file ? g_path_get_dirname(o->cache.file) : NULL;
    auto_fd fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                        : memfd_create("spindle-http", MFD_CLOEXEC);
    Download d = {.fd = fd, .limit = folder ? INT64_MAX : o->cache.cache_size};
    CacheFailure failure = {0};
    if (fd < 0) {
        error_set_errno(error, errno, "Could not make a file for what has to be downloaded");
        return -1;
    }
    if (!d.limit) {
        error_set(error,
                  "CURL: Error opening file: Server didn't report file size, so all has to be kept: give "
                  "'cache-file' or 'cache-size'");
        return -1;
    }
    int ret = s->module->fetch(s->source, 0, 0, put_download, &d, &failure);
    if (ret < 0) {
        if (d.error == EFBIG) {
            error_set(error,
                      "CURL: Error opening file: Server didn't report file size, and there is more than "
                      "'cache-size' (%" G_GUINT64_FORMAT
                      " bytes): give 'cache-file', or a larger 'cache-size'",
                      d.limit);
        } else {
            error_set(error, "CURL: Error opening file: %s", d.error ? g_strerror(d.error) : failure.text);
        }
        return -1;
    }
    *ret_size = d.bytes;
    return steal_fd(&fd);
}

static bool start_cache(BlockNode *node, const HttpOptions *o, const CurlFound *found, GError **error)
{
    HttpState *s = node->state;
    const CacheSource source = {.opaque = s->source, .fetch = s->module->fetch, .stop = s->module->stop};
    g_autofree char *identity = identity_of(node->filename, found);
    s->cache =
        block_cache_new(&o->cache, &source, node->filename, identity, found->size, !found->ranges, error);
    if (s->cache && found->head_bytes) {
        block_cache_insert(s->cache, 0, found->head, found->head_bytes);
    }
    return s->cache != NULL;
}

static bool http_open(BlockNode *node, Options *options, GError **error)
{
    HttpState *s = node->state;
    g_auto(HttpOptions) o = {0};
    g_auto(CurlFound) found = {.size = -1};
    uint64_t size = 0;
    s->fd = -1;
    if (!get_options(&o, node->driver->name, options, error)) {
        return false;
    }
    if (block_node_wants_write(node) && !block_node_auto_read_only(node)) {
        return error_set(error, "curl driver does not support writes");
    }
    g_autofree char *shown = url_for_display(o.curl.url);
    block_node_set_filename(node, shown);
    s->module = block_module_get(&loader, error);
    s->source = s->module ? open_source(s->module, &o, &found, error) : NULL;
    if (!s->source) {
        return false;
    }
    if (found.size >= 0) {
        size = found.size;
    } else {
        s->fd = download_all(s, &o, &size, error);
    }
    if (found.size >= 0 ? !start_cache(node, &o, &found, error) : s->fd < 0) {
        s->module->close(s->source);
        return false;
    }
    node->info.size = size;
    node->info.slow = o.cache.readahead == 0; /* else the cache reads ahead, and knows more */
    return true;
}

static void http_close(BlockNode *node)
{
    HttpState *s = node->state;
    block_cache_free(s->cache);
    s->module->close(s->source);
    if (s->fd >= 0) {
        close(s->fd);
    }
}

static int http_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    HttpState *s = node->state;
    if (s->cache) {
        return block_cache_preadv(s->cache, offset, bytes, iov, niov);
    }
    ssize_t n = preadv(s->fd, iov, niov, offset);
    return n < 0 ? -errno : n == (ssize_t)bytes ? 0 : -EIO;
}

static int http_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    HttpState *s = node->state;
    return s->cache ? block_cache_read_now(s->cache, offset, bytes, iov, niov) : -EAGAIN;
}

static void http_interrupt(BlockNode *node)
{
    HttpState *s = node->state;
    if (s->cache) {
        block_cache_interrupt(s->cache);
    }
}

static void http_remote_stats(BlockNode *node, BlockRemoteStats *ret)
{
    HttpState *s = node->state;
    *ret = (BlockRemoteStats){0};
    if (s->cache) {
        block_cache_stats(s->cache, ret);
    }
}

/* clang-format off */
#define HTTP_DRIVER(symbol, scheme)                                          \
    static const char *const symbol##_schemes[] = {scheme, NULL};            \
    const BlockDriver block_driver_##symbol = {                              \
        .name = scheme,                                                      \
        .parallel = true,                                                    \
        .state_size = sizeof(HttpState),                                     \
        .protocols = symbol##_schemes,                                       \
        .open = http_open,                                                   \
        .close = http_close,                                                 \
        .preadv = http_preadv,                                               \
        .read_now = http_read_now,                                           \
        .interrupt = http_interrupt,                                         \
        .remote_stats = http_remote_stats,                                   \
    }
/* clang-format on */

HTTP_DRIVER(http, "http");
HTTP_DRIVER(https, "https");
HTTP_DRIVER(ftp, "ftp");
HTTP_DRIVER(ftps, "ftps");
