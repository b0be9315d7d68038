/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Threads that do one job together while the main thread iterates the loop.
 */
#ifndef SPINDLE_TOOLS_CROWD_H
#define SPINDLE_TOOLS_CROWD_H

#include <glib.h>

/* Runs work(opaque) on `threads` threads (at least 1) and iterates the default main context until all have
 * returned. Signals are blocked in the threads. */
void crowd_run(unsigned threads, void (*work)(void *opaque), void *opaque);

#endif
