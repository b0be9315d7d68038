/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: changing key slots, on the private copy.
 */
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

static const LuksLimits limits = {LUKS_KDF_MEMORY_MAX, LUKS_KDF_ITERATIONS_MAX};

static const char *text_of(const Secret *secret)
{
    return (const char *)secret->data;
}

/* The key derivation of a new slot is that of the header's version, with the time that was asked for. */
static bool set_pbkdf(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    bool plain = amend->pbkdf && !strcmp(amend->pbkdf, CRYPT_KDF_PBKDF2);
    if (header->version == 1 && amend->pbkdf && !plain) {
        return error_set(error, "LUKS1 has pbkdf2 only");
    }
    struct crypt_pbkdf_type pbkdf =
        *crypt_get_pbkdf_default(plain ? CRYPT_LUKS1 : crypt_get_type(header->cd));
    pbkdf.type = amend->pbkdf ? amend->pbkdf : pbkdf.type;
    if (amend->iter_time) {
        pbkdf.time_ms = amend->iter_time;
    }
    if (amend->iterations) {
        pbkdf.time_ms = 0;
        pbkdf.iterations = amend->iterations;
        pbkdf.flags = CRYPT_PBKDF_NO_BENCHMARK;
    }
    int r = crypt_set_pbkdf_type(header->cd, &pbkdf);
    return r >= 0 || luksmod_fail(header, r, error, "Parameters of the key derivation are not valid");
}

static bool slot_in_use(LuksHeader *header, int slot)
{
    crypt_keyslot_info status = crypt_keyslot_status(header->cd, slot);
    return status == CRYPT_SLOT_ACTIVE || status == CRYPT_SLOT_ACTIVE_LAST || status == CRYPT_SLOT_UNBOUND;
}

static int slots_in_use(LuksHeader *header)
{
    int used = 0;
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        used += slot_in_use(header, slot);
    }
    return used;
}

/* The volume key by any slot (or `slot`), and the slot. */
static Secret *amend_unlock(LuksHeader *header, const LuksAmend *amend, int *ret_slot, GError **error)
{
    int size = crypt_get_volume_key_size(header->cd), failure = 0;
    g_autoptr(Secret) key = secret_new(MAX(size, 0));
    g_autofree char *excess = NULL;
    bool only = amend->action == LUKS_AMEND_CHANGE && amend->slot >= 0;
    for (int slot = only ? amend->slot : 0; slot < luksmod_header_slots(header); slot++) {
        char *over = slot_in_use(header, slot) ? luksmod_slot_excess(header, slot, &limits) : NULL;
        if (over) {
            g_free(excess);
            excess = over;
        } else if (slot_in_use(header, slot)) {
            int r = luksmod_slot_unlock(header, slot, amend->unlock, key);
            if (!r) {
                *ret_slot = slot;
                return g_steal_pointer(&key);
            }
            failure = r == -EPERM || r == -ENOENT ? failure : r;
        }
        if (only) {
            break;
        }
    }
    if (excess) {
        error_set(error, "%s", excess);
    } else if (failure) {
        luksmod_fail(header, failure, error, "Could not unlock the volume");
    } else {
        error_set(error, "Invalid password, cannot unlock any keyslot");
    }
    return NULL;
}

static bool erase_slot(LuksHeader *header, int slot, GError **error)
{
    int r = crypt_keyslot_destroy(header->cd, slot);
    return r >= 0 || luksmod_fail(header, r, error, "Could not erase key slot %d", slot);
}

static int slot_put(LuksHeader *header, int slot, const Secret *key, const Secret *passphrase)
{
    return crypt_keyslot_add_by_volume_key(header->cd, slot < 0 ? CRYPT_ANY_SLOT : slot,
                                           (const char *)key->data, key->size, text_of(passphrase),
                                           passphrase->size);
}

/* LUKS1's slots are under the data's cipher: libcryptsetup adds one to a header that says AES. */
static bool add_slot_luks1(LuksHeader *header, const LuksAmend *amend, int slot, const Secret *key,
                           GError **error)
{
    LuksHeader *standin = luksmod_standin_begin(header, error);
    int r = -EINVAL;
    bool ok = standin && set_pbkdf(standin, amend, error);
    if (ok) {
        r = slot_put(standin, slot, key, amend->new_secret);
        ok = r >= 0 || luksmod_fail(standin, r, error, "Could not add a key slot");
    }
    return luksmod_standin_end(header, standin, r, amend->new_secret, key, ok ? error : NULL) && ok;
}

/* LUKS2's slots need not be under the data's cipher. */
static bool slot_set_cipher(LuksHeader *header, bool easy, GError **error)
{
    if (easy) {
        return true;
    }
    int r = crypt_keyslot_set_encryption(header->cd, "aes-xts-plain64", 64);
    return r >= 0 || luksmod_fail(header, r, error, "Could not add a key slot");
}

