/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What convert, dd and bench share: a copy with progress, plot and messages.
 */
#ifndef SPINDLE_TOOLS_IMG_COPY_H
#define SPINDLE_TOOLS_IMG_COPY_H

#include "tools/copy.h"
#include "tools/interrupt.h"
#include "tools/tool.h"

#define IMG_PLOT                                                                                             \
    {                                                                                                        \
        0, "plot", "FILE.png", "draw the throughput over time"                                               \
    }

/* Runs the copy of `bytes` bytes with the progress that -p and -q ask for; says what is wrong. */
bool img_copy(Copy *copy, uint64_t bytes, const ToolArgs *args, Interrupt *interrupt);

/* The progress for -p and -q. */
Progress *img_progress(const ToolArgs *args, uint64_t bytes);

/* Ends the progress: draws what `--plot` asks for and frees it. False after saying what is wrong. */
bool img_progress_end(const ToolArgs *args, Progress *progress);

#endif
