/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Helpers of the block layer's unit tests. Loop thread.
 */
#ifndef SPINDLE_TESTS_UNIT_BLOCK_TEST_H
#define SPINDLE_TESTS_UNIT_BLOCK_TEST_H

#include "block/block.h"
#include <stdio.h>

/* Opens `k=v,…` or JSON; must work. */
static inline BlockNode *open_node(const char *text)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(text, NULL, &error);
    g_assert_no_error(error);
    BlockNode *node = block_open(options, &error);
    g_assert_no_error(error);
    g_assert_nonnull(node);
    return node;
}

/* Opens what must not open: the message, the caller's to free. */
static inline char *open_message(const char *text)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_null(block_open(options, &error));
    g_assert_nonnull(error);
    char *message = g_strdup(error->message);
    g_error_free(error);
    return message;
}

/* Bytes that tell their place. */
static inline uint8_t *make_data(size_t bytes)
{
    uint8_t *data = g_malloc(bytes);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)((i * 2654435761u) >> 13);
    }
    return data;
}

/* The refusal to open `path` with `options`, in which %s is the path; compared with `message`, the same. */
static inline void assert_refused(const char *options, const char *message, const char *path)
{
    g_autofree char *text = g_strdup_printf(options, path), *expected = g_strdup_printf(message, path);
    g_autofree char *got = open_message(text);
    g_assert_cmpstr(got, ==, expected);
}

/* Drops the node; everything must come to rest. */
static inline void finish(BlockNode *node)
{
    block_unref(node);
    g_assert_true(block_shutdown(10000));
    g_autoptr(GList) left = block_list();
    g_assert_null(left);
}

/* A file of that content in a directory of its own; remove with remove_file(). */
static inline char *make_file(const void *data, gssize bytes)
{
    GError *error = NULL;
    g_autofree char *directory = g_dir_make_tmp("spindle-block-XXXXXX", &error);
    g_assert_no_error(error);
    char *path = g_build_filename(directory, "image", NULL);
    g_file_set_contents(path, data, bytes, &error);
    g_assert_no_error(error);
    return path;
}

static inline void remove_file(char *path)
{
    g_autofree char *directory = g_path_get_dirname(path);
    remove(path);
    g_assert_cmpint(remove(directory), ==, 0);
    g_free(path);
}

#endif
