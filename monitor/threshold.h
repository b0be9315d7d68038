/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Marks on nodes that writes must not pass unnoticed (block-set-write-threshold). Loop thread.
 */
#ifndef SPINDLE_MONITOR_THRESHOLD_H
#define SPINDLE_MONITOR_THRESHOLD_H

#include "monitor/monitor.h"

/* BLOCK_WRITE_THRESHOLD when a write ends behind `threshold`, once; 0: no more. */
void threshold_set(Monitor *monitor, BlockNode *node, uint64_t threshold);

/* The monitor goes: it wants to hear of no node any more. */
void threshold_forget(Monitor *monitor);

#endif
