/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/console.h"
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "block/module.h"
#include "monitor/line-editor.h"
#include "monitor/line-input.h"
#include "monitor/stream.h"
#include "util/log.h"

#define LINE_MAX_SIZE 65536 /* bytes */

struct Console {
    const ConsoleOps *ops;
    void *opaque;
    Stream *stream;  /* NULL: a terminal with an editor */
    GString *input;  /* of the stream: what is no whole line yet, and what waits */
    LineInput *keys; /* of a stream that echoes: then `input` is what waits only */
    const LineEditorModule *editor;
    FILE *in, *out; /* the terminal */
    guint source;
    bool running; /* a command is */
    bool over;
    unsigned refs; /* the owner, and the command */
};

static void take_lines(Console *console);

static void console_unref(Console *console)
{
    if (--console->refs == 0) {
        g_string_free(console->input, true);
        line_input_free(console->keys);
        g_free(console);
    }
}

static void console_end(Console *console)
{
    if (!console->over) {
        console->over = true;
        console->ops->closed(console, console->opaque);
    }
}

static void put(Console *console, const char *text)
{
    if (console->stream) {
        stream_write(console->stream, text, strlen(text));
    } else if (console->out) {
        for (; *text; text++) {
            if (text[0] != '\r' || text[1] != '\n') { /* the terminal adds its own */
                fputc(*text, console->out);
            }
        }
        fflush(console->out);
    }
}

static void prompt(Console *console)
{
    if (console->keys) {
        line_input_show(console->keys);
    } else {
        put(console, console->ops->prompt);
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
            prompt(console);
            take_lines(console);
        }
    }
    console_unref(console);
}

static void run(Console *console, const char *line)
{
    console->running = true;
    console->refs++;
    console->ops->run(line, line_done, console, console->opaque);
}

/* The next line of what has come; NULL: there is no whole one. */
static char *next_line(Console *console)
{
    GString *input = console->input;
    char *line = NULL, *end;

    if (console->keys) {
        gsize n = 0;
        while (n < input->len && !line) {
            line = line_input_key(console->keys, input->str[n++]);
        }
        g_string_erase(input, 0, (gssize)n);
    } else if ((end = strchr(input->str, '\n'))) {
        line = g_strndup(input->str, (gsize)(end - input->str));
        g_string_erase(input, 0, end + 1 - input->str);
        g_strchomp(line);
    }
    return line;
}

/* Of the stream: runs lines until one takes its time. */
static void take_lines(Console *console)
{
    char *next;

    while (!console->running && !console->over && (next = next_line(console))) {
        g_autofree char *line = next;
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
    if (!console->keys && console->input->len > LINE_MAX_SIZE && !strchr(console->input->str, '\n')) {
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

    if (!line && console->ops->endless) {
        console->editor->show(false); /* and with it the editor's own idea that it is over */
        put(console, "\n");
        console->editor->show(true);
        return;
    }
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
    g_auto(GStrv) words = console->ops->complete(before, word, console->opaque);
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
static bool start_editor(Console *console, const char *greeting, int in, int out)
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
    put(console, greeting);
    console->editor->start(console->in, console->out, console->ops->prompt, &calls, console);
    console->source = g_unix_fd_add(in, G_IO_IN | G_IO_HUP | G_IO_ERR, on_terminal, console);
    return true;
}

static void write_keys(const char *text, size_t len, void *opaque)
{
    stream_write(((Console *)opaque)->stream, text, len);
}

static char **complete_keys(const char *before, const char *word, void *opaque)
{
    const Console *console = opaque;

    return console->ops->complete(before, word, console->opaque);
}

static const LineInputOps keys_ops = {.write = write_keys, .complete = complete_keys};

Console *console_new(const ConsoleOps *ops, void *opaque, const char *greeting, int in, int out)
{
    Console *console = g_new0(Console, 1);

    console->ops = ops;
    console->opaque = opaque;
    console->refs = 1;
    console->input = g_string_new(NULL);
    if (!isatty(in) || !isatty(out) || !start_editor(console, greeting, in, out)) {
        console->stream = stream_new(in, out, G_PRIORITY_DEFAULT, &stream_ops, console);
        console->keys = ops->echo ? line_input_new(ops->prompt, &keys_ops, console) : NULL;
        put(console, greeting);
        prompt(console);
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
