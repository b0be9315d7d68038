/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "util/error.h"

typedef struct {
    const char *start, *at, *end;
    unsigned depth;
    GError **error;
} Scan;

static bool scan_value(Scan *scan);

/* Line and column count from 1, as QEMU's do. */
static bool scan_fail(Scan *scan, const char *what)
{
    size_t line = 1, column = 1;
    for (const char *p = scan->start; p < scan->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return error_set(scan->error, "%zu:%zu: JSON parse error, %s", line, column, what);
}

static void scan_space(Scan *scan)
{
    while (scan->at < scan->end && *scan->at && strchr(" \t\r\n", *scan->at)) {
        scan->at++;
    }
}

/* Skips white space and takes `c` if it comes next. */
static bool scan_take(Scan *scan, char c)
{
    scan_space(scan);
    if (scan->at < scan->end && *scan->at == c) {
        scan->at++;
        return true;
    }
    return false;
}

/* The four digits after `\u`, or -1. */
static int scan_hex4(Scan *scan)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        if (scan->at >= scan->end || !g_ascii_isxdigit(*scan->at)) {
            return -1;
        }
        code = code << 4 | g_ascii_xdigit_value(*scan->at++);
    }
    return code;
}

/* What follows `\u`, with the second half of a surrogate pair. */
static bool scan_unicode(Scan *scan, GString *text)
{
    int code = scan_hex4(scan);
    if (code >= 0xd800 && code < 0xdc00 && scan->end - scan->at >= 6 && scan->at[0] == '\\' &&
        scan->at[1] == 'u') {
        scan->at += 2;
        int low = scan_hex4(scan);
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : -1;
    }
    if (code == 0) {
        return scan_fail(scan, "\\u0000 in string");
    }
    if (code < 0 || (code >= 0xd800 && code < 0xe000)) {
        return scan_fail(scan, "invalid \\u escape");
    }
    g_string_append_unichar(text, code);
    return true;
}

static bool scan_escape(Scan *scan, GString *text)
{
    static const char names[] = "\"'\\/bfnrt", values[] = "\"'\\/\b\f\n\r\t";
    if (scan->at >= scan->end) {
        return scan_fail(scan, "unterminated string");
    }
    char c = *scan->at++;
    if (c == 'u') {
        return scan_unicode(scan, text);
    }
    const char *found = c ? strchr(names, c) : NULL;
    if (!found) {
        scan->at--;
        return scan_fail(scan, "invalid escape sequence");
    }
    g_string_append_c(text, values[found - names]);
    return true;
}

/* A string in either quote; its decoded content is appended to `text`. */
static bool scan_string(Scan *scan, GString *text)
{
    char quote = *scan->at++;
    while (scan->at < scan->end && *scan->at != quote) {
        if ((unsigned char)*scan->at < 0x20) {
            return scan_fail(scan, *scan->at ? "control character in string" : "NUL byte in string");
        }
        if (*scan->at == '\\') {
            scan->at++;
            if (!scan_escape(scan, text)) {
                return false;
            }
        } else {
            g_string_append_c(text, *scan->at++);
        }
    }
    if (scan->at >= scan->end) {
        return scan_fail(scan, "unterminated string");
    }
    scan->at++;
    return true;
}

static size_t scan_digits(Scan *scan)
{
    size_t n = 0;
    while (scan->at < scan->end && g_ascii_isdigit(*scan->at)) {
        scan->at++;
        n++;
    }
    return n;
}

