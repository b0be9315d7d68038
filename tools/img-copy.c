/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/img-copy.h"

#include <errno.h>

#include "tools/plot.h"
#include "util/log.h"

Progress *img_progress(const ToolArgs *args, uint64_t bytes)
{
    return progress_new(tool_has(args, "quiet")      ? PROGRESS_QUIET
                        : tool_has(args, "progress") ? PROGRESS_LINES
                                                     : PROGRESS_AUTO,
                        bytes);
}

bool img_progress_end(const ToolArgs *args, Progress *progress)
{
    const char *path = tool_get(args, "plot");
    GError *error = NULL;
    bool ok = true;
    progress_finish(progress);
    if (path) {
        unsigned count;
        const ProgressSample *samples = progress_samples(progress, &count);
        ok = plot_write(path, samples, count, &error);
        if (!ok) {
            log_gerror(error, NULL);
        }
    }
    progress_free(progress);
    return ok;
}

bool img_copy(Copy *copy, uint64_t bytes, const ToolArgs *args, Interrupt *interrupt)
{
    g_autofree char *message = NULL;
    copy->stop = interrupt_flag(interrupt);
    copy->progress = img_progress(args, bytes);
    int r = copy_run(copy, &message);
    bool drawn = img_progress_end(args, copy->progress);
    if (r < 0 && r != -ECANCELED) {
        log_error("%s", message);
    }
    return r == 0 && drawn;
}
