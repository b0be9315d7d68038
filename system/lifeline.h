/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The connection between the drive process and what started it: one end each of a UNIX socket pair. The drive
 * process writes one line when it is ready or has failed; then the other end just stays open, across exec and
 * -daemonize, for as long as the machine lives. Loop thread.
 *
 * The lines: "ready", or "error INDEX MESSAGE" with the index in argv of the option at fault (0: none).
 */
#ifndef SPINDLE_SYSTEM_LIFELINE_H
#define SPINDLE_SYSTEM_LIFELINE_H

#include <glib.h>
#include <stdbool.h>

typedef struct Lifeline Lifeline;

/* The drive process's end, from `[fd=]N[,folder=DIR][,quiet=on]`. */
Lifeline *lifeline_new(const char *arg, GError **error);

/* Closes it and removes the folder (folder_remove()). NULL is allowed. */
void lifeline_free(Lifeline *lifeline);

/* `closed` runs on the loop when the other end is gone. */
void lifeline_watch(Lifeline *lifeline, void (*closed)(void *opaque), void *opaque);

void lifeline_send_ready(Lifeline *lifeline);
void lifeline_send_error(Lifeline *lifeline, int index, const char *message);

/* The other side. Makes the pair: *ret_ours stays open across exec, *ret_theirs does not. */
bool lifeline_pair(int *ret_ours, int *ret_theirs, GError **error);

/* Waits for the line. True: ready. False: *ret_index and *ret_message (the caller's) tell why; the message is
 * NULL when the process ended without a word. */
bool lifeline_wait(int fd, int *ret_index, char **ret_message);

#endif
