/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How far a long command is: a bar on a terminal, lines elsewhere, a line on SIGUSR1, and samples for a plot.
 * Main thread, but progress_add().
 */
#ifndef SPINDLE_TOOLS_PROGRESS_H
#define SPINDLE_TOOLS_PROGRESS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { PROGRESS_QUIET, PROGRESS_AUTO, PROGRESS_LINES } ProgressMode;

typedef struct Progress Progress;

/* `total` bytes. AUTO: a bar if standard output is a terminal, else nothing. Starts timer and SIGUSR1 on the
 * default main context. */
Progress *progress_new(ProgressMode mode, uint64_t total);

/* `bytes` more are done. Any thread. */
void progress_add(Progress *progress, uint64_t bytes);

/* The last state and a line end; stops the timer. */
void progress_finish(Progress *progress);
void progress_free(Progress *progress);

/* Throughput over time: pairs of seconds since start and bytes done, evenly spaced. */
typedef struct ProgressSample {
    double seconds;
    uint64_t bytes;
} ProgressSample;
const ProgressSample *progress_samples(const Progress *progress, unsigned *ret_count);

#endif
