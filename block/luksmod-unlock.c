/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: from a passphrase to the volume key. The header is not trusted: a slot whose key derivation
 * would take more memory or work than the limits is not tried.
 */
#include "block/luksmod.h"
#include "block/luksmod-json.h"
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/bytes.h"
#include "util/checked.h"
#include "util/error.h"

static uint64_t luks1_digest_iterations(const LuksHeader *header)
{
    uint8_t raw[4] = {0};
    return pread(header->fd, raw, sizeof raw, LUKS1_DIGEST_ITERATIONS) == sizeof raw ? load_be32(raw) : 0;
}

static char *digest_excess(LuksHeader *header, const LuksLimits *limits)
{
    uint64_t n = header->version == 1 ? luks1_digest_iterations(header) : luks2_digest_iterations(header);
    return n <= limits->kdf_iterations
               ? NULL
               : g_strdup_printf(
                     "Key digest takes %" G_GUINT64_FORMAT " iterations, more than kdf-iterations-max", n);
}

char *luksmod_slot_excess(LuksHeader *header, int slot, const LuksLimits *limits)
{
    char *digest = digest_excess(header, limits);
    if (digest) {
        return digest;
    }
    struct crypt_pbkdf_type pbkdf = {0};
    if (crypt_keyslot_get_pbkdf(header->cd, slot, &pbkdf) < 0) {
        return g_strdup_printf("Key slot %d has no key derivation that is supported", slot);
    }
    bool argon2 = pbkdf.type && strcmp(pbkdf.type, CRYPT_KDF_PBKDF2);
    if (argon2 && pbkdf.max_memory_kb > limits->kdf_memory / 1024) {
        return g_strdup_printf("Key slot %d takes %u MiB of memory, more than kdf-memory-max", slot,
                               pbkdf.max_memory_kb / 1024);
    }
    uint64_t work = (uint64_t)pbkdf.iterations * (argon2 ? pbkdf.max_memory_kb : 1);
    if (work > limits->kdf_iterations) {
        return g_strdup_printf(
            "Key slot %d takes %" G_GUINT64_FORMAT " iterations, more than kdf-iterations-max", slot, work);
    }
    return NULL;
}

static bool slot_is_key(LuksHeader *header, int slot)
{
    crypt_keyslot_info status = crypt_keyslot_status(header->cd, slot);
    return status == CRYPT_SLOT_ACTIVE || status == CRYPT_SLOT_ACTIVE_LAST;
}

int luksmod_slot_unlock(LuksHeader *header, int slot, const Secret *passphrase, Secret *key)
{
    size_t key_bytes;
    g_autofree char *own = NULL;
    const char *cipher = crypt_keyslot_get_encryption(header->cd, slot, &key_bytes);
    if (!cipher || header->version == 1) {
        own = g_strdup_printf("%s-%s", crypt_get_cipher(header->cd), crypt_get_cipher_mode(header->cd));
        cipher = own;
    }
    if (!luksmod_cipher_is_easy(cipher)) {
        return luksmod_slot_open(header, slot, passphrase, key);
    }
    size_t size = key->size;
    int r = crypt_volume_key_get(header->cd, slot, (char *)key->data, &size, (const char *)passphrase->data,
                                 passphrase->size);
    return r < 0 ? r : 0;
}

/* Slots marked "prefer" first, those marked "ignore" never (LUKS2 specification, section 3.2). */
static bool unlock_key(LuksHeader *header, const Secret *passphrase, const LuksLimits *limits,
                       LuksVolume *volume, GError **error)
{
    g_autofree char *excess = NULL;
    int failure = 0;
    for (int priority = CRYPT_SLOT_PRIORITY_PREFER; priority >= CRYPT_SLOT_PRIORITY_NORMAL; priority--) {
        for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
            if (!slot_is_key(header, slot) || (int)crypt_keyslot_get_priority(header->cd, slot) != priority) {
                continue;
            }
            char *over = luksmod_slot_excess(header, slot, limits);
            if (over) {
                g_free(excess);
                excess = over;
                continue;
            }
            int r = luksmod_slot_unlock(header, slot, passphrase, volume->key);
            if (!r) {
                volume->slot = slot;
                return true;
            }
            failure = r == -EPERM || r == -ENOENT ? failure : r;
        }
    }
    if (excess) {
        return error_set(error, "%s", excess);
    }
    if (failure) {
        return luksmod_fail(header, failure, error, "Could not unlock the volume");
    }
    return error_set(error, "Invalid password, cannot unlock any keyslot");
}

static bool volume_check(const LuksVolume *volume, GError **error)
{
    if (!is_power_of_2(volume->sector_size) || volume->sector_size < LUKS_SECTOR ||
        volume->sector_size > LUKS_SECTOR_MAX) {
        return error_set(error, "Encryption sectors of %u bytes are not supported", volume->sector_size);
    }
    if (volume->payload_offset % LUKS_SECTOR || volume->payload_offset > G_MAXINT64 ||
        volume->payload_bytes > G_MAXINT64) {
        return error_set(error, "Volume header is damaged: the payload's place is not valid");
    }
    return true;
}

/* Said before any work is done for a volume that cannot be read. */
static bool cipher_check(const LuksVolume *volume, GError **error)
{
    LuksCipher *cipher = luksmod_cipher_new(volume->cipher, volume->key, volume->sector_size, error);
    luksmod_cipher_free(cipher);
    return cipher != NULL;
}

bool luksmod_header_unlock(LuksHeader *header, const Secret *passphrase, const LuksLimits *limits,
                           LuksVolume *ret, GError **error)
{
    LuksVolume volume = {.version = header->version, .slot = -1};
    int key_size = crypt_get_volume_key_size(header->cd);
    if (key_size <= 0 || key_size > 512) { /* LUKS2 knows it from its key slots: there is none */
        return error_set(error, "Invalid password, cannot unlock any keyslot");
    }
    if (header->version == 2 && !luks2_volume(header, &volume, error)) {
        return false;
    }
    if (header->version == 1) {
        volume.cipher =
            g_strdup_printf("%s-%s", crypt_get_cipher(header->cd), crypt_get_cipher_mode(header->cd));
        volume.sector_size = LUKS_SECTOR;
        volume.payload_offset = luksmod_header_payload_offset(header);
    }
    volume.key = secret_new(key_size);
    bool ok = volume_check(&volume, error) && cipher_check(&volume, error);
    if (ok) {
        luksmod_lock();
        ok = unlock_key(header, passphrase, limits, &volume, error);
        luksmod_unlock();
    }
    if (!ok) {
        g_free(volume.cipher);
        secret_free(volume.key);
        return false;
    }
    *ret = volume;
    return true;
}
