/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What people write as the name of an image. Expectations are what the engine's qemu-img makes of the same.
 */
#include "block/block.h"
#include "tests/unit/block-test.h"

typedef struct NameCase {
    const char *name, *filename;
    const char *driver, *option; /* or NULL */
    const char *message;         /* else this */
} NameCase;

static const NameCase cases[] = {
    {"path", "/nonexistent/x.iso", "file", "/nonexistent/x.iso", NULL},
    {"relative", "x.iso", "file", "x.iso", NULL},
    {"colon-after-slash", "./foo:bar", "file", "./foo:bar", NULL},
    {"colon-in-folder", "foo/bar:x", "file", "foo/bar:x", NULL},
    {"file-prefix", "file:x.iso", "file", "x.iso", NULL},
    {"file-prefix-hides-colon", "file:a:b", "file", "a:b", NULL},
    {"file-slashes", "file://nope", "file", "//nope", NULL},
    {"file-empty", "file:", "file", "", NULL},
    {"character-device", "/dev/null", "host_device", "/dev/null", NULL},
    {"device-missing", "/dev/nonexistent", "file", "/dev/nonexistent", NULL},
    {"device-prefix", "host_device:/dev/null", "host_device", "/dev/null", NULL},
    {"folder", "/", "file", "/", NULL},
    {"null", "null-co://", "null-co", "null-co://", NULL},
    {"json", "json:{\"driver\":\"file\",\"filename\":\"a,b\"}", "file", "a,b", NULL},
    {"json-space", "json:{ \"driver\": \"mem\" }", "mem", NULL, NULL},
    {"http", "http://host/a%20b?c:d", "http", "http://host/a%20b?c:d", NULL},
    {"https", "https://u:p@host/x", "https", "https://u:p@host/x", NULL},
    {"ftp", "ftp://host/x", "ftp", "ftp://host/x", NULL},
    {"nbd-without-port", "nbd:host", NULL, NULL, "The nbd address 'host' needs a host and a port"},
    {"nbd-url-without-host", "nbd:///x", NULL, NULL, "Invalid NBD URL 'nbd:///x'"},
    {"unknown", "foo:bar", NULL, NULL, "Unknown protocol 'foo'"},
    {"unknown-format", "raw:x", NULL, NULL, "Unknown protocol 'raw'"},
    {"case-counts", "FILE:x", NULL, NULL, "Unknown protocol 'FILE'"},
    {"empty-protocol", ":x", NULL, NULL, "Unknown protocol ''"},
    {"dotted-protocol", "a.b:x", NULL, NULL, "Unknown protocol 'a.b'"},
    {"empty", "", NULL, NULL, "The 'file' block driver requires a file name"},
};

static void test_name(gconstpointer data)
{
    const NameCase *c = data;
    GError *error = NULL;
    g_autoptr(Options) options = block_options_from_filename(c->filename, &error);
    if (c->message) {
        g_assert_null(options);
        g_assert_cmpstr(error->message, ==, c->message);
        g_error_free(error);
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpstr(options_get(options, "driver"), ==, c->driver);
    const char *key = options_has(options, "url") ? "url" : "filename";
    g_assert_cmpstr(options_get(options, key), ==, c->option);
}

/* The words after the prefix are the parser's. */
static void test_bad_json(void)
{
    static const char *const bad[] = {"json:", "json:[1]", "json:{\"driver\":\"file\"", "json:{'a':}",
                                      "json:3"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;
        g_assert_null(block_options_from_filename(bad[i], &error));
        g_assert_true(g_str_has_prefix(error->message, "Could not parse the JSON options: "));
        g_error_free(error);
    }
}

/* What comes out is fit for block_open(). */
static void test_opens(void)
{
    char *path = make_file("0123456789", 10);
    g_autofree char *prefixed = g_strconcat("file:", path, NULL);
    g_autofree char *json =
        g_strdup_printf("json:{\"driver\":\"raw\",\"file\":{\"driver\":\"file\",\"filename\":\"%s\"}}", path);
    const char *const names[] = {path, prefixed, json};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        GError *error = NULL;
        g_autoptr(Options) options = block_options_from_filename(names[i], &error);
        g_assert_no_error(error);
        BlockNode *node = block_open(options, &error);
        g_assert_no_error(error);
        char buf[10];
        g_assert_cmpint(block_pread(node, 0, buf, 10), ==, 0);
        g_assert_cmpmem(buf, 10, "0123456789", 10);
        block_unref(node);
        g_assert_true(block_shutdown(5000));
    }
    remove_file(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/block/filename/", cases[i].name, NULL);
        g_test_add_data_func(path, &cases[i], test_name);
    }
    g_test_add_func("/block/filename/bad-json", test_bad_json);
    g_test_add_func("/block/filename/opens", test_opens);
    return g_test_run();
}
