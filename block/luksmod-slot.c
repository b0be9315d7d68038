/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Key derivation, the anti-forensic splitter and the digest (LUKS1 specification 1.2.3, sections 2.4 and 4;
 * LUKS2 specification 1.1, section 3.2).
 */
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/bytes.h"
#include "util/error.h"

#define AREA_MAX    (16 * 1024 * 1024) /* most bytes of key material that are believed */
#define KEY_MAX     512
#define STRIPES_MAX 65536

bool luksmod_cipher_is_easy(const char *cipher)
{
    return !strcmp(cipher, "aes-xts-plain64") || !strcmp(cipher, "aes-xts-plain") ||
           !strcmp(cipher, "aes-cbc-plain64") || !strcmp(cipher, "aes-cbc-plain") ||
           !strcmp(cipher, "aes-cbc-essiv:sha256");
}

void luksmod_slot_clear(LuksSlot *slot)
{
    g_free(slot->cipher);
    g_free(slot->kdf);
    g_free(slot->kdf_hash);
    g_free(slot->af_hash);
    g_free(slot->digest_hash);
    secret_wipe(slot, sizeof *slot);
}

static int derive_pbkdf2(const char *hash, const Secret *passphrase, const uint8_t *salt, size_t salt_bytes,
                         uint64_t iterations, uint8_t *out, size_t bytes)
{
    int md = gcry_md_map_name(hash);
    if (!md || !iterations) {
        return -EINVAL;
    }
    gcry_error_t e = gcry_kdf_derive(passphrase->data, passphrase->size, GCRY_KDF_PBKDF2, md, salt,
                                     salt_bytes, iterations, bytes, out);
    return e ? -EINVAL : 0;
}

static int derive_argon2(const LuksSlot *slot, const Secret *passphrase, uint8_t *out, size_t bytes)
{
    int kind = strcmp(slot->kdf, CRYPT_KDF_ARGON2I) ? GCRY_KDF_ARGON2ID : GCRY_KDF_ARGON2I;
    const unsigned long params[] = {bytes, slot->iterations, slot->memory_kib, slot->parallel};
    gcry_kdf_hd_t handle;
    gcry_error_t e =
        gcry_kdf_open(&handle, GCRY_KDF_ARGON2, kind, params, G_N_ELEMENTS(params), passphrase->data,
                      passphrase->size, slot->salt, slot->salt_bytes, NULL, 0, NULL, 0);
    if (e) {
        return gcry_err_code_to_errno(gcry_err_code(e)) == ENOMEM ? -ENOMEM : -EINVAL;
    }
    e = gcry_kdf_compute(handle, NULL);
    e = e ? e : gcry_kdf_final(handle, bytes, out);
    gcry_kdf_close(handle);
    return e ? -EINVAL : 0;
}

static int slot_derive(const LuksSlot *slot, const Secret *passphrase, Secret *out)
{
    if (strcmp(slot->kdf, CRYPT_KDF_PBKDF2)) {
        return derive_argon2(slot, passphrase, out->data, out->size);
    }
    return derive_pbkdf2(slot->kdf_hash, passphrase, slot->salt, slot->salt_bytes, slot->iterations,
                         out->data, out->size);
}

/* H1 of the specification: each hash-sized part of the block becomes the hash of its number and itself. */
static void af_diffuse(int md, uint8_t *block, size_t bytes)
{
    size_t step = gcry_md_get_algo_dlen(md);
    uint8_t number[4], out[64];
    for (size_t at = 0, i = 0; at < bytes; at += step, i++) {
        size_t n = MIN(step, bytes - at);
        store_be32(number, i);
        gcry_buffer_t parts[2] = {{.data = number, .len = sizeof number}, {.data = block + at, .len = n}};
        gcry_md_hash_buffers(md, 0, out, parts, 2);
        memcpy(block + at, out, n);
    }
    secret_wipe(out, sizeof out);
}

static void xor_into(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] ^= from[i];
    }
}

/* The first stripes - 1 blocks, folded: what the last one is XORed with. */
static void af_fold(int md, const uint8_t *material, size_t key_bytes, size_t stripes, uint8_t *out)
{
    memset(out, 0, key_bytes);
    for (size_t i = 0; i + 1 < stripes; i++) {
        xor_into(out, material + i * key_bytes, key_bytes);
        af_diffuse(md, out, key_bytes);
    }
}

