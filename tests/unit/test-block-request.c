/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The request contract of block.h: a test, or several, for each of its sentences.
 */
#include "block/block-int.h"
#include "tests/unit/block-probe.h"
#include <errno.h>
#include <string.h>

/* 1 */
static void test_done_not_inside_submit(gconstpointer options)
{
    BlockNode *node = open_node(options);
    Probe *probe = probe_new(node, BLOCK_READ, 0, 512);
    block_submit(&probe->request);
    g_assert_cmpint(probe->dones, ==, 0);
    wait_for(probe->dones);
    g_free(probe);
    finish(node);
}

/* 1, 5: even nonsense is taken, and refused by way of `done`. */
static void test_submit_cannot_fail(void)
{
    BlockNode *node = open_node("driver=mem");
    Probe *probe = probe_new(node, (BlockOp)99, UINT64_MAX, UINT64_MAX);
    block_submit(&probe->request);
    g_assert_cmpint(probe->dones, ==, 0);
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, -EINVAL);
    g_free(probe);
    finish(node);
}

/* 2 */
static void test_done_once_on_loop_thread(void)
{
    BlockNode *nodes[] = {open_node("driver=mem"), open_node("driver=fault,delay-ns=100000,file.driver=mem")};
    for (guint n = 0; n < G_N_ELEMENTS(nodes); n++) {
        for (int op = BLOCK_READ; op <= BLOCK_WRITE_ZEROES; op++) {
            Probe *probe = probe_new(nodes[n], op, 0, op == BLOCK_FLUSH ? 0 : 512);
            block_submit(&probe->request);
            wait_for(probe->dones);
            run_loop_for(3);
            g_assert_cmpint(probe->dones, ==, 1);
            g_assert_cmpint(probe->result, ==, 0);
            g_assert_true(probe->thread == g_thread_self());
            g_free(probe);
        }
    }
    block_unref(nodes[0]);
    finish(nodes[1]);
}

/* 3: what the owner set is as it was, the iovecs too. */
static void test_request_is_not_changed(void)
{
    BlockNode *node = open_node("driver=mem,align=512,pattern=7");
    Probe *probe = probe_new(node, BLOCK_READ, 3, 100);
    const struct iovec before[2] = {{probe->data, 40}, {probe->data + 100, 60}};
    struct iovec iov[2];
    memcpy(iov, before, sizeof iov);
    probe->request.iov = iov;
    probe->request.niov = 2;
    block_submit(&probe->request);
    wait_for(probe->dones);
    const BlockRequest *r = &probe->request;
    g_assert_true(r->node == node && r->op == BLOCK_READ && r->flags == 0 && r->offset == 3 &&
                  r->bytes == 100 && r->iov == iov && r->niov == 2 && r->opaque == probe);
    g_assert_cmpmem(iov, sizeof iov, before, sizeof before);
    g_assert_cmpint(probe->data[39], ==, 7);
    g_assert_cmpint(probe->data[40], ==, 0);
    g_assert_cmpint(probe->data[159], ==, 7);
    g_assert_cmpint(probe->data[160], ==, 0);
    g_free(probe);
    finish(node);
}

/* 3: after `done` the memory is the owner's alone. */
static void test_memory_is_free_after_done(void)
{
    BlockNode *node = open_node(HANGS);
    Probe *probe = probe_read(node);
    run_loop_for(20);
    block_abandon(&probe->request);
    wait_for(probe->dones);
    memset(probe, 0x55, sizeof *probe);
    run_loop_for(20);
    for (guint i = 0; i < sizeof *probe; i++) {
        g_assert_cmpint(((uint8_t *)probe)[i], ==, 0x55);
    }
    g_free(probe);
    finish(node);
}

/* 4 */
typedef struct ErrorCase {
    const char *options;
    BlockOp op;
    int result;
} ErrorCase;

