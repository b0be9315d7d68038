/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: making headers and changing key slots, on the private copy.
 */
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

#define PBKDF2_LEAST_ITERATIONS 1000 /* libcryptsetup's least */
#define ARGON2_LEAST_ITERATIONS 4

static const char *text_of(const Secret *secret)
{
    return (const char *)secret->data;
}

/* `quick`: only the layout matters, nobody will unlock it. */
static bool format_set_pbkdf(LuksHeader *header, const LuksFormat *format, bool quick, GError **error)
{
    bool argon2 = strcmp(format->pbkdf, CRYPT_KDF_PBKDF2) != 0;
    struct crypt_pbkdf_type pbkdf = {
        .type = quick ? CRYPT_KDF_PBKDF2 : format->pbkdf,
        .hash = format->hash,
        .time_ms = format->iter_time,
        .max_memory_kb = argon2 && !quick ? format->memory / 1024 : 0,
        .parallel_threads = argon2 && !quick ? format->parallel : 0,
    };
    if (argon2 && !quick) {
        const struct crypt_pbkdf_type *fallback = crypt_get_pbkdf_default(CRYPT_LUKS2);
        pbkdf.max_memory_kb = pbkdf.max_memory_kb ? pbkdf.max_memory_kb : fallback->max_memory_kb;
        pbkdf.parallel_threads = pbkdf.parallel_threads ? pbkdf.parallel_threads : fallback->parallel_threads;
    }
    if (quick || format->iterations) {
        pbkdf.time_ms = 0;
        pbkdf.iterations = quick ? PBKDF2_LEAST_ITERATIONS : format->iterations;
        pbkdf.flags = CRYPT_PBKDF_NO_BENCHMARK;
    }
    int r = crypt_set_pbkdf_type(header->cd, &pbkdf);
    return r >= 0 || luksmod_fail(header, r, error, "Parameters of the key derivation are not valid");
}

static int format_write(LuksHeader *header, const LuksFormat *format, bool detached)
{
    struct crypt_params_luks1 luks1 = {.hash = format->hash, .data_device = NULL};
    struct crypt_params_luks2 luks2 = {.sector_size = format->sector_size, .label = format->label};
    if (detached) {
        /* The payload is on a device of its own from its first byte; libcryptsetup takes an alignment of a
         * device other than the header's as a data offset, so say 0 outright. */
        int r = crypt_set_data_offset(header->cd, 0);
        if (r < 0) {
            return r;
        }
        luks1.data_device = luks2.data_device = "/dev/null";
    }
    bool easy = !strcmp(format->cipher, "aes");
    const char *mode = easy ? format->mode : luksmod_standin_mode(format);
    if (!mode) {
        return -EINVAL;
    }
    return crypt_format(header->cd, format->version == 1 ? CRYPT_LUKS1 : CRYPT_LUKS2, "aes", mode,
                        format->uuid, NULL, format->key_size,
                        format->version == 1 ? (void *)&luks1 : (void *)&luks2);
}

static bool format_header(LuksHeader *header, const LuksFormat *format, bool detached,
                          const Secret *passphrase, GError **error)
{
    if (!format_set_pbkdf(header, format, !passphrase, error)) {
        return false;
    }
    int r = format_write(header, format, detached);
    if (r < 0) {
        return luksmod_fail(header, r, error, "Could not make a LUKS%u header", format->version);
    }
    if (passphrase) {
        r = crypt_keyslot_add_by_volume_key(header->cd, 0, NULL, 0, text_of(passphrase), passphrase->size);
    }
    if (r < 0) {
        return luksmod_fail(header, r, error, "Could not add the key slot");
    }
    return !strcmp(format->cipher, "aes") || luksmod_standin_finish(header, format, passphrase, error);
}

bool luksmod_header_format(int fd, const LuksFormat *format, bool detached, const Secret *passphrase,
                           LuksLayout *ret_layout, GError **error)
{
    LuksHeader *header = luksmod_header_new(fd, error);
    if (!header) {
        return false;
    }
    header->version = format->version;
    luksmod_lock();
    bool ok = format_header(header, format, detached, passphrase, error);
    luksmod_unlock();
    if (ok) {
        ret_layout->payload = luksmod_header_payload_offset(header);
        luksmod_header_extent(header, &ret_layout->fixed, &ret_layout->total);
    }
    luksmod_header_free(header);
    return ok;
}

/* The key derivation of a new slot is that of the header's version, with the time that was asked for. */
static bool amend_set_pbkdf(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    struct crypt_pbkdf_type pbkdf = *crypt_get_pbkdf_default(crypt_get_type(header->cd));
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

static bool amend_add(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    if (amend->slot >= 0 && slot_in_use(header, amend->slot)) {
        if (!amend->force) {
            return error_set(error, "Refusing to overwrite active keyslot %i - please erase it first",
                             amend->slot);
        }
        int r = crypt_keyslot_destroy(header->cd, amend->slot);
        if (r < 0) {
            return luksmod_fail(header, r, error, "Could not erase key slot %d", amend->slot);
        }
    }
    int r = crypt_keyslot_add_by_passphrase(header->cd, amend->slot < 0 ? CRYPT_ANY_SLOT : amend->slot,
                                            text_of(amend->unlock), amend->unlock->size,
                                            text_of(amend->new_secret), amend->new_secret->size);
    if (r == -EPERM || r == -ENOENT) {
        return error_set(error, "Invalid password, cannot unlock any keyslot");
    }
    return r >= 0 || luksmod_fail(header, r, error, "Could not add a key slot");
}

static bool amend_change(LuksHeader *header, const LuksAmend *amend, GError **error)
{
    int slot = amend->slot < 0 ? CRYPT_ANY_SLOT : amend->slot;
    int r = crypt_keyslot_change_by_passphrase(header->cd, slot, slot, text_of(amend->unlock),
                                               amend->unlock->size, text_of(amend->new_secret),
                                               amend->new_secret->size);
    if (r == -EPERM || r == -ENOENT) {
        return error_set(error, "Invalid password, cannot unlock any keyslot");
    }
    return r >= 0 || luksmod_fail(header, r, error, "Could not change the key slot");
}

/* Does the passphrase open this very slot? The key itself is not wanted. */
static bool slot_opens(LuksHeader *header, int slot, const Secret *passphrase)
{
    int size = crypt_get_volume_key_size(header->cd);
    if (size <= 0) {
        return false;
    }
    g_autoptr(Secret) key = secret_new(size);
    return luksmod_slot_unlock(header, slot, passphrase, key) == 0;
}

static bool erase_slot(LuksHeader *header, int slot, GError **error)
{
    int r = crypt_keyslot_destroy(header->cd, slot);
    return r >= 0 || luksmod_fail(header, r, error, "Could not erase key slot %d", slot);
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

bool luksmod_header_amend(LuksHeader *header, const LuksAmend *amend, GError **error)
{
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
        ok = amend_set_pbkdf(header, amend, error) &&
             (amend->action == LUKS_AMEND_ADD ? amend_add(header, amend, error)
                                              : amend_change(header, amend, error));
    }
    luksmod_unlock();
    return ok;
}
