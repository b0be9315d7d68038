/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The block node of a -drive as options for block_open(), with QEMU's keys. Pure but for the look at the
 * image's first bytes when no format was given. Any thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_DRIVE_NODE_H
#define SPINDLE_SYSTEM_QTEST_DRIVE_NODE_H

#include "util/options.h"

/* `drive`: -drive's options; all that concern the node are marked used. `cd`: opened for reading only. NULL
 * without an error: no image. */
Options *drive_node_options(Options *drive, bool cd, GError **error);

/* Whether a writeback cache is what the options ask for (cache=, cache.writeback). */
bool drive_node_writeback(Options *drive, bool *ret_writeback, GError **error);

#endif
