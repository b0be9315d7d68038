/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * VERSION: the first message of a connection. Anything wrong in it ends the connection, as the protocol wants
 * it. The answer repeats only capabilities that the client named, so it is never longer than what QEMU has
 * room for (its own request's size).
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <string.h>

#define MAX_NESTING 8
#define PAGE_SIZES  4096

typedef enum {
    CAP_NUMBER,
    CAP_BOOLEAN,
} CapKind;

static const struct {
    const char *name;
    CapKind kind;
    gint64 ours; /* what we answer */
    gint64 least;
} capabilities[] = {
    {"max_msg_fds", CAP_NUMBER, VFU_MAX_FDS, 0},
    {"max_data_xfer_size", CAP_NUMBER, VFU_DEFAULT_MAX_XFER, 64},
    {"max_dma_maps", CAP_NUMBER, VFU_MAX_MAPS, 0},
    {"pgsizes", CAP_NUMBER, PAGE_SIZES, 1},
    {"write_multiple", CAP_BOOLEAN, true, 0},
};

/* The parser recurses, so the depth is bounded before it starts. */
static bool json_nesting_bounded(const char *text)
{
    unsigned depth = 0;
    bool in_string = false;

    for (; *text; text++) {
        if (in_string) {
            if (*text == '\\' && text[1]) {
                text++;
            } else if (*text == '"') {
                in_string = false;
            }
        } else if (*text == '"') {
            in_string = true;
        } else if (*text == '{' || *text == '[') {
            if (++depth > MAX_NESTING) {
                return false;
            }
        } else if ((*text == '}' || *text == ']') && depth) {
            depth--;
        }
    }
    return true;
}

static bool capability_read(JsonObject *caps, unsigned i, gint64 *ret_value)
{
    JsonNode *node = json_object_get_member(caps, capabilities[i].name);

    if (!JSON_NODE_HOLDS_VALUE(node)) {
        return false;
    }
    GType type = json_node_get_value_type(node);
    if (capabilities[i].kind == CAP_BOOLEAN) {
        if (type != G_TYPE_BOOLEAN) {
            return false;
        }
        *ret_value = json_node_get_boolean(node);
        return true;
    }
    if (type != G_TYPE_INT64 || json_node_get_int(node) < capabilities[i].least) {
        return false;
    }
    *ret_value = json_node_get_int(node);
    return true;
}

/* Takes over what the client offers and returns the answer's text. */
static char *capabilities_negotiate(VfuConn *conn, JsonObject *offered)
{
    g_autoptr(GString) text = g_string_new("{\"capabilities\":{");
    const char *separator = "";

    for (unsigned i = 0; i < G_N_ELEMENTS(capabilities); i++) {
        gint64 value;
        if (!offered || !json_object_has_member(offered, capabilities[i].name)) {
            continue;
        }
        if (!capability_read(offered, i, &value)) {
            return NULL;
        }
        if (strcmp(capabilities[i].name, "max_data_xfer_size") == 0) {
            conn->max_xfer = MIN(value, VFU_DEFAULT_MAX_XFER);
        }
        if (strcmp(capabilities[i].name, "pgsizes") == 0 && !(value & PAGE_SIZES)) {
            return NULL;
        }
        if (capabilities[i].kind == CAP_BOOLEAN) {
            if (!value) {
                continue;
            }
            g_string_append_printf(text, "%s\"%s\":true", separator, capabilities[i].name);
        } else {
            g_string_append_printf(text, "%s\"%s\":%" G_GINT64_FORMAT, separator, capabilities[i].name,
                                   capabilities[i].ours);
        }
        separator = ",";
    }
    g_string_append(text, "}}");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* NULL: the text is not what the protocol asks for. */
static char *version_negotiate(VfuConn *conn, const char *text)
{
    if (!g_utf8_validate(text, -1, NULL) || !json_nesting_bounded(text)) {
        return NULL;
    }
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    if (!json_parser_load_from_data(parser, text, -1, NULL)) {
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        return NULL;
    }
    JsonNode *caps = json_object_get_member(json_node_get_object(root), "capabilities");
    if (caps && !JSON_NODE_HOLDS_OBJECT(caps)) {
        return NULL;
    }
    return capabilities_negotiate(conn, caps ? json_node_get_object(caps) : NULL);
}

int vfu_handle_version(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    VfuVersionMsg version;
    memcpy(&version, message->payload, sizeof version);
    const char *text = (const char *)message->payload + sizeof version;
    size_t size = message->size - sizeof version;

    conn->broken = true; /* unless all is well */
    if (version.major != 0) {
        return -EINVAL;
    }
    g_autofree char *answer = NULL;
    if (size) {
        if (size > VFU_MAX_VERSION || memchr(text, 0, size) != text + size - 1) {
            return -EINVAL;
        }
        answer = version_negotiate(conn, text);
        if (!answer) {
            return -EINVAL;
        }
    }
    version.minor = 0;
    size_t bytes = answer ? strlen(answer) + 1 : 0;
    uint8_t *p = vfu_out_reserve(reply, sizeof version + bytes);
    memcpy(p, &version, sizeof version);
    if (bytes) {
        memcpy(p + sizeof version, answer, bytes);
    }
    conn->negotiated = true;
    conn->broken = false;
    return 0;
}
