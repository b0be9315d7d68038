/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The `blkdebug` driver. What each script of operations gives is what the engine's qemu-io gives for the same
 * rules.
 */
#include "block/block-int.h"
#include "tests/unit/block-probe.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define OVER_MEM "driver=raw,file.driver=blkdebug,file.image.driver=mem"

/* Operations: r read, w write, z write zeroes, d discard, f flush, each on sector 0; R and W on sector 1; L
 * reads sectors 0 to 7. Results: `.` is good, `E` EIO, `S` ENOSPC. */
typedef struct Script {
    const char *name, *rules, *operations, *results;
} Script;

static const Script scripts[] = {
    {"none", "", "rwzdf", "....."},
    {"each-time", "inject-error.0.event=read_aio", "wrr", ".EE"},
    {"once", "inject-error.0.event=read_aio,inject-error.0.once=on", "rr", "E."},
    {"stays-active-for-all", "inject-error.0.event=read_aio,inject-error.0.errno=28", "rwfr", "SSSS"},
    {"from-the-start", "inject-error.0.event=none,inject-error.0.iotype=write", "rwfr", ".E.."},
    {"sector", "inject-error.0.event=none,inject-error.0.sector=1", "rRLWw", ".EEE."},
    {"write", "inject-error.0.event=write_aio,inject-error.0.once=on", "wrw", "E.."},
    {"pwritev", "inject-error.0.event=pwritev,inject-error.0.once=on", "rw", ".E"},
    {"zeroes", "inject-error.0.event=pwritev_zero,inject-error.0.iotype=write-zeroes", "wzw", ".E."},
    {"discard", "discard=unmap,inject-error.0.event=none,inject-error.0.iotype=discard", "wdw", ".E."},
    {"flush", "inject-error.0.event=flush_to_disk,inject-error.0.once=on", "wffw", ".E.."},
    {"flush-to-os", "inject-error.0.event=flush_to_os,inject-error.0.iotype=flush", "wfw", ".E."},
    {"clean-flush-reaches-no-driver", "inject-error.0.event=none,inject-error.0.iotype=flush", "ff", ".."},
    {"clean-flush-reaches-no-disk", "inject-error.0.event=flush_to_disk", "fw", ".."},
    {"state",
     "inject-error.0.event=read_aio,inject-error.0.state=2,inject-error.0.once=on,set-state.0.event=write_"
     "aio,"
     "set-state.0.state=1,set-state.0.new_state=2",
     "rwrr", "..E."},
    {"state-changes-after-the-event",
     "inject-error.0.event=read_aio,inject-error.0.state=2,set-state.0.event=read_aio,set-state.0.new_state="
     "2",
     "rr", ".E"},
    {"oldest-rule-first",
     "inject-error.0.event=read_aio,inject-error.0.errno=5,inject-error.0.once=on,inject-error.1.event=read_"
     "aio,"
     "inject-error.1.errno=28,inject-error.1.once=on",
     "rrr", "ES."},
    {"no-error", "inject-error.0.event=read_aio,inject-error.0.errno=0", "r", "."},
    {"qcow2-event-never-comes", "inject-error.0.event=l2_load", "rw", ".."},
};

static int do_operation(BlockNode *node, char operation)
{
    uint8_t buf[4096] = {1};
    switch (operation) {
    case 'r':
        return block_pread(node, 0, buf, 512);
    case 'R':
        return block_pread(node, 512, buf, 512);
    case 'L':
        return block_pread(node, 0, buf, 4096);
    case 'w':
        return block_pwrite(node, 0, buf, 512, 0);
    case 'W':
        return block_pwrite(node, 512, buf, 512, 0);
    case 'z':
        return block_write_zeroes(node, 0, 512, 0);
    case 'd':
        return block_discard(node, 0, 512);
    default:
        return block_flush(node);
    }
}

static void run_script(BlockNode *node, const Script *script)
{
    g_autoptr(GString) results = g_string_new(NULL);
    for (const char *op = script->operations; *op; op++) {
        int ret = do_operation(node, *op);
        g_string_append_c(results, ret == 0 ? '.' : ret == -EIO ? 'E' : ret == -ENOSPC ? 'S' : '?');
    }
    g_assert_cmpstr(results->str, ==, script->results);
}

static void test_script(gconstpointer data)
{
    const Script *script = data;
    g_autoptr(GString) options = g_string_new(OVER_MEM ",discard=unmap");
    g_auto(GStrv) rules = g_strsplit(script->rules, ",", -1);
    for (char **rule = rules; *rule; rule++) {
        g_string_append_printf(options, ",file.%s", *rule);
    }
    BlockNode *node = open_node(options->str);
    run_script(node, script);
    /* An error that is left may also meet the flush at the end. */
    block_unref(node);
    g_assert_true(block_shutdown(5000));
}