static const ErrorCase error_cases[] = {
    {"driver=fault,fail-read=1,file.driver=mem", BLOCK_READ, -EIO},
    {"driver=fault,fail-read=1,errno=ENOMEDIUM,file.driver=mem", BLOCK_READ, -ENOMEDIUM},
    {"driver=fault,fail-read=2,file.driver=mem", BLOCK_READ, 0},
    {"driver=fault,fail-write=1,errno=28,file.driver=mem", BLOCK_WRITE, -ENOSPC},
    {"driver=fault,fail-write=1,errno=ENOSPC,file.driver=mem", BLOCK_WRITE_ZEROES, -ENOSPC},
    {"driver=fault,fail-flush=1,file.driver=mem", BLOCK_FLUSH, -EIO},
    {"driver=fault,fail-every=2,file.driver=mem", BLOCK_FLUSH, -EIO},
    {"driver=fault,bad-offset=4000,bad-bytes=1,file.driver=mem", BLOCK_READ, -EIO},
    {"driver=fault,bad-offset=4096,bad-bytes=1,file.driver=mem", BLOCK_READ, 0},
    {"driver=raw,file.driver=fault,file.fail-read=1,file.file.driver=mem", BLOCK_READ, -EIO},
};

static void test_result_is_errno(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(error_cases); i++) {
        const ErrorCase *c = &error_cases[i];
        BlockNode *node = open_node(c->options);
        if (c->op == BLOCK_FLUSH) { /* a clean node has nothing to flush */
            g_assert_cmpint(block_pwrite(node, 0, "x", 1, 0), ==, 0);
        }
        Probe *probe = probe_new(node, c->op, 0, c->op == BLOCK_FLUSH ? 0 : 4096);
        block_submit(&probe->request);
        wait_for(probe->dones);
        g_assert_cmpint(probe->result, ==, c->result);
        g_assert_cmpint(probe->request.result, ==, c->result);
        g_assert_cmpuint(block_stats(node)->failed[c->op], ==, c->result < 0);
        g_assert_cmpuint(block_stats(node)->ops[c->op], ==, c->result == 0);
        g_free(probe);
        finish(node);
    }
}

/* 5 */
typedef struct BadCase {
    const char *name, *options;
    BlockOp op;
    uint64_t offset, bytes;
    int niov;
    uint64_t iov_bytes;
    int result;
} BadCase;

#define RO "driver=raw,read-only=on,file.driver=mem"
#define RW "driver=raw,file.driver=mem"
static const BadCase bad_cases[] = {
    {"past-end", RW, BLOCK_READ, 1 << 20, 512, 1, 512, -EINVAL},
    {"across-end", RW, BLOCK_READ, (1 << 20) - 511, 512, 1, 512, -EINVAL},
    {"far-past-end", RW, BLOCK_READ, INT64_MAX, 512, 1, 512, -EINVAL},
    {"offset-overflows", RW, BLOCK_READ, UINT64_MAX - 100, 512, 1, 512, -EINVAL},
    {"write-across-end", RW, BLOCK_WRITE, (1 << 20) - 1, 2, 1, 2, -EINVAL},
    {"zeroes-across-end", RW, BLOCK_WRITE_ZEROES, 0, (1 << 20) + 1, 0, 0, -EINVAL},
    {"discard-across-end", RW, BLOCK_DISCARD, 0, (1 << 20) + 1, 0, 0, -EINVAL},
    {"length-wraps", RW, BLOCK_DISCARD, 1, UINT64_MAX, 0, 0, -EINVAL},
    {"iov-too-short", RW, BLOCK_READ, 0, 512, 1, 511, -EINVAL},
    {"iov-too-long", RW, BLOCK_READ, 0, 512, 1, 513, -EINVAL},
    {"iov-missing", RW, BLOCK_READ, 0, 512, 0, 0, -EINVAL},
    {"niov-negative", RW, BLOCK_READ, 0, 512, -1, 512, -EINVAL},
    {"op-unknown", RW, (BlockOp)5, 0, 512, 1, 512, -EINVAL},
    {"op-negative", RW, (BlockOp)-1, 0, 512, 1, 512, -EINVAL},
    {"write-read-only", RO, BLOCK_WRITE, 0, 512, 1, 512, -EROFS},
    {"zeroes-read-only", RO, BLOCK_WRITE_ZEROES, 0, 512, 0, 0, -EROFS},
    {"discard-read-only", RO, BLOCK_DISCARD, 0, 512, 0, 0, -EROFS},
    {"empty-at-end", RW, BLOCK_READ, 1 << 20, 0, 0, 0, 0},
    {"empty-past-end", RW, BLOCK_READ, (1 << 20) + 1, 0, 0, 0, -EINVAL},
    {"empty-write", RW, BLOCK_WRITE, 0, 0, 0, 0, 0},
};

