/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "block/nbdmod-int.h"

#define TICK_MS      1000
#define CONNECT_MS   50
#define PIECE        ((uint32_t)256 * 1024)
#define MOST         ((uint32_t)1024 * 1024)
#define MOST_DEFAULT ((uint64_t)32 * 1024 * 1024) /* where a server does not say: the protocol's */
#define ALIGN_MAX    65536

void nbdmod_connection_unref(NbdSource *s, NbdConnection *c)
{
    if (--c->refs == 0) {
        pthread_mutex_unlock(&s->lock);
        if (!c->dead && nbd_aio_is_ready(c->handle) == 1) {
            nbd_aio_disconnect(c->handle, 0);
        }
        nbd_close(c->handle);
        g_free(c);
        pthread_mutex_lock(&s->lock);
    }
}

void nbdmod_connection_kill(NbdSource *s, NbdConnection *c)
{
    c->dead = true;
    if (s->connection == c) {
        s->connection = NULL;
        nbdmod_connection_unref(s, c);
    }
    pthread_cond_broadcast(&s->change);
}

void nbdmod_kick(NbdSource *s)
{
    const uint64_t one = 1;
    G_GNUC_UNUSED ssize_t n = write(s->kick, &one, sizeof one);
}

/* Lets the connection do what it can, waiting for it a little. With the lock held, open meanwhile. */
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
        nbdmod_connection_kill(s, c);
    }
    pthread_cond_broadcast(&s->change);
}

int nbdmod_wait(NbdSource *s, NbdConnection *c, const bool *done, unsigned wait_s, bool interruptible)
{
    const unsigned interrupts = s->interrupts;
    while (!*done && !c->dead) {
        if (s->stopped || (interruptible && s->interrupts != interrupts)) {
            return -ECANCELED;
        }
        if (g_get_monotonic_time() - c->progress > (int64_t)wait_s * G_USEC_PER_SEC) {
            nbdmod_connection_kill(s, c);
        } else if (!s->polling) {
            poll_once(s, c);
        } else {
            pthread_cond_wait(&s->change, &s->lock);
        }
    }
    return *done ? 0 : -EHOSTUNREACH;
}

const char *nbdmod_message(void)
{
    const char *text = nbd_get_error();
    return text ? text : "Connection to the server was lost";
}

static int set_tls(struct nbd_handle *handle, const TlsCreds *tls)
{
    if (nbd_set_tls(handle, LIBNBD_TLS_REQUIRE) < 0 || nbd_set_tls_verify_peer(handle, tls->verify) < 0) {
        return -1;
    }
    if (tls->psk) {
        g_autofree char *keys = g_build_filename(tls->dir, "keys.psk", NULL);
        return nbd_set_tls_username(handle, tls->user) < 0 ? -1 : nbd_set_tls_psk_file(handle, keys);
    }
    return nbd_set_tls_certificates(handle, tls->dir);
}

static struct nbd_handle *new_handle(const NbdSource *s)
{
    struct nbd_handle *handle = nbd_create();
    if (handle &&
        (nbd_set_export_name(handle, s->export_name) < 0 || (s->tls && set_tls(handle, s->tls) < 0) ||
         nbd_add_meta_context(handle, NBDMOD_CONTEXT) < 0 || nbd_set_pread_initialize(handle, false) < 0)) {
        nbd_close(handle);
        return NULL;
    }
    return handle;
}

static bool is_stopped(NbdSource *s)
{
    pthread_mutex_lock(&s->lock);
    const bool stopped = s->stopped;
    pthread_mutex_unlock(&s->lock);
    return stopped;
}

