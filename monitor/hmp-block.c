/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `info block`, `info blockstats` and `qemu-io`.
 */
#include <stdio.h>
#include <string.h>
#include "block/io-shell.h"
#include "monitor/hmp.h"
#include "monitor/query.h"
#include "util/error.h"
#include "util/workpool.h"

static void print_node(HmpCall *call, BlockNode *node)
{
    const BlockInfo *info = block_info(node);

    hmp_print(call, ": %s (%s%s%s)\n", info->filename, info->driver, info->read_only ? ", read-only" : "",
              g_str_equal(info->driver, "luks") ? ", encrypted" : "");
}

static void print_limits(HmpCall *call, Backend *backend)
{
    ThrottleLimits limits;

    if (backend->group) {
        throttle_group_get_limits(backend->group, &limits);
        hmp_print(call,
                  "    I/O throttling:   bps=%" G_GUINT64_FORMAT " bps_rd=%" G_GUINT64_FORMAT
                  " bps_wr=%" G_GUINT64_FORMAT " bps_max=%" G_GUINT64_FORMAT " bps_rd_max=%" G_GUINT64_FORMAT
                  " bps_wr_max=%" G_GUINT64_FORMAT " iops=%" G_GUINT64_FORMAT " iops_rd=%" G_GUINT64_FORMAT
                  " iops_wr=%" G_GUINT64_FORMAT " iops_max=%" G_GUINT64_FORMAT
                  " iops_rd_max=%" G_GUINT64_FORMAT " iops_wr_max=%" G_GUINT64_FORMAT
                  " iops_size=%" G_GUINT64_FORMAT " group=%s\n",
                  limits.bucket[THROTTLE_BPS_TOTAL].average, limits.bucket[THROTTLE_BPS_READ].average,
                  limits.bucket[THROTTLE_BPS_WRITE].average, limits.bucket[THROTTLE_BPS_TOTAL].max,
                  limits.bucket[THROTTLE_BPS_READ].max, limits.bucket[THROTTLE_BPS_WRITE].max,
                  limits.bucket[THROTTLE_IOPS_TOTAL].average, limits.bucket[THROTTLE_IOPS_READ].average,
                  limits.bucket[THROTTLE_IOPS_WRITE].average, limits.bucket[THROTTLE_IOPS_TOTAL].max,
                  limits.bucket[THROTTLE_IOPS_READ].max, limits.bucket[THROTTLE_IOPS_WRITE].max,
                  limits.iops_size, throttle_group_name(backend->group));
    }
}

static void print_backend(HmpCall *call, Backend *backend)
{
    if (backend->name[0]) {
        hmp_print(call, "%s%s%s%s", backend->name, backend->node ? " (" : "",
                  backend->node ? block_name(backend->node) : "", backend->node ? ")" : "");
    } else {
        hmp_print(call, "%s", backend->node ? block_name(backend->node) : backend_title(backend));
    }
    if (backend->node) {
        print_node(call, backend->node);
    } else {
        hmp_print(call, ": [not inserted]\n");
    }
    if (backend->qdev) {
        hmp_print(call, "    Attached to:      %s\n", backend_qdev(backend));
    }
    if (backend->io_status != BACKEND_IO_OK) {
        hmp_print(call, "    I/O status:       %s\n", backend_io_status_name(backend));
    }
    if (backend->mmc || !backend->qdev) {
        hmp_print(call, "    Removable device: %slocked, tray %s\n",
                  backend->mmc && mmc_drive_locked(backend->mmc) ? "" : "not ",
                  backend->mmc && mmc_drive_tray_open(backend->mmc) ? "open" : "closed");
    }
    if (backend->node) {
        hmp_print(call, "    Cache mode:       %s\n", backend->writeback ? "writeback" : "writethrough");
        print_limits(call, backend);
    }
}

