/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/qmp-json.h"
#include <string.h>

#define INDENT 4

static void print_node(GString *out, JsonNode *node, bool pretty, int depth);

/* The printable ASCII characters as they are, all others as \u with surrogates: text is 7-bit then. */
static void print_string(GString *out, const char *text)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

    g_string_append_c(out, '"');
    for (const char *p = text; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        const char *found = c < 0x80 ? strchr(escaped, (int)c) : NULL;
        if (found) {
            g_string_append_c(out, '\\');
            g_string_append_c(out, letters[found - escaped]);
        } else if (c >= 0x20 && c < 0x7f) {
            g_string_append_c(out, (char)c);
        } else if (c > 0xffff) {
            g_string_append_printf(out, "\\u%04X\\u%04X", 0xd800 + ((c - 0x10000) >> 10),
                                   0xdc00 + (c & 0x3ff));
        } else {
            g_string_append_printf(out, "\\u%04X", c);
        }
    }
    g_string_append_c(out, '"');
}

static void print_break(GString *out, bool pretty, int depth)
{
    if (pretty) {
        g_string_append_c(out, '\n');
        for (int i = 0; i < depth * INDENT; i++) {
            g_string_append_c(out, ' ');
        }
    }
}

static void print_object(GString *out, JsonObject *object, bool pretty, int depth)
{
    g_autoptr(GList) members = json_object_get_members(object);

    g_string_append_c(out, '{');
    for (GList *l = members; l; l = l->next) {
        print_break(out, pretty, depth + 1);
        print_string(out, l->data);
        g_string_append(out, ": ");
        print_node(out, json_object_get_member(object, l->data), pretty, depth + 1);
        if (l->next) {
            g_string_append(out, pretty ? "," : ", ");
        }
    }
    if (members) {
        print_break(out, pretty, depth);
    }
    g_string_append_c(out, '}');
}

static void print_array(GString *out, JsonArray *array, bool pretty, int depth)
{
    guint len = json_array_get_length(array);

    g_string_append_c(out, '[');
    for (guint i = 0; i < len; i++) {
        print_break(out, pretty, depth + 1);
        print_node(out, json_array_get_element(array, i), pretty, depth + 1);
        if (i + 1 < len) {
            g_string_append(out, pretty ? "," : ", ");
        }
    }
    if (len) {
        print_break(out, pretty, depth);
    }
    g_string_append_c(out, ']');
}

static void print_value(GString *out, JsonNode *node)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    switch (json_node_get_value_type(node)) {
    case G_TYPE_BOOLEAN:
        g_string_append(out, json_node_get_boolean(node) ? "true" : "false");
        break;
    case G_TYPE_DOUBLE:
        g_string_append(out, g_ascii_dtostr(number, sizeof number, json_node_get_double(node)));
        break;
    case G_TYPE_STRING:
        print_string(out, json_node_get_string(node));
        break;
    default:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, json_node_get_int(node));
        break;
    }
}

static void print_node(GString *out, JsonNode *node, bool pretty, int depth)
{
    switch (json_node_get_node_type(node)) {
    case JSON_NODE_OBJECT:
        print_object(out, json_node_get_object(node), pretty, depth);
        break;
    case JSON_NODE_ARRAY:
        print_array(out, json_node_get_array(node), pretty, depth);
        break;
    case JSON_NODE_NULL:
        g_string_append(out, "null");
        break;
    default:
        print_value(out, node);
        break;
    }
}

void qmp_json_print(GString *out, JsonNode *node, bool pretty)
{
    print_node(out, node, pretty, 0);
}

/* Behind white space. */
static const char *skip_blank(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) {
        p++;
    }
    return p;
}

/* Behind the string that begins here. */
static const char *skip_string(const char *p, const char *end)
{
    char quote = *p++;

    while (p < end && *p != quote) {
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    }
    return p < end ? p + 1 : end;
}

