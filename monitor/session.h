/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One client of a QMP server.
 *
 *   NEGOTIATING --- qmp_capabilities ---> READY
 *        |                                  |
 *        +------- gone, or too long --------+---> CLOSING
 *
 * NEGOTIATING: greeted; only qmp_capabilities is obeyed, no events. READY: commands in order, one at a time;
 * events. CLOSING: nothing is read or sent any more; a command that is still under way ends by itself.
 *
 * What a client can make it hold is bounded: one value of JSON_MAX_SIZE, and what it has not read of the
 * answers: no command is taken while that is much, and events are dropped while it is more. Loop thread.
 */
#ifndef SPINDLE_MONITOR_SESSION_H
#define SPINDLE_MONITOR_SESSION_H

#include "monitor/monitor.h"

typedef struct QmpSession QmpSession;

/* Greets. `closed` runs when the client has gone; the owner then frees the session. */
QmpSession *qmp_session_new(Monitor *monitor, int in, int out, bool pretty,
                            void (*closed)(QmpSession *session, void *opaque), void *opaque);

/* At any time. NULL is allowed. */
void qmp_session_free(QmpSession *session);

/* An event for this client; `event` stays the caller's. */
void qmp_session_event(QmpSession *session, JsonNode *event);

#endif
