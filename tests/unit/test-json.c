/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/json.h"

#include <string.h>

#include "util/error.h"

typedef struct {
    const char *name, *text;
    gssize size;        /* 0: up to the NUL */
    const char *expect; /* the tree printed by json-glib, or part of the error if `fails` */
    gboolean fails;
} Case;

static const Case cases[] = {
    {"object", " {\"a\": [1, -2, 3.5, true, false, null, \"x\"]}\n", 0,
     "{\"a\":[1,-2,3.5,true,false,null,\"x\"]}"},
    {"single-quotes", "{'a': 'b\"c'}", 0, "{\"a\":\"b\\\"c\"}"},
    {"empty-object", "{}", 0, "{}"},
    {"empty-array", "[ ]", 0, "[]"},
    {"scalar", "17", 0, "17"},
    {"escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", 0, "\"\\\"\\\\/\\b\\f\\n\\r\\tA\""},
    {"surrogates", "\"\\ud83d\\ude00\"", 0, "\"\xf0\x9f\x98\x80\""},
    {"int64-max", "9223372036854775807", 0, "9223372036854775807"},
    {"int64-min", "-9223372036854775808", 0, "-9223372036854775808"},
    {"nothing", "", 0, "1:1: JSON parse error, expecting value", TRUE},
    {"only-space", "  ", 0, "1:3: JSON parse error, expecting value", TRUE},
    {"comment", "/* x */ {}", 0, "1:1: JSON parse error, expecting value", TRUE},
    {"assignment", "var x = {};", 0, "expecting value", TRUE},
    {"open-object", "{\"a\": 1", 0, "expected separator in dict", TRUE},
    {"open-array", "[1, 2", 0, "expected separator in list", TRUE},
    {"open-string", "\"abc", 0, "unterminated string", TRUE},
    {"open-escape", "\"abc\\", 0, "unterminated string", TRUE},
    {"trailing-comma-dict", "{\"a\": 1,}", 0, "key is not a string in object", TRUE},
    {"trailing-comma-list", "[1,]", 0, "expecting value", TRUE},
    {"bare-key", "{a: 1}", 0, "key is not a string in object", TRUE},
    {"no-colon", "{\"a\" 1}", 0, "missing : in object pair", TRUE},
    {"two-values", "{} {}", 0, "1:4: JSON parse error, garbage after the value", TRUE},
    {"duplicate-key", "{\"a\": 1, \"a\": 2}", 0, "1:10: JSON parse error, duplicate key", TRUE},
    {"duplicate-key-escaped", "{\"a\": 1, \"\\u0061\": 2}", 0, "duplicate key", TRUE},
    {"same-key-elsewhere", "{\"a\":{\"a\":1},\"b\":{\"a\":2}}", 0, "{\"a\":{\"a\":1},\"b\":{\"a\":2}}"},
    {"number-too-large", "[9223372036854775808]", 0, "1:2: JSON parse error, number out of range", TRUE},
    {"number-very-long", "1000000000000000000000000000000000000000000000000", 0, "number out of range", TRUE},
    {"number-inf", "1e999", 0, "number out of range", TRUE},
    {"number-leading-zero", "012", 0, "invalid number", TRUE},
    {"number-no-digit", "-", 0, "invalid number", TRUE},
    {"number-no-fraction", "1.", 0, "invalid number", TRUE},
    {"number-no-exponent", "1e+", 0, "invalid number", TRUE},
    {"nul-escape", "{\"a\": \"x\\u0000y\"}", 0, "\\u0000 in string", TRUE},
    {"nul-byte-in-string", "{\"a\": \"x\0y\"}", 12, "NUL byte in string", TRUE},
    {"nul-byte-between", "{\0}", 3, "key is not a string in object", TRUE},
    {"control-character", "\"a\nb\"", 0, "control character in string", TRUE},
    {"bad-escape", "\"\\x41\"", 0, "invalid escape sequence", TRUE},
    {"bad-hex", "\"\\u00g0\"", 0, "invalid \\u escape", TRUE},
    {"lone-high-surrogate", "\"\\ud83d!\"", 0, "invalid \\u escape", TRUE},
    {"lone-low-surrogate", "\"\\ude00\"", 0, "invalid \\u escape", TRUE},
    {"high-high-surrogate", "\"\\ud83d\\ud83d\"", 0, "invalid \\u escape", TRUE},
    {"bad-utf8", "\"\xff\"", 0, "invalid UTF-8", TRUE},
    {"line-and-column", "{\"a\": 1,\n  b: 2}", 0, "2:3: JSON parse error, key is not a string", TRUE},
    {"word", "nul", 0, "expecting value", TRUE},
};

static void test_case(gconstpointer opaque)
{
    const Case *c = opaque;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = json_parse(c->text, c->size ? c->size : -1, &error);
    if (c->fails) {
        g_assert_null(node);
        g_assert_error(error, SPINDLE_ERROR, SPINDLE_ERROR_GENERIC);
        g_assert_nonnull(strstr(error->message, ": JSON parse error, "));
        if (!strstr(error->message, c->expect)) {
            g_error("'%s' does not contain '%s'", error->message, c->expect);
        }
        return;
    }
    g_assert_no_error(error);
    g_autofree char *text = json_to_string(node, FALSE);
    g_assert_cmpstr(text, ==, c->expect);
}

static char *nested(unsigned depth)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < depth; i++) {
        g_string_append(text, i % 2 ? "[" : "{\"a\":");
    }
    g_string_append_c(text, '1');
    for (unsigned i = depth; i-- > 0;) {
        g_string_append_c(text, i % 2 ? ']' : '}');
    }
    return g_string_free(text, FALSE);
}

static void test_depth(void)
{
    static const unsigned depths[] = {1, JSON_MAX_DEPTH, JSON_MAX_DEPTH + 1, 100000};
    for (size_t i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_autofree char *text = nested(depths[i]);
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = json_parse(text, -1, &error);
        g_assert_cmpint(node != NULL, ==, depths[i] <= JSON_MAX_DEPTH);
        g_assert_true(node || strstr(error->message, "nesting too deep"));
    }
}

static void test_size(void)
{
    g_autofree char *text = g_malloc(JSON_MAX_SIZE + 1);
    memset(text, ' ', JSON_MAX_SIZE + 1);
    text[0] = '1';
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = json_parse(text, JSON_MAX_SIZE, &error);
    g_assert_no_error(error);
    g_assert_nonnull(node);
    g_assert_null(json_parse(text, JSON_MAX_SIZE + 1, &error));
    g_assert_nonnull(strstr(error->message, "longer than"));
}

/* No cut of a valid text is valid, and none reads beyond its end (under the sanitizers). */
static void test_every_cut(void)
{
    static const char whole[] = "{\"k\\u0041\": [1.5e-3, {\"x\": \"\\ud83d\\ude00\"}, null], 'b': false}";
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        g_autofree char *cut = g_memdup2(whole, size);
        g_autoptr(GError) error = NULL;
        g_assert_null(json_parse(cut ? cut : "", size, &error));
        g_assert_nonnull(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/json/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/json/depth", test_depth);
    g_test_add_func("/json/size", test_size);
    g_test_add_func("/json/every-cut", test_every_cut);
    return g_test_run();
}
