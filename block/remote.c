/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/remote.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "block/outage.h"
#include "util/error.h"
#include "util/iov.h"
#include "util/log.h"

#define TIMEOUT_DEFAULT 5 /* seconds */
#define TIMEOUT_MAX     10000
#define PAUSE_MIN_MS    100
#define PAUSE_MAX_MS    2000
#define OPEN_PAUSE_US   200000
#define WAIT_TELL_US    (1 * G_USEC_PER_SEC) /* without an answer for so long it is stalled */
#define SPAN_MAX        ((uint64_t)1 << 30)  /* of a discard or of zeroes at once */

struct RemoteNode {
    /* constant */
    const RemoteModule *module;
    void *source;
    BlockCache *cache;
    RemoteInfo info;
    char *name;
    unsigned wait_s, deadline_s;

    gint direct; /* atomic: somebody writes */

    pthread_mutex_t lock;
    pthread_cond_t change; /* monotonic clock */
    unsigned interrupts;   /* so many until now */
    unsigned writes;  /* under way: they are not interrupted, for nobody could tell what became of them */
    unsigned calls;   /* direct ones under way … */
    int64_t answered; /* us: … and when the last one was answered, or the first began */
    Outage outage;
    BlockRemoteStats counts; /* of direct calls */
};

static RemoteNode *state_of(BlockNode *node)
{
    return *(RemoteNode **)node->state;
}

bool remote_options_read(Options *options, RemoteOpen *how, CacheConfig *cache, GError **error)
{
    uint64_t timeout, open_timeout;
    if (!cache_config_read(cache, options, error) ||
        !options_get_uint(options, "timeout", 1, TIMEOUT_MAX, TIMEOUT_DEFAULT, &timeout, error) ||
        !options_get_uint(options, "open-timeout", 0, G_MAXUINT32, 0, &open_timeout, error)) {
        return false;
    }
    how->cache = cache;
    how->wait_s = timeout;
    how->open_for_s = open_timeout;
    return true;
}

Options *remote_options_from_url(const char *driver, GUri *uri)
{
    const char *host = uri ? g_uri_get_host(uri) : NULL, *path = uri ? g_uri_get_path(uri) : NULL;
    if (!host || !host[0] || !path || !path[0]) {
        return NULL;
    }
    Options *options = options_new();
    options_set(options, "driver", driver);
    options_set(options, "server.host", host);
    options_set(options, "path", path);
    if (g_uri_get_port(uri) > 0) {
        g_autofree char *port = g_strdup_printf("%d", g_uri_get_port(uri));
        options_set(options, "server.port", port);
    }
    return options;
}

/* CacheSource. */
static int fetch(void *opaque, uint64_t offset, uint64_t bytes, CachePut put, void *sink, CacheFailure *ret)
{
    RemoteNode *s = opaque;
    const uint64_t piece = s->info.piece;
    g_autofree uint8_t *buf = g_malloc(MIN(bytes, piece));
    int result = 0;
    while (result == 0 && bytes > 0) {
        const uint64_t n = MIN(bytes, piece);
        const RemoteCall call = {
            .op = REMOTE_READ, .offset = offset, .bytes = n, .data = buf, .wait_s = s->wait_s};
        result = s->module->call(s->source, &call, ret);
        if (result == 0 && !put(sink, buf, n)) {
            result = -ECANCELED;
        } else if (result == -EHOSTUNREACH && ret->final) {
            result = -EIO;
        }
        offset += n;
        bytes -= n;
    }
    return result;
}

static void stop(void *opaque)
{
    RemoteNode *s = opaque;
    s->module->interrupt(s->source, true);
}

/* With the lock held, as the next. */
static void note_lost(RemoteNode *s, const char *why, bool again)
{
    s->counts.failures++;
    outage_note_failure(&s->outage, s->name, &s->counts, why, again, false);
}

static void note_answer(RemoteNode *s)
{
    s->answered = g_get_monotonic_time();
    outage_note_answer(&s->outage, s->name, &s->counts);
}

/* Waits before another try. */
static void pause_after(RemoteNode *s, unsigned tries, int64_t deadline)
{
    const unsigned ms = MIN(PAUSE_MIN_MS << MIN(tries, 10), PAUSE_MAX_MS);
    const int64_t until = MIN(g_get_monotonic_time() + (int64_t)ms * 1000, deadline);
    const struct timespec end = {until / 1000000, until % 1000000 * 1000};
    pthread_cond_timedwait(&s->change, &s->lock, &end);
}

