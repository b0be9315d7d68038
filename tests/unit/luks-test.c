/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/luks-test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"

static struct {
    char *folder;
    char *output;
} test;

const char *luks_test_folder(void)
{
    if (!test.folder) {
        GError *error = NULL;
        test.folder = g_dir_make_tmp("spindle-luks-XXXXXX", &error);
        g_assert_no_error(error);
    }
    return test.folder;
}

char *luks_test_path(const char *name)
{
    return g_build_filename(luks_test_folder(), name, NULL);
}

void luks_test_end(void)
{
    secret_object_clear();
    g_assert_true(block_shutdown(5000));
    if (test.folder) {
        g_assert_true(luks_test_run(NULL, "rm -rf -- \"$PWD\""));
    }
    g_clear_pointer(&test.folder, g_free);
    g_clear_pointer(&test.output, g_free);
}

void luks_test_secret(const char *id, const char *passphrase)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_new();
    options_set(options, "id", id);
    options_set(options, "data", passphrase);
    g_assert_true(secret_object_add(options, &error));
    g_assert_no_error(error);
}

bool luks_test_run(const char *input, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *command = g_strdup_vprintf(format, args);
    va_end(args);
    GError *error = NULL;
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_cwd(launcher, luks_test_folder());
    g_subprocess_launcher_setenv(launcher, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin", TRUE);
    g_autoptr(GSubprocess) child = g_subprocess_launcher_spawn(launcher, &error, "sh", "-c", command, NULL);
    g_assert_no_error(error);
    g_autoptr(GBytes) stdin_bytes = g_bytes_new(input, input ? strlen(input) : 0);
    g_autoptr(GBytes) output = NULL;
    g_subprocess_communicate(child, stdin_bytes, NULL, &output, NULL, &error);
    g_clear_error(&error); /* a command that does not read its input */
    g_free(test.output);
    test.output = output ? g_strndup(g_bytes_get_data(output, NULL), g_bytes_get_size(output)) : g_strdup("");
    return g_subprocess_get_if_exited(child) && g_subprocess_get_exit_status(child) == 0;
}

const char *luks_test_output(void)
{
    return test.output ? test.output : "";
}

void luks_test_fill(uint8_t *data, size_t bytes, uint32_t seed)
{
    uint64_t x = seed * 2654435761u + 88172645463325252u;
    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = x >> 24;
    }
}

void luks_test_random_file(const char *name, uint64_t bytes, uint32_t seed)
{
    g_autofree uint8_t *data = g_malloc(bytes);
    g_autofree char *path = luks_test_path(name);
    GError *error = NULL;
    luks_test_fill(data, bytes, seed);
    g_file_set_contents(path, (char *)data, bytes, &error);
    g_assert_no_error(error);
}

static int open_in_folder(const char *name, int flags)
{
    g_autofree char *path = luks_test_path(name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* The next range of data at `*from` or behind it. */
static bool next_data(int fd, off_t *from, off_t *ret_end)
{
    off_t start = lseek(fd, *from, SEEK_DATA);
    *from = start;
    *ret_end = start < 0 ? -1 : lseek(fd, start, SEEK_HOLE);
    return start >= 0;
}

void luks_test_copy(const char *from, const char *to)
{
    auto_fd in = open_in_folder(from, O_RDONLY), out = open_in_folder(to, O_WRONLY | O_CREAT | O_TRUNC);
    g_assert_cmpint(ftruncate(out, lseek(in, 0, SEEK_END)), ==, 0);
    for (off_t start = 0, end; next_data(in, &start, &end); start = end) {
        g_autofree uint8_t *data = g_malloc(end - start);
        g_assert_cmpint(pread(in, data, end - start, start), ==, end - start);
        g_assert_cmpint(pwrite(out, data, end - start, start), ==, end - start);
    }
}

/* Whether `other` has all the data of `fd`. */
static bool has_data_of(int fd, int other)
{
    for (off_t start = 0, end; next_data(fd, &start, &end); start = end) {
        g_autofree uint8_t *mine = g_malloc(end - start), *theirs = g_malloc(end - start);
        if (pread(fd, mine, end - start, start) != end - start ||
            pread(other, theirs, end - start, start) != end - start || memcmp(mine, theirs, end - start)) {
            return false;
        }
    }
    return true;
}

bool luks_test_same(const char *name, const char *other)
{
    auto_fd a = open_in_folder(name, O_RDONLY), b = open_in_folder(other, O_RDONLY);
    return lseek(a, 0, SEEK_END) == lseek(b, 0, SEEK_END) && has_data_of(a, b) && has_data_of(b, a);
}

unsigned luks_test_step(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return g_getenv("SPINDLE_STRESS_SECONDS") ? 1 : 3;
#else
    return 1;
#endif
}

static BlockNode *open_file(const char *name)
{
    g_autofree char *text = g_strdup_printf("driver=file,filename=%s/%s", luks_test_folder(), name);
    return open_node(text);
}

void luks_test_create(const char *name, const char *options_text, uint64_t payload)
{
    GError *error = NULL;
    g_autofree char *path = luks_test_path(name);
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_autoptr(Options) options = options_parse(options_text, NULL, &error);
    g_assert_no_error(error);
    if (!options_has(options, "pbkdf-iterations")) {
        options_set(options, "pbkdf-iterations", options_has(options, "pbkdf-memory") ? "4" : "1000");
    }
    if (!options_has(options, "pbkdf")) {
        options_set(options, "pbkdf", "pbkdf2");
    }
    g_autoptr(LuksFormat) format = luks_format_parse(options, &error);
    g_assert_no_error(error);
    g_assert_true(options_check_unused(options, &error));
    g_autoptr(Secret) passphrase = secret_new_copy(LUKS_TEST_PASSPHRASE, strlen(LUKS_TEST_PASSPHRASE));
    BlockNode *file = open_file(name);
    bool ok = luks_create(file, NULL, format, passphrase, payload, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    luks_test_close(file);
}

static char *open_text(const char *name, const char *more)
{
    return g_strdup_printf("driver=luks,key-secret=sec0,file.driver=file,file.filename=%s/%s%s",
                           luks_test_folder(), name, more);
}

BlockNode *luks_test_open(const char *name, const char *more)
{
    g_autofree char *text = open_text(name, more);
    return open_node(text);
}

char *luks_test_open_message(const char *name, const char *more)
{
    g_autofree char *text = open_text(name, more);
    return open_message(text);
}

void luks_test_close(BlockNode *node)
{
    block_unref(node);
    g_assert_true(block_shutdown(5000));
}

static uint8_t *load(const char *name, gsize *ret_bytes)
{
    g_autofree char *path = luks_test_path(name);
    char *data;
    GError *error = NULL;
    g_file_get_contents(path, &data, ret_bytes, &error);
    g_assert_no_error(error);
    return (uint8_t *)data;
}

void luks_test_compare(BlockNode *node, uint64_t offset, const char *file)
{
    gsize bytes;
    g_autofree uint8_t *want = load(file, &bytes);
    g_autofree uint8_t *have = g_malloc(bytes);
    g_assert_cmpint(block_pread(node, offset, have, bytes), ==, 0);
    for (gsize i = 0; i < bytes; i++) {
        if (want[i] != have[i]) {
            g_test_message("first difference at byte %zu", i);
            g_assert_cmphex(want[i], ==, have[i]);
        }
    }
}

void luks_test_store(BlockNode *node, uint64_t offset, const char *file)
{
    gsize bytes;
    g_autofree uint8_t *data = load(file, &bytes);
    g_assert_cmpint(block_pwrite(node, offset, data, bytes, 0), ==, 0);
}
