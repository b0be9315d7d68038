/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Helpers of the LUKS tests: a folder for images, cryptsetup and the like as child processes, images of our
 * own. Loop thread.
 */
#ifndef SPINDLE_TESTS_UNIT_LUKS_TEST_H
#define SPINDLE_TESTS_UNIT_LUKS_TEST_H

#include "block/luks.h"
#include "block/secret-object.h"
#include "tests/unit/block-test.h"
#include <gio/gio.h>

#define LUKS_TEST_PASSPHRASE "correct horse"

/* Made at first use; removed with all that is in it by luks_test_end(). */
const char *luks_test_folder(void);
char *luks_test_path(const char *name);
void luks_test_end(void);

/* Adds the secret `id`. */
void luks_test_secret(const char *id, const char *passphrase);

/* Runs a shell command in the folder; `input` (or NULL) goes to its standard input. Its output is kept for
 * luks_test_output(). True when it ended with 0. */
bool luks_test_run(const char *input, const char *format, ...) G_GNUC_PRINTF(2, 3);
const char *luks_test_output(void);

/* The same, and must work. */
#define luks_test_must(input, ...)                                                                           \
    do {                                                                                                     \
        if (!luks_test_run(input, __VA_ARGS__)) {                                                            \
            g_test_message("%s", luks_test_output());                                                        \
            g_assert_not_reached();                                                                          \
        }                                                                                                    \
    } while (0)

/* A file of `bytes` pseudo-random bytes. */
void luks_test_random_file(const char *name, uint64_t bytes, uint32_t seed);
void luks_test_fill(uint8_t *data, size_t bytes, uint32_t seed);

/* Makes `to` a copy of `from`, holes and all; tells whether two files are equal. No child process: the tests
 * do this hundreds of times. */
void luks_test_copy(const char *from, const char *to);
bool luks_test_same(const char *name, const char *other);

/* The step through a table of combinations: all of them in the plain build. Under the sanitizers, which look
 * for faults of ours that do not depend on the combination, every third, unless SPINDLE_STRESS_SECONDS asks
 * for a long run. */
unsigned luks_test_step(void);

/* A new image in the folder from luks_format_parse()'s options; the key derivation is quick unless they say
 * otherwise. */
void luks_test_create(const char *name, const char *options, uint64_t payload);

/* Opens with secret `sec0`; `more` is appended to the options (",read-only=on") or "". */
BlockNode *luks_test_open(const char *name, const char *more);
char *luks_test_open_message(const char *name, const char *more);

/* Drops the node and waits until it is closed. */
void luks_test_close(BlockNode *node);

/* Compares the node, from `offset` on, with the file's whole content. */
void luks_test_compare(BlockNode *node, uint64_t offset, const char *file);
/* Writes the file's whole content to the node at `offset`. */
void luks_test_store(BlockNode *node, uint64_t offset, const char *file);

#endif
