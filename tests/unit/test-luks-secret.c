/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `secret` objects, and that neither passphrases nor keys nor plaintext would be in a core dump.
 */
#include "tests/unit/luks-test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/buffer.h"
#include "util/cleanup.h"

#define PAYLOAD    (2 * 1024 * 1024)
#define TEXT_BYTES 24 /* of random passphrases and plaintext, of which this program knows nothing */

static bool add(const char *text, char **ret_message)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(text, "qom-type", &error);
    g_assert_no_error(error);
    bool ok = secret_object_add(options, &error);
    g_assert_cmpint(ok, ==, error == NULL);
    *ret_message = error ? g_strdup(error->message) : NULL;
    g_clear_error(&error);
    return ok;
}

typedef struct ObjectCase {
    const char *name, *options, *value, *message; /* value, or why not */
} ObjectCase;

/* master0 is the 32 bytes "0123456789abcdef0123456789abcdef"; iv is 16 bytes of 'i'; the ciphertexts are
 * openssl's. */
#define MASTER "secret,id=master0,data=0123456789abcdef0123456789abcdef"
#define IV     "iv=aWlpaWlpaWlpaWlpaWlpaQ=="

static const ObjectCase object_cases[] = {
    {"raw", "secret,id=s,data=letmein", "letmein", NULL},
    {"raw/commas", "secret,id=s,data=a,,b=c", "a,b=c", NULL},
    {"raw/empty", "secret,id=s,data=", "", NULL},
    {"base64", "secret,id=s,data=bGV0bWVpbg==,format=base64", "letmein", NULL},
    {"base64/broken", "secret,id=s,data=bGV0!bWVpbg==,format=base64", NULL,
     "Base64 data contains invalid characters"},
    {"wrapped", "secret,id=s,keyid=master0," IV ",format=base64,data=07s4+1fOw/Q9vg6KQV+BsA==", "letmein",
     NULL},
    {"wrapped/no-iv", "secret,id=s,keyid=master0,format=base64,data=AAAA", NULL,
     "IV is required to decrypt secret"},
    {"wrapped/short-iv", "secret,id=s,keyid=master0,iv=AAAA,format=base64,data=AAAA", NULL,
     "IV should be 16 bytes in length not 3"},
    {"wrapped/short-key", "secret,id=s,keyid=short," IV ",format=base64,data=AAAA", NULL,
     "Key should be 32 bytes in length"},
    {"wrapped/no-key", "secret,id=s,keyid=none," IV ",format=base64,data=AAAA", NULL,
     "No secret with id 'none'"},
    {"wrapped/length", "secret,id=s,keyid=master0," IV ",format=base64,data=AAAA", NULL,
     "Length 3 must be a multiple of block size 16"},
    {"wrapped/padding", "secret,id=s,keyid=master0," IV ",format=base64,data=AAAAAAAAAAAAAAAAAAAAAA==", NULL,
     "*"},
    {"no-id", "secret,data=x", NULL, "Parameter 'id' is missing"},
    {"nothing", "secret,id=s", NULL, "Either 'file' or 'data' must be provided"},
    {"both", "secret,id=s,data=x,file=y", NULL, "'file' and 'data' are mutually exclusive"},
    {"no-file", "secret,id=s,file=/nonexistent/file", NULL,
     "Unable to read /nonexistent/file: No such file or directory"},
    {"folder", "secret,id=s,file=/", NULL, "Unable to read /: Is a directory"},
    {"taken", "secret,id=master0,data=x", NULL,
     "attempt to add duplicate property 'master0' to object (type 'container')"},
};

static void test_object(gconstpointer data)
{
    const ObjectCase *c = data;
    g_autofree char *message = NULL;
    g_assert_true(add(MASTER, &message));
    g_assert_true(add("secret,id=short,data=abc", &message));
    bool ok = add(c->options, &message);
    if (c->value) {
        g_assert_cmpstr(message, ==, NULL);
        g_autoptr(Secret) secret = secret_object_get("s", NULL);
        g_assert_cmpmem(secret->data, secret->size, c->value, strlen(c->value));
    } else {
        g_assert_false(ok);
        if (strcmp(c->message, "*")) {
            g_assert_cmpstr(message, ==, c->message);
        }
        g_assert_null(secret_object_get("s", NULL));
    }
    secret_object_clear();
}

static void test_file(void)
{
    g_autofree char *message = NULL, *path = luks_test_path("pass");
    g_assert_true(g_file_set_contents(path, "from a file\n", -1, NULL));
    g_autofree char *text = g_strdup_printf("secret,id=f,file=%s", path);
    g_assert_true(add(text, &message));
    g_autoptr(Secret) secret = secret_object_get("f", NULL);
    g_assert_cmpmem(secret->data, secret->size, "from a file\n", 12);
    g_assert_true(secret_object_remove("f", NULL));
    GError *error = NULL;
    g_assert_false(secret_object_remove("f", &error));
    g_assert_cmpstr(error->message, ==, "object 'f' not found");
    g_clear_error(&error);
}