static const char config[] = "# comment\n"
                             "\n"
                             "[inject-error]\n"
                             "event = \"write_aio\"\n"
                             "errno = \"28\"\n"
                             "state = \"2\"\n"
                             "once = \"on\"\n"
                             "immediately = \"off\"\n"
                             "[set-state]\n"
                             "  event=\"read_aio\"\n"
                             "state = 1\n"
                             "new_state = \"2\"\n";

/* blkdebug:CONFIG:IMAGE, as tests write it. */
static void test_config_file(void)
{
    static const Script script = {"", "", "wrww", "..S."};
    char *config_path = make_file(config, -1), *image = make_file("", 0);
    g_assert_cmpint(truncate(image, 65536), ==, 0);
    g_autofree char *name = g_strdup_printf("blkdebug:%s:%s", config_path, image);
    GError *error = NULL;
    g_autoptr(Options) options = block_options_from_filename(name, &error);
    g_assert_no_error(error);
    BlockNode *blkdebug = block_open(options, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(block_info(blkdebug)->filename, ==, name);
    g_assert_cmpstr(block_info(block_child(blkdebug, "image"))->filename, ==, image);
    g_assert_null(block_child(blkdebug, "file"));
    g_autofree char *above = g_strdup_printf("driver=raw,file=%s", block_name(blkdebug));
    BlockNode *node = open_node(above);
    block_unref(blkdebug);
    run_script(node, &script);
    finish(node);
    remove_file(config_path);
    remove_file(image);
}

static void test_no_config_file(void)
{
    char *image = make_file("0123456789", 10);
    g_autofree char *name = g_strdup_printf("blkdebug::file:%s", image);
    g_autoptr(Options) options = block_options_from_filename(name, NULL);
    BlockNode *node = block_open(options, NULL);
    g_assert_cmpuint(block_info(node)->size, ==, 10);
    finish(node);
    remove_file(image);
    GError *error = NULL;
    g_assert_null(block_options_from_filename("blkdebug:x", &error));
    g_assert_cmpstr(error->message, ==, "blkdebug requires both config file and image path");
    g_clear_error(&error);
}

typedef struct Refusal {
    const char *options, *message;
} Refusal;

static void test_refusals(void)
{
    static const Refusal refusals[] = {
        {"", "Parameter 'image' is missing"},
        {",image=zork", "Cannot find device='zork' nor node-name='zork'"},
        {",config=/nonexistent/c", "Could not open '/nonexistent/c': No such file or directory"},
        {",align=3", "Cannot meet constraints with align 3"},
        {",inject-error.0.errno=5", "Parameter 'inject-error.0.event' is missing"},
        {",inject-error.0.event=zork", "Parameter 'inject-error.0.event' does not accept value 'zork'"},
        {",inject-error.0.event=none,inject-error.0.iotype=zork",
         "Parameter 'inject-error.0.iotype' does not accept value 'zork'"},
        {",inject-error.0.event=none,inject-error.0.zork=1", "Parameter 'inject-error.0.zork' is unexpected"},
        {",inject-error.1.event=none,image.driver=mem", "Parameter 'inject-error.1.event' is unexpected"},
        {",set-state.0.event=none", "Parameter 'set-state.0.new_state' is missing"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *options = g_strconcat("driver=blkdebug", refusals[i].options, NULL);
        g_autofree char *message = open_message(options);
        g_assert_cmpstr(message, ==, refusals[i].message);
    }
}

static void test_bad_config(void)
{
    static const Refusal bad[] = {
        {"[zork]\n", "1: There is no option group 'zork'"},
        {"event = \"none\"\n", "1: no group defined"},
        {"[inject-error]\nevent \"none\"\n",
         "2: 'event \"none\"' is neither a [section] nor key = \"value\""},
        {"[inject-error]\nerrno = \"5\"\n", "3: Parameter 'event' is missing"},
        {"[inject-error]\nevent = \"none\"\nzork = \"5\"\n\n", "5: Parameter 'zork' is unexpected"},
        {"[set-state]\nevent = \"none\"\n[inject-error]\n", "3: Parameter 'new_state' is missing"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *path = make_file(bad[i].options, -1);
        g_autofree char *options = g_strdup_printf("driver=blkdebug,config=%s,image.driver=mem", path);
        g_autofree char *message = open_message(options);
        g_autofree char *expected = g_strdup_printf("%s:%s", path, bad[i].message);
        g_assert_cmpstr(message, ==, expected);
        remove_file(path);
    }
}

static void test_align(void)
{
    BlockNode *node = open_node("driver=blkdebug,align=4096,image.driver=mem,image.pattern=7");
    uint8_t buf[100];
    g_assert_cmpuint(block_info(node)->align, ==, 4096);
    g_assert_cmpint(block_pwrite(node, 5000, "x", 1, 0), ==, 0);
    g_assert_cmpint(block_pread(node, 4999, buf, 3), ==, 0);
    g_assert_cmpmem(buf, 3, "\7x\7", 3);
    finish(node);
}

static void test_delay(void)
{
    BlockNode *node = open_node(OVER_MEM ",file.inject-error.0.event=read_aio,file.inject-error.0.errno=0,"
                                         "file.inject-error.0.delay-ns=50000000");
    gint64 start = g_get_monotonic_time();
    g_assert_cmpint(do_operation(node, 'r'), ==, 0);
    g_assert_cmpint(g_get_monotonic_time() - start, >=, 50000);
    finish(node);
}

/* break, wait_break, resume: the request waits, others do not, and the breakpoint is gone then. */
static void test_breakpoint(void)
{
    BlockNode *node = open_node(OVER_MEM);
    g_assert_cmpint(block_debug_breakpoint(node, "zork", "A"), ==, -ENOENT);
    g_assert_cmpint(block_debug_resume(node, "A"), ==, -ENOENT);
    g_assert_cmpint(block_debug_breakpoint(node, "read_aio", "A"), ==, 0);
    g_assert_false(block_debug_is_suspended(node, "A"));
    Probe *held = probe_read(node);
    wait_for(block_debug_is_suspended(node, "A"));
    Probe *other = probe_read(node);
    wait_for(other->dones);
    g_assert_cmpint(other->result, ==, 0);
    g_assert_cmpint(held->dones, ==, 0);
    g_assert_cmpint(block_debug_resume(node, "B"), ==, -ENOENT);
    g_assert_cmpint(block_debug_resume(node, "A"), ==, 0);
    wait_for(held->dones);
    g_assert_cmpint(held->result, ==, 0);
    g_assert_false(block_debug_is_suspended(node, "A"));
    g_assert_cmpint(block_debug_remove_breakpoint(node, "A"), ==, -ENOENT);
    g_free(held);
    g_free(other);
    finish(node);
}

static void test_remove_breakpoint(void)
{
    BlockNode *node = open_node(OVER_MEM), *plain = open_node("driver=mem");
    g_assert_cmpint(block_debug_breakpoint(node, "flush_to_os", "A"), ==, 0);
    g_assert_cmpint(block_debug_remove_breakpoint(node, "A"), ==, 0);
    g_assert_cmpint(do_operation(node, 'f'), ==, 0); /* does not wait */
    g_assert_cmpint(block_debug_breakpoint(plain, "read_aio", "A"), ==, -ENOTSUP);
    g_assert_cmpint(block_debug_resume(plain, "A"), ==, -ENOTSUP);
    g_assert_cmpint(block_debug_remove_breakpoint(plain, "A"), ==, -ENOTSUP);
    g_assert_false(block_debug_is_suspended(plain, "A"));
    block_unref(plain);
    finish(node);
}

/* A reset while a request hangs at a breakpoint. */
static void test_abandon_at_breakpoint(void)
{
    BlockNode *node = open_node(OVER_MEM);
    g_assert_cmpint(block_debug_breakpoint(node, "read_aio", "A"), ==, 0);
    Probe *held = probe_read(node);
    wait_for(block_debug_is_suspended(node, "A"));
    block_abandon(&held->request);
    wait_for(held->dones == 1);
    g_free(held);
    finish(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(scripts); i++) {
        g_autofree char *path = g_strconcat("/blkdebug/script/", scripts[i].name, NULL);
        g_test_add_data_func(path, &scripts[i], test_script);
    }
    g_test_add_func("/blkdebug/config-file", test_config_file);
    g_test_add_func("/blkdebug/no-config-file", test_no_config_file);
    g_test_add_func("/blkdebug/refusals", test_refusals);
    g_test_add_func("/blkdebug/bad-config", test_bad_config);
    g_test_add_func("/blkdebug/align", test_align);
    g_test_add_func("/blkdebug/delay", test_delay);
    g_test_add_func("/blkdebug/breakpoint", test_breakpoint);
    g_test_add_func("/blkdebug/remove-breakpoint", test_remove_breakpoint);
    g_test_add_func("/blkdebug/abandon-at-breakpoint", test_abandon_at_breakpoint);
    return g_test_run();
}
