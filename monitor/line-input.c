/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Keys are bytes, or sequences of ECMA-48: ESC [ PARAMETERS LETTER (5.4). Characters are UTF-8; the cursor
 * never stands inside one.
 */
#include "monitor/line-input.h"
#include <glib.h>
#include <string.h>

#define LINE_MAX_SIZE 4096 /* bytes */
#define HISTORY_MAX   100  /* lines */

typedef enum { KEYS_PLAIN, KEYS_ESCAPE, KEYS_SEQUENCE } KeyState;

struct LineInput {
    char *prompt;
    const LineInputOps *ops;
    void *opaque;
    GString *line;
    size_t at; /* the cursor, bytes */
    KeyState state;
    char parameter;     /* the first byte behind ESC [ */
    bool after_return;  /* a line feed belongs to it */
    GPtrArray *history; /* char *, the latest last */
    guint shown;        /* the line of the history that is edited; its length: a new one */
};

LineInput *line_input_new(const char *prompt, const LineInputOps *ops, void *opaque)
{
    LineInput *input = g_new0(LineInput, 1);

    input->prompt = g_strdup(prompt);
    input->ops = ops;
    input->opaque = opaque;
    input->line = g_string_new(NULL);
    input->history = g_ptr_array_new_with_free_func(g_free);
    return input;
}

void line_input_free(LineInput *input)
{
    if (input) {
        g_free(input->prompt);
        g_string_free(input->line, true);
        g_ptr_array_unref(input->history);
        g_free(input);
    }
}

static void put(LineInput *input, const char *text)
{
    input->ops->write(text, strlen(text), input->opaque);
}

/* Columns of a piece of the line: a character each. */
static glong columns(const char *text, size_t len)
{
    glong n = 0;

    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return n;
}

static void back(LineInput *input, glong n)
{
    if (n > 0) {
        g_autofree char *text = g_strdup_printf("\033[%ldD", n);
        put(input, text);
    }
}

/* What stands at and behind the cursor, which stays where it is. */
static void redraw_rest(LineInput *input)
{
    const char *rest = input->line->str + input->at;

    put(input, rest);
    put(input, "\033[K");
    back(input, columns(rest, strlen(rest)));
}

void line_input_show(LineInput *input)
{
    put(input, input->prompt);
    put(input, input->line->str);
    back(input, columns(input->line->str + input->at, input->line->len - input->at));
}

static size_t before(const LineInput *input)
{
    size_t at = input->at;

    while (at > 0 && ((unsigned char)input->line->str[--at] & 0xc0) == 0x80) {
    }
    return at;
}

static size_t behind(const LineInput *input)
{
    size_t at = input->at;

    while (at < input->line->len && ((unsigned char)input->line->str[++at] & 0xc0) == 0x80) {
    }
    return at;
}

static void move(LineInput *input, size_t to)
{
    if (to < input->at) {
        back(input, columns(input->line->str + to, input->at - to));
    } else {
        input->ops->write(input->line->str + input->at, to - input->at, input->opaque);
    }
    input->at = to;
}

static void insert(LineInput *input, const char *text)
{
    if (input->line->len + strlen(text) > LINE_MAX_SIZE) {
        return;
    }
    g_string_insert(input->line, (gssize)input->at, text);
    input->at += strlen(text);
    put(input, text);
    if (input->at < input->line->len) {
        redraw_rest(input);
    }
}

/* Bytes [from, to) go; the cursor is at one of the ends. */
static void erase(LineInput *input, size_t from, size_t to)
{
    if (from < to) {
        move(input, from);
        g_string_erase(input->line, (gssize)from, (gssize)(to - from));
        redraw_rest(input);
    }
}

static void replace(LineInput *input, const char *text)
{
    move(input, 0);
    g_string_truncate(input->line, 0);
    put(input, "\033[K");
    insert(input, text);
}

static void recall(LineInput *input, guint index)
{
    if (index <= input->history->len && index != input->shown) {
        input->shown = index;
        replace(input, index < input->history->len ? g_ptr_array_index(input->history, index) : "");
    }
}

static size_t word_start(const LineInput *input)
{
    size_t at = input->at;

    while (at > 0 && input->line->str[at - 1] == ' ') {
        at--;
    }
    while (at > 0 && input->line->str[at - 1] != ' ') {
        at--;
    }
    return at;
}

static size_t common_length(char **words)
{
    size_t len = strlen(words[0]);

    for (char **word = words + 1; *word; word++) {
        size_t n = 0;
        while (n < len && (*word)[n] == words[0][n]) {
            n++;
        }
        len = n;
    }
    return len;
}

static void list(LineInput *input, char **words)
{
    g_autoptr(GString) text = g_string_new("\r\n");
    unsigned column = 0;

    for (; *words; words++) {
        g_string_append_printf(text, "%-19s ", *words);
        if (++column % 4 == 0) {
            g_string_append(text, "\r\n");
        }
    }
    if (column % 4) {
        g_string_append(text, "\r\n");
    }
    put(input, text->str);
    line_input_show(input);
}

static void complete(LineInput *input)
{
    size_t start = input->at;

    while (start > 0 && input->line->str[start - 1] != ' ') {
        start--;
    }
    g_autofree char *front = g_strndup(input->line->str, start);
    g_autofree char *word = g_strndup(input->line->str + start, input->at - start);
    g_auto(GStrv) words = input->ops->complete(front, word, input->opaque);
    if (!words[0]) {
        return;
    }
    size_t common = common_length(words);
    if (common > strlen(word)) {
        g_autofree char *more = g_strndup(words[0] + strlen(word), common - strlen(word));
        insert(input, more);
    }
    if (words[1] && common <= strlen(word)) {
        list(input, words);
    } else if (!words[1] && !g_str_has_suffix(words[0], "/")) {
        insert(input, " ");
    }
}

static char *finish(LineInput *input)
{
    const char *last = input->history->len ? g_ptr_array_index(input->history, input->history->len - 1) : "";
    char *line = g_strdup(input->line->str);

    if (line[strspn(line, " ")] && strcmp(line, last) != 0) {
        g_ptr_array_add(input->history, g_strdup(line));
        if (input->history->len > HISTORY_MAX) {
            g_ptr_array_remove_index(input->history, 0);
        }
    }
    input->shown = input->history->len;
    g_string_truncate(input->line, 0);
    input->at = 0;
    put(input, "\r\n");
    return line;
}

static void control(LineInput *input, char key)
{
    switch (key | 0x40) {
    case 'A':
        move(input, 0);
        break;
    case 'B':
        move(input, before(input));
        break;
    case 'D':
        erase(input, input->at, behind(input));
        break;
    case 'E':
        move(input, input->line->len);
        break;
    case 'F':
        move(input, behind(input));
        break;
    case 'H':
        erase(input, before(input), input->at);
        break;
    case 'I':
        complete(input);
        break;
    case 'K':
        erase(input, input->at, input->line->len);
        break;
    case 'L':
        put(input, "\033[H\033[2J");
        line_input_show(input);
        break;
    case 'N':
        recall(input, input->shown + 1);
        break;
    case 'P':
        recall(input, input->shown ? input->shown - 1 : 0);
        break;
    case 'U':
        erase(input, 0, input->at);
        break;
    case 'W':
        erase(input, word_start(input), input->at);
        break;
    default:
        break;
    }
}

/* The last byte of ESC [ …, or of ESC O …. */
static void sequence(LineInput *input, char last)
{
    static const char keys[] = "ABCDHF", same[] = "PNFBAE"; /* by the control key that does it */
    static const char numbers[] = "13478", by_number[] = "ADEAE";
    const char *set = last == '~' ? numbers : keys;
    const char *found = strchr(set, last == '~' ? input->parameter : last);

    if (found && *found) {
        control(input, (last == '~' ? by_number : same)[found - set] & 0x1f);
    }
}

static void escape(LineInput *input, char byte)
{
    if (input->state == KEYS_ESCAPE) {
        input->state = byte == '[' || byte == 'O' ? KEYS_SEQUENCE : KEYS_PLAIN;
        input->parameter = 0;
    } else if ((unsigned char)byte >= 0x40) {
        input->state = KEYS_PLAIN;
        sequence(input, byte);
    } else if (!input->parameter) {
        input->parameter = byte;
    }
}

char *line_input_key(LineInput *input, char byte)
{
    bool after_return = input->after_return;

    input->after_return = byte == '\r';
    if (input->state != KEYS_PLAIN) {
        escape(input, byte);
    } else if (byte == '\r' || (byte == '\n' && !after_return)) {
        return finish(input);
    } else if (byte == 033) {
        input->state = KEYS_ESCAPE;
    } else if (byte == 0177) {
        control(input, 'H' & 0x1f);
    } else if ((unsigned char)byte < 0x20) {
        control(input, byte);
    } else {
        const char text[] = {byte, '\0'};
        insert(input, text);
    }
    return NULL;
}