static void test_hide_argv(void)
{
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"secret,id=a,data=hunter2", "secret,id=a,data=*******"},
        {"secret,id=a,data=hun,,ter2,format=raw", "secret,id=a,data=*********,format=raw"},
        {"secret,data=x,id=data=y", "secret,data=*,id=data=y"},
        {"{\"qom-type\":\"secret\",\"id\":\"a\",\"data\": \"hun\\\"ter2\"}",
         "{\"qom-type\":\"secret\",\"id\":\"a\",\"data\": \"*********\"}"},
        {"driver=file,data=keep", "driver=file,data=keep"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *arg = g_strdup(cases[i].before);
        char *argv[] = {arg};
        secret_object_hide_argv(1, argv);
        g_assert_cmpstr(arg, ==, cases[i].after);
    }
}

/* The process under inspection: opens the image, reads and writes all of it, says so, and waits for the end
 * of its input; before "closed" it has closed the image. */
static int child_main(const char *image, const char *secret_file)
{
    g_autofree char *object = g_strdup_printf("secret,id=sec0,file=%s", secret_file), *message = NULL;
    g_autofree char *text = g_strdup_printf(
        "driver=luks,key-secret=sec0,file.driver=file,file.filename=%s,encrypt-in-parallel=3", image);
    if (!add(object, &message)) {
        return 1;
    }
    BlockNode *node = open_node(text);
    g_autoptr(BufferPool) pool = buffer_pool_new(PAYLOAD, 0, 1);
    Buffer *buffer = buffer_pool_get(pool);
    for (int i = 0; i < 3; i++) {
        if (block_pread(node, 0, buffer->data, PAYLOAD) || block_pwrite(node, 0, buffer->data, PAYLOAD, 0) ||
            block_pread(node, 1000, buffer->data, 100000) ||
            block_pwrite(node, 1000, buffer->data, 100000, 0)) {
            return 1;
        }
    }
    buffer_unref(buffer);
    puts("open");
    fflush(stdout);
    char line[16];
    if (!fgets(line, sizeof line, stdin)) {
        return 1;
    }
    block_unref(node);
    secret_object_clear();
    if (!block_shutdown(5000)) {
        return 1;
    }
    puts("closed");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) ? 0 : 1;
}

typedef struct Needle {
    const char *name;
    const uint8_t *data;
    size_t bytes;
} Needle;

/* Looks through one mapping of the process; the number of needles in it. */
static int scan_mapping(int mem, uint64_t start, uint64_t end, bool dumped, const char *what,
                        const Needle *needles, size_t count)
{
    g_autofree uint8_t *data = g_try_malloc(end - start);
    if (!data || pread(mem, data, end - start, start) != (ssize_t)(end - start)) {
        return 0;
    }
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *hit = memmem(data, end - start, needles[i].data, needles[i].bytes);
        found += hit != NULL;
        if (hit && dumped) {
            g_test_message("%s at offset %zu of %s", needles[i].name, (size_t)(hit - data), what);
        }
    }
    return found;
}

/* Everything that the kernel would put into a core dump, and more: all private mappings but those marked "dd"
 * (do not dump), core(5). */
