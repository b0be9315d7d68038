/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The nbd module. One connection carries the commands of all threads. Of the threads that wait for an answer
 * one polls for all; the others sleep.
 */
#include <errno.h>
#include <libnbd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "block/nbd.h"
#include "util/error.h"

#define PIECE   ((uint64_t)256 * 1024)
#define TICK_MS 1000
#define CONTEXT LIBNBD_CONTEXT_BASE_ALLOCATION

typedef struct NbdConnection {
    struct nbd_handle *handle;
    unsigned refs;
    bool dead;
    int64_t progress; /* us: when the server last did something */
} NbdConnection;

struct NbdSource {
    char *host, *port, *path, *export_name;
    unsigned timeout_s;
    uint64_t size;
    int kick; /* eventfd: wakes the one that polls */

    pthread_mutex_t lock;
    pthread_cond_t change; /* monotonic clock */
    NbdConnection *connection;
    bool connecting, polling, stopped;
};

/* A command on its way. The source's lock. */
typedef struct NbdCommand {
    NbdSource *source;
    bool done;
    int error; /* positive errno */
    /* block status */
    uint64_t bytes;
    uint32_t flags;
    bool has_status;
} NbdCommand;

/* With the lock held, open while libnbd lets go of what was on its way: that calls back. */
static void connection_unref(NbdSource *s, NbdConnection *c)
{
    if (--c->refs == 0) {
        pthread_mutex_unlock(&s->lock);
        nbd_close(c->handle);
        g_free(c);
        pthread_mutex_lock(&s->lock);
    }
}

static void connection_kill(NbdSource *s, NbdConnection *c)
{
    c->dead = true;
    if (s->connection == c) {
        s->connection = NULL;
        pthread_cond_broadcast(&s->change);
        connection_unref(s, c);
    }
    pthread_cond_broadcast(&s->change);
}

static void kick(NbdSource *s)
{
    const uint64_t one = 1;
    G_GNUC_UNUSED ssize_t n = write(s->kick, &one, sizeof one);
}

/* Lets the connection do what it can, waiting for it a little. With the lock held, open meanwhile: libnbd
 * calls back with its own lock held, so ours must not be held when it is called. */
