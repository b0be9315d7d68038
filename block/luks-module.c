/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The module for encryption, loaded once.
 */
#include "block/luks-crypto.h"

#include <pthread.h>

#include "block/module.h"

static struct {
    pthread_mutex_t lock;
    const LuksCryptoModule *module; /* once loaded, for good */
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

const LuksCryptoModule *luks_module_get(GError **error)
{
    pthread_mutex_lock(&loaded.lock);
    if (!loaded.module) {
        loaded.module =
            block_module_load("spindle-luks.so", LUKS_MODULE_SYMBOL, LUKS_MODULE_ABI, "Encryption", error);
    }
    const LuksCryptoModule *module = loaded.module;
    pthread_mutex_unlock(&loaded.lock);
    return module;
}
