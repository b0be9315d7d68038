/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block/block.h"
#include "block/secret-object.h"
#include "block/tls-object.h"
#include "util/error.h"
#include "util/log.h"

#define SHUTDOWN_MS 2000
#define LONG_BASE   256 /* getopt's value of the first option without letter */

struct ToolArgs {
    const ToolCommand *command;
    const char *full_name;
    GPtrArray **values; /* by index of the option; NULL: not given */
    char **operands;
    int count;
};

void tool_init(const char *argv0)
{
    log_set_program(argv0);
}

static unsigned count_options(const ToolCommand *command)
{
    unsigned n = 0;
    while (command->options[n].help) {
        n++;
    }
    return n;
}

static int index_of(const ToolArgs *args, const char *name)
{
    const ToolOption *options = args->command->options;
    for (int i = 0; options[i].help; i++) {
        if ((options[i].name && !strcmp(options[i].name, name)) ||
            (!name[1] && options[i].letter == name[0])) {
            return i;
        }
    }
    return -1;
}

const GPtrArray *tool_get_all(const ToolArgs *args, const char *name)
{
    int i = index_of(args, name);
    return i < 0 ? NULL : args->values[i];
}

const char *tool_get(const ToolArgs *args, const char *name)
{
    const GPtrArray *values = tool_get_all(args, name);
    return values ? values->pdata[values->len - 1] : NULL;
}

bool tool_has(const ToolArgs *args, const char *name)
{
    return tool_get_all(args, name) != NULL;
}

int tool_count(const ToolArgs *args)
{
    return args->count;
}

const char *tool_operand(const ToolArgs *args, int index)
{
    return index < args->count ? args->operands[index] : NULL;
}

static int failure_status(const ToolCommand *command)
{
    return command->failure ? command->failure : EXIT_FAILURE;
}

int tool_wrong(const ToolArgs *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    g_autofree char *message = g_strdup_vprintf(format, list);
    va_end(list);
    log_error("%s", message);
    fprintf(stderr, "Try '%s --help' for more information\n", args->full_name);
    return failure_status(args->command);
}

static void print_option(const ToolOption *option)
{
    g_autoptr(GString) line = g_string_new("  ");
    if (option->letter) {
        g_string_append_printf(line, "-%c%s", option->letter, option->name ? ", " : "");
    }
    if (option->name) {
        g_string_append_printf(line, "--%s", option->name);
    }
    if (option->value) {
        g_string_append_printf(line, " %s", option->value);
    }
    printf("%s\n", line->str);
    g_auto(GStrv) lines = g_strsplit(option->help, "\n", -1);
    for (char **text = lines; *text; text++) {
        printf("     %s\n", *text);
    }
}

static void print_help(const ToolCommand *command, const char *full_name)
{
    printf("Usage:\n  %s %s\n\n%s.\n\nOptions:\n", full_name, command->usage, command->summary);
    for (const ToolOption *option = command->options; option->help; option++) {
        print_option(option);
    }
    if (command->operands) {
        printf("%s", command->operands);
    }
    printf("\nExamples:\n%s", command->examples);
}

/* getopt's two lists from the table; the caller frees both. */
static struct option *make_getopt(const ToolCommand *command, GString *letters)
{
    unsigned n = count_options(command);
    struct option *list = g_new0(struct option, n + 1);
    unsigned used = 0;
    for (unsigned i = 0; i < n; i++) {
        const ToolOption *option = &command->options[i];
        if (option->letter) {
            g_string_append_printf(letters, "%c%s", option->letter, option->value ? ":" : "");
        }
        if (option->name) {
            list[used++] = (struct option){option->name, option->value ? required_argument : no_argument,
                                           NULL, LONG_BASE + i};
        }
    }
    return list;
}

static void store(ToolArgs *args, int code, const char *value)
{
    int i = code >= LONG_BASE ? code - LONG_BASE : index_of(args, (char[]){code, '\0'});
    if (!args->values[i]) {
        args->values[i] = g_ptr_array_new();
    }
    g_ptr_array_add(args->values[i], (gpointer)(value ? value : ""));
}

static void args_clear(ToolArgs *args)
{
    for (unsigned i = 0; i < count_options(args->command); i++) {
        if (args->values[i]) {
            g_ptr_array_free(args->values[i], TRUE);
        }
    }
    g_free(args->values);
}

