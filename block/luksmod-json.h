/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: looking into LUKS2's JSON (luksmod-luks2.c). What is returned belongs to the root node.
 */
#ifndef SPINDLE_BLOCK_LUKSMOD_JSON_H
#define SPINDLE_BLOCK_LUKSMOD_JSON_H

#include "block/luksmod.h"

/* The parsed JSON area, the caller's, or NULL and an error. */
JsonNode *luks2_root(LuksHeader *header, GError **error);

/* The member of that type, or NULL; `object` may be NULL. */
JsonObject *luks2_object(JsonObject *object, const char *key);
const char *luks2_string(JsonObject *object, const char *key);

/* A number, or a number written as text; false when it is neither or negative. */
bool luks2_uint(JsonObject *object, const char *key, uint64_t *ret);

/* Fills all but the key and the slot. */
bool luks2_volume(LuksHeader *header, LuksVolume *volume, GError **error);

/* The largest PBKDF2 iteration count of the key digests. */
uint64_t luks2_digest_iterations(LuksHeader *header);

#endif