/* Behind the value that begins here. */
static const char *skip_value(const char *p, const char *end)
{
    unsigned depth = 0;

    while (p < end) {
        if (*p == '"' || *p == '\'') {
            p = skip_string(p, end);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            if (depth == 0) {
                return p;
            }
            depth--;
            p++;
        } else if (*p == ',' && depth == 0) {
            return p;
        } else {
            p++;
        }
    }
    return end;
}

const char *qmp_json_member(const char *text, size_t size, const char *name, size_t *ret_size)
{
    const char *end = text + size, *p = skip_blank(text, end);
    size_t len = strlen(name);

    p = p < end && *p == '{' ? p + 1 : end;
    while (p < end) {
        const char *key = skip_blank(p, end);
        if (key >= end || (*key != '"' && *key != '\'')) {
            return NULL;
        }
        p = skip_blank(skip_string(key, end), end);
        bool found = (size_t)(end - key) > len + 1 && !memcmp(key + 1, name, len) && key[len + 1] == *key;
        const char *value = p < end && *p == ':' ? skip_blank(p + 1, end) : end;
        p = skip_value(value, end);
        if (found) {
            *ret_size = (size_t)(p - value);
            return value;
        }
        p = skip_blank(p, end);
        p = p < end && *p == ',' ? p + 1 : end;
    }
    return NULL;
}

struct QmpFramer {
    GString *text;
    size_t max;
    size_t at;      /* of text: looked at up to here */
    unsigned depth; /* of brackets */
    char quote;     /* inside a string: which kind */
    bool escape;    /* behind a backslash */
};

QmpFramer *qmp_framer_new(size_t max)
{
    QmpFramer *framer = g_new0(QmpFramer, 1);

    framer->text = g_string_new(NULL);
    framer->max = max;
    return framer;
}

void qmp_framer_free(QmpFramer *framer)
{
    if (framer) {
        g_string_free(framer->text, true);
        g_free(framer);
    }
}

void qmp_framer_add(QmpFramer *framer, const char *bytes, size_t size)
{
    g_string_append_len(framer->text, bytes, (gssize)size);
}

static void skip_space(QmpFramer *framer)
{
    size_t n = 0;

    while (n < framer->text->len && strchr(" \t\r\n", framer->text->str[n]) && framer->text->str[n]) {
        n++;
    }
    g_string_erase(framer->text, 0, (gssize)n);
}

/* Moves over one character; true when a value, or what stands for one, ends behind it. */
static bool step(QmpFramer *framer, char c)
{
    if (framer->quote) {
        if (c == '\n') { /* no string goes over a line */
            return true;
        }
        if (framer->escape) {
            framer->escape = false;
        } else if (c == '\\') {
            framer->escape = true;
        } else if (c == framer->quote) {
            framer->quote = 0;
        }
        return false;
    }
    if (c == '"' || c == '\'') {
        framer->quote = c;
    } else if (c == '{' || c == '[') {
        framer->depth++;
    } else if (c == '}' || c == ']') {
        return framer->depth == 0 || --framer->depth == 0;
    } else if (framer->depth == 0 && c == '\n') {
        return true;
    }
    return false;
}

char *qmp_framer_next(QmpFramer *framer, size_t *ret_len, bool *ret_too_long)
{
    GString *text = framer->text;

    *ret_too_long = false;
    if (framer->at == 0) {
        skip_space(framer);
    }
    while (framer->at < text->len) {
        if (step(framer, text->str[framer->at++])) {
            char *value = g_memdup2(text->str, framer->at + 1);
            value[framer->at] = '\0';
            *ret_len = framer->at;
            g_string_erase(text, 0, (gssize)framer->at);
            framer->at = framer->depth = 0;
            framer->quote = 0;
            framer->escape = false;
            return value;
        }
        if (framer->at > framer->max) {
            *ret_too_long = true;
            return NULL;
        }
    }
    return NULL;
}
