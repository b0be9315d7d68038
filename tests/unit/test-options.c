/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/options.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

typedef struct {
    const char *name, *text, *implied;
    const char *expect; /* options_to_string(), or the error if `fails` */
    gboolean fails;
} Parse;

static const Parse parses[] = {
    {"plain", "a=b,c=d", NULL, "a=b,c=d"},
    {"dotted", "driver=raw,file.driver=file,file.filename=x.iso", NULL,
     "driver=raw,file.driver=file,file.filename=x.iso"},
    {"escaped-comma", "file=a,,b,c=d", NULL, "file=a,,b,c=d"},
    {"comma-at-end", "file=a,", NULL, "file=a"},
    {"escaped-comma-at-end", "file=a,,", NULL, "file=a,,"},
    {"three-commas", "file=a,,,b=c", NULL, "file=a,,,b=c"},
    {"equals-in-value", "a=b=c", NULL, "a=b=c"},
    {"empty-value", "a=,b=", NULL, "a=,b="},
    {"empty", "", NULL, ""},
    {"implied", "ide-cd,drive=d", "driver", "driver=ide-cd,drive=d"},
    {"implied-written-out", "driver=ide-cd,drive=d", "driver", "driver=ide-cd,drive=d"},
    {"implied-with-comma", "a,,b,c=d", "file", "file=a,,b,c=d"},
    {"no-equals-is-on", "if=none,readonly", NULL, "if=none,readonly=on"},
    {"no-is-nothing-special", "noserial", NULL, "noserial=on"},
    {"last-wins", "a=1,b=2,a=3", NULL, "a=3,b=2"},
    {"json", "{\"driver\": \"raw\", \"file\": {\"driver\": \"file\", \"filename\": \"a,b\"}}", NULL,
     "driver=raw,file.driver=file,file.filename=a,,b"},
    {"json-pseudo", "json:{\"driver\": \"file\"}", NULL, "driver=file"},
    {"json-types",
     "{\"a\": true, \"b\": false, \"c\": null, \"d\": -7, \"e\": 0.5, \"f\": 9223372036854775807}", NULL,
     "a=on,b=off,c=,d=-7,e=0.5,f=9223372036854775807"},
    {"json-array", "{\"server\": [{\"host\": \"h\"}, \"x\", [1, 2]]}", NULL,
     "server.0.host=h,server.1=x,server.2.0=1,server.2.1=2"},
    {"json-space", "  {\"a\": \"b\"} ", NULL, "a=b"},
    {"no-key", "=x", NULL, "Invalid parameter ''", TRUE},
    {"empty-item", "a=b,,c", NULL, "a=b,,c"},
    {"key-dot-first", ".a=b", NULL, "Invalid parameter '.a'", TRUE},
    {"key-dot-last", "a.=b", NULL, "Invalid parameter 'a.'", TRUE},
    {"key-two-dots", "a..b=c", NULL, "Invalid parameter 'a..b'", TRUE},
    {"json-empty-key", "{\"\": 1}", NULL, "Invalid parameter ''", TRUE},
    {"json-not-object", "json:[1]", NULL, "Invalid JSON object given", TRUE},
    {"json-malformed", "{\"a\": }", NULL, "1:7: JSON parse error, expecting value", TRUE},
    {"json-duplicate", "{\"a\": 1, \"a\": 2}", NULL, "1:10: JSON parse error, duplicate key", TRUE},
};

static void test_parse(gconstpointer opaque)
{
    const Parse *c = opaque;
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) options = options_parse(c->text, c->implied, &error);
    if (c->fails) {
        g_assert_null(options);
        g_assert_error(error, SPINDLE_ERROR, SPINDLE_ERROR_GENERIC);
        g_assert_cmpstr(error->message, ==, c->expect);
        return;
    }
    g_assert_no_error(error);
    g_autofree char *text = options_to_string(options);
    g_assert_cmpstr(text, ==, c->expect);
    /* What is printed reads back the same. */
    g_autoptr(Options) again = options_parse(text, NULL, &error);
    g_autofree char *text_again = options_to_string(again);
    g_assert_cmpstr(text_again, ==, text);
}

