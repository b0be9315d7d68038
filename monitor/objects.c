/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/objects.h"
#include <string.h>
#include "block/secret-object.h"
#include "block/tls-object.h"
#include "util/error.h"

const char *const object_type_names[] = {"secret", "throttle-group", "tls-creds-psk", "tls-creds-x509", NULL};

static bool add_group(Monitor *monitor, Options *options, GError **error)
{
    ThrottleGroup *group = throttle_group_new_from_options(options, error);

    if (group) {
        monitor_own_group(monitor, group);
    }
    return group;
}

bool monitor_add_object(Monitor *monitor, Options *options, GError **error)
{
    g_autofree char *type = g_strdup(options_get(options, "qom-type"));
    const char *id = options_get(options, "id");

    if (!type || !id) {
        return error_set(error, "Parameter '%s' is missing", type ? "id" : "qom-type");
    }
    if (!g_strv_contains(object_type_names, type)) {
        return error_set(error, "Parameter 'qom-type' does not accept value '%s'", type);
    }
    if (!options_is_id(id)) {
        return error_set(error, "Parameter 'id' expects an identifier");
    }
    options_remove(options, "qom-type");
    if (tls_object_is(type)) {
        return tls_object_add(type, options, error);
    }
    return strcmp(type, "secret") ? add_group(monitor, options, error) : secret_object_add(options, error);
}

bool monitor_remove_object(Monitor *monitor, const char *id, GError **error)
{
    GError *in_use = NULL;

    if (monitor_drop_group(monitor, id, &in_use)) {
        return true;
    }
    if (in_use) {
        g_propagate_error(error, in_use);
        return false;
    }
    return tls_object_remove(id) || secret_object_remove(id, error);
}
