/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/buffer.h"

#include <string.h>

typedef struct {
    const char *name;
    size_t size, align, expect_align;
} Shape;

static const Shape shapes[] = {
    {"sector", 2048, 512, 4096},       {"page", 4096, 4096, 4096},
    {"bulk", BUFFER_MAX, 4096, 4096},  {"bulk-wide", BUFFER_MAX, 65536, 65536},
    {"odd-size", 100001, 1, 4096},     {"no-demand", 2352, 0, 4096},
    {"wide-small", 512, 16384, 16384},
};

static void test_pool_aligns(gconstpointer opaque)
{
    const Shape *s = opaque;
    g_autoptr(BufferPool) pool = buffer_pool_new(s->size, s->align, 2);
    for (int i = 0; i < 3; i++) {
        g_autoptr(Buffer) one = buffer_pool_get(pool);
        g_autoptr(Buffer) two = buffer_pool_get(pool);
        g_assert_cmpuint(one->size, ==, s->size);
        g_assert_cmpuint((uintptr_t)one->data % s->expect_align, ==, 0);
        g_assert_cmpuint((uintptr_t)two->data % s->expect_align, ==, 0);
        g_assert_true(one->data != two->data);
        memset(one->data, 0xaa, s->size);
        memset(two->data, 0x55, s->size);
        g_assert_cmpuint(one->data[s->size - 1], ==, 0xaa);
    }
}

static void test_new_is_zeroed(gconstpointer opaque)
{
    const Shape *s = opaque;
    g_autoptr(Buffer) buffer = buffer_new(s->size, s->align);
    g_assert_cmpuint(buffer->size, ==, s->size);
    g_assert_cmpuint((uintptr_t)buffer->data % s->expect_align, ==, 0);
    for (size_t i = 0; i < s->size; i++) {
        g_assert_cmpuint(buffer->data[i], ==, 0);
    }
}

static void test_reuse(void)
{
    g_autoptr(BufferPool) pool = buffer_pool_new(4096, 4096, 1);
    Buffer *one = buffer_pool_get(pool);
    uint8_t *memory = one->data;
    g_assert_true(buffer_ref(one) == one);
    buffer_unref(one);
    memset(one->data, 1, one->size); /* still held once */
    buffer_unref(one);
    one = buffer_pool_get(pool);
    g_assert_true(one->data == memory);
    buffer_unref(one);
}

static void test_trim_and_null(void)
{
    g_autoptr(BufferPool) pool = buffer_pool_new(BUFFER_MAX, 4096, 4);
    Buffer *out = buffer_pool_get(pool);
    buffer_unref(buffer_pool_get(pool));
    buffer_pool_trim(pool);
    memset(out->data, 2, out->size);
    buffer_unref(out);
    buffer_unref(NULL);
    buffer_pool_free(NULL);
}

static void test_buffer_outlives_pool(void)
{
    BufferPool *pool = buffer_pool_new(BUFFER_MAX, 4096, 4);
    Buffer *out = buffer_pool_get(pool);
    buffer_pool_free(pool);
    memset(out->data, 3, out->size);
    buffer_unref(out);
}

static gpointer churn(gpointer opaque)
{
    BufferPool *pool = opaque;
    for (int i = 0; i < 5000; i++) {
        Buffer *one = buffer_pool_get(pool), *two = buffer_pool_get(pool);
        *(gpointer *)one->data = one;
        *(gpointer *)two->data = two;
        g_assert_true(*(gpointer *)one->data == one);
        buffer_unref(two);
        buffer_unref(one);
    }
    return NULL;
}

static void test_threads(void)
{
    g_autoptr(BufferPool) pool = buffer_pool_new(4096, 4096, 3);
    GThread *threads[4];
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        threads[i] = g_thread_new("churn", churn, pool);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        g_thread_join(threads[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autofree char *pool = g_strdup_printf("/buffer/pool-aligns/%s", shapes[i].name);
        g_autofree char *zeroed = g_strdup_printf("/buffer/new-is-zeroed/%s", shapes[i].name);
        g_test_add_data_func(pool, &shapes[i], test_pool_aligns);
        g_test_add_data_func(zeroed, &shapes[i], test_new_is_zeroed);
    }
    g_test_add_func("/buffer/reuse", test_reuse);
    g_test_add_func("/buffer/trim-and-null", test_trim_and_null);
    g_test_add_func("/buffer/outlives-pool", test_buffer_outlives_pool);
    g_test_add_func("/buffer/threads", test_threads);
    return g_test_run();
}