static void test_key_too_long(void)
{
    g_autofree char *fragment = g_strnfill(128, 'k');
    g_autofree char *item = g_strdup_printf("%s=1", fragment);
    g_autoptr(GError) error = NULL;
    g_assert_null(options_parse(item, NULL, &error));
    g_assert_nonnull(strstr(error->message, "is too long"));
    g_autoptr(Options) fits = options_parse(item + 1, NULL, NULL);
    g_assert_nonnull(fits);

    g_autoptr(GString) deep = g_string_new("a");
    while (deep->len <= 1024) {
        g_string_append(deep, ".a");
    }
    g_string_append(deep, "=1");
    g_clear_error(&error);
    g_assert_null(options_parse(deep->str, NULL, &error));
    g_assert_nonnull(strstr(error->message, "is too long"));
}

static void test_to_json(void)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"", "{}"},
        {"a=1,b.c=x,b.d.e=y", "{\"a\":\"1\",\"b\":{\"c\":\"x\",\"d\":{\"e\":\"y\"}}}"},
        {"s.0=a,s.1.h=b", "{\"s\":[\"a\",{\"h\":\"b\"}]}"},
        {"s.0=a,s.2=b", "{\"s\":{\"0\":\"a\",\"2\":\"b\"}}"},
        {"s.0.0=a,s.0.1=b", "{\"s\":[[\"a\",\"b\"]]}"},
        {"file=x,file.locking=off", "{\"file\":{\"locking\":\"off\"}}"},
        {"file.locking=off,file=x", "{\"file\":{\"locking\":\"off\"}}"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Options) options = options_parse(cases[i].text, NULL, NULL);
        g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
        json_node_take_object(node, options_to_json(options));
        g_autofree char *text = json_to_string(node, FALSE);
        g_assert_cmpstr(text, ==, cases[i].expect);
    }
}

static void test_set_remove(void)
{
    g_autoptr(Options) options = options_parse("a=1,b=2,c.d=3", NULL, NULL);
    options_set(options, "b", options_get(options, "b"));
    options_set(options, "e", "5");
    options_remove(options, "a");
    options_remove(options, "none");
    g_auto(GStrv) keys = options_keys(options);
    g_autofree char *joined = g_strjoinv(" ", keys);
    g_assert_cmpstr(joined, ==, "b c.d e");
    g_assert_true(options_has(options, "b"));
    g_assert_false(options_has(options, "c"));
    g_assert_true(options_has_prefix(options, "c"));
    g_assert_true(options_has_prefix(options, "c.d"));
    g_assert_false(options_has_prefix(options, "c.d.e"));
    g_assert_false(options_has_prefix(options, "a"));
    g_assert_null(options_get(options, "a"));
}

static void test_unused(void)
{
    g_autoptr(Options) options = options_parse("a=1,file.driver=file,file.x.y=2,zz=3", NULL, NULL);
    g_autoptr(GError) error = NULL;
    options_get(options, "a");
    g_assert_false(options_check_unused(options, &error));
    g_assert_cmpstr(error->message, ==, "Invalid parameter 'file.driver'");
    g_clear_error(&error);
    g_autoptr(Options) sub = options_get_sub(options, "file");
    g_autofree char *text = options_to_string(sub);
    g_assert_cmpstr(text, ==, "driver=file,x.y=2");
    g_assert_false(options_check_unused(options, &error));
    g_assert_cmpstr(error->message, ==, "Invalid parameter 'zz'");
    options_get(options, "zz");
    g_assert_true(options_check_unused(options, NULL));
    g_assert_false(options_check_unused(sub, NULL));
    g_autoptr(Options) none = options_get_sub(options, "nothing");
    g_assert_true(options_check_unused(none, NULL));
}

