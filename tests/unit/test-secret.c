/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/secret.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* The VmFlags line of the mapping that holds `p`, from /proc/self/smaps; "" if there is none. */
static char *mapping_flags(const void *p)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/smaps", &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gboolean inside = FALSE;
    for (char **line = lines; *line; line++) {
        unsigned long from, to;
        if (sscanf(*line, "%lx-%lx ", &from, &to) == 2) {
            inside = (unsigned long)p >= from && (unsigned long)p < to;
        } else if (inside && g_str_has_prefix(*line, "VmFlags:")) {
            return g_strconcat(*line, " ", NULL);
        }
    }
    return g_strdup("");
}

static void test_sizes(void)
{
    static const size_t sizes[] = {0, 1, 31, 4095, 4096, 4097, 70000};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(Secret) secret = secret_new(sizes[i]);
        g_assert_cmpuint(secret->size, ==, sizes[i]);
        for (size_t n = 0; n <= sizes[i]; n++) {
            g_assert_cmpuint(secret->data[n], ==, 0);
        }
        memset(secret->data, 'x', sizes[i]);
        g_assert_cmpuint(strlen((char *)secret->data), ==, sizes[i]);
    }
}

static void test_copy(void)
{
    g_autoptr(Secret) secret = secret_new_copy("a\0b", 3);
    g_assert_cmpmem(secret->data, secret->size, "a\0b", 3);
    g_assert_cmpuint(secret->data[3], ==, 0);
    g_autoptr(Secret) empty = secret_new_copy(NULL, 0);
    g_assert_cmpuint(empty->size, ==, 0);
}

static void test_left_out_of_dumps(void)
{
    g_autoptr(Secret) secret = secret_new(100);
    g_autofree char *flags = mapping_flags(secret->data);
    if (!*flags) {
        g_test_skip("/proc/self/smaps shows no VmFlags here");
        return;
    }
    g_assert_nonnull(strstr(flags, " dd ")); /* MADV_DONTDUMP */
}

static void test_locked(void)
{
#if defined(__SANITIZE_ADDRESS__)
    g_test_skip("AddressSanitizer makes mlock() do nothing");
#else
    static char page[8192];
    if (mlock(page, sizeof page)) {
        g_test_skip("this user may not lock memory");
        return;
    }
    g_autoptr(Secret) secret = secret_new(100);
    g_autofree char *flags = mapping_flags(secret->data);
    if (!*flags) {
        g_test_skip("/proc/self/smaps shows no VmFlags here");
        return;
    }
    g_assert_nonnull(strstr(flags, " lo "));
#endif
}

static void test_wipe(void)
{
    char text[] = "passphrase";
    secret_wipe(text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        g_assert_cmpint(text[i], ==, 0);
    }
    secret_wipe(NULL, 0);
    secret_free(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/secret/sizes", test_sizes);
    g_test_add_func("/secret/copy", test_copy);
    g_test_add_func("/secret/left-out-of-dumps", test_left_out_of_dumps);
    g_test_add_func("/secret/locked", test_locked);
    g_test_add_func("/secret/wipe", test_wipe);
    return g_test_run();
}
