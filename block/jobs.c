/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What drivers do beside requests: see block-int.h. Both kinds count as pending until they are done, so that
 * block_shutdown() waits for them.
 */
#include "block/core.h"
#include <stddef.h>

G_STATIC_ASSERT(sizeof(Work) <= sizeof(((BlockJob *)0)->work));

static BlockJob *work_job(Work *work)
{
    return (BlockJob *)((char *)work - offsetof(BlockJob, work));
}

static void job_run(Work *work)
{
    work_job(work)->run(work_job(work));
}

static void job_done(Work *work)
{
    work_job(work)->done(work_job(work));
    boundary_pending_done();
}

void block_job_start(BlockJob *job)
{
    Work *work = (Work *)job->work;
    *work = (Work){.run = job_run, .done = job_done};
    boundary_pending_begin();
    boundary_submit_urgent(work);
}

/* Jobs and closes are counted as such. */
void block_drive_work_begin(BlockDriveWork kind)
{
    if (kind == BLOCK_DRIVE_ASKED) {
        boundary_pending_begin();
    }
    boundary_drive_work(kind, 1);
}

void block_drive_work_end(BlockDriveWork kind)
{
    boundary_drive_work(kind, -1);
    if (kind == BLOCK_DRIVE_ASKED) {
        boundary_pending_done();
    }
}

typedef struct LoopCall {
    void (*func)(void *data);
    void *data;
} LoopCall;

static gboolean loop_call(gpointer opaque)
{
    LoopCall *call = opaque;
    call->func(call->data);
    g_free(call);
    boundary_pending_done();
    return G_SOURCE_REMOVE;
}

void block_call_on_loop(void (*func)(void *data), void *data)
{
    LoopCall *call = g_new0(LoopCall, 1);
    *call = (LoopCall){func, data};
    boundary_pending_begin();
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, loop_call, call, NULL);
    g_source_attach(source, NULL);
}
