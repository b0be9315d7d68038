/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's notifications about devices (uevents), straight from its netlink socket: no udev daemon is
 * needed. One socket per process, opened by the first listener and closed with the last; a listener is told
 * on the loop thread. Loop thread only.
 */
#ifndef SPINDLE_UTIL_UEVENT_H
#define SPINDLE_UTIL_UEVENT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct UeventListener UeventListener;

/* One notification: a view into the received message, valid inside the call. */
typedef struct Uevent {
    const char *action;  /* "add", "change", "remove", … */
    const char *devname; /* "sr0", as below /dev; "" if the device has no node */
    const char *text;    /* the KEY=VALUE strings, each ended by NUL */
    size_t size;         /* bytes of `text` */
} Uevent;

/* `event` NULL: notifications were lost (the socket's buffer ran over); look for yourself. */
typedef void (*UeventFunc)(const Uevent *event, void *opaque);

/* Tells `func` about block device events. NULL and an error where the kernel's socket is not to be had. */
UeventListener *uevent_listen(UeventFunc func, void *opaque, GError **error);

/* No call comes after this. NULL is allowed; may be called from inside `func`. */
void uevent_unlisten(UeventListener *listener);

/* The value of KEY in the event, or NULL. */
const char *uevent_get(const Uevent *event, const char *key);

/* Takes a kernel message apart (`buf` ends with NUL behind `size` bytes). False if it is not a block
 * device's. Pure; any thread. */
bool uevent_parse(const char *buf, size_t size, Uevent *ret);

#endif
