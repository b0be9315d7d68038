/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/serialmod.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include "util/error.h"

/* With the watch lock held. */
static void shut_down(SerialSource *s)
{
    if (s->fd >= 0) {
        shutdown(s->fd, SHUT_RDWR);
    }
}

static void *watch_main(void *opaque)
{
    SerialSource *s = opaque;
    pthread_mutex_lock(&s->watch_lock);
    while (!s->ended) {
        const int64_t deadline = s->deadline;
        if (!deadline) {
            pthread_cond_wait(&s->watch_change, &s->watch_lock);
        } else if (g_get_monotonic_time() >= deadline) {
            shut_down(s);
            s->deadline = 0;
        } else {
            const struct timespec end = {deadline / 1000000, deadline % 1000000 * 1000};
            pthread_cond_timedwait(&s->watch_change, &s->watch_lock, &end);
        }
    }
    pthread_mutex_unlock(&s->watch_lock);
    return NULL;
}

void serialmod_alive(SerialSource *s, unsigned wait_s)
{
    pthread_mutex_lock(&s->watch_lock);
    /* The watch looks at the new deadline when the old one has come. */
    const bool first = !s->deadline;
    s->deadline = g_get_monotonic_time() + (int64_t)wait_s * G_USEC_PER_SEC;
    if (first) {
        pthread_cond_signal(&s->watch_change);
    }
    pthread_mutex_unlock(&s->watch_lock);
}

static void watch_rest(SerialSource *s)
{
    pthread_mutex_lock(&s->watch_lock);
    s->deadline = 0;
    pthread_mutex_unlock(&s->watch_lock);
}

void serialmod_set_fd(SerialSource *s, int fd)
{
    pthread_mutex_lock(&s->watch_lock);
    s->fd = fd;
    if (s->stopped) {
        shut_down(s);
    }
    pthread_mutex_unlock(&s->watch_lock);
}

void serialmod_interrupt(void *source, bool for_good)
{
    SerialSource *s = source;
    pthread_mutex_lock(&s->watch_lock);
    s->stopped |= for_good;
    shut_down(s);
    pthread_mutex_unlock(&s->watch_lock);
}

static bool is_stopped(SerialSource *s)
{
    pthread_mutex_lock(&s->watch_lock);
    const bool stopped = s->stopped;
    pthread_mutex_unlock(&s->watch_lock);
    return stopped;
}

int serialmod_lost(CacheFailure *failure, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_vsnprintf(failure->text, sizeof failure->text, format, args);
    va_end(args);
    return -EHOSTUNREACH;
}

static void info_clear(RemoteInfo *info)
{
    g_free(info->stamp);
    g_free(info->told);
    *info = (RemoteInfo){0};
}

static void disconnect(SerialSource *s)
{
    serialmod_set_fd(s, -1);
    s->ops->disconnect(s);
    s->connected = false;
}

/* What is there now must be what was there at the open; who writes changes its time himself. */
static bool fits(const SerialSource *s, const RemoteInfo *now, CacheFailure *failure)
{
    const RemoteInfo *then = &s->info;
    if (now->size == then->size && (s->write || !g_strcmp0(now->stamp, then->stamp)) &&
        now->align <= MAX(then->align, 1) && now->most >= then->most) {
        return true;
    }
    failure->final = true;
    g_strlcpy(failure->text, "It is not what it was when it was opened", sizeof failure->text);
    return false;
}

/* With the lock held. */
static bool connect_source(SerialSource *s, CacheFailure *failure)
{
    RemoteInfo info = {0};
    serialmod_alive(s, s->wait_s);
    bool good = s->ops->connect(s, &info, failure);
    if (good && s->info.most == 0) {
        s->info = info;
        info = (RemoteInfo){0};
    } else {
        good = good && fits(s, &info, failure);
    }
    info_clear(&info);
    watch_rest(s);
    if (!good) {
        disconnect(s);
    }
    s->connected = good;
    return good;
}

int serialmod_call(void *source, const RemoteCall *call, CacheFailure *ret)
{
    SerialSource *s = source;
    int result = -EHOSTUNREACH;
    pthread_mutex_lock(&s->lock);
    if (is_stopped(s)) {
        result = -ECANCELED;
    } else if (s->connected || connect_source(s, ret)) {
        serialmod_alive(s, call->wait_s);
        result = s->ops->run(s, call, ret);
        watch_rest(s);
        if (result == -EHOSTUNREACH) {
            disconnect(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

void serialmod_close(void *source)
{
    SerialSource *s = source;
    if (s->connected) {
        serialmod_alive(s, 1); /* a server that hangs need not hear that we go */
        disconnect(s);
    }
    if (s->watching) {
        pthread_mutex_lock(&s->watch_lock);
        s->ended = true;
        pthread_cond_signal(&s->watch_change);
        pthread_mutex_unlock(&s->watch_lock);
        pthread_join(s->watch, NULL);
    }
    pthread_cond_destroy(&s->watch_change);
    pthread_mutex_destroy(&s->watch_lock);
    pthread_mutex_destroy(&s->lock);
    info_clear(&s->info);
    s->ops->free(s);
    g_free(s);
}

bool serialmod_start(SerialSource *s, const SerialOps *ops, const char *prefix, RemoteInfo *ret,
                     GError **error)
{
    pthread_condattr_t attr;
    CacheFailure failure = {0};
    s->ops = ops;
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->watch_lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->watch_change, &attr);
    pthread_condattr_destroy(&attr);
    s->watching = pthread_create(&s->watch, NULL, watch_main, s) == 0;
    if (!s->watching) {
        g_strlcpy(failure.text, "no thread can be started", sizeof failure.text);
    } else {
        pthread_mutex_lock(&s->lock);
        connect_source(s, &failure);
        pthread_mutex_unlock(&s->lock);
    }
    if (!s->connected) {
        error_set(error, "%s: %s", prefix, failure.text);
        serialmod_close(s);
        return false;
    }
    *ret = s->info;
    ret->stamp = g_strdup(s->info.stamp);
    ret->told = g_strdup(s->info.told);
    return true;
}
