/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory for passphrases and keys: locked (mlock, best effort), left out of core dumps (MADV_DONTDUMP), wiped
 * on free. Any thread.
 */
#ifndef SPINDLE_UTIL_SECRET_H
#define SPINDLE_UTIL_SECRET_H

#include <glib.h>
#include <stdint.h>

typedef struct Secret {
    uint8_t *data;
    size_t size; /* bytes of `data` in use; a NUL follows that is not counted */
    /* private */
    size_t mapped;
} Secret;

/* `size` zeroed bytes. Never NULL. */
Secret *secret_new(size_t size);

/* A copy of `size` bytes; the caller wipes its own. */
Secret *secret_new_copy(const void *data, size_t size);

/* Wipes, unlocks, frees. NULL is allowed. */
void secret_free(Secret *secret);

/* Wipes memory in a way the compiler does not drop. */
void secret_wipe(void *data, size_t size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Secret, secret_free)

#endif
