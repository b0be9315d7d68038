/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The module for encryption, loaded once.
 */
#include "block/luks-crypto.h"

#include "block/module.h"

static ModuleLoader loader =
    MODULE_LOADER("spindle-luks.so", LUKS_MODULE_SYMBOL, LUKS_MODULE_ABI, "Encryption");

const LuksCryptoModule *luks_module_get(GError **error)
{
    return block_module_get(&loader, error);
}
