/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/blockdev-types.h"
#include <string.h>
#include "monitor/qmp.h"
#include "util/error.h"
#include "util/json.h"

static const struct {
    const char *name;
    QmpType type;
} members[] = {
    {"auto-read-only", QMP_BOOL},
    {"aio", QMP_STRING},
    {"aio-max-batch", QMP_INT},
    {"cookie", QMP_STRING},
    {"cookie-secret", QMP_STRING},
    {"detect-zeroes", QMP_STRING},
    {"direct", QMP_BOOL},
    {"discard", QMP_STRING},
    {"driver", QMP_STRING},
    {"export", QMP_STRING},
    {"filename", QMP_STRING},
    {"force-share", QMP_BOOL},
    {"host", QMP_STRING},
    {"key-secret", QMP_STRING},
    {"latency-ns", QMP_INT},
    {"locking", QMP_STRING},
    {"no-flush", QMP_BOOL},
    {"node-name", QMP_STRING},
    {"offset", QMP_INT},
    {"open-timeout", QMP_INT},
    {"password-secret", QMP_STRING},
    {"path", QMP_STRING},
    {"port", QMP_STRING},
    {"proxy-username", QMP_STRING},
    {"read-only", QMP_BOOL},
    {"read-zeroes", QMP_BOOL},
    {"readahead", QMP_INT},
    {"reconnect-delay", QMP_INT},
    {"size", QMP_INT},
    {"sslverify", QMP_BOOL},
    {"throttle-group", QMP_STRING},
    {"timeout", QMP_INT},
    {"tls-creds", QMP_STRING},
    {"url", QMP_STRING},
    {"username", QMP_STRING},
    {"cache", QMP_OBJECT},
    {"server", QMP_OBJECT},
};

static bool check_member(const char *path, const char *name, JsonNode *value, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        if (strcmp(members[i].name, name) == 0 && !qmp_type_fits(value, members[i].type)) {
            return error_set(error, "Invalid parameter type for '%s%s', expected: %s", path, name,
                             qmp_type_name(members[i].type));
        }
    }
    return true;
}

/* No deeper than JSON may be. */
bool blockdev_check_types(JsonObject *options, const char *path, GError **error)
{
    g_autoptr(GList) names = json_object_get_members(options);

    for (GList *l = names; l; l = l->next) {
        JsonNode *value = json_object_get_member(options, l->data);
        if (!check_member(path, l->data, value, error)) {
            return false;
        }
        g_autofree char *below = g_strconcat(path, (const char *)l->data, ".", NULL);
        if (JSON_NODE_HOLDS_OBJECT(value) &&
            !blockdev_check_types(json_node_get_object(value), below, error)) {
            return false;
        }
    }
    return true;
}
