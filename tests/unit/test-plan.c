/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Command lines and what becomes of them: each file data/plan/NAME.case is one test. Its sections, begun by a
 * line `== NAME`, one argument a line: `argv` (given), `qemu` (what QEMU is left with; absent: unchanged),
 * `drive` (the drive process's options), `notes`, `error`. With SPINDLE_CASES_WRITE=1 in the environment the
 * files are rewritten with what came out, for a look with git diff.
 */
#include "monitor/chardev.h"
#include "system/plan.h"
#include "system/qemu-options.h"
#include <string.h>
#include "util/error.h"

static bool fake_has_driver(const char *driver)
{
    static const char *const names[] = {"file", "host_device", "raw",      "null-co",
                                        "http", "luks",        "throttle", NULL};

    return g_strv_contains(names, driver);
}

static Options *fake_from_filename(const char *filename, GError **error)
{
    Options *options = options_new();
    bool http = g_str_has_prefix(filename, "http://");

    if (g_str_has_prefix(filename, "json:")) {
        options_unref(options);
        return options_parse(filename, NULL, error);
    }
    if (strchr(filename, ':') && !http) {
        options_unref(options);
        error_set(error, "Unknown protocol '%s'", filename);
        return NULL;
    }
    options_set(options, "driver",
                http                                  ? "http"
                : g_str_has_prefix(filename, "/dev/") ? "host_device"
                                                      : "file");
    options_set(options, http ? "url" : "filename", filename);
    return options;
}

static const char *fake_probe(const char *filename)
{
    return g_str_has_suffix(filename, ".qcow2") ? "qcow2" : "raw";
}

static bool fake_uefi(const char *filename)
{
    return strstr(filename, "OVMF") != NULL;
}

static bool fake_is_directory(const char *path)
{
    return g_str_has_prefix(path, "/hugepages");
}

static bool at_terminal;

static bool fake_on_terminal(void)
{
    return at_terminal;
}

static const PlanHooks hooks = {
    fake_has_driver,  fake_from_filename,       fake_probe, fake_uefi, fake_is_directory,
    fake_on_terminal, chardev_options_from_text};

static GHashTable *read_sections(const char *path, char **ret_comment)
{
    GHashTable *sections =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    g_autofree char *text = NULL;
    GPtrArray *section = NULL;
    GString *comment = g_string_new(NULL);
    GError *error = NULL;

    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, "== ")) {
            section = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(sections, g_strdup(*line + 3), section);
        } else if (section && (*line)[0]) {
            g_ptr_array_add(section, g_strdup(strcmp(*line, "''") ? *line : ""));
        } else if (!section && (*line)[0]) {
            g_string_append_printf(comment, "%s\n", *line);
        }
    }
    *ret_comment = g_string_free(comment, false);
    return sections;
}

static void print_section(GString *out, const char *name, GPtrArray *lines)
{
    if (lines && lines->len) {
        g_string_append_printf(out, "== %s\n", name);
        for (guint i = 0; i < lines->len; i++) {
            const char *line = g_ptr_array_index(lines, i);
            g_string_append_printf(out, "%s\n", line[0] ? line : "''");
        }
    }
}

