/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lines as they are typed: the line that results, and what is then on a terminal, which is put together here
 * from what was written.
 */
#include <glib.h>
#include <string.h>
#include "monitor/line-input.h"

#define PROMPT "> "

/* A terminal of one line: what is on it since the last line feed. */
typedef struct Screen {
    GString *line;
    size_t at;
    GString *escape; /* NULL: none under way */
} Screen;

static void screen_escape(Screen *screen)
{
    const char *text = screen->escape->str;
    const char last = text[screen->escape->len - 1];

    if (last == 'K') {
        g_string_truncate(screen->line, screen->at);
    } else if (last == 'D') {
        screen->at -= (size_t)g_ascii_strtoull(text + 1, NULL, 10);
    } else {
        g_assert_true(last == 'H' || last == 'J');
        g_string_truncate(screen->line, 0);
        screen->at = 0;
    }
    g_string_free(g_steal_pointer(&screen->escape), true);
}

static void screen_write(const char *text, size_t len, void *opaque)
{
    Screen *screen = opaque;

    for (size_t i = 0; i < len; i++) {
        if (screen->escape) {
            g_string_append_c(screen->escape, text[i]);
            if (g_ascii_isalpha(text[i])) {
                screen_escape(screen);
            }
        } else if (text[i] == 033) {
            screen->escape = g_string_new(NULL);
        } else if (text[i] == '\n') {
            g_string_truncate(screen->line, 0);
            screen->at = 0;
        } else if (text[i] != '\r') {
            if (screen->at < screen->line->len) {
                screen->line->str[screen->at] = text[i];
            } else {
                g_string_append_c(screen->line, text[i]);
            }
            screen->at++;
        }
    }
}

static char **complete(const char *before, const char *word, void *opaque)
{
    static const char *const firsts[] = {"info", "input", "eject", NULL};
    static const char *const files[] = {"dir/", "disc.iso", NULL};
    GPtrArray *words = g_ptr_array_new();
    const char *const *all = before[0] ? files : firsts;

    for (; *all; all++) {
        if (g_str_has_prefix(*all, word)) {
            g_ptr_array_add(words, g_strdup(*all));
        }
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, false);
}

static const LineInputOps ops = {screen_write, complete};

typedef struct Row {
    const char *name, *keys;
    const char *screen; /* behind the prompt, after the keys */
    const char *lines;  /* those that were given, each with a bar behind it */
} Row;

static const Row rows[] = {
    {"plain", "info block", "info block", ""},
    {"return", "a\rb\n", "", "a|b|"},
    {"return-and-feed", "a\r\n\r\nb", "b", "a||"},
    {"backspace", "abc\b\177d", "ad", ""},
    {"backspace-at-start", "\b\177a\r", "", "a|"},
    {"insert", "ac\002b\r", "", "abc|"},
    {"left-right", "ac\033[Db\033[Cd", "abcd", ""},
    {"beyond-the-ends", "a\033[C\033[C\033[D\033[D\033[Db", "ba", ""},
    {"home-end", "b\001a\005c", "abc", ""},
    {"home-end-keys", "b\033[Ha\033[Fc\033[1~0\033[4~d", "0abcd", ""},
    {"application-keys", "b\033OHa\033OFc", "abc", ""},
    {"delete", "abc\001\004\033[3~", "c", ""},
    {"kill", "abcd\002\002\013", "ab", ""},
    {"kill-before", "abcd\002\025", "d", ""},
    {"kill-word", "eject  cd0 \027x", "eject  x", ""},
    {"history", "one\rtwo\r\020\020\r", "", "one|two|one|"},
    {"history-edited", "one\r\033[A2\r", "", "one|one2|"},
    {"history-and-back", "one\rtwo\r\020\020\016\016x", "x", "one|two|"},
    {"history-of-none", "\020\016a", "a", ""},
    {"history-without-repeats", "one\rone\r\020\020", "one", "one|one|"},
    {"unknown-keys", "a\033[5~\033[Z\033xb\007", "ab", ""},
    {"complete", "ej\t", "eject ", ""},
    {"complete-in-part", "i\t", "in", ""},
    {"complete-and-list", "in\t", "in", ""},
    {"complete-nothing", "x\t", "x", ""},
    {"complete-argument", "change cd0 disc\t\r", "", "change cd0 disc.iso |"},
    {"complete-folder", "change cd0 dir\t", "change cd0 dir/", ""},
    {"clear", "abc\014d", "abcd", ""},
    {"utf-8", "\xc3\xa4\xc3\xb6\002\bx", "x\xc3\xb6", ""},
};

static void test_row(gconstpointer data)
{
    const Row *row = data;
    Screen screen = {.line = g_string_new(NULL)};
    g_autoptr(GString) lines = g_string_new(NULL);
    LineInput *input = line_input_new(PROMPT, &ops, &screen);

    line_input_show(input);
    for (const char *key = row->keys; *key; key++) {
        g_autofree char *line = line_input_key(input, *key);
        if (line) {
            g_string_append_printf(lines, "%s|", line);
            line_input_show(input);
        }
    }
    g_assert_cmpstr(lines->str, ==, row->lines);
    if (strcmp(row->name, "utf-8") != 0) { /* the screen counts bytes */
        g_assert_cmpstr(screen.line->str + strlen(PROMPT), ==, row->screen);
    } else {
        g_autofree char *line = line_input_key(input, '\r');
        g_assert_cmpstr(line, ==, row->screen);
    }
    g_assert_null(screen.escape);
    line_input_free(input);
    g_string_free(screen.line, true);
}

/* Whatever comes, the line stays within bounds and the cursor in it. */
static void test_random(void)
{
    Screen screen = {.line = g_string_new(NULL)};
    LineInput *input = line_input_new(PROMPT, &ops, &screen);
    unsigned given = 0;

    for (int i = 0; i < 200000; i++) {
        static const char likely[] = "ab \t\b\r\033[ABCDHF13~\001\005\013\025\027\xc3\xa4";
        const char key = g_test_rand_bit() ? likely[g_test_rand_int_range(0, sizeof likely - 1)]
                                           : (char)g_test_rand_int_range(1, 256);
        g_autofree char *line = line_input_key(input, key);
        given += line != NULL;
        g_string_truncate(screen.line, 0);
        screen.at = 0;
        if (screen.escape) {
            g_string_free(g_steal_pointer(&screen.escape), true);
        }
    }
    for (int i = 0; i < 10000; i++) {
        g_assert_null(line_input_key(input, 'x'));
    }
    g_autofree char *line = line_input_key(input, '\r');
    g_assert_cmpuint(strlen(line), <=, 4096);
    g_assert_cmpuint(given, >, 100);
    line_input_free(input);
    g_string_free(screen.line, true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/line-input/%s", rows[i].name);
        g_test_add_data_func(name, &rows[i], test_row);
    }
    g_test_add_func("/line-input/random", test_random);
    return g_test_run();
}
