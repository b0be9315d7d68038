/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img: images, in the manner of qemu-img.
 */
#include "tools/img.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/trace.h"

static const ToolCommand *const commands[] = {
    &img_amend, &img_bench, &img_check, &img_compare, &img_convert, &img_create,
    &img_dd,    &img_info,  &img_map,   &img_measure, &img_resize,  &img_trace_plot,
};

static void print_usage(void)
{
    printf("Usage:\n  spindle-img [-T TRACE] COMMAND [--help | command options]\n\n"
           "Makes, copies, compares and describes images.\n\n"
           "Options:\n"
           "  -h, --help\n     print this help and exit\n"
           "  -V, --version\n     print the version and exit\n"
           "  -T, --trace TRACE\n     switch trace events on: [enable=]PATTERN[,events=FILE][,file=FILE]\n\n"
           "Commands (COMMAND --help tells more):\n");
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    printf("\nExamples:\n"
           "  spindle-img info disc.iso\n"
           "  spindle-img convert -p disc.iso copy.iso\n");
}

static int fail(const char *format, ...) G_GNUC_PRINTF(1, 2);
static int fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    log_error("%s", message);
    fprintf(stderr, "Try 'spindle-img --help' for more information\n");
    return EXIT_FAILURE;
}

static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (!strcmp(argv[0], commands[i]->name)) {
            g_autofree char *full_name = g_strdup_printf("spindle-img %s", argv[0]);
            return tool_run(commands[i], full_name, argc, argv);
        }
    }
    return fail("Command not found: %s", argv[0]);
}

/* Takes the options before the command. The index of the command, or 0 with *ret_status. */
static int take_global_options(int argc, char **argv, int *ret_status)
{
    *ret_status = EXIT_SUCCESS;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            return i;
        }
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
            print_usage();
            return 0;
        }
        if (!strcmp(argv[i], "-V") || !strcmp(argv[i], "--version")) {
            printf("spindle-img version %s\n", SPINDLE_VERSION);
            return 0;
        }
        const char *trace = g_str_has_prefix(argv[i], "--trace=") ? argv[i] + strlen("--trace=")
                            : (!strcmp(argv[i], "-T") || !strcmp(argv[i], "--trace")) && i + 1 < argc
                                ? argv[++i]
                                : NULL;
        GError *error = NULL;
        if (trace && trace_print_help(trace)) {
            return 0;
        }
        if (!trace || !trace_parse(trace, &error)) {
            *ret_status = trace ? EXIT_FAILURE : fail("unrecognized option '%s'", argv[i]);
            if (trace) {
                log_gerror(error, NULL);
            }
            return 0;
        }
    }
    *ret_status = fail("Not enough arguments");
    return 0;
}

int main(int argc, char **argv)
{
    int status;
    tool_init(argv[0]);
    int at = take_global_options(argc, argv, &status);
    if (at) {
        status = run_command(argc - at, argv + at);
    }
    return tool_exit(status);
}

bool img_check_format_options(const ToolArgs *args)
{
    if (tool_has(args, "image-opts") && tool_has(args, "f")) {
        log_error("--image-opts and --format are mutually exclusive");
        return false;
    }
    return true;
}

bool img_open(const ToolArgs *args, const char *name, const char *cache_option, bool writable, Image *ret)
{
    ImageSpec spec = {
        .name = name,
        .format = tool_get(args, "f"),
        .cache = cache_option ? tool_get(args, cache_option) : NULL,
        .image_opts = tool_has(args, "image-opts"),
        .writable = writable,
        .force_share = tool_has(args, "force-share"),
    };
    bool ignored;
    if (!img_check_format_options(args)) {
        return false;
    }
    if (!image_parse_cache(spec.cache, &ignored, &ignored, &ignored)) {
        log_error("Invalid cache option: %s", spec.cache);
        return false;
    }
    return image_open_or_say(&spec, ret);
}