static int af_merge(const LuksSlot *slot, const Secret *material, Secret *key)
{
    int md = gcry_md_map_name(slot->af_hash);
    if (!md || gcry_md_get_algo_dlen(md) > 64) {
        return -EINVAL;
    }
    af_fold(md, material->data, slot->key_bytes, slot->stripes, key->data);
    xor_into(key->data, material->data + (slot->stripes - 1) * slot->key_bytes, slot->key_bytes);
    return 0;
}

static int af_split(const LuksSlot *slot, const Secret *key, Secret *material)
{
    int md = gcry_md_map_name(slot->af_hash);
    if (!md || gcry_md_get_algo_dlen(md) > 64) {
        return -EINVAL;
    }
    size_t last = (slot->stripes - 1) * slot->key_bytes;
    gcry_randomize(material->data, last, GCRY_STRONG_RANDOM);
    af_fold(md, material->data, slot->key_bytes, slot->stripes, material->data + last);
    xor_into(material->data + last, key->data, slot->key_bytes);
    return 0;
}

/* The key material is whole sectors of 512 bytes, numbered from the start of the area. */
static size_t area_bytes(const LuksSlot *slot)
{
    return (slot->key_bytes * slot->stripes + LUKS_SECTOR - 1) / LUKS_SECTOR * LUKS_SECTOR;
}

static int area_cipher(const LuksSlot *slot, const Secret *area_key, bool encrypt, Secret *material)
{
    GError *error = NULL;
    LuksCipher *cipher = luksmod_cipher_new(slot->cipher, area_key, LUKS_SECTOR, &error);
    if (!cipher) {
        g_clear_error(&error); /* which cipher it is, the volume's own will say */
        return -ENOTSUP;
    }
    int r = luksmod_cipher_run(cipher, encrypt, 0, material->data, material->data, material->size);
    luksmod_cipher_free(cipher);
    return r;
}

static int digest_check(const LuksSlot *slot, const Secret *key)
{
    uint8_t digest[SLOT_DIGEST_MAX];
    int r = derive_pbkdf2(slot->digest_hash, key, slot->digest_salt, slot->digest_salt_bytes,
                          slot->digest_iterations, digest, slot->digest_bytes);
    if (r < 0) {
        return r;
    }
    return memcmp(digest, slot->digest, slot->digest_bytes) ? -EPERM : 0;
}

static bool slot_is_sane(const LuksSlot *slot)
{
    return slot->cipher && slot->kdf && slot->af_hash && slot->digest_hash && slot->digest_bytes &&
           slot->key_bytes && slot->key_bytes <= KEY_MAX && slot->area_key_bytes &&
           slot->area_key_bytes <= KEY_MAX && slot->stripes && slot->stripes <= STRIPES_MAX &&
           slot->key_bytes * slot->stripes <= AREA_MAX;
}

int luksmod_slot_open(LuksHeader *header, int index, const Secret *passphrase, Secret *key)
{
    LuksSlot slot;
    if (!luksmod_gcrypt_init(NULL)) {
        return -ENOTSUP;
    }
    if (!luksmod_slot_read(header, index, &slot) || !slot_is_sane(&slot) || slot.key_bytes != key->size) {
        luksmod_slot_clear(&slot);
        return -EINVAL;
    }
    g_autoptr(Secret) area_key = secret_new(slot.area_key_bytes);
    g_autoptr(Secret) material = secret_new(area_bytes(&slot));
    int r = 0;
    if (pread(header->fd, material->data, material->size, slot.area_offset) != (ssize_t)material->size) {
        r = -EIO;
    }
    r = r ? r : slot_derive(&slot, passphrase, area_key);
    r = r ? r : area_cipher(&slot, area_key, false, material);
    r = r ? r : af_merge(&slot, material, key);
    r = r ? r : digest_check(&slot, key);
    luksmod_slot_clear(&slot);
    return r;
}

int luksmod_slot_store(LuksHeader *header, const LuksSlot *slot, const Secret *passphrase, const Secret *key)
{
    if (!slot_is_sane(slot) || slot->key_bytes != key->size) {
        return -EINVAL;
    }
    g_autoptr(Secret) area_key = secret_new(slot->area_key_bytes);
    g_autoptr(Secret) material = secret_new(area_bytes(slot));
    int r = slot_derive(slot, passphrase, area_key);
    r = r ? r : af_split(slot, key, material);
    r = r ? r : area_cipher(slot, area_key, true, material);
    if (!r &&
        pwrite(header->fd, material->data, material->size, slot->area_offset) != (ssize_t)material->size) {
        r = -errno;
    }
    return r;
}
