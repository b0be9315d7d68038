/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/log.h"
#include "util/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"

/* Each runs in a subprocess of the test, whose stdout and stderr are compared with a glob. */
typedef struct {
    const char *name;
    void (*run)(void);
    const char *out, *err; /* globs */
} Printed;

static void say_error(void)
{
    log_error("Could not open '%s'", "x.iso");
}

static void say_warning(void)
{
    log_warn("no %s", "O_DIRECT");
}

static void say_info(void)
{
    log_info("%d drives", 2);
}

static void say_gerror(void)
{
    GError *error = NULL;
    error_set_errno(&error, -2, "Could not open '%s'", "100%.iso");
    log_gerror(error, "-drive file=%s: ", "a%b");
}

static void say_gerror_bare(void)
{
    GError *error = NULL;
    error_set(&error, "broken");
    log_gerror(error, NULL);
}

static void say_timestamp(void)
{
    log_set_timestamp(TRUE);
    log_error("late");
}

static void trace_off(void)
{
    trace(block_request_done, NULL, 1);
}

static void trace_one(void)
{
    if (!trace_parse("block_request_done", NULL)) {
        abort();
    }
    trace(block_request_done, NULL, -5);
    trace(block_open, "n", "d", (guint64)1);
}

static void trace_glob_and_minus(void)
{
    bool help;
    if (!trace_parse_debug("trace:block_*,trace:-block_request_*", &help, NULL) || help) {
        abort();
    }
    trace(block_request_done, NULL, -5);
    trace(block_open, "n", "d", (guint64)1);
}

static void trace_unknown(void)
{
    if (!trace_parse("enable=no_such_event", NULL) || !trace_parse("no_*", NULL)) {
        abort();
    }
}

static void trace_list(void)
{
    if (!trace_print_help("help") || trace_print_help("helper")) {
        abort();
    }
}

static void debug_list(void)
{
    bool help;
    if (!trace_parse_debug("help", &help, NULL) || !help) {
        abort();
    }
}

static const Printed printed[] = {
    {"error", say_error, "", "prog: Could not open 'x.iso'\n"},
    {"warning", say_warning, "", "prog: warning: no O_DIRECT\n"},
    {"info", say_info, "", "prog: info: 2 drives\n"},
    {"gerror", say_gerror, "",
     "prog: -drive file=a%b: Could not open '100%.iso': No such file or directory\n"},
    {"gerror-bare", say_gerror_bare, "", "prog: broken\n"},
    {"timestamp", say_timestamp, "", "20*-*-*T*:*:*.*Z prog: late\n"},
    {"trace-off", trace_off, "", ""},
    {"trace-one", trace_one, "", "block_request_done req * result -5\n"},
    {"trace-glob-and-minus", trace_glob_and_minus, "", "block_open node n driver d size 1\n"},
    {"trace-unknown", trace_unknown, "", "prog: warning: trace event 'no_such_event' does not exist\n"},
    {"trace-list", trace_list, "*block_open\n*block_request_done\n*", ""},
    {"debug-list", debug_list, "Log items (comma separated):\n*trace:block_open *node %s*", ""},
};

static void test_printed(gconstpointer opaque)
{
    const Printed *c = opaque;
    if (g_test_subprocess()) {
        log_set_program("/usr/bin/prog");
        c->run();
        exit(0);
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    if (!strcmp(c->err, "")) {
        g_test_trap_assert_stderr_unmatched("?*");
    } else {
        g_test_trap_assert_stderr(c->err);
    }
    if (strcmp(c->out, "")) {
        g_autofree char *glob = g_strdup_printf("*%s", c->out); /* after the TAP header of the subprocess */
        g_test_trap_assert_stdout(glob);
    }
}

static void test_trace_errors(void)
{
    static const struct {
        const char *arg, *error;
    } cases[] = {
        {"block_open,bogus=1", "Invalid parameter 'bogus'"},
        {"block_open,again", "Invalid parameter 'again'"},
        {"", NULL},
        {"events=/nonexistent/events", "Could not open '/nonexistent/events': No such file or directory"},
        {"file=/nonexistent/log", "Could not open '/nonexistent/log': No such file or directory"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        bool ok = trace_parse(cases[i].arg, &error);
        g_assert_cmpint(ok, ==, !cases[i].error);
        g_assert_true(ok || g_pattern_match_simple(cases[i].error, error->message));
    }
    bool help = true;
    g_autoptr(GError) error = NULL;
    g_assert_false(trace_parse_debug("trace:block_open,cpu", &help, &error));
    g_assert_false(help);
    g_assert_cmpstr(error->message, ==, "Invalid log item 'cpu'; use '-d help' for the list");
    trace_set_enabled("*", false);
}

static void test_trace_files(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("spindle-test-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *events = g_build_filename(folder, "events", NULL);
    g_autofree char *log = g_build_filename(folder, "log", NULL);
    g_assert_true(
        g_file_set_contents(events, "# comment\n\nblock_request_*\n-block_request_submit\n", -1, NULL));
    g_autofree char *arg = g_strdup_printf("events=%s,file=%s", events, log);
    g_assert_true(trace_parse(arg, &error));
    g_assert_no_error(error);
    trace(block_request_done, NULL, 3);
    trace(block_request_submit, "n", NULL, 0, (guint64)0, (guint64)0);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(log, &text, NULL, NULL));
    g_assert_true(g_pattern_match_simple("block_request_done req * result 3\n", text));
    trace_set_enabled("*", false);
    unlink(events);
    unlink(log);
    rmdir(folder);
}

static void test_trace_table(void)
{
    g_assert_cmpstr(trace_get_name(TRACE_block_open), ==, "block_open");
    g_assert_cmpuint(trace_set_enabled("block_open", true), ==, 1);
    g_assert_true(trace_enabled[TRACE_block_open]);
    g_assert_cmpuint(trace_set_enabled("*", false), ==, TRACE_EVENTS);
    g_assert_false(trace_enabled[TRACE_block_open]);
    g_assert_cmpuint(trace_set_enabled("nothing*", true), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(printed); i++) {
        g_autofree char *path = g_strdup_printf("/log/%s", printed[i].name);
        g_test_add_data_func(path, &printed[i], test_printed);
    }
    g_test_add_func("/log/trace-errors", test_trace_errors);
    g_test_add_func("/log/trace-files", test_trace_files);
    g_test_add_func("/log/trace-table", test_trace_table);
    return g_test_run();
}
