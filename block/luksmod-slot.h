/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: key slots by our own means, for those that libcryptsetup can only open (or make) by way of
 * the kernel. OpenSSL has no XTS of serpent, twofish or camellia, so libcryptsetup would set up loop devices
 * and device-mapper targets for them; that takes root, is not there in a sandbox, and is nothing a drive
 * should do.
 */
#ifndef SPINDLE_BLOCK_LUKSMOD_SLOT_H
#define SPINDLE_BLOCK_LUKSMOD_SLOT_H

#include "block/luksmod.h"

#define SLOT_SALT_MAX   64
#define SLOT_DIGEST_MAX 64

/* All that a key slot and its digest say. Strings are owned. */
typedef struct LuksSlot {
    char *cipher; /* of the key material: "serpent-xts-plain64" */
    char *kdf;    /* "pbkdf2", "argon2i", "argon2id" */
    char *kdf_hash, *af_hash, *digest_hash;
    uint8_t salt[SLOT_SALT_MAX], digest_salt[SLOT_SALT_MAX], digest[SLOT_DIGEST_MAX];
    size_t salt_bytes, digest_salt_bytes, digest_bytes;
    uint64_t iterations, memory_kib, parallel, digest_iterations;
    uint64_t area_offset, stripes;
    size_t area_key_bytes, key_bytes;
} LuksSlot;

/* Whether libcryptsetup opens material under this cipher without the kernel's help. */
bool luksmod_cipher_is_easy(const char *cipher);

/* False when the header does not describe it fully or sanely. */
bool luksmod_slot_read(LuksHeader *header, int slot, LuksSlot *ret);
void luksmod_slot_clear(LuksSlot *slot);

/* As luksmod_slot_open(), by libcryptsetup or by our own means. luksmod_lock() is held. */
int luksmod_slot_unlock(LuksHeader *header, int slot, const Secret *passphrase, Secret *key);

/* What the slot, or the digest of every key, takes more of than the limits; NULL when it may be tried. The
 * caller's. */
char *luksmod_slot_excess(LuksHeader *header, int slot, const LuksLimits *limits);

/* Recovers the volume key into `key` (of key_bytes): 0, -EPERM for a wrong passphrase, or another -errno. */
int luksmod_slot_open(LuksHeader *header, int slot, const Secret *passphrase, Secret *key);

/* Writes the key material of `key` into the slot's area of the copy. 0 or -errno. */
int luksmod_slot_store(LuksHeader *header, const LuksSlot *slot, const Secret *passphrase, const Secret *key);

/* luksmod-standin.c: the mode of AES to format with in place of another cipher, or NULL when no key size
 * fits; and what is left to do after that. luksmod_lock() is held; header->version is set. */
const char *luksmod_standin_mode(const LuksFormat *format);
bool luksmod_standin_finish(LuksHeader *header, const LuksFormat *format, const Secret *passphrase,
                            GError **error);

/* A LUKS1 header that says AES in place of its cipher, loaded anew from the same copy, for libcryptsetup to
 * add a slot to; NULL when no AES key has that size. Whatever came of it, luksmod_standin_end() is due: it
 * frees the stand-in, puts the names back and, unless `slot` is negative, stores that slot's material anew
 * under the header's cipher. `header` does not know of the slot. luksmod_lock() is held. */
LuksHeader *luksmod_standin_begin(LuksHeader *header, GError **error);
bool luksmod_standin_end(LuksHeader *header, LuksHeader *standin, int slot, const Secret *passphrase,
                         const Secret *key, GError **error);

#endif
