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
