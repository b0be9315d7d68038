/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/console.h"
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "block/module.h"
#include "monitor/hmp-complete.h"
#include "monitor/hmp.h"
#include "monitor/line-editor.h"
#include "monitor/stream.h"
#include "util/log.h"

#define PROMPT        "(spindle) "
#define GREETING      "Spindle " SPINDLE_VERSION " monitor - type 'help' for more information\n"
#define LINE_MAX_SIZE 65536 /* bytes */

struct Console {
    Monitor *monitor;
    Stream *stream; /* NULL: a terminal with an editor */
    GString *input; /* of the stream: what is no whole line yet, and what waits */
    const LineEditorModule *editor;
    FILE *in, *out; /* the terminal */
    guint source;
    bool running; /* a command is */
    bool over;
    unsigned refs; /* the owner, and the command */
    void (*closed)(Console *console, void *opaque);
    void *opaque;
};

static void take_lines(Console *console);

static void console_unref(Console *console)
{
    if (--console->refs == 0) {
        g_string_free(console->input, true);
        g_free(console);
    }
}

static void console_end(Console *console)
{
    if (!console->over) {
        console->over = true;
        console->closed(console, console->opaque);
    }
}

static void put(Console *console, const char *text)
{
    if (console->stream) {
        stream_write(console->stream, text, strlen(text));
    } else if (console->out) {
        fputs(text, console->out);
        fflush(console->out);
    }
}

static void line_done(const char *text, void *opaque)
{
    Console *console = opaque;

    console->running = false;
    if (!console->over) {
        put(console, text);
        if (console->editor) {
            console->editor->show(true);
        } else {
            put(console, PROMPT);
            take_lines(console);
        }
    }
    console_unref(console);
}

static void run(Console *console, const char *line)
{
    console->running = true;
    console->refs++;
    hmp_run_line(console->monitor, line, line_done, console);
}

/* Of the stream: runs lines until one takes its time. */
static void take_lines(Console *console)
{
    char *end;

    while (!console->running && !console->over && (end = strchr(console->input->str, '\n'))) {
        g_autofree char *line = g_strndup(console->input->str, end - console->input->str);
        g_string_erase(console->input, 0, end + 1 - console->input->str);
        g_strchomp(line);
        console->refs++;
        run(console, line);
        console_unref(console);
    }
    if (console->stream) {
        stream_pause(console->stream, console->running);
    }
}

static void on_data(const char *bytes, size_t size, void *opaque)
{
    Console *console = opaque;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i]) {
            g_string_append_c(console->input, bytes[i]);
        }
    }
    if (console->input->len > LINE_MAX_SIZE && !strchr(console->input->str, '\n')) {
        put(console, "the line is too long\n");
        console_end(console);
        return;
    }
    console->refs++;
    take_lines(console);
    console_unref(console);
}

static void on_closed(void *opaque)
{
    console_end(opaque);
}

static const StreamOps stream_ops = {.data = on_data, .closed = on_closed};

static void editor_line(char *line, void *opaque)
{
    Console *console = opaque;

    if (!line) {
        put(console, "\n");
        console_end(console);
        return;
    }
    console->editor->show(false);
    run(console, line);
    free(line);
}

/* As the editor wants it: all of malloc's. */
static char **editor_complete(const char *before, const char *word, void *opaque)
{
    Console *console = opaque;
    g_auto(GStrv) words = hmp_complete(console->monitor, before, word);
    char **copy = calloc(g_strv_length(words) + 1, sizeof *copy);

    for (unsigned i = 0; copy && words[i]; i++) {
        copy[i] = strdup(words[i]);
    }
    return copy;
}

static gboolean on_terminal(gint fd, GIOCondition condition, gpointer data)
{
    Console *console = data;

    console->refs++;
    if (condition & G_IO_IN) {
        console->editor->read();
    } else {
        console_end(console);
    }
    bool over = console->over;
    if (over) {
        console->source = 0;
    }
    console_unref(console);
    return over ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

/* False: there is no editor for it. */
static bool start_editor(Console *console, int in, int out)
{
    static const LineEditorCalls calls = {editor_line, editor_complete};
    GError *error = NULL;

    console->editor =
        block_module_load(LINE_EDITOR_FILE, LINE_EDITOR_SYMBOL, LINE_EDITOR_ABI, "Editing of lines", &error);
    if (!console->editor) {
        log_warn("%s", error->message);
        g_error_free(error);
        return false;
    }
    console->in = fdopen(in, "r");
    console->out = fdopen(out, "w");
    put(console, GREETING);
    console->editor->start(console->in, console->out, PROMPT, &calls, console);
    console->source = g_unix_fd_add(in, G_IO_IN | G_IO_HUP | G_IO_ERR, on_terminal, console);
    return true;
}

Console *console_new(Monitor *monitor, int in, int out, void (*closed)(Console *console, void *opaque),
                     void *opaque)
{
    Console *console = g_new0(Console, 1);

    console->monitor = monitor;
    console->refs = 1;
    console->closed = closed;
    console->opaque = opaque;
    console->input = g_string_new(NULL);
    if (!isatty(in) || !isatty(out) || !start_editor(console, in, out)) {
        console->stream = stream_new(in, out, G_PRIORITY_DEFAULT, &stream_ops, console);
        put(console, GREETING PROMPT);
    }
    return console;
}

void console_free(Console *console)
{
    if (!console) {
        return;
    }
    console->over = true;
    g_clear_handle_id(&console->source, g_source_remove);
    g_clear_pointer(&console->stream, stream_free);
    if (console->editor) {
        console->editor->stop();
        console->editor = NULL;
    }
    g_clear_pointer(&console->in, fclose);
    g_clear_pointer(&console->out, fclose);
    console_unref(console);
}
