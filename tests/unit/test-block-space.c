/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=file` and the space that a file takes: size, holes, discard, zeroes.
 */
#include "block/block.h"
#include "tests/unit/block-test.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static BlockNode *open_file(const char *path, const char *more)
{
    g_autofree char *options = g_strdup_printf("driver=file,filename=%s%s", path, more);
    return open_node(options);
}

static void test_resize(void)
{
    g_autofree uint8_t *data = make_data(1000);
    uint8_t buf[2000];
    char *path = make_file(data, 1000);
    g_autofree char *options = g_strdup_printf("driver=raw,file.driver=file,file.filename=%s", path);
    BlockNode *node = open_node(options);
    g_assert_cmpint(block_resize(node, 2000, NULL), ==, 0);
    g_assert_cmpuint(block_info(node)->size, ==, 2000);
    g_assert_cmpint(block_pread(node, 0, buf, 2000), ==, 0);
    g_assert_cmpmem(buf, 1000, data, 1000);
    g_assert_cmpint(buf[1000] | buf[1999], ==, 0);
    g_assert_cmpint(block_resize(node, 10, NULL), ==, 0);
    g_assert_cmpint(block_pread(node, 0, buf, 11), ==, -EINVAL);
    GError *error = NULL;
    g_assert_cmpint(block_resize(node, INT64_MAX, &error), ==, -EFBIG);
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_cmpuint(block_info(node)->size, ==, 10);
    finish(node);
    remove_file(path);
}

static uint64_t disk_bytes(const char *path)
{
    struct stat st;
    g_assert_cmpint(stat(path, &st), ==, 0);
    return (uint64_t)st.st_blocks * 512;
}

/* discard=unmap gives the space back, discard=ignore (and the default) keeps data and space. */
static void test_discard(void)
{
    static const struct {
        const char *options;
        bool punched;
    } cases[] = {{",discard=unmap", true}, {",discard=ignore", false}, {"", false}};
    g_autofree uint8_t *data = make_data(1 << 20), *buf = g_malloc(1 << 20);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *path = make_file(data, 1 << 20);
        BlockNode *node = open_file(path, cases[i].options);
        g_assert_cmpint(block_flush(node), ==, 0);
        uint64_t before = disk_bytes(path);
        g_assert_cmpint(block_discard(node, 65536, 524288), ==, 0);
        g_assert_cmpint(block_pread(node, 0, buf, 1 << 20), ==, 0);
        g_assert_cmpint(buf[65535], ==, data[65535]);
        g_assert_cmpint(buf[65537], ==, cases[i].punched ? 0 : data[65537]);
        if (cases[i].punched) {
            g_assert_cmpuint(disk_bytes(path), <=, before - 524288);
        } else {
            g_assert_cmpuint(disk_bytes(path), ==, before);
        }
        finish(node);
        remove_file(path);
    }
}

static void test_detect_zeroes(void)
{
    static const struct {
        const char *options;
        bool punched;
    } cases[] = {{",discard=unmap,detect-zeroes=unmap", true}, {",detect-zeroes=on", false}, {"", false}};
    g_autofree uint8_t *data = make_data(1 << 20), *zeroes = g_malloc0(1 << 20);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *path = make_file(data, 1 << 20);
        BlockNode *node = open_file(path, cases[i].options);
        g_assert_cmpint(block_pwrite(node, 0, zeroes, 1 << 20, 0), ==, 0);
        g_assert_cmpint(block_flush(node), ==, 0);
        g_autofree char *content = NULL;
        g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
        g_assert_true(memcmp(content, zeroes, 1 << 20) == 0);
        if (cases[i].punched) {
            g_assert_cmpuint(disk_bytes(path), <, 1 << 16);
        } else {
            g_assert_cmpuint(disk_bytes(path), >=, 1 << 20);
        }
        finish(node);
        remove_file(path);
    }
}

static void test_status(void)
{
    char *path = make_file("", 0);
    g_assert_cmpint(truncate(path, 3 << 20), ==, 0);
    g_autofree uint8_t *data = make_data(1 << 20);
    g_autofree char *options = g_strdup_printf("driver=raw,file.driver=file,file.filename=%s", path);
    BlockNode *node = open_node(options);
    g_assert_cmpint(block_pwrite(node, 1 << 20, data, 1 << 20, 0), ==, 0);
    g_assert_cmpint(block_flush(node), ==, 0);
    unsigned expected[] = {BLOCK_STATUS_ZERO, BLOCK_STATUS_DATA | BLOCK_STATUS_ALLOCATED, BLOCK_STATUS_ZERO};
    for (int i = 0; i < 3; i++) {
        uint64_t bytes;
        unsigned status;
        g_assert_cmpint(block_status(node, (uint64_t)i << 20, (3u - i) << 20, &bytes, &status), ==, 0);
        g_assert_cmpuint(bytes, ==, 1 << 20);
        g_assert_cmpuint(status, ==, expected[i]);
        g_assert_cmpint(block_status(node, ((uint64_t)i << 20) + 5000, 100, &bytes, &status), ==, 0);
        g_assert_cmpuint(bytes, ==, 100);
        g_assert_cmpuint(status, ==, expected[i]);
    }
    finish(node);
    remove_file(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/file/resize", test_resize);
    g_test_add_func("/block/file/discard", test_discard);
    g_test_add_func("/block/file/detect-zeroes", test_detect_zeroes);
    g_test_add_func("/block/file/status", test_status);
    return g_test_run();
}
