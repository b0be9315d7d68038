/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The human monitor on a connection: a prompt, lines, their answers. At a terminal lines are edited, with
 * history and completion; elsewhere they are taken as they come. One command at a time. Loop thread.
 */
#ifndef SPINDLE_MONITOR_CONSOLE_H
#define SPINDLE_MONITOR_CONSOLE_H

#include <stdbool.h>

typedef struct Console Console;

/* What stands behind it. */
typedef struct ConsoleOps {
    const char *prompt;
    bool endless; /* the end of a terminal's input, Ctrl-D, says nothing */
    bool echo;    /* of a connection that is no terminal here: there may be one at its other end */
    /* Runs a line; `done` gets its text, inside or later, once, also when the console is gone by then. */
    void (*run)(const char *line, void (*done)(const char *text, void *done_opaque), void *done_opaque,
                void *opaque);
    /* The words that may stand behind `before` and begin with `word`; free with g_strfreev(). */
    char **(*complete)(const char *before, const char *word, void *opaque);
    /* The other side has gone; the owner then frees the console. */
    void (*closed)(Console *console, void *opaque);
} ConsoleOps;

/* Both descriptors become the console's; `ops` has to stay. */
Console *console_new(const ConsoleOps *ops, void *opaque, const char *greeting, int in, int out);

/* At any time. NULL is allowed. */
void console_free(Console *console);

#endif
