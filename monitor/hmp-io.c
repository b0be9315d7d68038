/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `qemu-io` of the human monitor.
 */
#include <stdio.h>
#include <string.h>
#include "block/io-shell.h"
#include "monitor/hmp.h"
#include "util/error.h"
#include "util/workpool.h"

/* Breakpoints of the `blkdebug` node below. */

static int report_break(IoShell *shell, const char *what, int ret)
{
    if (ret < 0) {
        io_shell_print(shell, "Could not %s: %s\n", what, g_strerror(-ret));
    }
    return ret;
}

static int run_break(IoShell *shell, int argc, char **argv)
{
    return report_break(shell, "set a breakpoint",
                        block_debug_breakpoint(io_shell_node(shell), argv[1], argv[2]));
}

static int run_remove_break(IoShell *shell, int argc, char **argv)
{
    return report_break(shell, "remove a breakpoint",
                        block_debug_remove_breakpoint(io_shell_node(shell), argv[1]));
}

static int run_resume(IoShell *shell, int argc, char **argv)
{
    return report_break(shell, "resume request", block_debug_resume(io_shell_node(shell), argv[1]));
}

static const IoCommand break_commands[] = {
    {"break", NULL, run_break, 2, 2, IO_NEEDS_NODE | IO_ON_LOOP, "event tag",
     "sets a breakpoint on event and tags the stopped request as tag", NULL},
    {"remove_break", NULL, run_remove_break, 1, 1, IO_NEEDS_NODE | IO_ON_LOOP, "tag",
     "remove a breakpoint by tag", NULL},
    {"resume", NULL, run_resume, 1, 1, IO_NEEDS_NODE | IO_ON_LOOP, "tag", "resumes the request tagged as tag",
     NULL},
    {NULL},
};

/* wait_break TAG: the answer comes when a request has reached the breakpoint. resume TAG: on QEMU a request
 * is there as soon as the guest has started it, here when a worker has taken it; so resume waits for what is
 * on its way, and programs need not know. */
#define WAIT_BREAK_MS  1
#define WAIT_RESUME_MS 2000 /* a request may pass without meeting the event */

typedef struct BreakWait {
    HmpCall *call;
    BlockNode *node;
    char *tag;
    bool resumes;
    gint64 deadline; /* of resume, us */
} BreakWait;

static bool wait_is_over(BreakWait *wait)
{
    if (block_debug_is_suspended(wait->node, wait->tag)) {
        return true;
    }
    return wait->resumes &&
           (!block_debug_is_awaited(wait->node, wait->tag) || g_get_monotonic_time() >= wait->deadline);
}

static gboolean on_break_wait(gpointer data)
{
    BreakWait *wait = data;

    if (!wait_is_over(wait)) {
        return G_SOURCE_CONTINUE;
    }
    if (wait->resumes) {
        int ret = block_debug_resume(wait->node, wait->tag);
        if (ret < 0) {
            printf("Could not resume request: %s\n", g_strerror(-ret));
            fflush(stdout);
        }
    }
    hmp_finish(wait->call);
    block_unref(wait->node);
    g_free(wait->tag);
    g_free(wait);
    return G_SOURCE_REMOVE;
}

static void wait_break(HmpCall *call, BlockNode *node, const char *tag, bool resumes)
{
    BreakWait *wait = g_new0(BreakWait, 1);

    wait->call = call;
    wait->node = block_ref(node);
    wait->tag = g_strstrip(g_strdup(tag));
    wait->resumes = resumes;
    wait->deadline = g_get_monotonic_time() + WAIT_RESUME_MS * G_TIME_SPAN_MILLISECOND;
    call->deferred = true;
    if (on_break_wait(wait)) {
        g_timeout_add(WAIT_BREAK_MS, on_break_wait, wait);
    }
}

/* qemu-io: a shell for one command, on a worker where it would block; asynchronous commands keep theirs, with
 * the node, until the monitor ends. */
typedef struct IoJob {
    Work work;
    HmpCall *call;
    IoShell *shell;
    char *line;
} IoJob;

/* As QEMU does: to the program's standard output, not to the monitor. Any thread. */
static void print_io(const char *text, bool is_error, void *opaque)
{
    fputs(text, is_error ? stderr : stdout);
    fflush(is_error ? stderr : stdout);
}

static void job_run(Work *work)
{
    IoJob *job = (IoJob *)work;

    io_shell_run(job->shell, job->line);
}

static void job_done(Work *work)
{
    IoJob *job = (IoJob *)work;

    io_shell_free(job->shell);
    hmp_finish(job->call);
    g_free(job->line);
    g_free(job);
}

static BlockNode *find_io_node(HmpCall *call, const char *name, bool qdev)
{
    Backend *backend = qdev ? backend_find_device(call->monitor, name) : backend_find(call->monitor, name);
    GError *error = NULL;

    if (backend && !backend->top) {
        error_set(&error, "Device '%s' has no medium", name);
    } else if (!backend && (qdev || !block_find(name))) {
        error_set(&error, qdev ? "Device '%s' not found" : "Cannot find device='' nor node-name='%s'", name);
    }
    if (error) {
        hmp_error(call, error);
        return NULL;
    }
    return backend ? backend->top : block_find(name);
}

/* The shell of a node's asynchronous commands. */
static IoShell *aio_shell(Monitor *monitor, BlockNode *node)
{
    GPtrArray *shells = monitor_shells(monitor);

    for (guint i = 0; i < shells->len; i++) {
        if (io_shell_node(g_ptr_array_index(shells, i)) == node) {
            return g_ptr_array_index(shells, i);
        }
    }
    IoShell *shell = io_shell_new(NULL, break_commands, print_io, NULL);
    io_shell_set_node(shell, node);
    g_ptr_array_add(shells, shell);
    return shell;
}

void hmp_qemu_io(HmpCall *call)
{
    const char *command = hmp_arg(call, "command");
    BlockNode *node = find_io_node(call, hmp_arg(call, "device"), hmp_flag(call, "qdev"));

    if (!node) {
        return;
    }
    if (g_str_has_prefix(command, "wait_break ")) {
        wait_break(call, node, command + strlen("wait_break "), false);
        return;
    }
    if (g_str_has_prefix(command, "resume ")) {
        wait_break(call, node, command + strlen("resume "), true);
        return;
    }
    if (g_str_has_prefix(command, "aio_")) {
        io_shell_run(aio_shell(call->monitor, node), command);
        return;
    }
    IoShell *shell = io_shell_new(NULL, break_commands, print_io, NULL);
    io_shell_set_node(shell, node);
    if (!io_shell_blocks(shell, command)) {
        io_shell_run(shell, command);
        io_shell_free(shell);
        return;
    }
    IoJob *job = g_new0(IoJob, 1);
    job->work = (Work){.run = job_run, .done = job_done};
    job->call = call;
    job->shell = shell;
    job->line = g_strdup(command);
    call->deferred = true;
    work_pool_submit(work_pool_default(), &job->work);
}
