/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A picture of throughput over time, for reports and tickets. Any thread.
 */
#ifndef SPINDLE_TOOLS_PLOT_H
#define SPINDLE_TOOLS_PLOT_H

#include "tools/progress.h"

/* Writes a PNG of MiB/s over seconds. Fails with "Could not open 'x.png': …". */
bool plot_write(const char *path, const ProgressSample *samples, unsigned count, GError **error);

#endif
