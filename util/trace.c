/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

bool trace_enabled[TRACE_EVENTS + 1];

static const struct {
    const char *name, *format;
} trace_table[] = {
#define TRACE_EVENT(name, format) {#name, format},
#include "util/trace-events.def"
#undef TRACE_EVENT
};

const char *trace_get_name(TraceEvent event)
{
    return trace_table[event].name;
}

void trace_print(TraceEvent event, ...)
{
    g_autoptr(GString) line = g_string_new(trace_table[event].name);
    g_string_append_c(line, ' ');
    va_list args;
    va_start(args, event);
    g_string_append_vprintf(line, trace_table[event].format, args);
    va_end(args);
    g_string_append_c(line, '\n');
    fwrite(line->str, 1, line->len, log_get_stream());
}

bool trace_exists(const char *name)
{
    for (int i = 0; i < TRACE_EVENTS; i++) {
        if (!strcmp(trace_table[i].name, name)) {
            return true;
        }
    }
    return false;
}

unsigned trace_set_enabled(const char *pattern, bool on)
{
    g_autoptr(GPatternSpec) spec = g_pattern_spec_new(pattern);
    unsigned matched = 0;
    for (int i = 0; i < TRACE_EVENTS; i++) {
        if (g_pattern_spec_match_string(spec, trace_table[i].name)) {
            __atomic_store_n(&trace_enabled[i], on, __ATOMIC_RELAXED);
            matched++;
        }
    }
    return matched;
}

bool trace_print_help(const char *arg)
{
    if (strcmp(arg, "help") && strcmp(arg, "?")) {
        return false;
    }
    for (int i = 0; i < TRACE_EVENTS; i++) {
        printf("%s\n", trace_table[i].name);
    }
    return true;
}

/* PATTERN or -PATTERN. As in QEMU a plain name that does not exist is worth a warning only: one command line
 * may serve the engine and the drive, whose events differ. */
static void trace_apply(const char *item)
{
    bool on = item[0] != '-';
    const char *pattern = on ? item : item + 1;
    if (!trace_set_enabled(pattern, on) && !strpbrk(pattern, "*?")) {
        log_warn("trace event '%s' does not exist", pattern);
    }
}

/* A file of patterns, one a line; `#` begins a comment. */
static bool trace_apply_file(const char *path, GError **error)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return error_set_errno(error, errno, "Could not open '%s'", path);
    }
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0) {
        const char *item = g_strstrip(line);
        if (*item && *item != '#') {
            trace_apply(item);
        }
    }
    free(line);
    fclose(file);
    return true;
}

bool trace_parse(const char *arg, GError **error)
{
    g_auto(GStrv) items = g_strsplit(arg, ",", -1);
    for (char **item = items; *item; item++) {
        if (g_str_has_prefix(*item, "file=")) {
            if (!log_set_file(*item + strlen("file="), error)) {
                return false;
            }
        } else if (g_str_has_prefix(*item, "events=")) {
            if (!trace_apply_file(*item + strlen("events="), error)) {
                return false;
            }
        } else if (g_str_has_prefix(*item, "enable=")) {
            trace_apply(*item + strlen("enable="));
        } else if (item == items && **item && !strchr(*item, '=')) {
            trace_apply(*item);
        } else {
            char *equals = strchr(*item, '=');
            if (equals) {
                *equals = '\0';
            }
            return error_set(error, "Invalid parameter '%s'", *item);
        }
    }
    return true;
}

bool trace_parse_debug(const char *arg, bool *ret_help, GError **error)
{
    *ret_help = !strcmp(arg, "help") || !strcmp(arg, "?");
    if (*ret_help) {
        printf("Log items (comma separated):\n");
        for (int i = 0; i < TRACE_EVENTS; i++) {
            printf("trace:%-32s %s\n", trace_table[i].name, trace_table[i].format);
        }
        printf("trace:PATTERN enables trace events that match the pattern\n");
        return true;
    }
    g_auto(GStrv) items = g_strsplit(arg, ",", -1);
    for (char **item = items; *item; item++) {
        if (!g_str_has_prefix(*item, "trace:")) {
            return error_set(error, "Invalid log item '%s'; use '-d help' for the list", *item);
        }
        trace_apply(*item + strlen("trace:"));
    }
    return true;
}
