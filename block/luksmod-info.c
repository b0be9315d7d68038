/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: a header described in QMP's terms (ImageInfoSpecificLUKS and what LUKS2 has more).
 */
#include "block/luksmod.h"
#include "block/luksmod-json.h"

#include <string.h>
#include <unistd.h>

#include "util/bytes.h"

/* "aes-256": the key of one cipher, where XTS takes two. */
static char *info_cipher_alg(LuksHeader *header)
{
    int bits = crypt_get_volume_key_size(header->cd) * 8;
    const char *mode = crypt_get_cipher_mode(header->cd);
    return g_strdup_printf("%s-%d", crypt_get_cipher(header->cd),
                           mode && g_str_has_prefix(mode, "xts") ? bits / 2 : bits);
}

static void info_add_cipher(LuksHeader *header, JsonObject *info)
{
    g_autofree char *alg = info_cipher_alg(header);
    json_object_set_string_member(info, "cipher-alg", alg);
    g_auto(GStrv) mode = g_strsplit(crypt_get_cipher_mode(header->cd), "-", 2);
    json_object_set_string_member(info, "cipher-mode", mode[0] ? mode[0] : "");
    if (!mode[0] || !mode[1]) {
        return;
    }
    g_auto(GStrv) iv = g_strsplit(mode[1], ":", 2);
    json_object_set_string_member(info, "ivgen-alg", iv[0]);
    if (iv[0] && iv[1]) {
        json_object_set_string_member(info, "ivgen-hash-alg", iv[1]);
    }
}

/* What only the LUKS1 header's bytes or LUKS2's JSON tell: stripes. */
static uint64_t slot_stripes(LuksHeader *header, const uint8_t *luks1, JsonObject *luks2, int slot)
{
    if (header->version == 1) {
        return load_be32(luks1 + LUKS1_SLOTS + slot * LUKS1_SLOT_BYTES + LUKS1_SLOT_STRIPES);
    }
    g_autofree char *name = g_strdup_printf("%d", slot);
    uint64_t stripes = 0;
    luks2_uint(luks2_object(luks2_object(luks2_object(luks2, "keyslots"), name), "af"), "stripes", &stripes);
    return stripes;
}

static JsonObject *info_slot(LuksHeader *header, const uint8_t *luks1, JsonObject *luks2, int slot)
{
    JsonObject *info = json_object_new();
    uint64_t offset = 0, bytes;
    bool active = luksmod_header_slot_area(header, slot, &offset, &bytes);
    json_object_set_boolean_member(info, "active", active);
    if (header->version == 1) {
        offset = (uint64_t)load_be32(luks1 + LUKS1_SLOTS + slot * LUKS1_SLOT_BYTES + LUKS1_SLOT_OFFSET) *
                 LUKS_SECTOR;
    }
    json_object_set_int_member(info, "key-offset", offset);
    struct crypt_pbkdf_type pbkdf = {0};
    if (!active || crypt_keyslot_get_pbkdf(header->cd, slot, &pbkdf) < 0) {
        return info;
    }
    json_object_set_int_member(info, "iters", pbkdf.iterations);
    json_object_set_int_member(info, "stripes", slot_stripes(header, luks1, luks2, slot));
    if (header->version == 2) {
        json_object_set_string_member(info, "pbkdf", pbkdf.type ? pbkdf.type : "");
        if (pbkdf.max_memory_kb) {
            json_object_set_int_member(info, "memory", (gint64)pbkdf.max_memory_kb * 1024);
            json_object_set_int_member(info, "parallel", pbkdf.parallel_threads);
        }
    }
    return info;
}

/* The hash of LUKS1's header; LUKS2 has one for each slot: the first active one's, else the digest's. */
static char *info_hash(LuksHeader *header, const uint8_t *luks1)
{
    if (header->version == 1) {
        return g_strndup((const char *)luks1 + LUKS1_HASH, LUKS1_NAME_BYTES);
    }
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        struct crypt_pbkdf_type pbkdf = {0};
        uint64_t offset, bytes;
        if (luksmod_header_slot_area(header, slot, &offset, &bytes) &&
            crypt_keyslot_get_pbkdf(header->cd, slot, &pbkdf) >= 0 && pbkdf.hash) {
            return g_strdup(pbkdf.hash);
        }
    }
    return g_strdup("sha256");
}

JsonObject *luksmod_header_info(LuksHeader *header, GError **error)
{
    uint8_t luks1[LUKS1_HEADER_BYTES] = {0};
    if (pread(header->fd, luks1, sizeof luks1, 0) != sizeof luks1) {
        memset(luks1, 0, sizeof luks1);
    }
    g_autoptr(JsonNode) root = header->version == 2 ? luks2_root(header, error) : NULL;
    if (header->version == 2 && !root) {
        return NULL;
    }
    JsonObject *luks2 = root ? json_node_get_object(root) : NULL, *info = json_object_new();
    JsonArray *slots = json_array_new();
    g_autofree char *hash = info_hash(header, luks1);
    info_add_cipher(header, info);
    json_object_set_string_member(info, "hash-alg", hash);
    json_object_set_string_member(info, "uuid", crypt_get_uuid(header->cd));
    json_object_set_int_member(info, "payload-offset", luksmod_header_payload_offset(header));
    json_object_set_boolean_member(info, "detached-header", luksmod_header_payload_offset(header) == 0);
    json_object_set_int_member(info, "master-key-iters",
                               luks2 ? luks2_digest_iterations(header)
                                     : load_be32(luks1 + LUKS1_DIGEST_ITERATIONS));
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        uint64_t offset, bytes;
        if (header->version == 1 || luksmod_header_slot_area(header, slot, &offset, &bytes)) {
            json_array_add_object_element(slots, info_slot(header, luks1, luks2, slot));
        }
    }
    json_object_set_array_member(info, "slots", slots);
    json_object_set_int_member(info, "version", header->version);
    json_object_set_int_member(info, "sector-size", crypt_get_sector_size(header->cd));
    const char *label = crypt_get_label(header->cd);
    if (label && *label) {
        json_object_set_string_member(info, "label", label);
    }
    return info;
}