/* One call, again while the server is away, with the lock held but while it waits. */
static int try_until(RemoteNode *s, RemoteCall *call)
{
    const int64_t deadline = g_get_monotonic_time() + (int64_t)s->deadline_s * G_USEC_PER_SEC;
    const unsigned interrupts = s->interrupts;
    int64_t now;
    for (unsigned tries = 0; (now = g_get_monotonic_time()) < deadline || tries == 0; tries++) {
        CacheFailure failure = {0};
        call->wait_s = MAX(1, (deadline - now) / G_USEC_PER_SEC);
        pthread_mutex_unlock(&s->lock);
        const int ret = s->module->call(s->source, call, &failure);
        pthread_mutex_lock(&s->lock);
        if (call->op == REMOTE_READ && s->interrupts != interrupts) {
            return -ECANCELED;
        }
        if (ret != -EHOSTUNREACH || failure.final) {
            note_answer(s);
            return failure.final ? -EIO : ret;
        }
        note_lost(s, failure.text, tries > 0);
        pause_after(s, tries, deadline);
        if (call->op == REMOTE_READ && s->interrupts != interrupts) {
            return -ECANCELED;
        }
    }
    return -ETIMEDOUT;
}

static int direct(RemoteNode *s, RemoteCall *call)
{
    const bool writes = call->op != REMOTE_READ;
    pthread_mutex_lock(&s->lock);
    if (s->calls++ == 0) {
        s->answered = g_get_monotonic_time();
    }
    s->writes += writes;
    const int ret = try_until(s, call);
    s->writes -= writes;
    s->calls--;
    if (ret == 0 && !writes) {
        s->counts.served += call->bytes;
        s->counts.fetched += call->bytes;
        s->counts.misses++;
    }
    pthread_mutex_unlock(&s->lock);
    return ret;
}

static int direct_flush(RemoteNode *s)
{
    RemoteCall call = {.op = REMOTE_FLUSH};
    return s->info.flush ? direct(s, &call) : 0;
}

/* A read or a write in pieces that the server takes. */
static int transfer(RemoteNode *s, RemoteOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                    int niov, bool fua)
{
    const size_t most = MIN(bytes, s->info.most);
    g_autofree uint8_t *bounce = niov == 1 ? NULL : g_malloc(most);
    int ret = 0;
    for (uint64_t done = 0; ret == 0 && done < bytes; done += most) {
        const size_t n = MIN(most, bytes - done);
        uint8_t *data = bounce ? bounce : (uint8_t *)iov[0].iov_base + done;
        RemoteCall call = {
            .op = op, .offset = offset + done, .bytes = n, .data = data, .fua = fua && s->info.fua};
        if (bounce && op == REMOTE_WRITE) {
            iov_to_buf(iov, niov, done, bounce, n);
        }
        ret = direct(s, &call);
        if (ret == 0 && bounce && op == REMOTE_READ) {
            iov_from_buf(iov, niov, done, bounce, n);
        }
    }
    return ret == 0 && fua && !s->info.fua ? direct_flush(s) : ret;
}

int remote_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    RemoteNode *s = state_of(node);
    if (!g_atomic_int_get(&s->direct)) {
        return block_cache_preadv(s->cache, offset, bytes, iov, niov);
    }
    return transfer(s, REMOTE_READ, offset, bytes, iov, niov, false);
}

int remote_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    RemoteNode *s = state_of(node);
    return g_atomic_int_get(&s->direct) ? -EAGAIN : block_cache_read_now(s->cache, offset, bytes, iov, niov);
}

bool remote_claim_write(BlockNode *node, GError **error)
{
    g_atomic_int_set(&state_of(node)->direct, 1);
    return true;
}

int remote_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                   BlockFlags flags)
{
    RemoteNode *s = state_of(node);
    g_atomic_int_set(&s->direct, 1);
    return transfer(s, REMOTE_WRITE, offset, bytes, iov, niov, flags & BLOCK_FUA);
}

int remote_flush(BlockNode *node)
{
    return direct_flush(state_of(node));
}

int remote_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    RemoteNode *s = state_of(node);
    int ret = s->info.discard ? 0 : -ENOTSUP;
    g_atomic_int_set(&s->direct, 1);
    while (ret == 0 && bytes > 0) {
        RemoteCall call = {.op = REMOTE_DISCARD, .offset = offset, .bytes = MIN(bytes, SPAN_MAX)};
        ret = direct(s, &call);
        offset += call.bytes;
        bytes -= call.bytes;
    }
    return ret;
}

int remote_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags)
{
    RemoteNode *s = state_of(node);
    const bool fua = flags & BLOCK_FUA;
    int ret = s->info.zero ? 0 : -ENOTSUP;
    g_atomic_int_set(&s->direct, 1);
    while (ret == 0 && bytes > 0) {
        RemoteCall call = {.op = REMOTE_ZERO,
                           .offset = offset,
                           .bytes = MIN(bytes, SPAN_MAX),
                           .unmap = flags & BLOCK_MAY_UNMAP,
                           .fua = fua && s->info.fua};
        ret = direct(s, &call);
        offset += call.bytes;
        bytes -= call.bytes;
    }
    return ret == 0 && fua && !s->info.fua ? direct_flush(s) : ret;
}

