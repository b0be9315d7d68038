/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Behind the request boundary, beyond its contract: who gets a worker, delivery, the end of the program.
 */
#include "block/block-int.h"
#include "tests/unit/block-probe.h"
#include <errno.h>

static void test_serial_takes_one_at_a_time(void)
{
    BlockNode *node = open_node("driver=raw,file.driver=fault-serial,file.hang-read=1,file.file.driver=mem");
    Probe *hung = probe_read(node), *next = probe_read(node);
    run_loop_for(50);
    g_assert_cmpint(next->dones, ==, 0);
    block_abandon(&hung->request);
    wait_for(hung->dones && next->dones);
    g_assert_cmpint(next->result, ==, 0);
    g_free(hung);
    g_free(next);
    finish(node);
}

static void test_foreground_first(void)
{
    BlockNode *node = open_node("driver=fault-serial,hang-read=1,file.driver=mem");
    Probe *hung = probe_read(node), *back[3], *front;
    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        back[i] = probe_new(node, BLOCK_READ, 0, 512);
        back[i]->request.flags = BLOCK_BACKGROUND;
        block_submit(&back[i]->request);
    }
    front = probe_read(node);
    run_loop_for(20);
    block_abandon(&hung->request);
    wait_for(back[0]->dones && back[1]->dones && back[2]->dones && front->dones);
    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        g_assert_cmpuint(front->order, <, back[i]->order);
        g_free(back[i]);
    }
    g_free(front);
    g_free(hung);
    finish(node);
}

/* As many hung background requests as there can be: a foreground one still finds a place, here and elsewhere.
 */
static void test_background_leaves_room(void)
{
    BlockNode *node = open_node("driver=fault,delay-read-ns=200000000,file.driver=mem");
    BlockNode *other = open_node("driver=fault,delay-read-ns=1000,file.driver=mem");
    Probe *back[40];
    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        back[i] = probe_new(node, BLOCK_READ, 0, 512);
        back[i]->request.flags = BLOCK_BACKGROUND;
        block_submit(&back[i]->request);
    }
    run_loop_for(20);
    Probe *here = probe_read(node), *elsewhere = probe_read(other);
    wait_for(here->dones && elsewhere->dones);
    unsigned done_before = 0;
    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        done_before += back[i]->dones && back[i]->order < here->order;
        block_abandon(&back[i]->request);
    }
    g_assert_cmpuint(done_before, <=, 8); /* those that ran when it came, and their successors at most */
    for (guint i = 0; i < G_N_ELEMENTS(back); i++) {
        wait_for(back[i]->dones);
        g_free(back[i]);
    }
    g_free(here);
    g_free(elsewhere);
    block_unref(other);
    finish(node);
}

/* Sources that hang with all their requests keep neither another node's requests nor an open from a worker.
 */
static void test_hung_nodes_leave_room(void)
{
    enum { NODES = 6, EACH = 10 };
    BlockNode *nodes[NODES];
    Probe *hung[NODES][EACH];
    for (int n = 0; n < NODES; n++) {
        nodes[n] = open_node("driver=fault," SLOW);
        for (int i = 0; i < EACH; i++) {
            hung[n][i] = probe_read(nodes[n]);
        }
    }
    run_loop_for(50);
    BlockNode *good = open_node("driver=fault,delay-read-ns=1000,file.driver=mem");
    Probe *probe = probe_read(good);
    wait_for(probe->dones);
    g_assert_cmpint(probe->result, ==, 0);
    for (int n = 0; n < NODES; n++) {
        for (int i = 0; i < EACH; i++) {
            g_assert_cmpint(hung[n][i]->dones, ==, 0);
            block_abandon(&hung[n][i]->request);
        }
        for (int i = 0; i < EACH; i++) {
            wait_for(hung[n][i]->dones == 1);
            g_free(hung[n][i]);
        }
        block_unref(nodes[n]);
    }
    g_free(probe);
    finish(good);
}

/* read_now: a cached answer needs no worker; a background request never tries it. */
static void test_read_now(void)
{
    BlockNode *node = open_node("driver=raw,file.driver=mem,file.pattern=offset");
    Probe *probe = probe_read(node);
    wait_for(probe->dones);
    g_assert_cmpuint(block_stats(node)->read_now, ==, 1);
    g_assert_cmpint(probe->data[8], ==, 8);
    probe->request.flags = BLOCK_BACKGROUND;
    block_submit(&probe->request);
    wait_for(probe->dones == 2);
    g_assert_cmpuint(block_stats(node)->read_now, ==, 1);
    g_assert_cmpuint(block_stats(node)->ops[BLOCK_READ], ==, 2);
    g_assert_cmpuint(block_stats(node)->bytes[BLOCK_READ], ==, 8192);
    g_free(probe);
    finish(node);
}