static void poll_once(NbdSource *s, NbdConnection *c)
{
    s->polling = true;
    pthread_mutex_unlock(&s->lock);
    const unsigned direction = nbd_aio_get_direction(c->handle);
    struct pollfd fds[2] = {{nbd_aio_get_fd(c->handle), 0, 0}, {s->kick, POLLIN, 0}};
    fds[0].events = (direction & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
                    (direction & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0);
    const int n = poll(fds, 2, TICK_MS);
    uint64_t count;
    if (n > 0 && fds[1].revents) {
        G_GNUC_UNUSED ssize_t got = read(s->kick, &count, sizeof count);
    }
    int ret = 0;
    if (n > 0 && fds[0].revents & (POLLIN | POLLHUP) && direction & LIBNBD_AIO_DIRECTION_READ) {
        ret = nbd_aio_notify_read(c->handle);
    } else if (n > 0 && fds[0].revents & POLLOUT) {
        ret = nbd_aio_notify_write(c->handle);
    } else if (n > 0 && fds[0].revents & (POLLERR | POLLNVAL)) {
        ret = -1;
    }
    const bool dead = ret < 0 || nbd_aio_is_dead(c->handle) || nbd_aio_is_closed(c->handle);
    pthread_mutex_lock(&s->lock);
    s->polling = false;
    if (n > 0 && fds[0].revents) {
        c->progress = g_get_monotonic_time();
    }
    if (dead) {
        connection_kill(s, c);
    }
    pthread_cond_broadcast(&s->change);
}

/* Waits until *done, or the connection is of no use: then false. With the lock held. */
static bool wait_for(NbdSource *s, NbdConnection *c, const bool *done)
{
    while (!*done && !c->dead && !s->stopped) {
        if (g_get_monotonic_time() - c->progress > (int64_t)s->timeout_s * G_USEC_PER_SEC) {
            connection_kill(s, c);
        } else if (!s->polling) {
            poll_once(s, c);
        } else {
            pthread_cond_wait(&s->change, &s->lock);
        }
    }
    return *done;
}

static const char *nbd_message(void)
{
    const char *text = nbd_get_error();
    return text ? text : "Connection to the server was lost";
}

static struct nbd_handle *new_handle(const NbdSource *s)
{
    struct nbd_handle *handle = nbd_create();
    if (handle &&
        (nbd_set_export_name(handle, s->export_name) < 0 || nbd_add_meta_context(handle, CONTEXT) < 0)) {
        nbd_close(handle);
        return NULL;
    }
    return handle;
}

/* Connects, without the lock. NULL and why. */
static struct nbd_handle *connect_handle(NbdSource *s, char text[200])
{
    struct nbd_handle *handle = new_handle(s);
    const int64_t end = g_get_monotonic_time() + (int64_t)s->timeout_s * G_USEC_PER_SEC;
    int ret = -1;
    if (handle) {
        ret = s->path ? nbd_aio_connect_unix(handle, s->path) : nbd_aio_connect_tcp(handle, s->host, s->port);
    }
    while (ret >= 0 && !nbd_aio_is_ready(handle)) {
        pthread_mutex_lock(&s->lock);
        const bool stopped = s->stopped;
        pthread_mutex_unlock(&s->lock);
        if (stopped || nbd_aio_is_dead(handle) || nbd_aio_is_closed(handle)) {
            ret = -1;
        } else if (g_get_monotonic_time() > end) {
            g_snprintf(text, 200, "No answer for %u seconds", s->timeout_s);
            nbd_close(handle);
            return NULL;
        } else {
            ret = nbd_poll(handle, 50);
        }
    }
    if (ret < 0) {
        g_strlcpy(text, nbd_message(), 200);
        nbd_close(handle);
        return NULL;
    }
    return handle;
}

/* The connection, with a reference; makes it if there is none. With the lock held. NULL and why. */
static NbdConnection *get_connection(NbdSource *s, CacheFailure *failure)
{
    while (s->connecting && !s->stopped) {
        pthread_cond_wait(&s->change, &s->lock);
    }
    if (s->stopped) {
        return NULL;
    }
    if (!s->connection) {
        s->connecting = true;
        pthread_mutex_unlock(&s->lock);
        struct nbd_handle *handle = connect_handle(s, failure->text);
        const int64_t size = handle ? nbd_get_size(handle) : -1;
        pthread_mutex_lock(&s->lock);
        s->connecting = false;
        pthread_cond_broadcast(&s->change);
        if (!handle) {
            return NULL;
        }
        if (s->size && (uint64_t)size != s->size) {
            failure->final = true;
            g_strlcpy(failure->text, "The export has another size than before", sizeof failure->text);
            pthread_mutex_unlock(&s->lock);
            nbd_close(handle);
            pthread_mutex_lock(&s->lock);
            return NULL;
        }
        NbdConnection *c = g_new0(NbdConnection, 1);
        c->handle = handle;
        c->refs = 1;
        s->connection = c;
    }
    s->connection->refs++;
    return s->connection;
}

static int on_done(void *opaque, int *error)
{
    NbdCommand *command = opaque;
    pthread_mutex_lock(&command->source->lock);
    command->done = true;
    command->error = *error;
    pthread_mutex_unlock(&command->source->lock);
    return 1; /* retire it */
}

/* Ends a command: 0, or -errno and why. With the lock held; afterwards libnbd has forgotten the command. */
static int finish(NbdSource *s, NbdConnection *c, NbdCommand *command, CacheFailure *failure)
{
    if (!wait_for(s, c, &command->done)) {
        /* Its memory is ours again only when the handle is gone. */
        connection_kill(s, c);
        g_strlcpy(failure->text, s->stopped ? "Stopped" : "Connection to the server was lost",
                  sizeof failure->text);
        return s->stopped ? -ECANCELED : -EHOSTUNREACH;
    }
    if (command->error) {
        g_snprintf(failure->text, sizeof failure->text, "Server reports: %s", g_strerror(command->error));
        return -command->error;
    }
    return 0;
}

/* What a command in flight may still write to: freed by libnbd when it is through with it. */
typedef struct NbdRead {
    NbdCommand command;
    gint refs; /* atomic: the caller's, libnbd's */
    uint8_t data[PIECE];
} NbdRead;

static void read_unref(void *opaque)
{
    NbdRead *r = opaque;
    if (g_atomic_int_dec_and_test(&r->refs)) {
        g_free(r);
    }
}

static int read_piece(NbdSource *s, uint64_t offset, size_t bytes, NbdRead *r, CacheFailure *failure)
{
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = get_connection(s, failure);
    int ret = s->stopped ? -ECANCELED : failure->final ? -EIO : -EHOSTUNREACH;
    if (c) {
        c->progress = MAX(c->progress, g_get_monotonic_time());
        pthread_mutex_unlock(&s->lock);
        g_atomic_int_inc(&r->refs);
        const nbd_completion_callback callback = {.callback = on_done, .user_data = r, .free = read_unref};
        const int64_t cookie = nbd_aio_pread(c->handle, r->data, bytes, offset, callback, 0);
        kick(s);
        pthread_mutex_lock(&s->lock);
        if (cookie < 0) {
            g_strlcpy(failure->text, nbd_message(), sizeof failure->text);
            connection_kill(s, c);
        } else {
            ret = finish(s, c, &r->command, failure);
        }
        connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    return ret;
}

static int module_fetch(void *source, uint64_t offset, uint64_t bytes, CachePut put, void *sink,
                        CacheFailure *ret_failure)
{
    NbdSource *s = source;
    int ret = 0;
    while (ret == 0 && bytes > 0) {
        const size_t n = MIN(bytes, PIECE);
        NbdRead *r = g_malloc(sizeof *r);
        r->command = (NbdCommand){.source = s};
        r->refs = 1;
        ret = read_piece(s, offset, n, r, ret_failure);
        if (ret == 0 && !put(sink, r->data, n)) {
            ret = -ECANCELED;
        }
        read_unref(r);
        offset += n;
        bytes -= n;
    }
    return ret;
}

static int on_extent(void *opaque, const char *context, uint64_t offset, uint32_t *entries, size_t count,
                     int *error)
{
    NbdCommand *command = opaque;
    if (!strcmp(context, CONTEXT) && count >= 2) {
        pthread_mutex_lock(&command->source->lock);
        command->has_status = true;
        command->bytes = entries[0];
        command->flags = entries[1];
        pthread_mutex_unlock(&command->source->lock);
    }
    return 0;
}

static bool ask_status(NbdSource *s, uint64_t offset, uint64_t bytes, NbdRead *r)
{
    CacheFailure failure = {0};
    bool good = false;
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = get_connection(s, &failure);
    if (c) {
        c->progress = MAX(c->progress, g_get_monotonic_time());
        pthread_mutex_unlock(&s->lock);
        int64_t cookie = -1;
        if (nbd_can_meta_context(c->handle, CONTEXT) == 1) {
            g_atomic_int_add(&r->refs, 2);
            const nbd_extent_callback extent = {.callback = on_extent, .user_data = r, .free = read_unref};
            const nbd_completion_callback done = {.callback = on_done, .user_data = r, .free = read_unref};
            cookie =
                nbd_aio_block_status(c->handle, MIN(bytes, G_MAXUINT32 & ~65535u), offset, extent, done, 0);
            kick(s);
        }
        pthread_mutex_lock(&s->lock);
        good = cookie >= 0 && finish(s, c, &r->command, &failure) == 0 && r->command.has_status &&
               r->command.bytes > 0;
        connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

static int module_status(NbdSource *s, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                         unsigned *ret_status)
{
    NbdRead *r = g_malloc(sizeof *r);
    r->command = (NbdCommand){.source = s};
    r->refs = 1;
    *ret_bytes = bytes;
    *ret_status = BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED;
    if (ask_status(s, offset, bytes, r)) {
        *ret_bytes = MIN(bytes, r->command.bytes);
        *ret_status = (r->command.flags & LIBNBD_STATE_ZERO ? BLOCK_STATUS_ZERO : BLOCK_STATUS_DATA) |
                      (r->command.flags & LIBNBD_STATE_HOLE ? 0 : BLOCK_STATUS_ALLOCATED);
    }
    read_unref(r);
    return 0;
}

static void module_stop(void *source)
{
    NbdSource *s = source;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    kick(s);
}

static void module_close(NbdSource *s)
{
    if (!s) {
        return;
    }
    if (s->connection) {
        pthread_mutex_lock(&s->lock);
        connection_unref(s, s->connection);
        pthread_mutex_unlock(&s->lock);
    }
    close(s->kick);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    g_free(s->host);
    g_free(s->port);
    g_free(s->path);
    g_free(s->export_name);
    g_free(s);
}

static NbdSource *module_open(const NbdConfig *config, uint64_t *ret_size, GError **error)
{
    NbdSource *s = g_new0(NbdSource, 1);
    CacheFailure failure = {0};
    s->host = g_strdup(config->host);
    s->port = g_strdup(config->port);
    s->path = g_strdup(config->path);
    s->export_name = g_strdup(config->export_name);
    s->timeout_s = config->timeout_s;
    s->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = get_connection(s, &failure);
    pthread_mutex_unlock(&s->lock);
    const int64_t size = c ? nbd_get_size(c->handle) : -1;
    pthread_mutex_lock(&s->lock);
    if (c) {
        connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    if (size < 0) {
        error_set(error, "Failed to connect to '%s%s%s': %s", s->path ? s->path : s->host, s->path ? "" : ":",
                  s->path ? "" : s->port, failure.text);
        module_close(s);
        return NULL;
    }
    s->size = *ret_size = size;
    return s;
}

extern const NbdModule spindle_nbd_module;
const NbdModule spindle_nbd_module = {
    .abi = NBD_MODULE_ABI,
    .open = module_open,
    .fetch = module_fetch,
    .stop = module_stop,
    .status = module_status,
    .close = module_close,
};
