/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=host_device` on loop devices; needs root.
 */
#include "block/block.h"
#include "tests/unit/block-test.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A loop device over the file, or NULL with the test skipped. Free with loop_free(). */
static char *loop_new(const char *path, const char *options)
{
    g_autofree char *command = g_strdup_printf("losetup --find --show %s %s", options, path);
    char *device = NULL;
    int status;
    if (geteuid() != 0 || !g_spawn_command_line_sync(command, &device, NULL, &status, NULL) || status != 0) {
        g_free(device);
        g_test_skip("needs root and loop devices");
        return NULL;
    }
    return g_strchomp(device);
}

static void loop_free(char *device)
{
    g_autofree char *command = g_strdup_printf("losetup --detach %s", device);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(device);
}

static void test_host_device(gconstpointer loop_options)
{
    enum { BYTES = 1 << 20 };
    g_autofree uint8_t *data = make_data(BYTES), *buf = g_malloc(BYTES);
    char *path = make_file(data, BYTES);
    char *device = loop_new(path, loop_options);
    for (int direct = 0; device && direct <= 1; direct++) {
        g_autofree char *options = g_strdup_printf(
            "driver=host_device,discard=unmap,filename=%s,cache.direct=%s", device, direct ? "on" : "off");
        BlockNode *node = open_node(options);
        g_assert_cmpuint(block_info(node)->size, ==, BYTES);
        g_assert_cmpuint(block_info(node)->align, ==,
                         !direct                        ? 1
                         : strstr(loop_options, "4096") ? 4096
                                                        : 512);
        g_assert_cmpint(block_pread(node, 3, buf, 70000), ==, 0);
        g_assert_true(memcmp(buf, data + 3, 70000) == 0);
        memset(data + 5001, 9, 7000);
        g_assert_cmpint(block_pwrite(node, 5001, data + 5001, 7000, BLOCK_FUA), ==, 0);
        memset(data + 20000, 0, 50001);
        g_assert_cmpint(block_write_zeroes(node, 20000, 50001, direct ? BLOCK_MAY_UNMAP : 0), ==, 0);
        g_assert_cmpint(block_discard(node, BYTES / 2, 65536), ==, 0);
        memset(data + BYTES / 2, 0, 65536);
        g_assert_cmpint(block_flush(node), ==, 0);
        g_assert_cmpint(block_pread(node, 0, buf, BYTES), ==, 0);
        g_assert_true(memcmp(buf, data, BYTES) == 0);
        assert_refused("driver=file,filename=%s", "'file' driver requires '%s' to be a regular file", device);
        finish(node);
    }
    if (device) {
        loop_free(device);
    }
    remove_file(path);
}

static void test_host_device_read_only(void)
{
    char *path = make_file("0123456789abcdef", 16);
    g_assert_cmpint(truncate(path, 4096), ==, 0);
    char *device = loop_new(path, "--read-only");
    if (device) {
        g_autofree char *text = g_strdup_printf("driver=host_device,filename=%s", device);
        g_autofree char *message = open_message(text),
                        *accept = g_strconcat(text, ",auto-read-only=on", NULL);
        g_assert_true(g_str_has_prefix(message, "Could not open '/dev/loop"));
        BlockNode *node = open_node(accept);
        g_assert_true(block_info(node)->read_only);
        g_assert_cmpint(block_pwrite(node, 0, "x", 1, 0), ==, -EROFS);
        finish(node);
        loop_free(device);
    }
    remove_file(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/block/host-device/512", "--sector-size 512", test_host_device);
    g_test_add_data_func("/block/host-device/4096", "--sector-size 4096", test_host_device);
    g_test_add_func("/block/host-device/read-only", test_host_device_read_only);
    return g_test_run();
}