static bool scan_number(Scan *scan)
{
    const char *begin = scan->at;
    bool integer = true;
    scan->at += *scan->at == '-';
    const char *first = scan->at;
    size_t digits = scan_digits(scan);
    if (!digits || (digits > 1 && *first == '0')) {
        return scan_fail(scan, "invalid number");
    }
    if (scan->at < scan->end && *scan->at == '.') {
        integer = false;
        scan->at++;
        if (!scan_digits(scan)) {
            return scan_fail(scan, "invalid number");
        }
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        integer = false;
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-')) {
            scan->at++;
        }
        if (!scan_digits(scan)) {
            return scan_fail(scan, "invalid number");
        }
    }
    g_autofree char *text = g_strndup(begin, scan->at - begin);
    errno = 0;
    bool fits =
        integer ? (g_ascii_strtoll(text, NULL, 10), errno == 0) : isfinite(g_ascii_strtod(text, NULL));
    if (!fits) {
        scan->at = begin;
        return scan_fail(scan, "number out of range");
    }
    return true;
}

static bool scan_array(Scan *scan)
{
    if (scan_take(scan, ']')) {
        return true;
    }
    do {
        if (!scan_value(scan)) {
            return false;
        }
    } while (scan_take(scan, ','));
    return scan_take(scan, ']') || scan_fail(scan, "expected separator in list");
}

/* One `key: value`, the key not among `keys`. */
static bool scan_member(Scan *scan, GHashTable *keys)
{
    scan_space(scan);
    if (scan->at >= scan->end || (*scan->at != '"' && *scan->at != '\'')) {
        return scan_fail(scan, "key is not a string in object");
    }
    const char *begin = scan->at;
    g_autoptr(GString) key = g_string_new(NULL);
    if (!scan_string(scan, key)) {
        return false;
    }
    if (!g_hash_table_add(keys, g_strdup(key->str))) {
        scan->at = begin;
        return scan_fail(scan, "duplicate key");
    }
    if (!scan_take(scan, ':')) {
        return scan_fail(scan, "missing : in object pair");
    }
    return scan_value(scan);
}

static bool scan_object(Scan *scan)
{
    if (scan_take(scan, '}')) {
        return true;
    }
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    do {
        if (!scan_member(scan, keys)) {
            return false;
        }
    } while (scan_take(scan, ','));
    return scan_take(scan, '}') || scan_fail(scan, "expected separator in dict");
}

static bool scan_word(Scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(scan->end - scan->at) >= n && !memcmp(scan->at, words[i], n)) {
            scan->at += n;
            return true;
        }
    }
    return scan_fail(scan, "expecting value");
}

static bool scan_value(Scan *scan)
{
    scan_space(scan);
    if (scan->at >= scan->end) {
        return scan_fail(scan, "expecting value");
    }
    char c = *scan->at;
    if (c == '{' || c == '[') {
        if (++scan->depth > JSON_MAX_DEPTH) {
            return scan_fail(scan, "nesting too deep");
        }
        scan->at++;
        bool ok = c == '{' ? scan_object(scan) : scan_array(scan);
        scan->depth--;
        return ok;
    }
    if (c == '"' || c == '\'') {
        g_autoptr(GString) text = g_string_new(NULL);
        return scan_string(scan, text);
    }
    if (c == '-' || g_ascii_isdigit(c)) {
        return scan_number(scan);
    }
    return scan_word(scan);
}

static bool json_check(const char *text, size_t size, GError **error)
{
    Scan scan = {.start = text, .at = text, .end = text + size, .error = error};
    if (size > JSON_MAX_SIZE) {
        return error_set(error, "JSON parse error, text longer than %d bytes", JSON_MAX_SIZE);
    }
    if (!scan_value(&scan)) {
        return false;
    }
    scan_space(&scan);
    if (scan.at != scan.end) {
        return scan_fail(&scan, "garbage after the value");
    }
    if (!g_utf8_validate(text, size, &scan.at)) {
        return scan_fail(&scan, "invalid UTF-8");
    }
    return true;
}

JsonNode *json_parse(const char *text, gssize size, GError **error)
{
    size_t length = size < 0 ? strlen(text) : (size_t)size;
    if (!json_check(text, length, error)) {
        return NULL;
    }
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    g_autoptr(GError) cause = NULL;
    if (!json_parser_load_from_data(parser, text, length, &cause)) {
        error_set(error, "JSON parse error, %s", cause->message);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    return root ? json_node_ref(root) : NULL;
}
