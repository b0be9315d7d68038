/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Ctrl-C (SIGINT), SIGTERM and SIGHUP while an image is being made: what is half made goes away. Main thread,
 * with the default main context running.
 */
#ifndef SPINDLE_TOOLS_INTERRUPT_H
#define SPINDLE_TOOLS_INTERRUPT_H

#include <stdbool.h>

typedef struct Interrupt Interrupt;

/* Watches for the signals. `half_made` (may be NULL) is the file to remove when one comes. A second signal,
 * or a job that does not stop within two seconds, ends the program at once. */
Interrupt *interrupt_new(const char *half_made);

/* Not zero once a signal came; for other threads to poll. */
const int *interrupt_flag(const Interrupt *interrupt);

/* Removes the half-made file now, as after an error. */
void interrupt_discard(Interrupt *interrupt);

/* Stops watching. If a signal came, the program dies by it here, and does not return. NULL is allowed. */
void interrupt_free(Interrupt *interrupt);

#endif