static void print_plan(GString *out, Plan *plan, const char *const *argv)
{
    g_autoptr(GPtrArray) qemu = g_ptr_array_new();
    g_autoptr(GPtrArray) drive = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) monitors = g_ptr_array_new_with_free_func(g_free);

    for (char **arg = plan->qemu_argv; *arg; arg++) {
        g_ptr_array_add(qemu, *arg);
    }
    for (guint i = 0; i < plan->drive->len; i++) {
        PlanArg *arg = g_ptr_array_index(plan->drive, i);
        g_ptr_array_add(drive, g_strdup_printf("%s %s", arg->name, arg->arg));
        if (arg->origin) {
            g_ptr_array_add(drive, g_strdup_printf("    # %s", arg->origin));
        }
    }
    if (plan->serves || !g_strv_equal((const char *const *)plan->qemu_argv, argv)) {
        print_section(out, "qemu", qemu);
    }
    for (guint i = 0; i < plan->monitors->len; i++) {
        PlanMonitor *monitor = g_ptr_array_index(plan->monitors, i);
        g_ptr_array_add(monitors,
                        g_strdup_printf("%s: %s%s%s%s", monitor->label, monitor->chardev,
                                        monitor->pretty ? " pretty" : "", monitor->human ? " human" : "",
                                        monitor->human && monitor->wait ? " waits"
                                        : monitor->mux                  ? " mux"
                                                                        : ""));
        g_ptr_array_add(monitors, g_strdup_printf("    %s", monitor->engine));
        g_ptr_array_add(monitors, g_strdup_printf("    # %s", monitor->origin));
    }
    print_section(out, "drive", drive);
    print_section(out, "monitors", monitors);
    print_section(out, "notes", plan->notes);
}

static void test_case(gconstpointer data)
{
    const char *path = data;
    g_autofree char *comment = NULL;
    g_autoptr(GHashTable) sections = read_sections(path, &comment);
    GPtrArray *given = g_hash_table_lookup(sections, "argv");
    g_autoptr(GString) expected = g_string_new(NULL), actual = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    if (!given) {
        given = g_ptr_array_new_with_free_func(g_free);
        g_hash_table_insert(sections, g_strdup("argv"), given);
    }
    g_ptr_array_add(given, NULL);
    g_autofree char *name = g_path_get_basename(data);
    at_terminal = g_str_has_prefix(name, "terminal-");
    g_autoptr(Plan) plan = plan_new((const char *const *)given->pdata, "/run/spindle-x", &hooks, &error);
    g_ptr_array_set_size(given, given->len - 1);
    if (plan) {
        g_ptr_array_add(given, NULL);
        print_plan(actual, plan, (const char *const *)given->pdata);
        g_ptr_array_set_size(given, given->len - 1);
    } else {
        g_string_printf(actual, "== error\n%s\n", error->message);
    }
    print_section(expected, "qemu", g_hash_table_lookup(sections, "qemu"));
    print_section(expected, "drive", g_hash_table_lookup(sections, "drive"));
    print_section(expected, "monitors", g_hash_table_lookup(sections, "monitors"));
    print_section(expected, "notes", g_hash_table_lookup(sections, "notes"));
    print_section(expected, "error", g_hash_table_lookup(sections, "error"));
    if (g_getenv("SPINDLE_CASES_WRITE")) {
        g_autoptr(GString) text = g_string_new(comment);
        print_section(text, "argv", given);
        g_string_append(text, actual->str);
        g_assert_true(g_file_set_contents(path, text->str, -1, NULL));
        return;
    }
    g_assert_cmpstr(actual->str, ==, expected->str);
}

static void test_argv_order_kept(void)
{
    const char *const argv[] = {"disk.img", "--m", "1G", "-append", "-cdrom", "-S", "-future", NULL};
    GError *error = NULL;
    g_autoptr(CmdLine) line = cmd_line_parse(argv, &error);

    g_assert_no_error(error);
    g_auto(GStrv) out = cmd_line_to_argv(line);
    g_assert_true(g_strv_equal((const char *const *)out, argv));
}

static void add_cases(void)
{
    g_autofree char *folder = g_test_build_filename(G_TEST_DIST, "data", "plan", NULL);
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *test = g_strdup_printf("/plan/%.*s", (int)strcspn(name, "."), name);
        if (g_str_has_suffix(name, ".case")) {
            g_test_add_data_func_full(test, g_build_filename(folder, name, NULL), test_case, g_free);
        }
    }
    g_dir_close(dir);
}

int main(int argc, char **argv)
{
    g_setenv("G_TEST_SRCDIR", TEST_SOURCE_DIR, false);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qemu-options/order-kept", test_argv_order_kept);
    add_cases();
    return g_test_run();
}
