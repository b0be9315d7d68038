/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A line that somebody types on the other side of a connection: what they type is echoed, and edited by the
 * keys that QEMU's monitor has. For terminals that send each key as it is pressed (`socat -,raw,echo=0`, a
 * serial line); who sends whole lines sees them again. Loop thread.
 */
#ifndef SPINDLE_MONITOR_LINE_INPUT_H
#define SPINDLE_MONITOR_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct LineInput LineInput;

typedef struct LineInputOps {
    /* For the terminal. */
    void (*write)(const char *text, size_t len, void *opaque);
    /* What may stand behind `before` and begins with `word`; free with g_strfreev(). */
    char **(*complete)(const char *before, const char *word, void *opaque);
} LineInputOps;

LineInput *line_input_new(const char *prompt, const LineInputOps *ops, void *opaque);
void line_input_free(LineInput *input); /* NULL is allowed */

/* Shows the prompt and what is typed so far. */
void line_input_show(LineInput *input);

/* A byte from the terminal. The line, the caller's, when it is complete; else NULL. */
char *line_input_key(LineInput *input, char byte);

#endif