static void test_consistent(void)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"a=1,b.c=2,b.d=3", NULL},
        {"file=x,file.locking=off", "Parameters 'file.*' used inconsistently"},
        {"a.b.c=1,a.b=2", "Parameters 'a.b.*' used inconsistently"},
        {"a.b.c.d=1,a=2", "Parameters 'a.*' used inconsistently"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Options) options = options_parse(cases[i].text, NULL, NULL);
        g_autoptr(GError) error = NULL;
        g_assert_cmpint(options_check_consistent(options, &error), ==, !cases[i].error);
        g_assert_cmpstr(error ? error->message : NULL, ==, cases[i].error);
    }
}

static void test_bool(void)
{
    static const struct {
        const char *text;
        int expect; /* -1: an error */
    } cases[] = {
        {"on", 1},    {"yes", 1}, {"true", 1}, {"y", 1},  {"off", 0}, {"no", 0},
        {"false", 0}, {"n", 0},   {"ON", -1},  {"1", -1}, {"", -1},   {"onn", -1},
    };
    g_autoptr(Options) options = options_new();
    bool value = true;
    g_assert_true(options_get_bool(options, "x", false, &value, NULL));
    g_assert_false(value);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        value = cases[i].expect != 1;
        options_set(options, "x", cases[i].text);
        g_assert_cmpint(options_get_bool(options, "x", false, &value, &error), ==, cases[i].expect >= 0);
        if (cases[i].expect < 0) {
            g_assert_cmpstr(error->message, ==, "Parameter 'x' expects 'on' or 'off'");
            g_assert_true(value); /* untouched */
        } else {
            g_assert_cmpint(value, ==, cases[i].expect);
        }
    }
}

static void test_uint(void)
{
    static const struct {
        const char *text;
        uint64_t min, max, expect;
        const char *error;
    } cases[] = {
        {"0", 0, UINT64_MAX, 0, NULL},
        {"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, NULL},
        {"0x10", 0, 99, 16, NULL},
        {"010", 0, 99, 8, NULL},
        {"+7", 0, 99, 7, NULL},
        {"18446744073709551616", 0, UINT64_MAX, 0, "Parameter 'x' expects integer"},
        {"5", 6, 9, 0, "Parameter 'x' expects a number from 6 to 9"},
        {"10", 6, 9, 0, "Parameter 'x' expects a number from 6 to 9"},
        {"-1", 0, UINT64_MAX, 0, "Parameter 'x' expects integer"},
        {"", 0, 9, 0, "Parameter 'x' expects integer"},
        {"1k", 0, 9, 0, "Parameter 'x' expects integer"},
        {"1 ", 0, 9, 0, "Parameter 'x' expects integer"},
        {"++1", 0, 9, 0, "Parameter 'x' expects integer"},
        {"+-1", 0, UINT64_MAX, 0, "Parameter 'x' expects integer"},
    };
    g_autoptr(Options) options = options_new();
    uint64_t value;
    g_assert_true(options_get_uint(options, "x", 5, 9, 3, &value, NULL));
    g_assert_cmpuint(value, ==, 3);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        value = 4711;
        options_set(options, "x", cases[i].text);
        bool ok = options_get_uint(options, "x", cases[i].min, cases[i].max, 3, &value, &error);
        g_assert_cmpstr(error ? error->message : NULL, ==, cases[i].error);
        g_assert_cmpint(ok, ==, !cases[i].error);
        g_assert_cmpuint(value, ==, ok ? cases[i].expect : 4711);
    }
}

