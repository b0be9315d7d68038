/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The io-shell as a monitor uses it: text to a callback, blocking commands on another thread. The commands
 * themselves are compared with the engine's in tests/tools/io-parity.t.
 */
#include "block/io-shell.h"

#include <errno.h>
#include <string.h>

typedef struct Fixture {
    GString *out, *err;
    IoShell *shell;
    BlockNode *node;
} Fixture;

static void print(const char *text, bool is_error, void *opaque)
{
    Fixture *f = opaque;
    g_string_append(is_error ? f->err : f->out, text);
}

static int greet(IoShell *shell, int argc, char **argv)
{
    io_shell_print(shell, "hello %s\n", argc > 1 ? argv[1] : "you");
    return io_shell_opaque(shell) ? -EBUSY : 0;
}

static const IoCommand extra[] = {
    {"greet", "g", greet, 0, 1, IO_ON_LOOP, "[name]", "greets", NULL},
    {NULL},
};

static void setup(Fixture *f, gconstpointer unused)
{
    g_autoptr(Options) options = options_parse("driver=mem,size=64k", NULL, NULL);
    GError *error = NULL;
    f->out = g_string_new(NULL);
    f->err = g_string_new(NULL);
    f->shell = io_shell_new(NULL, extra, print, f);
    f->node = block_open(options, &error);
    g_assert_no_error(error);
    io_shell_set_node(f->shell, f->node);
}

static void teardown(Fixture *f, gconstpointer unused)
{
    io_shell_free(f->shell);
    block_unref(f->node);
    g_assert_true(block_shutdown(5000));
    g_string_free(f->out, TRUE);
    g_string_free(f->err, TRUE);
}

static void test_output(Fixture *f, gconstpointer unused)
{
    static const struct {
        const char *line;
        int result;
        const char *out, *err; /* globs */
    } cases[] = {
        {"length", 0, "64 KiB\n", ""},
        {"", 0, "", ""},
        {"  \t ", 0, "", ""},
        {"write -q -P 7 10 100", 0, "", ""},
        {"read -q -P 7 10 100", 0, "", ""},
        {"read -qP7 10 100", 0, "", ""},
        {"read 10 100 -qP 7", 0, "", ""},
        {"read -q -P 7 9 100", -EINVAL, "Pattern verification failed at offset 9, 100 bytes\n", ""},
        {"read -C 0 1k", 0, "1024,1,0:00:*", ""},
        {"read 64k 1", -EIO, "read failed: Input/output error\n", ""},
        {"read -P", -EINVAL, "", "bad argument count 1 to read, expected at least 2 arguments\n"},
        {"read -q -P", -EINVAL, "read *", "read: option requires an argument -- 'P'\n"},
        {"nonsense", -EINVAL, "", "command \"nonsense\" not found\n"},
        {"g world", -EBUSY, "hello world\n", ""},
        {"g a b", -EINVAL, "", "bad argument count 2 to greet, expected between 0 and 1 arguments\n"},
        {"help greet", 0, "greet [name] -- greets\n", ""},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_string_truncate(f->out, 0);
        g_string_truncate(f->err, 0);
        g_assert_cmpint(io_shell_run(f->shell, cases[i].line), ==, cases[i].result);
        if (!g_pattern_match_simple(cases[i].out, f->out->str)) {
            g_error("'%s' printed '%s'", cases[i].line, f->out->str);
        }
        g_assert_cmpstr(f->err->str, ==, cases[i].err);
    }
}

static void test_blocks(Fixture *f, gconstpointer unused)
{
    static const struct {
        const char *line;
        bool expect;
    } cases[] = {
        {"read 0 1", true},  {"write 0 1", true},     {"flush", true},
        {"help", true},      {"aio_read 0 1", false}, {"aio_flush", false},
        {"sleep 1", false},  {"greet", false},        {"", false},
        {"nonsense", false}, {"truncate 1k", false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(io_shell_blocks(f->shell, cases[i].line), ==, cases[i].expect);
    }
}

static gpointer run_there(gpointer opaque)
{
    return GINT_TO_POINTER(io_shell_run(opaque, "write -P 3 0 4k"));
}

static void test_on_a_worker(Fixture *f, gconstpointer unused)
{
    g_autoptr(GThread) thread = g_thread_new("worker", run_there, f->shell);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(g_steal_pointer(&thread))), ==, 0);
    g_assert_true(g_str_has_prefix(f->out->str, "wrote 4096/4096 bytes at offset 0\n"));
}

static void test_aio_and_change_of_node(Fixture *f, gconstpointer unused)
{
    g_assert_cmpint(io_shell_run(f->shell, "aio_write -P 9 0 4k"), ==, 0);
    g_assert_cmpstr(f->out->str, ==, ""); /* not before the loop has run */
    io_shell_set_node(f->shell, NULL);    /* waits */
    g_assert_true(g_str_has_prefix(f->out->str, "wrote 4096/4096 bytes at offset 0\n"));
    g_assert_null(io_shell_node(f->shell));
    g_assert_cmpint(io_shell_run(f->shell, "read 0 1"), ==, -EINVAL);
    g_assert_cmpstr(f->err->str, ==, "no file open, try 'help open'\n");
    io_shell_set_node(f->shell, f->node);
    g_assert_cmpint(io_shell_run(f->shell, "read -q -P 9 0 4k"), ==, 0);
}

static void test_names(Fixture *f, gconstpointer unused)
{
    unsigned n = 0;
    bool found = false;
    for (const char *name; (name = io_shell_command_name(f->shell, n)); n++) {
        found |= !strcmp(name, "greet");
        g_autofree char *line = g_strdup_printf("help %s", name);
        g_assert_cmpint(io_shell_run(f->shell, line), ==, 0);
    }
    g_assert_true(found);
    g_assert_cmpuint(n, >, 15);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/io-shell/output", Fixture, NULL, setup, test_output, teardown);
    g_test_add("/io-shell/blocks", Fixture, NULL, setup, test_blocks, teardown);
    g_test_add("/io-shell/on-a-worker", Fixture, NULL, setup, test_on_a_worker, teardown);
    g_test_add("/io-shell/aio-and-change-of-node", Fixture, NULL, setup, test_aio_and_change_of_node,
               teardown);
    g_test_add("/io-shell/names", Fixture, NULL, setup, test_names, teardown);
    return g_test_run();
}
