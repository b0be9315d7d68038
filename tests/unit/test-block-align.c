/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bounce buffers and read-modify-write: `mem` with `align` refuses whatever is not aligned, so that each
 * request here that works shows that the core saw to it.
 */
#include "block/block-int.h"
#include "tests/unit/block-test.h"
#include <errno.h>
#include <string.h>

#define SIZE 200077 /* a multiple of nothing */

typedef struct Shape {
    const char *name, *options;
} Shape;

static const Shape shapes[] = {
    {"1", "driver=mem,size=200077"},
    {"512", "driver=mem,size=200077,align=512"},
    {"2048", "driver=mem,size=200077,align=2048"},
    {"4096", "driver=mem,size=200077,align=4096"},
    {"64k", "driver=mem,size=200077,align=65536"},
    {"512k", "driver=mem,size=200077,align=524288"}, /* the whole node is one short block */
    {"raw-aligned-offset", "driver=raw,offset=4096,file.driver=mem,file.size=204173,file.align=4096"},
    {"raw-odd-offset", "driver=raw,offset=1234,file.driver=mem,file.size=201311,file.align=4096"},
    {"fault", "driver=fault,file.driver=mem,file.size=200077,file.align=512"},
    {"detect-zeroes", "driver=mem,size=200077,align=512,detect-zeroes=on"},
    {"detect-unmap",
     "driver=raw,detect-zeroes=unmap,discard=unmap,file.driver=mem,file.size=200077,file.align=4096"},
};

/* Cuts [0, bytes) of memory into up to 5 pieces at random places; some are empty. */
static int cut(GRand *rand, uint8_t *memory, size_t bytes, struct iovec *ret)
{
    int n = g_rand_int_range(rand, 1, 6);
    for (int i = 0; i < n; i++) {
        size_t len = i == n - 1 ? bytes : (size_t)g_rand_int_range(rand, 0, (int)bytes + 1);
        ret[i] = (struct iovec){memory, len};
        memory += len;
        bytes -= len;
    }
    return n;
}

/* One random operation on the node and on a plain copy of what it should hold. */
static void step(BlockNode *node, GRand *rand, uint8_t *model, uint8_t *buf)
{
    struct iovec iov[5];
    uint64_t offset = g_rand_int_range(rand, 0, SIZE);
    uint64_t bytes = g_rand_int_range(rand, 1, g_rand_boolean(rand) ? 5000 : SIZE);
    bytes = MIN(bytes, SIZE - offset);
    if (g_rand_int_range(rand, 0, 3) == 0) { /* aligned ones too */
        offset &= ~(uint64_t)4095;
        bytes = MIN(bytes & ~(uint64_t)4095, SIZE - offset);
    }
    uint8_t *memory = buf + g_rand_int_range(rand, 0, 2) * g_rand_int_range(rand, 0, 600);
    int n = cut(rand, memory, bytes, iov);
    switch (g_rand_int_range(rand, 0, 5)) {
    case 0:
        memset(memory, g_rand_int_range(rand, 0, 3), bytes);
        memory[bytes / 2] = g_rand_boolean(rand);
        memcpy(model + offset, memory, bytes);
        g_assert_cmpint(block_node_pwritev(node, offset, bytes, iov, n, 0), ==, 0);
        break;
    case 1:
        for (uint64_t i = 0; i < bytes; i++) {
            memory[i] = g_rand_int(rand);
        }
        memcpy(model + offset, memory, bytes);
        g_assert_cmpint(block_node_pwritev(node, offset, bytes, iov, n, BLOCK_FUA), ==, 0);
        break;
    case 2:
        memset(model + offset, 0, bytes);
        g_assert_cmpint(block_write_zeroes(node, offset, bytes, g_rand_int_range(rand, 0, 4)), ==, 0);
        break;
    default:
        memset(memory, 0xaa, bytes);
        g_assert_cmpint(block_node_preadv(node, offset, bytes, iov, n), ==, 0);
        g_assert_true(memcmp(memory, model + offset, bytes) == 0);
        break;
    }
}