/* Connects, without the lock. NULL and why. */
static struct nbd_handle *connect_handle(NbdSource *s, CacheFailure *failure)
{
    struct nbd_handle *handle = new_handle(s);
    const int64_t end = g_get_monotonic_time() + (int64_t)s->timeout_s * G_USEC_PER_SEC;
    int ret = -1;
    if (handle) {
        ret = s->path ? nbd_aio_connect_unix(handle, s->path) : nbd_aio_connect_tcp(handle, s->host, s->port);
    }
    while (ret >= 0 && !nbd_aio_is_ready(handle)) {
        if (is_stopped(s) || nbd_aio_is_dead(handle) || nbd_aio_is_closed(handle)) {
            ret = -1;
        } else if (g_get_monotonic_time() > end) {
            g_snprintf(failure->text, sizeof failure->text, "No answer for %u seconds", s->timeout_s);
            nbd_close(handle);
            return NULL;
        } else {
            ret = nbd_poll(handle, CONNECT_MS);
        }
    }
    if (ret < 0) {
        g_strlcpy(failure->text, nbdmod_message(), sizeof failure->text);
        nbd_close(handle);
        return NULL;
    }
    return handle;
}

/* What the export is and can; false and why when it cannot be used. */
static bool read_info(struct nbd_handle *h, RemoteInfo *ret, CacheFailure *failure)
{
    const int64_t size = nbd_get_size(h), least = nbd_get_block_size(h, LIBNBD_SIZE_MINIMUM),
                  most = nbd_get_block_size(h, LIBNBD_SIZE_MAXIMUM);
    if (size < 0) {
        g_strlcpy(failure->text, nbdmod_message(), sizeof failure->text);
        return false;
    }
    ret->size = size;
    ret->align = least > 0 ? least : 1;
    if (ret->align > ALIGN_MAX || (ret->align & (ret->align - 1)) || (most > 0 && most < ret->align)) {
        g_snprintf(failure->text, sizeof failure->text,
                   "The server wants blocks of %" G_GINT64_FORMAT " bytes", least);
        return false;
    }
    ret->most = MIN(most > 0 ? (uint64_t)most : MOST_DEFAULT, MOST);
    ret->piece = MIN(ret->most, PIECE);
    ret->read_only = nbd_is_read_only(h) == 1;
    ret->fua = nbd_can_fua(h) == 1;
    ret->flush = nbd_can_flush(h) == 1;
    ret->discard = nbd_can_trim(h) == 1;
    ret->zero = nbd_can_zero(h) == 1;
    return true;
}

/* An export that is no longer what it was is not used. */
static bool fits(const NbdSource *s, const RemoteInfo *now, CacheFailure *failure)
{
    const RemoteInfo *then = &s->info;
    const char *text = NULL;
    if (then->piece == 0) {
        return true;
    }
    if (now->size != then->size) {
        text = "The export has another size than before";
    } else if (s->write && now->read_only && !then->read_only) {
        text = "The export became read-only";
    } else if (now->align > then->align || now->most < then->most || (then->fua && !now->fua) ||
               (then->zero && !now->zero)) {
        text = "The server can do less than before";
    }
    if (text) {
        failure->final = true;
        g_strlcpy(failure->text, text, sizeof failure->text);
    }
    return !text;
}

NbdConnection *nbdmod_connection_get(NbdSource *s, CacheFailure *failure)
{
    while (s->connecting && !s->stopped) {
        pthread_cond_wait(&s->change, &s->lock);
    }
    if (s->stopped) {
        return NULL;
    }
    if (!s->connection) {
        RemoteInfo info = {0};
        s->connecting = true;
        pthread_mutex_unlock(&s->lock);
        struct nbd_handle *handle = connect_handle(s, failure);
        if (handle && (!read_info(handle, &info, failure) || !fits(s, &info, failure))) {
            nbd_close(handle);
            handle = NULL;
        }
        pthread_mutex_lock(&s->lock);
        s->connecting = false;
        pthread_cond_broadcast(&s->change);
        if (!handle) {
            return NULL;
        }
        if (s->info.piece == 0) {
            s->info = info;
        }
        NbdConnection *c = g_new0(NbdConnection, 1);
        c->handle = handle;
        c->refs = 1;
        c->progress = g_get_monotonic_time();
        s->connection = c;
    }
    s->connection->refs++;
    return s->connection;
}
