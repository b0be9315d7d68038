/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Modules: shared objects with the heavy libraries (cryptography, network), loaded at first use so that an
 * idle drive process stays small. A module gives one table under one name, whose first member is an
 * `unsigned abi`.
 */
#ifndef SPINDLE_BLOCK_MODULE_H
#define SPINDLE_BLOCK_MODULE_H

#include <glib.h>
#include <stdbool.h>

/* Loads `file` from $SPINDLE_MODULE_DIR, beside the program, the build tree that the program runs from, or
 * where it was installed, and returns its table `symbol`. The module stays for good. `what` begins the
 * refusal ("Encryption needs the module …"). May block; any thread, the caller sees to it that there is one
 * at a time for each file. */
const void *block_module_load(const char *file, const char *symbol, unsigned abi, const char *what,
                              GError **error);

/* Whether there is one to load; it may still turn out to be of another version. Any thread. */
bool block_module_present(const char *file);

#endif