static void test_model(gconstpointer data)
{
    const Shape *shape = data;
    BlockNode *node = open_node(shape->options);
    g_autofree uint8_t *model = g_malloc0(SIZE), *buf = g_malloc(SIZE + 4096);
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    g_assert_cmpuint(block_info(node)->size, ==, SIZE);
    for (int i = 0; i < 1500; i++) {
        step(node, rand, model, buf);
    }
    g_assert_cmpint(block_pread(node, 0, buf, SIZE), ==, 0);
    g_assert_true(memcmp(buf, model, SIZE) == 0);
    block_unref(node);
    g_assert_true(block_shutdown(5000));
}

static void test_write_keeps_neighbours(void)
{
    static const struct {
        uint64_t offset, bytes;
    } cases[] = {{0, 1},     {511, 1},     {511, 2},     {512, 512},  {1, 510},      {0, 512},
                 {100, 900}, {1000, 3000}, {199680, 10}, {200076, 1}, {199679, 398}, {0, SIZE}};
    g_autofree uint8_t *buf = g_malloc(SIZE), *ones = g_malloc(SIZE);
    memset(ones, 1, SIZE);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t offset = cases[i].offset, bytes = cases[i].bytes;
        BlockNode *node = open_node("driver=mem,size=200077,align=512,pattern=7");
        g_assert_cmpint(block_pwrite(node, offset, ones, bytes, 0), ==, 0);
        g_assert_cmpint(block_pread(node, 0, buf, SIZE), ==, 0);
        for (uint64_t at = 0; at < SIZE; at++) {
            g_assert_cmpint(buf[at], ==, at >= offset && at - offset < bytes ? 1 : 7);
        }
        block_unref(node);
        g_assert_true(block_shutdown(5000));
    }
}

/* What a disk's life touches: reads and writes with edges, zeroes, flush. 0 or the first error. */
static int scenario(BlockNode *node, uint8_t *buf)
{
    int ret = block_pread(node, 100, buf, 1000);
    if (ret == 0) {
        ret = block_pwrite(node, 700, buf, 2000, 0); /* reads both its edges first */
    }
    if (ret == 0) {
        ret = block_write_zeroes(node, 5000, 3000, 0);
    }
    if (ret == 0) {
        ret = block_flush(node);
    }
    if (ret == 0) {
        ret = block_pwrite(node, SIZE - 3, buf, 3, BLOCK_FUA);
    }
    return ret < 0 ? ret : block_flush(node);
}

/* The Nth I/O below fails, for each N until all goes well: each time the caller hears of it, and what lies
 * outside of the written ranges is untouched. */
static void test_fail_each_in_turn(gconstpointer data)
{
    g_autofree uint8_t *buf = g_malloc0(4096), *after = g_malloc(SIZE);
    int ret = -1, n = 0;
    while (ret != 0) {
        g_autofree char *options = g_strdup_printf(data, ++n);
        BlockNode *node = open_node(options);
        ret = scenario(node, buf);
        g_assert_true(ret == 0 || ret == -EIO);
        BlockNode *mem = node;
        while (block_child(mem, "file")) {
            mem = block_child(mem, "file");
        }
        g_assert_cmpint(block_pread(mem, 0, after, SIZE), ==, 0);
        for (uint64_t at = 0; at < SIZE; at++) {
            bool written = (at >= 700 && at < 2700) || (at >= 5000 && at < 8000) || at >= SIZE - 3;
            g_assert_true(written || after[at] == 7);
        }
        block_unref(node);
        g_assert_true(block_shutdown(5000));
        g_assert_cmpint(n, <, 100);
    }
    g_assert_cmpint(n, >, 6); /* each step of the scenario failed at least once */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autofree char *path = g_strconcat("/block/align/model/", shapes[i].name, NULL);
        g_test_add_data_func(path, &shapes[i], test_model);
    }
    g_test_add_func("/block/align/write-keeps-neighbours", test_write_keeps_neighbours);
    g_test_add_data_func("/block/align/fail-each-in-turn/buffered",
                         "driver=raw,file.driver=fault,file.fail-nth=%d,file.file.driver=mem,"
                         "file.file.size=200077,file.file.pattern=7",
                         test_fail_each_in_turn);
    g_test_add_data_func(
        "/block/align/fail-each-in-turn/direct",
        "driver=fault,fail-nth=%d,file.driver=mem,file.size=200077,file.pattern=7,file.align=512",
        test_fail_each_in_turn);
    return g_test_run();
}