static void test_bad_request(gconstpointer data)
{
    const BadCase *c = data;
    BlockNode *node = open_node(c->options);
    Probe *probe = probe_new(node, c->op, c->offset, c->bytes);
    struct iovec iov = {probe->data, c->iov_bytes};
    probe->request.iov = &iov;
    probe->request.niov = c->niov;
    block_submit(&probe->request);
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, c->result);
    const BlockStats zero = {0};
    g_assert_cmpmem(block_stats(block_child(node, "file")), sizeof zero, &zero, sizeof zero);
    g_free(probe);
    finish(node);
}

/* 6: a queue that takes one at a time, and one whose places are all taken. */
static void test_cancel_queued(gconstpointer options)
{
    BlockNode *node = open_node(options);
    Probe *busy[9], *queued;
    guint places = strstr(options, "serial") ? 1 : 8;
    for (guint i = 0; i < places; i++) {
        busy[i] = probe_read(node);
    }
    queued = probe_read(node);
    run_loop_for(20);
    g_assert_true(block_cancel(&queued->request));
    g_assert_cmpint(queued->dones, ==, 0);
    g_assert_false(block_cancel(&queued->request));
    wait_for(queued->dones);
    g_assert_cmpint(queued->result, ==, -ECANCELED);
    for (guint i = 0; i < places; i++) {
        g_assert_cmpint(busy[i]->dones, ==, 0);
        block_abandon(&busy[i]->request);
    }
    for (guint i = 0; i < places; i++) {
        wait_for(busy[i]->dones == 1);
        g_free(busy[i]);
    }
    g_assert_cmpint(queued->dones, ==, 1);
    g_free(queued);
    finish(node);
}

/* 6: a background request stays in its queue while a foreground one is handed out. */
static void test_cancel_queued_background(void)
{
    BlockNode *node = open_node("driver=fault-serial," SLOW);
    Probe *busy = probe_read(node);
    Probe *queued = probe_new(node, BLOCK_READ, 0, 512);
    queued->request.flags = BLOCK_BACKGROUND;
    block_submit(&queued->request);
    g_assert_true(block_cancel(&queued->request));
    wait_for(queued->dones);
    g_assert_cmpint(queued->result, ==, -ECANCELED);
    block_abandon(&busy->request);
    wait_for(busy->dones);
    g_free(busy);
    g_free(queued);
    finish(node);
}

/* 6 */
static void test_cancel_running_changes_nothing(void)
{
    BlockNode *node = open_node("driver=fault,hang-read=1,hang-ns=200000000,file.driver=mem,file.pattern=9");
    Probe *probe = probe_read(node);
    run_loop_for(50); /* a worker has it by now */
    g_assert_false(block_cancel(&probe->request));
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, 0);
    g_assert_cmpint(probe->data[4095], ==, 9);
    g_free(probe);
    finish(node);
}

/* 6: answered already, but `done` has not run. */
static void test_cancel_ready_changes_nothing(void)
{
    BlockNode *node = open_node("driver=mem");
    Probe *probe = probe_read(node);
    g_assert_false(block_cancel(&probe->request));
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, 0);
    g_assert_false(block_cancel(&probe->request)); /* nor after `done` */
    g_free(probe);
    finish(node);
}

/* 7 */
static void test_abandon_returns_at_once(void)
{
    BlockNode *node = open_node(HANGS);
    Probe *probe = probe_read(node);
    run_loop_for(50);
    gint64 start = g_get_monotonic_time();
    block_abandon(&probe->request);
    block_abandon(&probe->request); /* twice is once */
    g_assert_cmpint(g_get_monotonic_time() - start, <, 1000000);
    g_assert_cmpint(probe->dones, ==, 0);
    wait_for(probe->dones);
    run_loop_for(20);
    g_assert_cmpint(probe->dones, ==, 1);
    g_free(probe);
    finish(node);
}

/* 7: at every moment of a request's life, the one where a worker is about to start too. */
static void test_abandon_at_any_moment(void)
{
    for (int us = 0; us < 200; us += 5) {
        BlockNode *node = open_node(HANGS);
        Probe *probe = probe_read(node);
        g_usleep(us);
        block_abandon(&probe->request);
        g_assert_cmpint(probe->dones, ==, 0);
        wait_for(probe->dones == 1);
        g_free(probe);
        finish(node);
    }
}