static void test_parse_size(void)
{
    static const struct {
        const char *text;
        int result;
        uint64_t expect;
    } cases[] = {
        {"0", 0, 0},
        {"512", 0, 512},
        {"512b", 0, 512},
        {"1B", 0, 1},
        {"1k", 0, 1024},
        {"1K", 0, 1024},
        {"4M", 0, 4 << 20},
        {"1.5k", 0, 1536},
        {"1.k", 0, 1024},
        {".5k", 0, 512},
        {"0.5G", 0, 1 << 29},
        {"2T", 0, 2ULL << 40},
        {"1P", 0, 1ULL << 50},
        {"15E", 0, 15ULL << 60},
        {"+1k", 0, 1024},
        {"1.0", 0, 1},
        {"0x200", 0, 512},
        {"18446744073709551615", 0, UINT64_MAX},
        {"0010", 0, 10},
        {"16E", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"15.9999999999999999999999E", -ERANGE, 0},
        {"0x1ffffffffffffffff", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"-1k", -EINVAL, 0},
        {"1.5", -EINVAL, 0},
        {"1.5b", -EINVAL, 0},
        {"1kk", -EINVAL, 0},
        {"1x", -EINVAL, 0},
        {"k", -EINVAL, 0},
        {".", -EINVAL, 0},
        {".k", -EINVAL, 0},
        {"1 k", -EINVAL, 0},
        {"0x1k", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"1KiB", -EINVAL, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t value = 4711;
        int result = options_parse_size(cases[i].text, &value);
        if (result != cases[i].result || value != (result ? 4711 : cases[i].expect)) {
            g_error("'%s': %d, %" G_GUINT64_FORMAT, cases[i].text, result, value);
        }
    }
}

static void test_size_messages(void)
{
    g_autoptr(Options) options = options_parse("big=16E,bad=x,good=2k", NULL, NULL);
    g_autoptr(GError) error = NULL;
    uint64_t value = 4711;
    g_assert_false(options_get_size(options, "big", 0, &value, &error));
    g_assert_cmpstr(error->message, ==, "Value '16E' is out of range for parameter 'big'");
    g_clear_error(&error);
    g_assert_false(options_get_size(options, "bad", 0, &value, &error));
    g_assert_true(
        g_str_has_prefix(error->message, "Parameter 'bad' expects a non-negative number below 2^64\n"));
    g_assert_cmpuint(value, ==, 4711);
    g_assert_true(options_get_size(options, "good", 0, &value, NULL));
    g_assert_cmpuint(value, ==, 2048);
    g_assert_true(options_get_size(options, "absent", 7, &value, NULL));
    g_assert_cmpuint(value, ==, 7);
}

static void test_enum(void)
{
    static const char *const names[] = {"ignore", "unmap", NULL};
    g_autoptr(Options) options = options_parse("a=unmap,b=UNMAP", NULL, NULL);
    g_autoptr(GError) error = NULL;
    int value = 9;
    g_assert_true(options_get_enum(options, "a", names, 0, &value, NULL));
    g_assert_cmpint(value, ==, 1);
    g_assert_false(options_get_enum(options, "b", names, 0, &value, &error));
    g_assert_cmpstr(error->message, ==, "Parameter 'b' does not accept value 'UNMAP'");
    g_assert_cmpint(value, ==, 1);
    g_assert_true(options_get_enum(options, "absent", names, -1, &value, NULL));
    g_assert_cmpint(value, ==, -1);
}

static void test_references(void)
{
    Options *options = options_new();
    g_assert_true(options_ref(options) == options);
    options_unref(options);
    options_set(options, "a", "b");
    g_assert_cmpstr(options_get(options, "a"), ==, "b");
    options_unref(options);
    options_unref(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(parses); i++) {
        g_autofree char *path = g_strdup_printf("/options/parse/%s", parses[i].name);
        g_test_add_data_func(path, &parses[i], test_parse);
    }
    g_test_add_func("/options/key-too-long", test_key_too_long);
    g_test_add_func("/options/to-json", test_to_json);
    g_test_add_func("/options/set-remove", test_set_remove);
    g_test_add_func("/options/unused", test_unused);
    g_test_add_func("/options/consistent", test_consistent);
    g_test_add_func("/options/bool", test_bool);
    g_test_add_func("/options/uint", test_uint);
    g_test_add_func("/options/parse-size", test_parse_size);
    g_test_add_func("/options/size-messages", test_size_messages);
    g_test_add_func("/options/enum", test_enum);
    g_test_add_func("/options/references", test_references);
    return g_test_run();
}
