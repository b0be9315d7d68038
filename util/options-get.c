/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/options.h"

static bool text_is_one_of(const char *text, const char *const *names)
{
    return g_strv_contains(names, text);
}

bool options_get_bool(Options *options, const char *key, bool fallback, bool *ret, GError **error)
{
    static const char *const yes[] = {"on", "yes", "true", "y", NULL};
    static const char *const no[] = {"off", "no", "false", "n", NULL};
    const char *text = options_get(options, key);
    if (!text) {
        *ret = fallback;
        return true;
    }
    bool on = text_is_one_of(text, yes);
    if (!on && !text_is_one_of(text, no)) {
        return error_set(error, "Parameter '%s' expects 'on' or 'off'", key);
    }
    *ret = on;
    return true;
}

int options_parse_uint(const char *text, uint64_t *ret)
{
    while (g_ascii_isspace(*text)) {
        text++;
    }
    text += *text == '+';
    if (!g_ascii_isdigit(*text)) {
        return -EINVAL;
    }
    char *end;
    errno = 0;
    uint64_t value = g_ascii_strtoull(text, &end, 0);
    if (*end) {
        return -EINVAL;
    }
    if (errno) {
        return -ERANGE;
    }
    *ret = value;
    return 0;
}

bool options_get_uint(Options *options, const char *key, uint64_t min, uint64_t max, uint64_t fallback,
                      uint64_t *ret, GError **error)
{
    const char *text = options_get(options, key);
    if (!text) {
        *ret = fallback;
        return true;
    }
    uint64_t value;
    if (options_parse_uint(text, &value)) {
        return error_set(error, "Parameter '%s' expects integer", key);
    }
    if (value < min || value > max) {
        return error_set(error,
                         "Parameter '%s' expects a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                         key, min, max);
    }
    *ret = value;
    return true;
}

/* The power of two that a suffix letter stands for, or -1. */
static int size_suffix_shift(char c)
{
    static const char letters[] = "bkmgtpe";
    const char *found = c ? strchr(letters, g_ascii_tolower(c)) : NULL;
    return found ? (int)(found - letters) * 10 : -1;
}

/* What follows the whole part: a fraction, a suffix, nothing more. */
static int parse_size_tail(const char *p, uint64_t whole, uint64_t *ret)
{
    long double fraction = 0, weight = 1;
    if (*p == '.') {
        for (p++; g_ascii_isdigit(*p); p++) {
            weight /= 10;
            fraction += weight * (*p - '0');
        }
    }
    int shift = *p ? size_suffix_shift(*p) : 0;
    if (shift < 0 || (*p && p[1]) || (shift == 0 && fraction > 0)) {
        return -EINVAL;
    }
    if (whole > (UINT64_MAX >> shift)) {
        return -ERANGE;
    }
    /* Half a byte rounds up; the fraction is below 1, so the product is below 2^shift or just that. */
    uint64_t part = (uint64_t)(fraction * (1ULL << shift) + 0.5L);
    uint64_t base = whole << shift;
    if (part > UINT64_MAX - base) {
        return -ERANGE;
    }
    *ret = base + part;
    return 0;
}

int options_parse_size(const char *text, uint64_t *ret)
{
    while (g_ascii_isspace(*text)) {
        text++;
    }
    text += *text == '+';
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return options_parse_uint(text, ret);
    }
    bool has_whole = g_ascii_isdigit(text[0]);
    if (!has_whole && !(text[0] == '.' && g_ascii_isdigit(text[1]))) {
        return -EINVAL;
    }
    char *end = (char *)text;
    errno = 0;
    uint64_t whole = has_whole ? g_ascii_strtoull(text, &end, 10) : 0;
    return errno ? -ERANGE : parse_size_tail(end, whole, ret);
}

bool options_get_size(Options *options, const char *key, uint64_t fallback, uint64_t *ret, GError **error)
{
    const char *text = options_get(options, key);
    if (!text) {
        *ret = fallback;
        return true;
    }
    uint64_t value;
    int error_code = options_parse_size(text, &value);
    if (error_code == -ERANGE) {
        return error_set(error, "Value '%s' is out of range for parameter '%s'", text, key);
    }
    if (error_code) {
        return error_set(error,
                         "Parameter '%s' expects a non-negative number below 2^64\n"
                         "Optional suffix k, M, G, T, P or E means kilo-, mega-, giga-, tera-, peta-\n"
                         "and exabytes, respectively.",
                         key);
    }
    *ret = value;
    return true;
}

bool options_get_enum(Options *options, const char *key, const char *const *names, int fallback, int *ret,
                      GError **error)
{
    const char *text = options_get(options, key);
    if (!text) {
        *ret = fallback;
        return true;
    }
    for (int i = 0; names[i]; i++) {
        if (!strcmp(names[i], text)) {
            *ret = i;
            return true;
        }
    }
    return error_set(error, "Parameter '%s' does not accept value '%s'", key, text);
}

bool options_is_id(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!g_ascii_isalnum(*p) && !strchr("-._", *p)) {
            return false;
        }
    }
    return g_ascii_isalpha(text[0]);
}