/* 7: who still waits is not disturbed by who has gone. */
static void test_abandon_spares_others(void)
{
    BlockNode *node = open_node("driver=fault,delay-read-ns=150000000,file.driver=mem,file.pattern=3");
    Probe *gone = probe_read(node), *stays = probe_read(node);
    run_loop_for(20);
    block_abandon(&gone->request);
    wait_for(gone->dones && stays->dones);
    g_assert_cmpint(stays->result, ==, 0);
    g_assert_cmpint(stays->data[0], ==, 3);
    g_free(gone);
    g_free(stays);
    finish(node);
}

static void free_in_done(Probe *probe)
{
    *(int *)probe->opaque += 1;
    g_free(probe);
}

/* 7 */
static void test_abandon_owner_frees_in_done(void)
{
    int freed = 0;
    BlockNode *node = open_node(HANGS);
    Probe *probe = probe_read(node);
    probe->opaque = &freed;
    probe->in_done = free_in_done;
    run_loop_for(20);
    block_abandon(&probe->request);
    finish(node);
    g_assert_cmpint(freed, ==, 1);
}

/* 8 */
static void submit_again(Probe *probe)
{
    if (probe->dones < 1000) {
        block_submit(&probe->request);
    }
}

static void test_submit_again_in_done(gconstpointer options)
{
    BlockNode *node = open_node(options);
    Probe *probe = probe_new(node, BLOCK_READ, 0, 4096);
    probe->in_done = submit_again;
    block_submit(&probe->request);
    wait_for(probe->dones == 1000);
    g_assert_cmpint(probe->result, ==, 0);
    g_assert_cmpuint(block_stats(node)->ops[BLOCK_READ], ==, 1000);
    g_free(probe);
    finish(node);
}

static void cancel_other(Probe *probe)
{
    g_assert_true(block_cancel(&((Probe *)probe->opaque)->request));
}

static void test_cancel_in_done(void)
{
    BlockNode *node = open_node("driver=fault-serial," SLOW);
    BlockNode *quick = open_node("driver=mem");
    Probe *busy = probe_read(node), *queued = probe_read(node), *first = probe_new(quick, BLOCK_READ, 0, 512);
    first->opaque = queued;
    first->in_done = cancel_other;
    block_submit(&first->request);
    wait_for(queued->dones);
    g_assert_cmpint(queued->result, ==, -ECANCELED);
    block_abandon(&busy->request);
    wait_for(busy->dones);
    g_free(busy);
    g_free(queued);
    g_free(first);
    block_unref(quick);
    finish(node);
}

static void abandon_other(Probe *probe)
{
    block_abandon(&((Probe *)probe->opaque)->request);
}

static void test_abandon_in_done(void)
{
    BlockNode *node = open_node(HANGS), *quick = open_node("driver=mem");
    Probe *hung = probe_read(node), *first = probe_new(quick, BLOCK_READ, 0, 512);
    run_loop_for(20);
    first->opaque = hung;
    first->in_done = abandon_other;
    block_submit(&first->request);
    wait_for(hung->dones == 1);
    g_free(hung);
    g_free(first);
    block_unref(quick);
    finish(node);
}

static void unref_node(Probe *probe)
{
    block_unref(g_steal_pointer(&probe->opaque));
}

static void test_unref_in_done(gconstpointer options)
{
    BlockNode *node = open_node(options);
    Probe *probe = probe_new(node, BLOCK_READ, 0, 512);
    probe->opaque = node;
    probe->in_done = unref_node;
    block_submit(&probe->request);
    wait_for(probe->dones);
    finish(NULL);
    g_free(probe);
}

/* 9 */
static void test_node_lives_with_its_requests(void)
{
    BlockNode *node =
        open_node("driver=fault,node-name=n,delay-read-ns=100000000,file.driver=mem,file.pattern=5");
    Probe *probe = probe_read(node);
    block_unref(node);
    g_assert_true(block_find("n") == node); /* still there: the request holds it */
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, 0);
    g_assert_cmpint(probe->data[0], ==, 5);
    g_assert_null(block_find("n"));
    g_free(probe);
    finish(NULL);
}

/* 10 */
static void test_any_order(void)
{
    BlockNode *node = open_node("driver=fault,hang-read=1,hang-ns=100000000,file.driver=mem");
    Probe *first = probe_read(node);
    run_loop_for(20);
    Probe *second = probe_read(node);
    wait_for(first->dones && second->dones);
    g_assert_cmpuint(second->order, <, first->order);
    g_free(first);
    g_free(second);
    finish(node);
}

