/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The human monitor on a connection: a prompt, lines, their answers. At a terminal lines are edited, with
 * history and completion; elsewhere they are taken as they come. One command at a time. Loop thread.
 */
#ifndef SPINDLE_MONITOR_CONSOLE_H
#define SPINDLE_MONITOR_CONSOLE_H

#include "monitor/monitor.h"

typedef struct Console Console;

/* Both descriptors become the console's. `closed` runs when the other side has gone; the owner then frees it.
 */
Console *console_new(Monitor *monitor, int in, int out, void (*closed)(Console *console, void *opaque),
                     void *opaque);

/* At any time. NULL is allowed. */
void console_free(Console *console);

#endif