/* `info block [-n] [-v] [device]` */
void hmp_info_block(HmpCall *call)
{
    GPtrArray *all = monitor_backends(call->monitor);
    const char *name = NULL;
    bool nodes = false, found = false;

    for (char **word = call->words + 2; *word; word++) {
        if (!strcmp(*word, "-n")) {
            nodes = true;
        } else if (strcmp(*word, "-v") != 0) {
            name = *word;
        }
    }
    for (guint i = 0; i < all->len && !nodes; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        if (!name || !strcmp(name, backend->name)) {
            hmp_print(call, found ? "\n" : "");
            print_backend(call, backend);
            found = true;
        }
    }
    g_autoptr(GList) list = block_list();
    for (GList *l = g_list_last(list); l && (nodes || (name && !found)); l = l->prev) {
        if (!backend_is_limit_node(call->monitor, l->data) && (!name || !strcmp(name, block_name(l->data)))) {
            hmp_print(call, "%s%s", found ? "\n" : "", block_name(l->data));
            print_node(call, l->data);
            hmp_print(call, "    Cache mode:       writeback\n");
            found = true;
        }
    }
}

void hmp_info_blockstats(HmpCall *call)
{
    GPtrArray *all = monitor_backends(call->monitor);

    for (guint i = 0; i < all->len; i++) {
        Backend *backend = g_ptr_array_index(all, i);
        const BlockStats *stats = backend->top ? block_stats(backend->top) : NULL;
        if (stats) {
            hmp_print(call,
                      "%s: rd_bytes=%" G_GUINT64_FORMAT " wr_bytes=%" G_GUINT64_FORMAT
                      " rd_operations=%" G_GUINT64_FORMAT " wr_operations=%" G_GUINT64_FORMAT
                      " flush_operations=%" G_GUINT64_FORMAT "\n",
                      backend_title(backend), stats->bytes[BLOCK_READ], stats->bytes[BLOCK_WRITE],
                      stats->ops[BLOCK_READ], stats->ops[BLOCK_WRITE], stats->ops[BLOCK_FLUSH]);
        }
    }
}

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

/* wait_break TAG: the answer comes when a request has reached the breakpoint. */
#define WAIT_BREAK_MS 1

typedef struct BreakWait {
    HmpCall *call;
    BlockNode *node;
    char *tag;
} BreakWait;

static gboolean on_break_wait(gpointer data)
{
    BreakWait *wait = data;

    if (!block_debug_is_suspended(wait->node, wait->tag)) {
        return G_SOURCE_CONTINUE;
    }
    hmp_finish(wait->call);
    block_unref(wait->node);
    g_free(wait->tag);
    g_free(wait);
    return G_SOURCE_REMOVE;
}

static void wait_break(HmpCall *call, BlockNode *node, const char *tag)
{
    BreakWait *wait = g_new0(BreakWait, 1);

    wait->call = call;
    wait->node = block_ref(node);
    wait->tag = g_strstrip(g_strdup(tag));
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
    char **words = call->words + 1;
    bool qdev = words[0] && !strcmp(words[0], "-d");

    words += qdev;
    if (!words[0] || !words[1]) {
        hmp_print(call, "qemu-io: device and command expected\n");
        return;
    }
    BlockNode *node = find_io_node(call, words[0], qdev);
    if (!node) {
        return;
    }
    if (g_str_has_prefix(words[1], "wait_break ")) {
        wait_break(call, node, words[1] + strlen("wait_break "));
        return;
    }
    if (g_str_has_prefix(words[1], "aio_")) {
        io_shell_run(aio_shell(call->monitor, node), words[1]);
        return;
    }
    IoShell *shell = io_shell_new(NULL, break_commands, print_io, NULL);
    io_shell_set_node(shell, node);
    if (!io_shell_blocks(shell, words[1])) {
        io_shell_run(shell, words[1]);
        io_shell_free(shell);
        return;
    }
    IoJob *job = g_new0(IoJob, 1);
    job->work = (Work){.run = job_run, .done = job_done};
    job->call = call;
    job->shell = shell;
    job->line = g_strdup(words[1]);
    call->deferred = true;
    work_pool_submit(work_pool_default(), &job->work);
}