static bool add_slot(LuksHeader *header, const LuksAmend *amend, int slot, const Secret *key, GError **error)
{
    g_autofree char *cipher =
        g_strdup_printf("%s-%s", crypt_get_cipher(header->cd), crypt_get_cipher_mode(header->cd));
    bool easy = luksmod_cipher_is_easy(cipher);
    if (header->version == 1 && !easy) {
        return add_slot_luks1(header, amend, slot, key, error);
    }
    if (!slot_set_cipher(header, easy, error)) {
        return false;
    }
    int r = slot_put(header, slot, key, amend->new_secret);
    return r >= 0 || luksmod_fail(header, r, error, "Could not add a key slot");
}

static bool amend_add(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    bool taken = amend->slot >= 0 && slot_in_use(header, amend->slot);
    if (taken && !amend->force) {
        return error_set(error, "Refusing to overwrite active keyslot %i - please erase it first",
                         amend->slot);
    }
    int from;
    g_autoptr(Secret) key = amend_unlock(header, amend, &from, error);
    if (!key || (taken && !erase_slot(header, amend->slot, error))) {
        return false;
    }
    return add_slot(header, amend, amend->slot, key, error);
}

static int free_slot(LuksHeader *header)
{
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        if (crypt_keyslot_status(header->cd, slot) == CRYPT_SLOT_INACTIVE) {
            return slot;
        }
    }
    return -1;
}

/* Into a free slot, so that the old passphrase opens the volume until the caller has written that and erases
 * the old slot (luks_amend()); with no free slot, in place. */
static bool amend_change(LuksHeader *header, const LuksAmend *amend, int *ret_old, GError **error)
{
    int from, to = free_slot(header);
    g_autoptr(Secret) key = amend_unlock(header, amend, &from, error);
    if (!key || (to < 0 && !erase_slot(header, from, error))) {
        return false;
    }
    *ret_old = to < 0 ? -1 : from;
    return add_slot(header, amend, to < 0 ? from : to, key, error);
}

/* Does the passphrase open this very slot? The key itself is not wanted. */
static bool slot_opens(LuksHeader *header, int slot, const Secret *passphrase)
{
    int size = crypt_get_volume_key_size(header->cd);
    g_autofree char *excess = luksmod_slot_excess(header, slot, &limits);
    if (size <= 0 || excess) {
        return false;
    }
    g_autoptr(Secret) key = secret_new(size);
    return luksmod_slot_unlock(header, slot, passphrase, key) == 0;
}

static bool erase_by_secret(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(int));
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        if (slot_in_use(header, slot) && slot_opens(header, slot, amend->old_secret)) {
            g_array_append_val(found, slot);
        }
    }
    if (!found->len) {
        return error_set(error, "No keyslots match given (old) password for erase operation");
    }
    if ((int)found->len == slots_in_use(header) && !amend->force) {
        return error_set(error,
                         "All the active keyslots match the (old) password that was given and erasing them "
                         "will erase all the data in the image irreversibly - refusing operation");
    }
    for (guint i = 0; i < found->len; i++) {
        if (!erase_slot(header, g_array_index(found, int, i), error)) {
            return false;
        }
    }
    return true;
}

static bool amend_erase(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    if (amend->slot < 0) {
        return amend->old_secret
                   ? erase_by_secret(header, amend, error)
                   : error_set(error, "To erase keyslot(s), either explicit keyslot index or the "
                                      "password currently contained in them must be given");
    }
    if (!slot_in_use(header, amend->slot)) {
        return error_set(error, "Given keyslot %i is already erased (inactive)", amend->slot);
    }
    if (amend->old_secret && !slot_opens(header, amend->slot, amend->old_secret)) {
        return error_set(error, "Given keyslot %i doesn't contain the expected password", amend->slot);
    }
    if (slots_in_use(header) == 1 && !amend->force) {
        return error_set(
            error,
            "Attempt to erase the only active keyslot %i which will erase all the data in the image "
            "irreversibly - refusing operation",
            amend->slot);
    }
    return erase_slot(header, amend->slot, error);
}

bool luksmod_header_amend(LuksHeader *header, const LuksAmend *amend, int *ret_old, GError **error)
{
    *ret_old = -1;
    int slots = luksmod_header_slots(header);
    if (amend->slot >= slots) {
        return error_set(error, "Invalid slot %i specified, must be between 0 and %i", amend->slot,
                         slots - 1);
    }
    luksmod_lock();
    bool ok;
    if (amend->action == LUKS_AMEND_ERASE) {
        ok = amend_erase(header, amend, error);
    } else {
        ok = set_pbkdf(header, amend, error) &&
             (amend->action == LUKS_AMEND_ADD ? amend_add(header, amend, error)
                                              : amend_change(header, amend, ret_old, error));
    }
    luksmod_unlock();
    return ok;
}
