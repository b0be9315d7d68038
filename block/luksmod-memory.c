/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: libgcrypt's start, and the memory of its key schedules. libgcrypt's own secure heap is
 * locked but goes into core dumps, so it is given ours: one Secret for each allocation (locked,
 * MADV_DONTDUMP, wiped when freed). They are few: one or two for each thread that ciphers.
 */
#include "block/luksmod.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

static pthread_mutex_t secure_lock = PTHREAD_MUTEX_INITIALIZER; /* guards secure_table */
static GHashTable *secure_table;                                /* data pointer -> Secret */

void *luksmod_secure_alloc(size_t size)
{
    Secret *secret = secret_new(size);
    pthread_mutex_lock(&secure_lock);
    if (!secure_table) {
        secure_table = g_hash_table_new(NULL, NULL);
    }
    g_hash_table_insert(secure_table, secret->data, secret);
    pthread_mutex_unlock(&secure_lock);
    return secret->data;
}

static Secret *secure_find(const void *memory, bool remove)
{
    pthread_mutex_lock(&secure_lock);
    Secret *secret = secure_table ? g_hash_table_lookup(secure_table, memory) : NULL;
    if (secret && remove) {
        g_hash_table_remove(secure_table, memory);
    }
    pthread_mutex_unlock(&secure_lock);
    return secret;
}

int luksmod_is_secure(const void *memory)
{
    return secure_find(memory, false) != NULL;
}

void luksmod_secure_free(void *memory)
{
    Secret *secret = memory ? secure_find(memory, true) : NULL;
    if (secret) {
        secret_free(secret);
    } else {
        free(memory);
    }
}

void *luksmod_secure_realloc(void *memory, size_t size)
{
    Secret *old = memory ? secure_find(memory, false) : NULL;
    if (!old) {
        return realloc(memory, size);
    }
    void *moved = luksmod_secure_alloc(size);
    memcpy(moved, old->data, MIN(size, old->size));
    luksmod_secure_free(memory);
    return moved;
}

static GOnce gcrypt_once = G_ONCE_INIT;

static gpointer gcrypt_init_once(gpointer unused)
{
    gcry_set_allocation_handler(malloc, luksmod_secure_alloc, luksmod_is_secure, luksmod_secure_realloc,
                                luksmod_secure_free);
    if (!gcry_check_version(GCRYPT_VERSION)) {
        return "libgcrypt is older than the one this was built with";
    }
    gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    return NULL;
}

bool luksmod_gcrypt_init(GError **error)
{
    const char *complaint = g_once(&gcrypt_once, gcrypt_init_once, NULL);
    return !complaint || error_set(error, "%s", complaint);
}
