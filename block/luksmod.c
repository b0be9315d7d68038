/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The module's table, and the small cipher job that `secret` objects need.
 */
#include "block/luksmod.h"

#include "util/error.h"

#define AES_BLOCK 16

/* PKCS#7 (RFC 5652, section 6.3): the last byte says how many bytes are padding. */
static Secret *unpad(const Secret *padded, GError **error)
{
    uint8_t pad = padded->data[padded->size - 1];
    if (pad > AES_BLOCK || pad > padded->size) {
        error_set(error, "Incorrect number of padding bytes (%d) found on decrypted data", pad);
        return NULL;
    }
    return secret_new_copy(padded->data, padded->size - pad);
}

static Secret *module_unwrap(const Secret *key, const uint8_t *iv, const uint8_t *data, size_t bytes,
                             GError **error)
{
    if (!luksmod_gcrypt_init(error)) {
        return NULL;
    }
    if (!bytes || bytes % AES_BLOCK) {
        error_set(error, "Length %zu must be a multiple of block size %d", bytes, AES_BLOCK);
        return NULL;
    }
    gcry_cipher_hd_t handle;
    gcry_error_t e = gcry_cipher_open(&handle, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_CBC, GCRY_CIPHER_SECURE);
    if (e) {
        error_set(error, "Cannot initialize cipher 'aes-256-cbc': %s", gcry_strerror(e));
        return NULL;
    }
    g_autoptr(Secret) padded = secret_new(bytes);
    e = gcry_cipher_setkey(handle, key->data, key->size);
    e = e ? e : gcry_cipher_setiv(handle, iv, AES_BLOCK);
    e = e ? e : gcry_cipher_decrypt(handle, padded->data, bytes, data, bytes);
    gcry_cipher_close(handle);
    if (e) {
        error_set(error, "Cannot decrypt the secret: %s", gcry_strerror(e));
        return NULL;
    }
    return unpad(padded, error);
}

extern const LuksCryptoModule spindle_luks_module;
const LuksCryptoModule spindle_luks_module = {
    .abi = LUKS_MODULE_ABI,
    .header_load = luksmod_header_load,
    .header_free = luksmod_header_free,
    .header_slot_area = luksmod_header_slot_area,
    .header_slots = luksmod_header_slots,
    .header_unlock = luksmod_header_unlock,
    .header_payload_offset = luksmod_header_payload_offset,
    .header_extent = luksmod_header_extent,
    .header_info = luksmod_header_info,
    .header_amend = luksmod_header_amend,
    .header_format = luksmod_header_format,
    .cipher_new = luksmod_cipher_new,
    .cipher_free = luksmod_cipher_free,
    .cipher_run = luksmod_cipher_run,
    .unwrap = module_unwrap,
};
