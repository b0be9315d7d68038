/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/uevent.h"
#include "util/cleanup.h"
#include "util/error.h"
#include <errno.h>
#include <glib-unix.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define KERNEL_GROUP  1    /* the kernel's own messages; 2 would be udev's */
#define MESSAGE_MAX   8192 /* the kernel's limit is 2048 for the variables plus the path */
#define RECEIVE_BYTES (1024 * 1024)

struct UeventListener {
    UeventFunc func; /* NULL: gone, freed when nobody walks the list */
    void *opaque;
};

/* Loop thread. */
static struct {
    GList *listeners;
    guint source;
    int fd;
    bool walking;
} uevents = {.fd = -1};

const char *uevent_get(const Uevent *event, const char *key)
{
    size_t length = strlen(key);
    for (const char *p = event->text; p < event->text + event->size; p += strlen(p) + 1) {
        if (!strncmp(p, key, length) && p[length] == '=') {
            return p + length + 1;
        }
    }
    return NULL;
}

bool uevent_parse(const char *buf, size_t size, Uevent *ret)
{
    size_t header = strnlen(buf, size) + 1; /* ACTION@DEVPATH */
    if (header >= size || !memchr(buf, '@', header)) {
        return false;
    }
    Uevent event = {.text = buf + header, .size = size - header};
    const char *subsystem = uevent_get(&event, "SUBSYSTEM");
    event.action = uevent_get(&event, "ACTION");
    event.devname = uevent_get(&event, "DEVNAME");
    if (!event.action || !subsystem || strcmp(subsystem, "block")) {
        return false;
    }
    if (!event.devname) {
        event.devname = "";
    }
    *ret = event;
    return true;
}

static void sweep(void)
{
    GList *next;
    for (GList *l = uevents.listeners; l; l = next) {
        next = l->next;
        UeventListener *listener = l->data;
        if (!listener->func) {
            g_free(listener);
            uevents.listeners = g_list_delete_link(uevents.listeners, l);
        }
    }
    if (!uevents.listeners && uevents.fd >= 0) {
        g_source_remove(uevents.source);
        close(uevents.fd);
        uevents.fd = -1;
        uevents.source = 0;
    }
}

static void tell_all(const Uevent *event)
{
    uevents.walking = true;
    for (GList *l = uevents.listeners; l; l = l->next) {
        UeventListener *listener = l->data;
        if (listener->func) {
            listener->func(event, listener->opaque);
        }
    }
    uevents.walking = false;
}

/* One message; false when there is none. Only the kernel (port 0) is believed. */
static bool receive_one(int fd)
{
    char buf[MESSAGE_MAX + 1];
    struct sockaddr_nl from = {0};
    struct iovec iov = {buf, MESSAGE_MAX};
    struct msghdr msg = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1};
    ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT);
    if (got < 0 && errno == ENOBUFS) {
        tell_all(NULL);
        return true;
    }
    if (got < 0) {
        return errno == EINTR;
    }
    buf[got] = 0;
    Uevent event;
    if (from.nl_pid == 0 && !(msg.msg_flags & MSG_TRUNC) && uevent_parse(buf, got, &event)) {
        tell_all(&event);
    }
    return true;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer opaque)
{
    for (int n = 0; n < 64 && receive_one(fd); n++) {
    }
    sweep();
    return uevents.fd >= 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static bool open_socket(GError **error)
{
    auto_fd fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    int bytes = RECEIVE_BYTES;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        return error_set_errno(error, errno, "Could not listen to the kernel's device events");
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
    uevents.fd = steal_fd(&fd);
    uevents.source = g_unix_fd_add(uevents.fd, G_IO_IN, on_readable, NULL);
    return true;
}

UeventListener *uevent_listen(UeventFunc func, void *opaque, GError **error)
{
    if (uevents.fd < 0 && !open_socket(error)) {
        return NULL;
    }
    UeventListener *listener = g_new0(UeventListener, 1);
    listener->func = func;
    listener->opaque = opaque;
    uevents.listeners = g_list_append(uevents.listeners, listener);
    return listener;
}

void uevent_unlisten(UeventListener *listener)
{
    if (!listener) {
        return;
    }
    listener->func = NULL;
    if (!uevents.walking) {
        sweep();
    }
}