static bool add_objects(const ToolArgs *args)
{
    const GPtrArray *objects = tool_get_all(args, "object");
    for (guint i = 0; objects && i < objects->len; i++) {
        GError *error = NULL;
        if (!tool_add_object(objects->pdata[i], &error)) {
            log_gerror(error, NULL);
            return false;
        }
    }
    return true;
}

/* "-2K": a size to take away, and no option. */
static bool is_difference(const char *arg)
{
    return arg[0] == '-' && g_ascii_isdigit(arg[1]);
}

/* getopt over the whole of argv, but for a difference at its end; false when it has complained. */
static bool parse(ToolArgs *args, int argc, char **argv)
{
    g_autoptr(GString) letters = g_string_new(NULL);
    g_autofree struct option *list = make_getopt(args->command, letters);
    char *argv0 = argv[0];
    argv[0] = (char *)args->full_name; /* for getopt's messages */
    optind = 0;
    int code,
        parsed = args->command->signed_last && argc > 1 && is_difference(argv[argc - 1]) ? argc - 1 : argc;
    while ((code = getopt_long(parsed, argv, letters->str, list, NULL)) != -1 && code != '?') {
        store(args, code, optarg);
    }
    argv[0] = argv0;
    args->operands = argv + optind;
    args->count = argc - optind;
    return code == -1;
}

int tool_run(const ToolCommand *command, const char *full_name, int argc, char **argv)
{
    ToolArgs args = {.command = command, .full_name = full_name};
    args.values = g_new0(GPtrArray *, count_options(command) + 1);
    int status = failure_status(command);
    if (!parse(&args, argc, argv)) {
        fprintf(stderr, "Try '%s --help' for more information\n", full_name);
    } else if (tool_has(&args, "help")) {
        print_help(command, full_name);
        status = EXIT_SUCCESS;
    } else if (add_objects(&args)) {
        secret_object_hide_argv(argc, argv);
        /* getopt has put the operands last; their strings stay where they were. */
        status = command->run(&args);
    }
    args_clear(&args);
    return status;
}

bool tool_add_object(const char *definition, GError **error)
{
    g_autoptr(Options) options = options_parse(definition, "qom-type", error);
    if (!options) {
        return false;
    }
    const char *type = options_get(options, "qom-type");
    if (!type) {
        return error_set(error, "Parameter 'qom-type' is missing");
    }
    g_autofree char *kind = g_strdup(type);
    options_remove(options, "qom-type");
    if (tls_object_is(kind)) {
        return tls_object_add(kind, options, error);
    }
    return strcmp(kind, "secret") ? error_set(error, "Parameter 'qom-type' does not accept value '%s'", kind)
                                  : secret_object_add(options, error);
}

bool tool_parse_size(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *ret)
{
    uint64_t value;
    int r = options_parse_size(text, &value);
    if (r == -EINVAL && text[0] != '-') {
        log_error("Invalid %s specified: '%s'", what, text);
        return false;
    }
    if (r < 0 || value < min || value > max) {
        log_error("Invalid %s specified. Must be between %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT ".",
                  what, min, max);
        return false;
    }
    *ret = value;
    return true;
}

bool tool_get_size(const ToolArgs *args, const char *name, const char *what, uint64_t min, uint64_t max,
                   uint64_t *ret)
{
    const char *text = tool_get(args, name);
    return !text || tool_parse_size(text, what, min, max, ret);
}

bool tool_get_output(const ToolArgs *args, bool *ret_json, int *ret_status)
{
    const char *text = tool_get(args, "output");
    *ret_json = text && !strcmp(text, "json");
    if (text && !*ret_json && strcmp(text, "human")) {
        *ret_status = tool_wrong(args, "--output expects 'human' or 'json', not '%s'", text);
        return false;
    }
    return true;
}

/* Three significant digits, as qemu-img: "1.5 GiB", "977 KiB". */
char *tool_format_size(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = bytes;
    size_t unit = 0;
    while (value >= 1000 && unit < G_N_ELEMENTS(units) - 1) {
        value /= 1024;
        unit++;
    }
    return g_strdup_printf("%0.3g %s", value, units[unit]);
}

int tool_exit(int status)
{
    if (!block_shutdown(SHUTDOWN_MS)) {
        log_warn("an image is still busy; leaving without waiting for it");
    }
    secret_object_clear();
    bool failed_before = ferror(stdout);
    if (fflush(stdout)) {
        log_error("write error: %s", g_strerror(errno));
        status = status ? status : EXIT_FAILURE;
    } else if (failed_before) {
        log_error("write error: not all could be printed");
        status = status ? status : EXIT_FAILURE;
    }
    return status;
}
