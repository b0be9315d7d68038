/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The nbd module: commands.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "block/nbdmod-int.h"
#include "util/error.h"

/* A command on its way, with what libnbd may still read from or write to after the caller has given up: freed
 * when both are through with it. The source's lock. */
typedef struct NbdCommand {
    NbdSource *source;
    gint refs; /* atomic */
    bool done;
    int error; /* positive errno */
    /* block status */
    uint64_t bytes;
    uint32_t flags;
    bool has_status;
    uint8_t data[];
} NbdCommand;

static NbdCommand *command_new(NbdSource *s, size_t bytes)
{
    NbdCommand *command = g_malloc(sizeof *command + bytes);
    *command = (NbdCommand){.source = s, .refs = 1};
    return command;
}

static void command_unref(void *opaque)
{
    NbdCommand *command = opaque;
    if (g_atomic_int_dec_and_test(&command->refs)) {
        g_free(command);
    }
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

static nbd_completion_callback completion(NbdCommand *command)
{
    g_atomic_int_inc(&command->refs);
    return (nbd_completion_callback){.callback = on_done, .user_data = command, .free = command_unref};
}

/* Ends a command: 0, or -errno and why. With the lock held. */
static int finish(NbdSource *s, NbdConnection *c, NbdCommand *command, unsigned wait_s, bool interruptible,
                  CacheFailure *failure)
{
    const int ret = nbdmod_wait(s, c, &command->done, wait_s, interruptible);
    if (ret < 0) {
        g_strlcpy(failure->text, ret == -ECANCELED ? "Stopped" : "Connection to the server was lost",
                  sizeof failure->text);
        return ret;
    }
    if (command->error) {
        g_snprintf(failure->text, sizeof failure->text, "Server reports: %s", g_strerror(command->error));
        /* How libnbd ends what is under way when the connection breaks; a server that shuts down. */
        const bool lost = c->dead || command->error == ENOTCONN || command->error == ESHUTDOWN;
        return lost ? -EHOSTUNREACH : -command->error;
    }
    return 0;
}

/* Without the lock. -1: see nbdmod_message(). */
static int64_t send_command(struct nbd_handle *h, const RemoteCall *call, NbdCommand *command)
{
    const uint32_t fua = call->fua ? LIBNBD_CMD_FLAG_FUA : 0;
    const nbd_completion_callback done = completion(command);
    switch (call->op) {
    case REMOTE_READ:
        return nbd_aio_pread(h, command->data, call->bytes, call->offset, done, 0);
    case REMOTE_WRITE:
        return nbd_aio_pwrite(h, command->data, call->bytes, call->offset, done, fua);
    case REMOTE_FLUSH:
        return nbd_aio_flush(h, done, 0);
    case REMOTE_DISCARD:
        return nbd_aio_trim(h, call->bytes, call->offset, done, 0);
    case REMOTE_ZERO:
        break;
    }
    return nbd_aio_zero(h, call->bytes, call->offset, done,
                        fua | (call->unmap ? 0 : LIBNBD_CMD_FLAG_NO_HOLE));
}

static int issue(NbdSource *s, NbdConnection *c, const RemoteCall *call, NbdCommand *command,
                 CacheFailure *failure)
{
    c->progress = MAX(c->progress, g_get_monotonic_time());
    pthread_mutex_unlock(&s->lock);
    const int64_t cookie = send_command(c->handle, call, command);
    const int error = cookie < 0 ? nbd_get_errno() : 0;
    const bool lost = nbd_aio_is_dead(c->handle) || nbd_aio_is_closed(c->handle);
    if (cookie < 0) {
        g_strlcpy(failure->text, lost ? "Connection to the server was lost" : nbdmod_message(),
                  sizeof failure->text);
    }
    nbdmod_kick(s);
    pthread_mutex_lock(&s->lock);
    if (cookie >= 0) {
        return finish(s, c, command, call->wait_s, call->op == REMOTE_READ, failure);
    }
    if (!lost && (error == EINVAL || error == ERANGE || error == EPERM)) {
        return -error;
    }
    nbdmod_connection_kill(s, c);
    return -EHOSTUNREACH;
}

static int module_call(void *source, const RemoteCall *call, CacheFailure *ret)
{
    NbdSource *s = source;
    NbdCommand *command = command_new(s, call->data ? call->bytes : 0);
    if (call->op == REMOTE_WRITE) {
        memcpy(command->data, call->data, call->bytes);
    }
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = nbdmod_connection_get(s, ret);
    int result = s->stopped ? -ECANCELED : -EHOSTUNREACH;
    if (c) {
        result = issue(s, c, call, command, ret);
        nbdmod_connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    if (result == 0 && call->op == REMOTE_READ) {
        memcpy(call->data, command->data, call->bytes);
    }
    command_unref(command);
    return result;
}

static int on_extent(void *opaque, const char *context, uint64_t offset, uint32_t *entries, size_t count,
                     int *error)
{
    NbdCommand *command = opaque;
    if (!strcmp(context, NBDMOD_CONTEXT) && count >= 2) {
        pthread_mutex_lock(&command->source->lock);
        command->has_status = true;
        command->bytes = entries[0];
        command->flags = entries[1];
        pthread_mutex_unlock(&command->source->lock);
    }
    return 0;
}

static bool ask_status(NbdSource *s, uint64_t offset, uint64_t bytes, NbdCommand *command)
{
    CacheFailure failure = {0};
    bool good = false;
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = nbdmod_connection_get(s, &failure);
    if (c) {
        c->progress = MAX(c->progress, g_get_monotonic_time());
        pthread_mutex_unlock(&s->lock);
        int64_t cookie = -1;
        if (nbd_can_meta_context(c->handle, NBDMOD_CONTEXT) == 1) {
            g_atomic_int_inc(&command->refs);
            const nbd_extent_callback extent = {
                .callback = on_extent, .user_data = command, .free = command_unref};
            cookie = nbd_aio_block_status(c->handle, MIN(bytes, G_MAXUINT32 & ~65535u), offset, extent,
                                          completion(command), 0);
            nbdmod_kick(s);
        }
        pthread_mutex_lock(&s->lock);
        good = cookie >= 0 && finish(s, c, command, s->timeout_s, true, &failure) == 0 &&
               command->has_status && command->bytes > 0;
        nbdmod_connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

static int module_status(void *source, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                         unsigned *ret_status)
{
    NbdCommand *command = command_new(source, 0);
    if (ask_status(source, offset, bytes, command)) {
        *ret_bytes = MIN(bytes, command->bytes);
        *ret_status = (command->flags & LIBNBD_STATE_ZERO ? BLOCK_STATUS_ZERO : BLOCK_STATUS_DATA) |
                      (command->flags & LIBNBD_STATE_HOLE ? 0 : BLOCK_STATUS_ALLOCATED);
    }
    command_unref(command);
    return 0;
}

static void module_interrupt(void *source, bool for_good)
{
    NbdSource *s = source;
    pthread_mutex_lock(&s->lock);
    s->interrupts++;
    s->stopped |= for_good;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    nbdmod_kick(s);
}

static void module_close(void *source)
{
    NbdSource *s = source;
    if (s->connection) {
        pthread_mutex_lock(&s->lock);
        nbdmod_connection_unref(s, s->connection);
        pthread_mutex_unlock(&s->lock);
    }
    close(s->kick);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    g_free(s->host);
    g_free(s->port);
    g_free(s->path);
    g_free(s->export_name);
    if (s->tls) {
        g_free(s->tls->dir);
        g_free(s->tls->user);
        g_free(s->tls);
    }
    g_free(s);
}

static NbdSource *source_new(const NbdConfig *config, bool write)
{
    NbdSource *s = g_new0(NbdSource, 1);
    s->host = g_strdup(config->host);
    s->port = g_strdup(config->port);
    s->path = g_strdup(config->path);
    s->export_name = g_strdup(config->export_name);
    if (config->tls) {
        s->tls = g_new(TlsCreds, 1);
        *s->tls = *config->tls;
        s->tls->dir = g_strdup(config->tls->dir);
        s->tls->user = g_strdup(config->tls->user);
    }
    s->timeout_s = config->timeout_s;
    s->write = write;
    s->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    return s;
}

static void *module_open(const void *opaque, bool write, RemoteInfo *ret, GError **error)
{
    NbdSource *s = source_new(opaque, write);
    CacheFailure failure = {0};
    pthread_mutex_lock(&s->lock);
    NbdConnection *c = nbdmod_connection_get(s, &failure);
    if (c) {
        nbdmod_connection_unref(s, c);
    }
    pthread_mutex_unlock(&s->lock);
    if (!c) {
        error_set(error, "Failed to connect to '%s%s%s': %s", s->path ? s->path : s->host, s->path ? "" : ":",
                  s->path ? "" : s->port, failure.text);
        module_close(s);
        return NULL;
    }
    *ret = s->info;
    return s;
}

extern const RemoteModule spindle_nbd_module;
const RemoteModule spindle_nbd_module = {
    .abi = REMOTE_MODULE_ABI,
    .open = module_open,
    .call = module_call,
    .status = module_status,
    .interrupt = module_interrupt,
    .close = module_close,
};
