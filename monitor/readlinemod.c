/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/line-editor.h"
#include <stdlib.h>
#include <string.h>
#include <readline/history.h>
#include <readline/readline.h>

static struct {
    LineEditorCalls calls;
    void *opaque;
    char *prompt;
    char **words; /* candidates of the completion under way */
    bool shown;
} editor;

static void on_line(char *line)
{
    if (line && line[strspn(line, " \t")]) {
        add_history(line);
    }
    editor.calls.line(line, editor.opaque);
}

static char *next_word(const char *word, int state)
{
    (void)word;
    (void)state;
    return editor.words && *editor.words ? *editor.words++ : NULL;
}

static char **complete(const char *word, int start, int end)
{
    char *before = strndup(rl_line_buffer, (size_t)start);
    char **words = editor.calls.complete(before, word, editor.opaque);
    (void)end;
    editor.words = words;
    char **matches = rl_completion_matches(word, next_word);
    rl_attempted_completion_over = 1; /* and no file names where there are none */
    size_t len = matches && matches[0] ? strlen(matches[0]) : 0;
    rl_completion_append_character = len && matches[0][len - 1] == '/' ? '\0' : ' ';
    free(words);
    free(before);
    return matches;
}

static void show(bool shown)
{
    if (shown && !editor.shown) {
        rl_callback_handler_install(editor.prompt, on_line);
    } else if (!shown && editor.shown) {
        rl_callback_handler_remove();
    }
    editor.shown = shown;
}

static void start(FILE *in, FILE *out, const char *prompt, const LineEditorCalls *calls, void *opaque)
{
    editor.calls = *calls;
    editor.opaque = opaque;
    editor.prompt = strdup(prompt);
    rl_instream = in;
    rl_outstream = out;
    rl_readline_name = "spindle";
    rl_catch_signals = 0;
    rl_attempted_completion_function = complete;
    rl_basic_word_break_characters = " \t";
    rl_variable_bind("bell-style", "none"); /* it goes to standard error */
    using_history();
    stifle_history(1000);
    show(true);
}

static void read_more(void)
{
    rl_callback_read_char();
}

static void stop(void)
{
    show(false);
    clear_history();
    free(editor.prompt);
    editor.prompt = NULL;
}

extern const LineEditorModule line_editor_module;
const LineEditorModule line_editor_module = {LINE_EDITOR_ABI, start, read_more, show, stop};