int remote_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status)
{
    RemoteNode *s = state_of(node);
    *ret_bytes = bytes;
    *ret_status = BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED;
    return s->module->status ? s->module->status(s->source, offset, bytes, ret_bytes, ret_status) : 0;
}

void remote_interrupt(BlockNode *node)
{
    RemoteNode *s = state_of(node);
    if (!s) { /* still opening */
        return;
    }
    block_cache_interrupt(s->cache);
    pthread_mutex_lock(&s->lock);
    s->interrupts++;
    pthread_cond_broadcast(&s->change);
    const bool reads = s->calls > 0 && s->writes == 0;
    pthread_mutex_unlock(&s->lock);
    if (reads) {
        s->module->interrupt(s->source, false);
    }
}

void remote_stats(BlockNode *node, BlockRemoteStats *ret)
{
    RemoteNode *s = state_of(node);
    const int64_t now = g_get_monotonic_time();
    *ret = (BlockRemoteStats){0};
    block_cache_stats(s->cache, ret);
    pthread_mutex_lock(&s->lock);
    ret->served += s->counts.served;
    ret->fetched += s->counts.fetched;
    ret->misses += s->counts.misses;
    ret->failures += s->counts.failures;
    if (s->outage.since) {
        ret->state = BLOCK_REMOTE_RETRYING;
        ret->since_us = now - s->outage.since;
    } else if (s->calls > 0 && now - s->answered > WAIT_TELL_US) {
        ret->state = BLOCK_REMOTE_STALLED;
        ret->since_us = now - s->answered;
    }
    pthread_mutex_unlock(&s->lock);
}

static void remote_free(RemoteNode *s)
{
    if (s->cache) {
        block_cache_free(s->cache); /* which stops the source */
    }
    if (s->source) {
        s->module->close(s->source);
    }
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    g_free(s->info.stamp);
    g_free(s->info.told);
    g_free(s->name);
    g_free(s);
}

void remote_close(BlockNode *node)
{
    remote_free(state_of(node));
}

/* Opens the source, again for as long as it was said. */
static bool open_source(RemoteNode *s, const RemoteOpen *how, bool write, GError **error)
{
    const int64_t end = g_get_monotonic_time() + (int64_t)how->open_for_s * G_USEC_PER_SEC;
    for (;;) {
        g_autoptr(GError) why = NULL;
        s->source = s->module->open(how->config, write, &s->info, &why);
        if (s->source) {
            return true;
        }
        if (g_get_monotonic_time() + OPEN_PAUSE_US > end) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        g_usleep(OPEN_PAUSE_US);
    }
}

static bool start(RemoteNode *s, BlockNode *node, const RemoteOpen *how, GError **error)
{
    const bool write = block_node_wants_write(node);
    s->module = block_module_get(how->loader, error);
    if (!s->module || !open_source(s, how, write, error)) {
        return false;
    }
    if (s->info.told) {
        log_warn("%s: %s", s->name, s->info.told);
    }
    if (write && s->info.read_only && !block_node_auto_read_only(node)) {
        return error_set(error, "%s", how->denied);
    }
    if (s->info.piece == 0 || s->info.most < MAX(s->info.align, s->info.piece)) {
        return error_set(error, "'%s' cannot be read in pieces that make sense", s->name);
    }
    const CacheSource source = {.opaque = s, .fetch = fetch, .stop = stop};
    g_autofree char *identity =
        s->info.stamp ? g_strdup_printf("%s\n%" G_GUINT64_FORMAT "\n%s", s->name, s->info.size, s->info.stamp)
                      : NULL;
    s->cache = block_cache_new(how->cache, &source, s->name, identity, s->info.size, false, error);
    return s->cache != NULL;
}

bool remote_open(BlockNode *node, const RemoteOpen *how, GError **error)
{
    RemoteNode *s = g_new0(RemoteNode, 1);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->change, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
    s->name = g_strdup(how->name);
    s->wait_s = how->wait_s;
    s->deadline_s = how->cache->deadline_s;
    block_node_set_filename(node, how->name);
    if (!start(s, node, how, error)) {
        remote_free(s);
        return false;
    }
    *(RemoteNode **)node->state = s;
    node->info.size = s->info.size;
    node->info.align = MAX(s->info.align, 1);
    node->info.read_only = s->info.read_only;
    node->info.slow = how->cache->readahead == 0; /* else the cache reads ahead */
    return true;
}
