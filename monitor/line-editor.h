/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The module spindle-readline.so: lines typed at a terminal, with GNU Readline's editing, history and
 * completion. One terminal a process. Loop thread.
 */
#ifndef SPINDLE_MONITOR_LINE_EDITOR_H
#define SPINDLE_MONITOR_LINE_EDITOR_H

#include <stdbool.h>
#include <stdio.h>

#define LINE_EDITOR_FILE   "spindle-readline.so"
#define LINE_EDITOR_SYMBOL "line_editor_module"
#define LINE_EDITOR_ABI    1u

typedef struct LineEditorCalls {
    /* A line without its end, the callee's to free with free(); NULL: the end of the input. */
    void (*line)(char *line, void *opaque);
    /* What may stand behind `before` and begins with `word`: an array with NULL at its end, and its strings,
     * the caller's to free with free(). */
    char **(*complete)(const char *before, const char *word, void *opaque);
} LineEditorCalls;

typedef struct LineEditorModule {
    unsigned abi;
    /* Takes the terminal and shows the prompt. */
    void (*start)(FILE *in, FILE *out, const char *prompt, const LineEditorCalls *calls, void *opaque);
    /* There is something to read. */
    void (*read)(void);
    /* Takes the prompt away, or shows it again: around what is printed meanwhile. */
    void (*show)(bool shown);
    /* Gives the terminal back as it was. */
    void (*stop)(void);
} LineEditorModule;

#endif
