/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

/* Set while the command line is read, before threads start. */
static char log_program[64] = "spindle";
static gboolean log_timestamp;
static FILE *log_file;

void log_set_program(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    g_strlcpy(log_program, slash ? slash + 1 : argv0, sizeof log_program);
}

void log_set_timestamp(gboolean on)
{
    log_timestamp = on;
}

gboolean log_set_file(const char *path, GError **error)
{
    FILE *file = fopen(path, "we");
    if (!file) {
        return error_set_errno(error, errno, "Could not open '%s'", path);
    }
    setvbuf(file, NULL, _IOLBF, 0);
    if (log_file) {
        fclose(log_file);
    }
    log_file = file;
    return TRUE;
}

FILE *log_get_stream(void)
{
    return log_file ? log_file : stderr;
}

/* One write per message, so that lines of several threads and processes do not mix. */
static void log_print(const char *prefix, const char *kind, const char *format, va_list args)
{
    g_autoptr(GString) line = g_string_new(NULL);
    if (log_timestamp) {
        g_autoptr(GDateTime) now = g_date_time_new_now_utc();
        g_autofree char *stamp = g_date_time_format_iso8601(now);
        g_string_append_printf(line, "%s ", stamp);
    }
    g_string_append_printf(line, "%s: ", log_program);
    if (prefix) {
        g_string_append(line, prefix);
    }
    g_string_append(line, kind);
    g_string_append_vprintf(line, format, args);
    g_string_append_c(line, '\n');
    fwrite(line->str, 1, line->len, stderr);
    fflush(stderr);
}

void log_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_print(NULL, "", format, args);
    va_end(args);
}

void log_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_print(NULL, "warning: ", format, args);
    va_end(args);
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_print(NULL, "info: ", format, args);
    va_end(args);
}

static void log_prefixed(const char *prefix, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void log_prefixed(const char *prefix, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_print(prefix, "", format, args);
    va_end(args);
}

void log_gerror(GError *error, const char *prefix_format, ...)
{
    g_autofree char *prefix = NULL;
    if (prefix_format) {
        va_list args;
        va_start(args, prefix_format);
        prefix = g_strdup_vprintf(prefix_format, args);
        va_end(args);
    }
    log_prefixed(prefix, "%s", error ? error->message : "unknown error");
    g_clear_error(&error);
}
