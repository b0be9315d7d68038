/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/iov.h"

#include <glib.h>
#include <string.h>

#define PIECES 5
#define ROOM   32

static const char digits[] = "0123456789";

/* An array with empty pieces at the start, in the middle and at the end, over "0123456789". */
typedef struct {
    char memory[ROOM];
    struct iovec iov[PIECES];
} Fixture;

static void fixture_fill(Fixture *f)
{
    static const size_t lengths[PIECES] = {0, 3, 0, 6, 1};
    memset(f->memory, '.', sizeof f->memory);
    char *at = f->memory;
    for (int i = 0; i < PIECES; i++) {
        f->iov[i] = (struct iovec){at, lengths[i]};
        at += lengths[i] + 2; /* a gap that nothing may touch */
    }
    g_assert_cmpuint(iov_from_buf(f->iov, PIECES, 0, "0123456789", 10), ==, 10);
}

typedef struct {
    const char *name;
    size_t offset, bytes, expect; /* bytes that are copied */
} Range;

static const Range ranges[] = {
    {"all", 0, 10, 10},       {"none", 0, 0, 0},
    {"first-piece", 0, 3, 3}, {"across", 2, 3, 3},
    {"last-byte", 9, 1, 1},   {"over-the-end", 7, 10, 3},
    {"at-the-end", 10, 1, 0}, {"beyond-the-end", 99, 4, 0},
    {"huge", 1, SIZE_MAX, 9},
};

static void test_to_buf(gconstpointer opaque)
{
    const Range *r = opaque;
    Fixture f;
    fixture_fill(&f);
    char out[16] = "";
    g_assert_cmpuint(iov_to_buf(f.iov, PIECES, r->offset, out, r->bytes), ==, r->expect);
    g_assert_cmpint(memcmp(out, &digits[MIN(r->offset, 10)], r->expect), ==, 0);
    g_assert_cmpint(out[r->expect], ==, 0);
}

static void test_from_buf(gconstpointer opaque)
{
    const Range *r = opaque;
    Fixture f;
    fixture_fill(&f);
    char expect[] = "0123456789", out[11] = "";
    memcpy(expect + MIN(r->offset, 10), "abcdefghij", r->expect);
    g_assert_cmpuint(iov_from_buf(f.iov, PIECES, r->offset, "abcdefghij", r->bytes), ==, r->expect);
    iov_to_buf(f.iov, PIECES, 0, out, 10);
    g_assert_cmpstr(out, ==, expect);
}

static void test_fill(gconstpointer opaque)
{
    const Range *r = opaque;
    Fixture f;
    fixture_fill(&f);
    char expect[] = "0123456789", out[11] = "";
    memset(expect + MIN(r->offset, 10), '#', r->expect);
    g_assert_cmpuint(iov_fill(f.iov, PIECES, r->offset, '#', r->bytes), ==, r->expect);
    iov_to_buf(f.iov, PIECES, 0, out, 10);
    g_assert_cmpstr(out, ==, expect);
    unsigned untouched = 0;
    for (int i = 0; i < ROOM; i++) {
        untouched += f.memory[i] == '.';
    }
    g_assert_cmpuint(untouched, ==, ROOM - 10);
}

static void test_slice(gconstpointer opaque)
{
    const Range *r = opaque;
    Fixture f;
    fixture_fill(&f);
    struct iovec slice[PIECES];
    int n = iov_slice(f.iov, PIECES, r->offset, r->bytes, slice, PIECES);
    if (r->expect < r->bytes) {
        g_assert_cmpint(n, ==, -1);
        return;
    }
    char out[16] = "";
    g_assert_cmpuint(iov_total(slice, n), ==, r->expect);
    iov_to_buf(slice, n, 0, out, sizeof out);
    g_assert_cmpint(memcmp(out, &digits[r->offset], r->expect), ==, 0);
    for (int i = 0; i < n; i++) {
        g_assert_cmpuint(slice[i].iov_len, >, 0);
    }
}

static void test_slice_needs_room(void)
{
    Fixture f;
    fixture_fill(&f);
    struct iovec slice[2];
    g_assert_cmpint(iov_slice(f.iov, PIECES, 0, 10, slice, 2), ==, -1);
    g_assert_cmpint(iov_slice(f.iov, PIECES, 0, 9, slice, 2), ==, 2);
    g_assert_cmpint(iov_slice(f.iov, PIECES, 0, 0, NULL, 0), ==, 0);
}

static void test_total(void)
{
    Fixture f;
    fixture_fill(&f);
    g_assert_cmpuint(iov_total(f.iov, PIECES), ==, 10);
    g_assert_cmpuint(iov_total(NULL, 0), ==, 0);
}

static void test_aligned(void)
{
    struct iovec iov[] = {{(void *)4096, 8192}, {(void *)12288, 4096}};
    g_assert_true(iov_is_aligned(iov, 2, 4096));
    g_assert_false(iov_is_aligned(iov, 2, 8192));
    iov[1].iov_len = 4095;
    g_assert_false(iov_is_aligned(iov, 2, 4096));
    g_assert_true(iov_is_aligned(iov, 1, 4096));
    g_assert_true(iov_is_aligned(iov, 2, 1));
    iov[0].iov_base = (void *)512;
    g_assert_false(iov_is_aligned(iov, 1, 1024));
    g_assert_true(iov_is_aligned(NULL, 0, 4096));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        GTestDataFunc run;
    } kinds[] = {
        {"to-buf", test_to_buf},
        {"from-buf", test_from_buf},
        {"fill", test_fill},
        {"slice", test_slice},
    };
    g_test_init(&argc, &argv, NULL);
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
            g_autofree char *path = g_strdup_printf("/iov/%s/%s", kinds[k].name, ranges[i].name);
            g_test_add_data_func(path, &ranges[i], kinds[k].run);
        }
    }
    g_test_add_func("/iov/slice-needs-room", test_slice_needs_room);
    g_test_add_func("/iov/total", test_total);
    g_test_add_func("/iov/aligned", test_aligned);
    return g_test_run();
}