/* 10: a flush reaches the driver at the bottom after the writes that were done; not with cache.no-flush. */
static void test_flush_covers_done_writes(void)
{
    static const struct {
        const char *options;
        int result;
    } cases[] = {
        {"driver=raw,file.driver=fault,file.fail-flush=2,file.file.driver=mem", 0},
        {"driver=raw,file.driver=fault,file.fail-flush=1,file.file.driver=mem", -EIO},
        {"driver=raw,cache.no-flush=on,file.driver=fault,file.fail-flush=1,file.file.driver=mem", 0}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BlockNode *node = open_node(cases[i].options);
        Probe *write = probe_new(node, BLOCK_WRITE, 0, 512);
        block_submit(&write->request);
        wait_for(write->dones);
        Probe *flush = probe_new(node, BLOCK_FLUSH, 0, 0);
        block_submit(&flush->request);
        wait_for(flush->dones);
        BlockNode *mem = block_child(block_child(node, "file"), "file");
        g_assert_cmpint(flush->result, ==, cases[i].result);
        g_assert_cmpuint(block_stats(mem)->ops[BLOCK_WRITE], ==, 1);
        g_assert_cmpuint(block_stats(mem)->ops[BLOCK_FLUSH], ==, cases[i].result == 0);
        g_free(write);
        g_free(flush);
        finish(node);
    }
}

static void add_many(const char *path, const char *const *names, const char *const *options,
                     GTestDataFunc function)
{
    for (; *names; names++, options++) {
        g_autofree char *full = g_strconcat("/block/request/", path, "/", *names, NULL);
        g_test_add_data_func(full, *options, function);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_many("1-done-not-inside-submit", (const char *const[]){"read-now", "worker", "layers", NULL},
             (const char *const[]){"driver=mem", "driver=fault,delay-read-ns=1000,file.driver=mem",
                                   "driver=raw,file.driver=null-co"},
             test_done_not_inside_submit);
    g_test_add_func("/block/request/1-submit-cannot-fail", test_submit_cannot_fail);
    g_test_add_func("/block/request/2-done-once-on-loop-thread", test_done_once_on_loop_thread);
    g_test_add_func("/block/request/3-request-is-not-changed", test_request_is_not_changed);
    g_test_add_func("/block/request/3-memory-is-free-after-done", test_memory_is_free_after_done);
    g_test_add_func("/block/request/4-result-is-errno", test_result_is_errno);
    for (guint i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *path =
            g_strconcat("/block/request/5-nothing-reaches-the-driver/", bad_cases[i].name, NULL);
        g_test_add_data_func(path, &bad_cases[i], test_bad_request);
    }
    add_many("6-cancel-queued", (const char *const[]){"serial", "parallel", NULL},
             (const char *const[]){"driver=fault-serial," SLOW, "driver=fault," SLOW}, test_cancel_queued);
    g_test_add_func("/block/request/6-cancel-queued/background", test_cancel_queued_background);
    g_test_add_func("/block/request/6-cancel-running-changes-nothing", test_cancel_running_changes_nothing);
    g_test_add_func("/block/request/6-cancel-ready-changes-nothing", test_cancel_ready_changes_nothing);
    g_test_add_func("/block/request/7-abandon-returns-at-once", test_abandon_returns_at_once);
    g_test_add_func("/block/request/7-abandon-at-any-moment", test_abandon_at_any_moment);
    g_test_add_func("/block/request/7-abandon-spares-others", test_abandon_spares_others);
    g_test_add_func("/block/request/7-abandon-owner-frees-in-done", test_abandon_owner_frees_in_done);
    add_many("8-submit-again-in-done", (const char *const[]){"read-now", "worker", NULL},
             (const char *const[]){"driver=mem", "driver=fault,fail-read=1001,file.driver=mem"},
             test_submit_again_in_done);
    g_test_add_func("/block/request/8-cancel-in-done", test_cancel_in_done);
    g_test_add_func("/block/request/8-abandon-in-done", test_abandon_in_done);
    add_many("8-unref-in-done", (const char *const[]){"read-now", "worker", NULL},
             (const char *const[]){"driver=raw,file.driver=mem", "driver=fault,fail-read=2,file.driver=mem"},
             test_unref_in_done);
    g_test_add_func("/block/request/9-node-lives-with-its-requests", test_node_lives_with_its_requests);
    g_test_add_func("/block/request/10-any-order", test_any_order);
    g_test_add_func("/block/request/10-flush-covers-done-writes", test_flush_covers_done_writes);
    return g_test_run();
}
