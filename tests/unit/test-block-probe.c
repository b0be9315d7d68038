/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a file begins like, and the raw node that keeps a guest from changing that.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "block/block.h"
#include "block/probe.h"
#include "tests/unit/block-test.h"

#define SECTOR 512

static const struct {
    const char *test, *text;
    size_t len, at;
    const char *format;
} rows[] = {
    {"zeros", "", 0, 0, "raw"},
    {"mbr", "\xeb\x63\x90", 3, 0, "raw"},
    {"qcow2", "QFI\xfb\0\0\0\3", 8, 0, "qcow2"},
    {"qcow2-elsewhere", "QFI\xfb", 4, 4, "raw"},
    {"vmdk", "KDMV", 4, 0, "vmdk"},
    {"vmdk-text", "# Disk DescriptorFile\nversion=1\n", 32, 0, "vmdk"},
    {"vmdk-text-crlf", "# a\r\n\r\n  \nversion=3\r\n", 21, 0, "vmdk"},
    {"vmdk-text-other-version", "# a\nversion=9\n", 14, 0, "raw"},
    {"script", "#!/bin/sh\necho version=1\n", 25, 0, "raw"},
    {"vdi", "\x7f\x10\xda\xbe", 4, 0x40, "vdi"},
    {"vpc", "conectix", 8, 0, "vpc"},
    {"vhdx", "vhdxfile", 8, 0, "vhdx"},
    {"luks", "LUKS\xba\xbe\0\1", 8, 0, "luks"},
};

static void test_format(gconstpointer data)
{
    unsigned i = GPOINTER_TO_UINT(data);
    uint8_t head[SECTOR] = {0};

    memcpy(head + rows[i].at, rows[i].text, rows[i].len);
    g_assert_cmpstr(block_probe_format(head, sizeof head), ==, rows[i].format);
    /* A file that ends there, and one that ends before. */
    g_assert_cmpstr(block_probe_format(head, rows[i].at + rows[i].len), ==, rows[i].format);
    g_assert_cmpstr(block_probe_format(head, 2), ==, "raw");
}

static BlockNode *open_raw(const char *probed)
{
    g_autoptr(Options) options = options_new();
    g_autoptr(GError) error = NULL;

    options_set(options, "driver", "raw");
    options_set(options, "probed", probed);
    options_set(options, "file.driver", "mem");
    options_set(options, "file.size", "65536");
    BlockNode *node = block_open(options, &error);
    g_assert_no_error(error);
    return node;
}

static void request_done(BlockRequest *request)
{
    *(bool *)request->opaque = true;
}

/* On a tmpfs, whose small writes need no worker, the first sector is looked at all the same. */
static void test_restricted_now(void)
{
    g_autofree char *path = g_strdup_printf("/dev/shm/spindle-test-probe-%d", (int)getpid());
    g_autofree char *text = g_strdup_printf("driver=raw,probed=on,file.driver=file,file.filename=%s", path);
    static const uint8_t zeros[4 * SECTOR];
    g_assert_true(g_file_set_contents(path, (const char *)zeros, sizeof zeros, NULL));
    BlockNode *node = open_node(text);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t sector[SECTOR] = "QFI\xfb";
        bool done = false;
        BlockRequest request;
        memset(&request, 0, sizeof request);
        block_request_init(&request, node, BLOCK_WRITE, i * SECTOR, sector, SECTOR, request_done, &done);
        block_submit(&request);
        while (!done) {
            g_main_context_iteration(NULL, TRUE);
        }
        g_assert_cmpint(request.result, ==, i == 0 ? -EPERM : 0);
        g_assert_cmpuint(block_stats(node)->write_now, ==, i);
    }
    finish(node);
    g_assert_cmpint(unlink(path), ==, 0);
}

static void test_restricted(void)
{
    BlockNode *node = open_raw("on");
    uint8_t sectors[4 * SECTOR] = "QFI\xfb", got[SECTOR];

    g_assert_cmpint(block_pwrite(node, 0, sectors, SECTOR, 0), ==, -EPERM);
    g_assert_cmpint(block_pwrite(node, 0, sectors, sizeof sectors, 0), ==, -EPERM);
    /* Byte by byte comes to the same. */
    g_assert_cmpint(block_pwrite(node, 0, sectors, 2, 0), ==, 0);
    g_assert_cmpint(block_pwrite(node, 2, sectors + 2, 2, 0), ==, -EPERM);
    g_assert_cmpint(block_pread(node, 0, got, SECTOR), ==, 0);
    g_assert_cmpmem(got, 4, "QF\0\0", 4);
    /* Elsewhere, and an ordinary first sector: written. */
    g_assert_cmpint(block_pwrite(node, SECTOR, sectors, SECTOR, 0), ==, 0);
    memcpy(sectors, "\xeb\x63\x90", 4);
    g_assert_cmpint(block_pwrite(node, 0, sectors, sizeof sectors, 0), ==, 0);
    g_assert_cmpint(block_pread(node, 0, got, SECTOR), ==, 0);
    g_assert_cmpmem(got, SECTOR, sectors, SECTOR);
    block_unref(node);
}

static void test_unrestricted(void)
{
    BlockNode *node = open_raw("off");
    uint8_t sector[SECTOR] = "QFI\xfb";

    g_assert_cmpint(block_pwrite(node, 0, sector, SECTOR, 0), ==, 0);
    block_unref(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("/probe/%s", rows[i].test);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_format);
    }
    g_test_add_func("/probe/raw-restricted", test_restricted);
    g_test_add_func("/probe/raw-restricted-now", test_restricted_now);
    g_test_add_func("/probe/raw-unrestricted", test_unrestricted);
    int status = g_test_run();
    block_shutdown(5000);
    return status;
}
