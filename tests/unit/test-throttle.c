/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * I/O limits: what can be meant (the words are the engine's), the buckets against a clock of the test's own,
 * and groups of nodes against the real one.
 */
#include "block/block-int.h"
#include "block/throttle-bucket.h"
#include "tests/unit/block-probe.h"
#include <errno.h>
#include <string.h>

#define SECOND 1000000000ll

typedef struct LimitsCase {
    const char *name, *options, *message; /* NULL: good */
} LimitsCase;

static const LimitsCase limits_cases[] = {
    {"none", "", NULL},
    {"zero", "x-bps-total=0", NULL},
    {"total", "x-bps-total=5,x-iops-total=3", NULL},
    {"directions", "x-bps-read=5,x-bps-write=7", NULL},
    {"limits-form", "limits.bps-total=5", NULL},
    {"burst", "x-bps-total=5,x-bps-total-max=10,x-bps-total-max-length=3", NULL},
    {"total-of-bytes-read-of-operations", "x-bps-total=5,x-iops-read=3", NULL},
    {"total-and-read", "x-bps-total=1,x-bps-read=1",
     "bps/iops/max total values and read/write values cannot be used at the same time"},
    {"iops-total-and-write", "x-iops-total=1,x-iops-write=1",
     "bps/iops/max total values and read/write values cannot be used at the same time"},
    {"max-total-and-read", "x-bps-total=5,x-bps-total-max=10,x-bps-read-max=10",
     "bps/iops/max total values and read/write values cannot be used at the same time"},
    {"size-without-iops", "x-iops-size=5", "iops size requires an iops value to be set"},
    {"size-with-bps", "x-bps-total=1,x-iops-size=5", "iops size requires an iops value to be set"},
    {"too-much", "x-bps-total=1000000000000001", "bps/iops/max values must be within [0, 1000000000000000]"},
    {"max-below-average", "x-bps-total=10,x-bps-total-max=5",
     "bps_max/iops_max cannot be lower than bps/iops"},
    {"max-without-average", "x-bps-total-max=5", "bps_max/iops_max require corresponding bps/iops values"},
    {"length-without-max", "x-bps-total-max-length=5", "burst length set without burst rate"},
    {"length-of-0", "x-bps-total=5,x-bps-total-max=10,x-bps-total-max-length=0",
     "the burst length cannot be 0"},
    {"length-too-high", "x-bps-total=5,x-bps-total-max=1000000000000000,x-bps-total-max-length=1000000000",
     "burst length too high for this burst rate"},
    {"not-a-number", "x-bps-total=zork", "Parameter 'x-bps-total' expects integer"},
    {"unknown", "zork=1", "Parameter 'zork' is unexpected"},
};

static ThrottleGroup *group_new(const char *text, GError **error)
{
    g_autoptr(Options) options = options_parse(text, NULL, NULL);
    return throttle_group_new_from_options(options, error);
}

static void test_limits(gconstpointer data)
{
    const LimitsCase *c = data;
    GError *error = NULL;
    g_autofree char *text = g_strconcat("id=t,", c->options, NULL);
    if (!c->options[0]) {
        text[strlen(text) - 1] = '\0';
    }
    ThrottleGroup *group = group_new(text, &error);
    if (c->message) {
        g_assert_null(group);
        g_assert_cmpstr(error->message, ==, c->message);
        g_error_free(error);
    } else {
        g_assert_no_error(error);
        throttle_group_unref(group);
    }
}

static void test_names(void)
{
    GError *error = NULL;
    ThrottleGroup *group = group_new("id=t", NULL);
    g_assert_null(group_new("id=t", &error));
    g_assert_cmpstr(error->message, ==, "attempt to add duplicate property 't' to object (type 'container')");
    g_clear_error(&error);
    g_assert_null(group_new("x-bps-total=1", &error));
    g_assert_cmpstr(error->message, ==, "Parameter 'id' is missing");
    g_clear_error(&error);
    g_assert_true(throttle_group_find("t") == group);
    throttle_group_unref(group);
    throttle_group_unref(group);
    g_assert_null(throttle_group_find("t"));
}

/* Count requests come as fast as they may; when the last one starts. */
typedef struct BucketCase {
    const char *name, *options;
    bool write;
    unsigned bytes, count;
    double seconds;
} BucketCase;

static const BucketCase bucket_cases[] = {
    /* A tenth of a second's worth passes at once. */
    {"bps", "x-bps-total=1000000", false, 100000, 101, 9.9},
    {"bps-small-requests", "x-bps-total=1000000", false, 1000, 10001, 9.9},
    {"bps-large-request-passes", "x-bps-total=1000000", false, 50000000, 1, 0},
    {"bps-large-requests", "x-bps-total=1000000", false, 10000000, 2, 9.9},
    {"read-limit-reads", "x-bps-read=1000000", false, 100000, 101, 9.9},
    {"read-limit-writes", "x-bps-read=1000000", true, 100000, 101, 0},
    {"write-limit-writes", "x-bps-write=2000000", true, 100000, 101, 4.9},
    {"iops", "x-iops-total=100", false, 1000000, 1001, 9.9},
    {"iops-write", "x-iops-write=100", true, 1, 1001, 9.9},
    {"iops-size", "x-iops-total=100,x-iops-size=1000", false, 10000, 101, 9.9},
    {"iops-size-small", "x-iops-total=100,x-iops-size=1000", false, 10, 1001, 9.9},
    {"both", "x-bps-total=1000000,x-iops-total=5", false, 100000, 101, 19.9},
    /* A second's worth of the maximum, then the average. */
    {"max", "x-bps-total=1000000,x-bps-total-max=5000000", false, 100000, 151, 10},
    /* Three seconds at the maximum: (3 * 5 MB - leaked) then the average. */
    {"max-length", "x-bps-total=1000000,x-bps-total-max=5000000,x-bps-total-max-length=3", false, 100000, 101,
     1.9},
    {"max-length-is-over", "x-bps-total=1000000,x-bps-total-max=5000000,x-bps-total-max-length=3", false,
     100000, 301, 15},
};

static void test_buckets(gconstpointer data)
{
    const BucketCase *c = data;
    g_autoptr(Options) options = options_parse(c->options, NULL, NULL);
    ThrottleBuckets buckets = {.leaked_at = 1000};
    int64_t now = 1000, wait;
    throttle_limits_init(&buckets.limits);
    g_assert_true(throttle_limits_read(&buckets.limits, options, "x-", NULL));
    g_assert_true(throttle_limits_check(&buckets.limits, NULL));
    g_assert_true(throttle_limits_enabled(&buckets.limits));
    for (unsigned i = 0; i < c->count; i++) {
        while ((wait = throttle_buckets_wait(&buckets, c->write)) > 0) {
            now += wait;
            throttle_buckets_leak(&buckets, now);
        }
        throttle_buckets_add(&buckets, c->write, c->bytes);
    }
    g_assert_cmpfloat_with_epsilon((now - 1000) / 1e9, c->seconds, 0.001);
}

/* Idle time is not saved up beyond the bucket; a clock that goes back does no harm. */
static void test_idle(void)
{
    ThrottleBuckets buckets = {0};
    throttle_limits_init(&buckets.limits);
    buckets.limits.bucket[THROTTLE_BPS_TOTAL].average = 1000000;
    throttle_buckets_add(&buckets, false, 1100000);
    g_assert_cmpint(throttle_buckets_wait(&buckets, true), >, SECOND - 1000);
    throttle_buckets_leak(&buckets, -5 * SECOND);
    g_assert_cmpint(throttle_buckets_wait(&buckets, true), >, SECOND - 1000);
    throttle_buckets_leak(&buckets, 1000 * SECOND);
    g_assert_cmpint(throttle_buckets_wait(&buckets, true), ==, 0);
    throttle_buckets_add(&buckets, false, 1100000);
    g_assert_cmpint(throttle_buckets_wait(&buckets, false), >, SECOND - 1000);
}

static void test_refusals(void)
{
    g_autofree char *none = open_message("driver=throttle,file.driver=mem");
    g_assert_cmpstr(none, ==, "Parameter 'throttle-group' is missing");
    g_autofree char *unknown = open_message("driver=throttle,throttle-group=zork,file.driver=mem");
    g_assert_cmpstr(unknown, ==, "Throttle group 'zork' does not exist");
    ThrottleGroup *group = group_new("id=t", NULL);
    g_autofree char *childless = open_message("driver=throttle,throttle-group=t");
    g_assert_cmpstr(childless, ==, "Parameter 'file' is missing");
    throttle_group_unref(group);
    g_assert_null(throttle_group_find("t")); /* the failed open keeps no reference */
}

/* Two nodes together are as fast as the group; the group lives as long as they do. */
static void test_shared_group(void)
{
    ThrottleGroup *group = group_new("id=t,x-iops-total=100", NULL);
    BlockNode *a = open_node("driver=throttle,throttle-group=t,file.driver=mem");
    BlockNode *b = open_node("driver=throttle,throttle-group=t,file.driver=mem");
    throttle_group_unref(group);
    Probe *probes[40];
    gint64 start = g_get_monotonic_time();
    for (guint i = 0; i < G_N_ELEMENTS(probes); i++) {
        probes[i] = probe_read(i % 2 ? a : b);
    }
    for (guint i = 0; i < G_N_ELEMENTS(probes); i++) {
        wait_for(probes[i]->dones);
        g_assert_cmpint(probes[i]->result, ==, 0);
        g_free(probes[i]);
    }
    gint64 ms = (g_get_monotonic_time() - start) / 1000;
    g_assert_cmpint(ms, >=, 285); /* ten at once, and ten more milliseconds for each other */
    g_assert_cmpint(ms, <, 2000);
    block_unref(a);
    finish(b);
    g_assert_null(throttle_group_find("t"));
}

/* A queue at one operation in ten seconds is set free by new limits. */
static void test_set_limits(void)
{
    ThrottleGroup *group = group_new("id=t,x-bps-total=410", NULL);
    BlockNode *node = open_node("driver=throttle,throttle-group=t,file.driver=mem");
    Probe *first = probe_read(node), *second = probe_read(node), *third = probe_read(node);
    wait_for(first->dones);
    run_loop_for(50);
    g_assert_cmpint(second->dones + third->dones, ==, 0);
    ThrottleLimits limits, back;
    GError *error = NULL;
    throttle_limits_init(&limits);
    limits.iops_size = 1;
    g_assert_false(throttle_group_set_limits(group, &limits, &error));
    g_clear_error(&error);
    throttle_group_get_limits(group, &back);
    g_assert_cmpuint(back.bucket[THROTTLE_BPS_TOTAL].average, ==, 410);
    limits.iops_size = 0;
    g_assert_true(throttle_group_set_limits(group, &limits, NULL));
    wait_for(second->dones && third->dones);
    g_assert_cmpint(second->result | third->result, ==, 0);
    g_free(first);
    g_free(second);
    g_free(third);
    throttle_group_unref(group);
    finish(node);
}

static void test_abandon(void)
{
    ThrottleGroup *group = group_new("id=t,x-bps-total=1", NULL);
    BlockNode *node = open_node("driver=throttle,throttle-group=t,file.driver=mem");
    Probe *first = probe_read(node), *waits[3];
    wait_for(first->dones);
    for (guint i = 0; i < G_N_ELEMENTS(waits); i++) {
        waits[i] = probe_read(node);
    }
    run_loop_for(30);
    for (guint i = 0; i < G_N_ELEMENTS(waits); i++) {
        g_assert_cmpint(waits[i]->dones, ==, 0);
        block_abandon(&waits[i]->request);
    }
    for (guint i = 0; i < G_N_ELEMENTS(waits); i++) {
        wait_for(waits[i]->dones == 1);
        g_assert_cmpint(waits[i]->result, ==, -ECANCELED);
        g_free(waits[i]);
    }
    g_free(first);
    throttle_group_unref(group);
    finish(node);
}

static void test_read_now(void)
{
    ThrottleGroup *group = group_new("id=t,x-iops-total=10", NULL);
    BlockNode *node = open_node("driver=throttle,throttle-group=t,file.driver=mem");
    uint8_t buf[512];
    struct iovec iov = {buf, sizeof buf};
    g_assert_cmpint(block_node_read_now(node, 0, 512, &iov, 1), ==, 0);
    g_assert_cmpint(block_node_read_now(node, 0, 512, &iov, 1), ==, 0); /* a tenth of a second's worth: one */
    g_assert_cmpint(block_node_read_now(node, 0, 512, &iov, 1), ==, -EAGAIN);
    throttle_group_unref(group);
    finish(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(limits_cases); i++) {
        g_autofree char *path = g_strconcat("/throttle/limits/", limits_cases[i].name, NULL);
        g_test_add_data_func(path, &limits_cases[i], test_limits);
    }
    for (guint i = 0; i < G_N_ELEMENTS(bucket_cases); i++) {
        g_autofree char *path = g_strconcat("/throttle/buckets/", bucket_cases[i].name, NULL);
        g_test_add_data_func(path, &bucket_cases[i], test_buckets);
    }
    g_test_add_func("/throttle/buckets/idle", test_idle);
    g_test_add_func("/throttle/names", test_names);
    g_test_add_func("/throttle/refusals", test_refusals);
    g_test_add_func("/throttle/shared-group", test_shared_group);
    g_test_add_func("/throttle/set-limits", test_set_limits);
    g_test_add_func("/throttle/abandon", test_abandon);
    g_test_add_func("/throttle/read-now", test_read_now);
    return g_test_run();
}
