/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: what LUKS2's JSON says beyond what libcryptsetup's functions tell (LUKS2 On-Disk Format
 * Specification 1.1, section 3). libcryptsetup has validated the text when it comes here; what is asked for
 * is still looked up with every type checked.
 */
#include "block/luksmod.h"
#include "block/luksmod-json.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

JsonNode *luks2_root(LuksHeader *header, GError **error)
{
    const char *text = luksmod_header_json(header);
    JsonNode *root = text ? json_from_string(text, NULL) : NULL;
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_clear_pointer(&root, json_node_unref);
        error_set(error, "Volume header is damaged: its JSON area cannot be read");
    }
    return root;
}

JsonObject *luks2_object(JsonObject *object, const char *key)
{
    JsonNode *node = object ? json_object_get_member(object, key) : NULL;
    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

const char *luks2_string(JsonObject *object, const char *key)
{
    JsonNode *node = object ? json_object_get_member(object, key) : NULL;
    if (!node || !JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING) {
        return NULL;
    }
    return json_node_get_string(node);
}

bool luks2_uint(JsonObject *object, const char *key, uint64_t *ret)
{
    JsonNode *node = object ? json_object_get_member(object, key) : NULL;
    if (!node || !JSON_NODE_HOLDS_VALUE(node)) {
        return false;
    }
    if (json_node_get_value_type(node) == G_TYPE_INT64) {
        gint64 v = json_node_get_int(node);
        *ret = v;
        return v >= 0;
    }
    /* Offsets and sizes are decimal text: JSON numbers do not hold 64 bits everywhere. */
    const char *text = luks2_string(object, key);
    return text && g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, ret, NULL);
}

/* The one segment that an image at rest has. */
static JsonObject *luks2_segment(JsonObject *root, GError **error)
{
    JsonObject *segments = luks2_object(root, "segments");
    if (!segments || json_object_get_size(segments) != 1) {
        error_set(error, "LUKS2 volumes of other than one segment are not supported");
        return NULL;
    }
    g_autoptr(GList) names = json_object_get_members(segments);
    JsonObject *segment = luks2_object(segments, names->data);
    const char *type = luks2_string(segment, "type");
    if (!type || strcmp(type, "crypt")) {
        error_set(error, "LUKS2 segment type '%s' is not supported", type ? type : "");
        return NULL;
    }
    return segment;
}

static bool luks2_check_requirements(LuksHeader *header, GError **error)
{
    uint32_t flags = 0;
    luksmod_lock();
    int r = crypt_persistent_flags_get(header->cd, CRYPT_FLAGS_REQUIREMENTS, &flags);
    luksmod_unlock();
    if (r < 0) {
        return luksmod_fail(header, r, error, "Volume header is damaged");
    }
    if (flags & (CRYPT_REQUIREMENT_ONLINE_REENCRYPT | CRYPT_REQUIREMENT_OFFLINE_REENCRYPT)) {
        return error_set(error, "LUKS2 volume is in the middle of a re-encryption: finish it with "
                                "'cryptsetup reencrypt' first");
    }
    if (flags) {
        return error_set(error, "LUKS2 volume has requirements that are not supported");
    }
    return true;
}

/* libcryptsetup splits keys into 4000 stripes whatever the header says (specification 1.1, section 3.2.3:
 * "must be 4000"); a header that says otherwise is not believed. */
static bool luks2_check_stripes(JsonObject *root, GError **error)
{
    JsonObject *slots = luks2_object(root, "keyslots");
    g_autoptr(GList) names = slots ? json_object_get_members(slots) : NULL;
    for (GList *l = names; l; l = l->next) {
        JsonObject *af = luks2_object(luks2_object(slots, l->data), "af");
        uint64_t stripes = 0;
        if (af && (!luks2_uint(af, "stripes", &stripes) || stripes != 4000)) {
            return error_set(error, "Volume header is damaged: key slot %s has %" G_GUINT64_FORMAT " stripes",
                             (char *)l->data, stripes);
        }
    }
    return true;
}

bool luksmod_check_luks2(LuksHeader *header, GError **error)
{
    if (!luks2_check_requirements(header, error)) {
        return false;
    }
    g_autoptr(JsonNode) root = luks2_root(header, error);
    JsonObject *segment = root ? luks2_segment(json_node_get_object(root), error) : NULL;
    if (!segment || !luks2_check_stripes(json_node_get_object(root), error)) {
        return false;
    }
    if (json_object_has_member(segment, "integrity")) {
        return error_set(error, "LUKS2 volumes with integrity protection are not supported");
    }
    if (json_object_has_member(segment, "flags")) {
        return error_set(error, "LUKS2 segment flags are not supported");
    }
    return true;
}

bool luks2_volume(LuksHeader *header, LuksVolume *volume, GError **error)
{
    g_autoptr(JsonNode) root = luks2_root(header, error);
    JsonObject *segment = root ? luks2_segment(json_node_get_object(root), error) : NULL;
    if (!segment) {
        return false;
    }
    const char *cipher = luks2_string(segment, "encryption"), *size = luks2_string(segment, "size");
    uint64_t sector_size = 0;
    if (!cipher || !luks2_uint(segment, "sector_size", &sector_size) || sector_size > LUKS_SECTOR_MAX ||
        !luks2_uint(segment, "offset", &volume->payload_offset) ||
        !luks2_uint(segment, "iv_tweak", &volume->iv_offset) || !size) {
        return error_set(error, "Volume header is damaged: its data segment is not complete");
    }
    volume->payload_bytes = 0;
    if (strcmp(size, "dynamic") &&
        (!luks2_uint(segment, "size", &volume->payload_bytes) || !volume->payload_bytes)) {
        return error_set(error, "Volume header is damaged: its data segment has no size");
    }
    volume->sector_size = sector_size;
    volume->cipher = g_strdup(cipher);
    return true;
}

uint64_t luks2_digest_iterations(LuksHeader *header)
{
    g_autoptr(JsonNode) root = luks2_root(header, NULL);
    JsonObject *digests = root ? luks2_object(json_node_get_object(root), "digests") : NULL;
    g_autoptr(GList) names = digests ? json_object_get_members(digests) : NULL;
    uint64_t most = 0;
    for (GList *l = names; l; l = l->next) {
        uint64_t n = 0;
        if (luks2_uint(luks2_object(digests, l->data), "iterations", &n)) {
            most = MAX(most, n);
        }
    }
    return most;
}
