/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Modules: shared objects with the heavy libraries (cryptography, network), loaded at first use so that an
 * idle drive process stays small. A module gives one table under one name, whose first member is an
 * `unsigned abi`.
 */
#ifndef SPINDLE_BLOCK_MODULE_H
#define SPINDLE_BLOCK_MODULE_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

/* A module that is loaded once, by whoever wants it first. */
typedef struct ModuleLoader {
    const char *file, *symbol;
    unsigned abi;
    const char *what; /* begins the refusal: "An NBD server" */
    pthread_mutex_t lock;
    const void *module; /* once loaded, for good */
} ModuleLoader;

#define MODULE_LOADER(file_, symbol_, abi_, what_)                                                           \
    {                                                                                                        \
        .file = file_, .symbol = symbol_, .abi = abi_, .what = what_, .lock = PTHREAD_MUTEX_INITIALIZER      \
    }

/* Its table, or NULL and an error, after which the next one tries again. May block; any thread. */
const void *block_module_get(ModuleLoader *loader, GError **error);

/* Loads `file` from $SPINDLE_MODULE_DIR, beside the program, the build tree that the program runs from, or
 * where it was installed, and returns its table `symbol`. The module stays for good. `what` begins the
 * refusal ("Encryption needs the module …"). May block; any thread, the caller sees to it that there is one
 * at a time for each file. */
const void *block_module_load(const char *file, const char *symbol, unsigned abi, const char *what,
                              GError **error);

/* Whether there is one to load; it may still turn out to be of another version. Any thread. */
bool block_module_present(const char *file);

#endif
