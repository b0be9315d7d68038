/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The events that clients may get, as their schema describes them. Constant: any thread.
 */
#ifndef SPINDLE_MONITOR_EVENTS_H
#define SPINDLE_MONITOR_EVENTS_H

#include "monitor/qmp.h"

typedef struct QmpEvent {
    const char *name;
    QmpArg args[8];
} QmpEvent;

/* Ends with a NULL name. */
extern const QmpEvent qmp_events[];

#endif
