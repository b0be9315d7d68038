/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Events that may come in masses, thinned out as in QEMU: the first of a key goes out at once; for a second
 * after it only the last one is kept, and goes out then. Loop thread.
 */
#ifndef SPINDLE_MONITOR_EVENT_LIMITER_H
#define SPINDLE_MONITOR_EVENT_LIMITER_H

#include <json-glib/json-glib.h>

typedef struct EventLimiter EventLimiter;

/* The event stays the caller's. */
typedef void (*EventEmit)(JsonNode *event, void *opaque);

EventLimiter *event_limiter_new(EventEmit emit, void *opaque);
void event_limiter_free(EventLimiter *limiter); /* what waits is dropped. NULL is allowed */

/* `event` stays the caller's. */
void event_limiter_pass(EventLimiter *limiter, const char *key, JsonNode *event);

/* As if none of the key had ever come. */
void event_limiter_forget(EventLimiter *limiter, const char *key);

#endif