static int scan_process(GPid pid, const Needle *needles, size_t count, int *ret_hidden)
{
    g_autofree char *maps = g_strdup_printf("/proc/%d/smaps", pid),
                    *mem_path = g_strdup_printf("/proc/%d/mem", pid);
    auto_fd mem = open(mem_path, O_RDONLY);
    g_assert_cmpint(mem, >=, 0);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(maps, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    uint64_t start = 0, end = 0;
    int found = 0, hidden = 0;
    const char *what = NULL;
    for (char **line = lines; *line; line++) {
        char perms[8];
        uint64_t from, to; /* "Anonymous:" begins like a number, too */
        if (sscanf(*line, "%" G_GINT64_MODIFIER "x-%" G_GINT64_MODIFIER "x %7s", &from, &to, perms) == 3) {
            start = from;
            end = to;
            what = perms[0] == 'r' && !strstr(*line, "[v") ? *line : NULL;
        } else if (g_str_has_prefix(*line, "VmFlags:") && what) {
            if (strstr(*line, " dd")) {
                hidden += scan_mapping(mem, start, end, false, what, needles, count);
            } else {
                found += scan_mapping(mem, start, end, true, what, needles, count);
            }
        }
    }
    *ret_hidden = hidden;
    return found;
}

static void expect_line(GSubprocess *child, const char *want)
{
    g_autoptr(GDataInputStream) in = g_data_input_stream_new(g_subprocess_get_stdout_pipe(child));
    g_filter_input_stream_set_close_base_stream(G_FILTER_INPUT_STREAM(in), FALSE);
    g_autofree char *line = g_data_input_stream_read_line(in, NULL, NULL, NULL);
    g_assert_cmpstr(line, ==, want);
}

static void random_text(char *ret)
{
    for (int i = 0; i < TEXT_BYTES; i++) {
        ret[i] = g_random_int_range('a', 'z' + 1);
    }
    ret[TEXT_BYTES] = '\0';
}

static void make_image(const char *format, const char *passphrase, const char *mark, uint8_t *key,
                       size_t key_bytes)
{
    g_autofree char *path = luks_test_path("core.pass"), *key_path = luks_test_path("core.key"), *data = NULL;
    g_autofree uint8_t *plain = g_malloc(PAYLOAD);
    gsize bytes;
    luks_test_create("core.img", format, PAYLOAD);
    BlockNode *node = luks_test_open("core.img", "");
    for (size_t i = 0; i < PAYLOAD; i++) {
        plain[i] = mark[i % TEXT_BYTES];
    }
    g_assert_cmpint(block_pwrite(node, 0, plain, PAYLOAD, 0), ==, 0);
    luks_test_close(node);
    g_assert_true(g_file_set_contents(path, passphrase, -1, NULL));
    luks_test_must(
        LUKS_TEST_PASSPHRASE,
        "cryptsetup luksChangeKey -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 core.img core.pass -d -");
    luks_test_must(NULL, "rm -f core.key; cryptsetup luksDump -q --dump-volume-key --volume-key-file "
                         "core.key -d core.pass core.img");
    g_assert_true(g_file_get_contents(key_path, &data, &bytes, NULL));
    g_assert_cmpuint(bytes, ==, key_bytes);
    memcpy(key, data, bytes);
}

static void test_core(gconstpointer format)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    g_test_skip("the sanitizers keep memory of their own");
    return;
#endif
    GError *error = NULL;
    char passphrase[TEXT_BYTES + 1], mark[TEXT_BYTES + 1];
    uint8_t key[64];
    int hidden;
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    random_text(passphrase);
    random_text(mark);
    make_image(format, passphrase, mark, key, sizeof key);
    g_autofree char *image = luks_test_path("core.img"), *file = luks_test_path("core.pass");
    g_autofree char *self = g_file_read_link("/proc/self/exe", &error);
    const Needle needles[] = {
        {"the passphrase", (uint8_t *)passphrase, TEXT_BYTES},
        {"plaintext", (uint8_t *)mark, TEXT_BYTES},
        {"the key (1)", key, 16},
        {"the key (2)", key + 16, 16},
        {"the key (3)", key + 32, 16},
        {"the key (4)", key + 48, 16},
    };
    g_autoptr(GSubprocess) child =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, self,
                         "--child", image, file, NULL);
    g_assert_no_error(error);
    GPid pid = atoi(g_subprocess_get_identifier(child));
    GOutputStream *in = g_subprocess_get_stdin_pipe(child);
    expect_line(child, "open");
    g_assert_cmpint(scan_process(pid, needles, G_N_ELEMENTS(needles), &hidden), ==, 0);
    g_assert_cmpint(hidden, >=, (int)G_N_ELEMENTS(needles)); /* they are where they should be */
    g_assert_true(g_output_stream_write_all(in, "x\n", 2, NULL, NULL, NULL));
    expect_line(child, "closed");
    g_assert_cmpint(scan_process(pid, needles, G_N_ELEMENTS(needles), &hidden), ==, 0);
    /* Of keys and passphrases nothing is left at all; data may be in a buffer that is kept for use again. */
    g_assert_cmpint(scan_process(pid, needles + 2, 4, &hidden), ==, 0);
    g_assert_cmpint(hidden, ==, 0);
    g_assert_true(g_output_stream_write_all(in, "x\n", 2, NULL, NULL, NULL));
    g_assert_true(g_subprocess_wait_check(child, NULL, &error));
    secret_object_clear();
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--child")) {
        return child_main(argv[2], argv[3]);
    }
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(object_cases); i++) {
        g_autofree char *path = g_strdup_printf("/luks-secret/object/%s", object_cases[i].name);
        g_test_add_data_func(path, &object_cases[i], test_object);
    }
    g_test_add_func("/luks-secret/file", test_file);
    g_test_add_func("/luks-secret/hide-argv", test_hide_argv);
    g_test_add_data_func("/luks-secret/core/luks1", "version=1", test_core);
    g_test_add_data_func("/luks-secret/core/luks2", "version=2,sector-size=4096", test_core);
    int status = g_test_run();
    luks_test_end();
    return status;
}
