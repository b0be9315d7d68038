/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: what a header says of one key slot, from LUKS1's fields or LUKS2's JSON.
 */
#include "block/luksmod-json.h"
#include "block/luksmod-slot.h"

#include <string.h>
#include <unistd.h>

#include "util/bytes.h"

#define LUKS1_SALT_BYTES   32
#define LUKS1_DIGEST_BYTES 20

static bool luks1_slot_read(LuksHeader *header, int index, LuksSlot *ret)
{
    uint8_t raw[LUKS1_HEADER_BYTES];
    if (index < 0 || index >= luksmod_header_slots(header) ||
        pread(header->fd, raw, sizeof raw, 0) != sizeof raw) {
        return false;
    }
    const uint8_t *slot = raw + LUKS1_SLOTS + index * LUKS1_SLOT_BYTES;
    g_autofree char *mode = g_strndup((char *)raw + LUKS1_MODE, LUKS1_NAME_BYTES);
    g_autofree char *hash = g_strndup((char *)raw + LUKS1_HASH, LUKS1_NAME_BYTES);
    g_autofree char *name = g_strndup((char *)raw + LUKS1_CIPHER, LUKS1_NAME_BYTES);
    ret->cipher = g_strdup_printf("%s-%s", name, mode);
    ret->kdf = g_strdup(CRYPT_KDF_PBKDF2);
    ret->kdf_hash = g_strdup(hash);
    ret->af_hash = g_strdup(hash);
    ret->digest_hash = g_strdup(hash);
    memcpy(ret->salt, slot + LUKS1_SLOT_SALT, LUKS1_SALT_BYTES);
    memcpy(ret->digest_salt, raw + LUKS1_DIGEST_SALT, LUKS1_SALT_BYTES);
    memcpy(ret->digest, raw + LUKS1_DIGEST, LUKS1_DIGEST_BYTES);
    ret->salt_bytes = ret->digest_salt_bytes = LUKS1_SALT_BYTES;
    ret->digest_bytes = LUKS1_DIGEST_BYTES;
    ret->iterations = load_be32(slot + LUKS1_SLOT_ITERATIONS);
    ret->digest_iterations = load_be32(raw + LUKS1_DIGEST_ITERATIONS);
    ret->area_offset = (uint64_t)load_be32(slot + LUKS1_SLOT_OFFSET) * LUKS_SECTOR;
    ret->stripes = load_be32(slot + LUKS1_SLOT_STRIPES);
    ret->area_key_bytes = ret->key_bytes = load_be32(raw + LUKS1_KEY_BYTES);
    return true;
}

/* Base64 of at most `room` bytes. */
static bool read_base64(JsonObject *object, const char *key, uint8_t *ret, size_t room, size_t *ret_bytes)
{
    const char *text = luks2_string(object, key);
    gsize bytes = 0;
    g_autofree guchar *data = text ? g_base64_decode(text, &bytes) : NULL;
    if (!data || bytes > room) {
        return false;
    }
    memcpy(ret, data, bytes);
    *ret_bytes = bytes;
    return true;
}

/* The digest whose list of key slots has this one. */
static JsonObject *find_digest(JsonObject *root, const char *slot)
{
    JsonObject *digests = luks2_object(root, "digests");
    g_autoptr(GList) names = digests ? json_object_get_members(digests) : NULL;
    for (GList *l = names; l; l = l->next) {
        JsonObject *digest = luks2_object(digests, l->data);
        JsonNode *list = digest ? json_object_get_member(digest, "keyslots") : NULL;
        JsonArray *array = list && JSON_NODE_HOLDS_ARRAY(list) ? json_node_get_array(list) : NULL;
        for (guint i = 0; array && i < json_array_get_length(array); i++) {
            JsonNode *element = json_array_get_element(array, i);
            if (JSON_NODE_HOLDS_VALUE(element) && !g_strcmp0(json_node_get_string(element), slot)) {
                return digest;
            }
        }
    }
    return NULL;
}

static bool read_kdf(JsonObject *kdf, LuksSlot *ret)
{
    ret->kdf = g_strdup(luks2_string(kdf, "type"));
    if (!ret->kdf || !read_base64(kdf, "salt", ret->salt, sizeof ret->salt, &ret->salt_bytes)) {
        return false;
    }
    if (!strcmp(ret->kdf, CRYPT_KDF_PBKDF2)) {
        ret->kdf_hash = g_strdup(luks2_string(kdf, "hash"));
        return ret->kdf_hash && luks2_uint(kdf, "iterations", &ret->iterations);
    }
    return (!strcmp(ret->kdf, CRYPT_KDF_ARGON2I) || !strcmp(ret->kdf, CRYPT_KDF_ARGON2ID)) &&
           luks2_uint(kdf, "time", &ret->iterations) && luks2_uint(kdf, "memory", &ret->memory_kib) &&
           luks2_uint(kdf, "cpus", &ret->parallel);
}

static bool read_area(JsonObject *slot, LuksSlot *ret)
{
    JsonObject *area = luks2_object(slot, "area"), *af = luks2_object(slot, "af");
    uint64_t key_bytes, area_key_bytes;
    ret->cipher = g_strdup(luks2_string(area, "encryption"));
    ret->af_hash = g_strdup(luks2_string(af, "hash"));
    if (!ret->cipher || !ret->af_hash || !luks2_uint(slot, "key_size", &key_bytes) ||
        !luks2_uint(area, "key_size", &area_key_bytes) || !luks2_uint(area, "offset", &ret->area_offset) ||
        !luks2_uint(af, "stripes", &ret->stripes)) {
        return false;
    }
    ret->key_bytes = key_bytes;
    ret->area_key_bytes = area_key_bytes;
    return true;
}

static bool read_digest(JsonObject *digest, LuksSlot *ret)
{
    const char *type = luks2_string(digest, "type");
    ret->digest_hash = g_strdup(luks2_string(digest, "hash"));
    return type && !strcmp(type, CRYPT_KDF_PBKDF2) && ret->digest_hash &&
           luks2_uint(digest, "iterations", &ret->digest_iterations) &&
           read_base64(digest, "salt", ret->digest_salt, sizeof ret->digest_salt, &ret->digest_salt_bytes) &&
           read_base64(digest, "digest", ret->digest, sizeof ret->digest, &ret->digest_bytes);
}

bool luksmod_slot_read(LuksHeader *header, int index, LuksSlot *ret)
{
    *ret = (LuksSlot){0};
    if (header->version == 1) {
        return luks1_slot_read(header, index, ret);
    }
    g_autofree char *name = g_strdup_printf("%d", index);
    g_autoptr(JsonNode) node = luks2_root(header, NULL);
    JsonObject *root = node ? json_node_get_object(node) : NULL;
    JsonObject *slot = luks2_object(luks2_object(root, "keyslots"), name), *digest = find_digest(root, name);
    return slot && digest && read_kdf(luks2_object(slot, "kdf"), ret) && read_area(slot, ret) &&
           read_digest(digest, ret);
}
