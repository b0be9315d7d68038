/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: making images under ciphers that libcryptsetup would need the kernel for (luksmod-slot.h
 * says why not that way). It formats with AES of the same key size in their place; then the name is changed
 * to the wanted cipher: in LUKS1's fields, with the key material stored anew, or in LUKS2's JSON, whose key
 * slots may stay under AES.
 */
#include "block/luksmod-json.h"
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/bytes.h"
#include "util/error.h"

/* The binary header of LUKS2 (specification 1.1, section 2.1), bytes. */
#define LUKS2_BINARY    4096
#define LUKS2_SIZE      8
#define LUKS2_CSUM_ALG  72
#define LUKS2_NAME      32
#define LUKS2_CSUM      448
#define LUKS2_CSUM_ROOM 64
#define LUKS2_SIZE_MAX  (4 * 1024 * 1024)

static const char *mode_of_size(size_t key_bytes)
{
    switch (key_bytes) {
    case 64:
        return "xts-plain64";
    case 16:
    case 24:
    case 32:
        return "cbc-essiv:sha256";
    }
    return NULL;
}

const char *luksmod_standin_mode(const LuksFormat *format)
{
    return mode_of_size(format->key_size);
}

static bool store_name(int fd, off_t at, const char *name)
{
    char field[LUKS1_NAME_BYTES] = {0};
    return g_strlcpy(field, name, sizeof field) < sizeof field &&
           pwrite(fd, field, sizeof field, at) == sizeof field;
}

static bool store_names(LuksHeader *header, const char *cipher, const char *mode)
{
    return store_name(header->fd, LUKS1_CIPHER, cipher) && store_name(header->fd, LUKS1_MODE, mode);
}

/* Under the cipher that the header now names. */
static int restore_slot(LuksHeader *header, int index, const Secret *passphrase, const Secret *key)
{
    LuksSlot slot;
    int r = luksmod_slot_read(header, index, &slot) ? luksmod_slot_store(header, &slot, passphrase, key)
                                                    : -EINVAL;
    luksmod_slot_clear(&slot);
    return r;
}

static bool standin_luks1(LuksHeader *header, const LuksFormat *format, const Secret *passphrase,
                          GError **error)
{
    g_autoptr(Secret) key = secret_new(format->key_size);
    int r = luksmod_slot_open(header, 0, passphrase, key);
    r = r || store_names(header, format->cipher, format->mode) ? r : -EINVAL;
    r = r ? r : restore_slot(header, 0, passphrase, key);
    return r >= 0 || error_set_errno(error, r, "Could not add a key slot under cipher '%s-%s'",
                                     format->cipher, format->mode);
}

LuksHeader *luksmod_standin_begin(LuksHeader *header, GError **error)
{
    const char *mode = mode_of_size(crypt_get_volume_key_size(header->cd));
    if (!mode || !store_names(header, "aes", mode)) {
        error_set(
            error,
            "Adding key slots to LUKS1 volumes under cipher '%s-%s' with a key of %d bits is not supported",
            crypt_get_cipher(header->cd), crypt_get_cipher_mode(header->cd),
            crypt_get_volume_key_size(header->cd) * 8);
        return NULL;
    }
    return luksmod_header_load(header->fd, error);
}

bool luksmod_standin_end(LuksHeader *header, LuksHeader *standin, int slot, const Secret *passphrase,
                         const Secret *key, GError **error)
{
    luksmod_header_free(standin);
    const char *cipher = crypt_get_cipher(header->cd), *mode = crypt_get_cipher_mode(header->cd);
    int r = store_names(header, cipher, mode) ? 0 : -EINVAL;
    r = r || slot < 0 ? r : restore_slot(header, slot, passphrase, key);
    return r >= 0 || error_set_errno(error, r, "Could not add a key slot under cipher '%s-%s'", cipher, mode);
}

/* The new text of the JSON area. */
static char *rename_segment(LuksHeader *header, const LuksFormat *format, GError **error)
{
    g_autoptr(JsonNode) root = luks2_root(header, error);
    JsonObject *segments = root ? luks2_object(json_node_get_object(root), "segments") : NULL;
    JsonObject *segment = luks2_object(segments, "0");
    if (!segment) {
        if (root) {
            error_set(error, "Could not make a LUKS2 header: it has no segment");
        }
        return NULL;
    }
    g_autofree char *name = g_strdup_printf("%s-%s", format->cipher, format->mode);
    json_object_set_string_member(segment, "encryption", name);
    return json_to_string(root, FALSE);
}

/* One of the two headers: its JSON replaced, its checksum over everything but itself made anew. */
static bool store_json(int fd, uint64_t at, uint64_t size, const char *json)
{
    g_autofree uint8_t *data = g_malloc0(size);
    size_t length = strlen(json);
    if (length >= size - LUKS2_BINARY || pread(fd, data, LUKS2_BINARY, at) != LUKS2_BINARY) {
        return false;
    }
    g_autofree char *alg = g_strndup((char *)data + LUKS2_CSUM_ALG, LUKS2_NAME);
    int md = gcry_md_map_name(alg);
    if (!md || gcry_md_get_algo_dlen(md) > LUKS2_CSUM_ROOM) {
        return false;
    }
    memcpy(data + LUKS2_BINARY, json, length);
    memset(data + LUKS2_CSUM, 0, LUKS2_CSUM_ROOM);
    uint8_t sum[LUKS2_CSUM_ROOM] = {0};
    gcry_md_hash_buffer(md, sum, data, size);
    memcpy(data + LUKS2_CSUM, sum, sizeof sum);
    return pwrite(fd, data, size, at) == (ssize_t)size;
}

static bool standin_luks2(LuksHeader *header, const LuksFormat *format, GError **error)
{
    uint8_t field[8];
    g_autofree char *json = rename_segment(header, format, error);
    if (!json) {
        return false;
    }
    if (pread(header->fd, field, sizeof field, LUKS2_SIZE) != sizeof field) {
        return error_set_errno(error, errno, "Could not make a LUKS2 header");
    }
    uint64_t size = load_be64(field);
    if (size <= LUKS2_BINARY || size > LUKS2_SIZE_MAX || !store_json(header->fd, 0, size, json) ||
        !store_json(header->fd, size, size, json)) {
        return error_set(error, "Could not make a LUKS2 header for cipher '%s-%s'", format->cipher,
                         format->mode);
    }
    return true;
}

/* Can the cipher be had at all? Better said now than when the image is opened. */
static bool standin_check(const LuksFormat *format, GError **error)
{
    g_autofree char *name = g_strdup_printf("%s-%s", format->cipher, format->mode);
    g_autoptr(Secret) key = secret_new(format->key_size);
    gcry_randomize(key->data, key->size, GCRY_WEAK_RANDOM);
    LuksCipher *cipher = luksmod_cipher_new(name, key, format->sector_size, error);
    luksmod_cipher_free(cipher);
    return cipher != NULL;
}

bool luksmod_standin_finish(LuksHeader *header, const LuksFormat *format, const Secret *passphrase,
                            GError **error)
{
    if (!luksmod_gcrypt_init(error) || !standin_check(format, error)) {
        return false;
    }
    if (!passphrase) {
        return true;
    }
    return format->version == 1 ? standin_luks1(header, format, passphrase, error)
                                : standin_luks2(header, format, error);
}