static void deliver_in_done(Probe *probe)
{
    block_deliver_ready();
    g_assert_cmpint(((Probe *)probe->opaque)->dones, ==, 0);
}

static void test_deliver_ready(void)
{
    BlockNode *node = open_node("driver=mem");
    Probe *first = probe_read(node), *second = probe_read(node);
    first->opaque = second;
    first->in_done = deliver_in_done;
    block_deliver_ready();
    g_assert_cmpint(first->dones, ==, 1);
    g_assert_cmpint(second->dones, ==, 1);
    g_free(first);
    g_free(second);
    finish(node);
}

static void wait_in_done(Probe *probe)
{
    Probe *other = probe->opaque;
    wait_for(other->dones);
}

/* A nested loop inside `done` gets the others' completions. */
static void test_loop_in_done(void)
{
    BlockNode *node = open_node("driver=mem");
    Probe *first = probe_read(node), *second = probe_read(node);
    first->opaque = second;
    first->in_done = wait_in_done;
    wait_for(first->dones);
    g_free(first);
    g_free(second);
    finish(node);
}

static void test_shutdown_wakes_the_hung(void)
{
    BlockNode *node = open_node("driver=raw,file.driver=fault,file.hang-read=1,file.file.driver=mem");
    Probe *probe = probe_read(node);
    run_loop_for(20);
    block_unref(node);
    g_assert_true(block_shutdown(10000));
    g_assert_cmpint(probe->dones, ==, 1);
    g_assert_cmpint(probe->result, ==, -ECANCELED);
    g_free(probe);
}

static void test_shutdown_gives_up(void)
{
    BlockNode *node = open_node("driver=null-co,latency-ns=300000000");
    Probe *probe = probe_read(node);
    g_assert_false(block_shutdown(50));
    wait_for(probe->dones);
    g_free(probe);
    finish(node);
}

/* Many requests of every kind, some taken back, some abandoned, nodes going meanwhile. */
static void test_stress(void)
{
    static const char *const options[] = {
        "driver=fault,delay-ns=20000,fail-every=7,file.driver=mem,file.align=512",
        "driver=fault-serial,delay-ns=5000,file.driver=mem",
        "driver=raw,offset=100,file.driver=mem,file.align=4096",
        "driver=null-co",
    };
    enum { COUNT = 600 };
    g_autofree Probe **probes = g_new0(Probe *, COUNT);
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    for (int round = 0; round < 4; round++) {
        BlockNode *node = open_node(options[round]);
        for (int i = 0; i < COUNT; i++) {
            BlockOp op = g_rand_int_range(rand, 0, 5);
            /* Readers and writers do not share memory in the node: a slot of 1 KiB each. */
            probes[i] = probe_new(node, op, i * 1024 + g_rand_int_range(rand, 0, 512),
                                  op == BLOCK_FLUSH ? 0 : g_rand_int_range(rand, 0, 512));
            probes[i]->request.flags = g_rand_int_range(rand, 0, 8);
            block_submit(&probes[i]->request);
            int other = g_rand_int_range(rand, 0, i + 1);
            switch (g_rand_int_range(rand, 0, 8)) {
            case 0:
                block_cancel(&probes[other]->request);
                break;
            case 1:
                block_abandon(&probes[other]->request);
                break;
            case 2:
                g_main_context_iteration(NULL, FALSE);
                break;
            }
        }
        block_unref(node);
        for (int i = 0; i < COUNT; i++) {
            wait_for(probes[i]->dones == 1);
        }
        finish(NULL);
        for (int i = 0; i < COUNT; i++) {
            g_assert_cmpint(probes[i]->dones, ==, 1);
            g_free(probes[i]);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/pool/serial-takes-one-at-a-time", test_serial_takes_one_at_a_time);
    g_test_add_func("/block/pool/foreground-first", test_foreground_first);
    g_test_add_func("/block/pool/background-leaves-room", test_background_leaves_room);
    g_test_add_func("/block/pool/hung-nodes-leave-room", test_hung_nodes_leave_room);
    g_test_add_func("/block/pool/read-now", test_read_now);
    g_test_add_func("/block/pool/deliver-ready", test_deliver_ready);
    g_test_add_func("/block/pool/loop-in-done", test_loop_in_done);
    g_test_add_func("/block/pool/shutdown-wakes-the-hung", test_shutdown_wakes_the_hung);
    g_test_add_func("/block/pool/shutdown-gives-up", test_shutdown_gives_up);
    g_test_add_func("/block/pool/stress", test_stress);
    return g_test_run();
}
