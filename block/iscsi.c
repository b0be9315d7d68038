/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=iscsi`: a logical unit of an iSCSI target.
 */
#include "block/iscsi.h"

#include <string.h>

#include "block/secret-object.h"
#include "util/error.h"

#define LUN_MAX           16383
#define DIGEST_DEFAULT    3
#define INITIATOR_DEFAULT "iqn.2008-11.org.linux-kvm:spindle"

static ModuleLoader loader =
    MODULE_LOADER("spindle-iscsi.so", ISCSI_MODULE_SYMBOL, REMOTE_MODULE_ABI, "An iSCSI target");

static bool get_options(IscsiConfig *config, Options *options, GError **error)
{
    static const char *const transports[] = {"tcp", NULL};
    static const char *const digests[] = ISCSI_DIGEST_NAMES;
    int transport;
    uint64_t lun;
    config->portal = options_get(options, "portal");
    config->target = options_get(options, "target");
    config->user = options_get(options, "user");
    config->initiator = options_get(options, "initiator-name");
    config->initiator = config->initiator ? config->initiator : INITIATOR_DEFAULT;
    if (!config->portal || !config->target || !options_has(options, "transport")) {
        return error_set(error, "Need all of transport, portal and target options");
    }
    if (!options_get_enum(options, "transport", transports, 0, &transport, error) ||
        !options_get_uint(options, "lun", 0, LUN_MAX, 0, &lun, error) ||
        !options_get_enum(options, "header-digest", digests, DIGEST_DEFAULT, &config->digest, error)) {
        return false;
    }
    config->lun = lun;
    return true;
}

static bool iscsi_open(BlockNode *node, Options *options, GError **error)
{
    IscsiConfig config = {0};
    g_auto(CacheConfig) cache = {0};
    g_autoptr(Secret) password = NULL;
    RemoteOpen how = {.loader = &loader, .config = &config};
    if (!get_options(&config, options, error) || !remote_options_read(options, &how, &cache, error)) {
        return false;
    }
    const char *id = options_get(options, "password-secret");
    if (id && !config.user) {
        return error_set(error, "Parameter 'password-secret' needs 'user'");
    }
    if (!secret_object_take(options, "password-secret", &password, error)) {
        return false;
    }
    if (config.user && !id) {
        return error_set(error, "Parameter 'user' needs 'password-secret'");
    }
    config.password = password;
    config.timeout_s = how.wait_s;
    g_autofree char *name = g_strdup_printf("iscsi://%s/%s/%u", config.portal, config.target, config.lun);
    how.name = name;
    how.denied = "Cannot open a write protected LUN as read-write";
    return remote_open(node, &how, error);
}

Options *iscsi_options_from_filename(const char *filename, GError **error)
{
    const char *place = filename + strlen("iscsi://");
    const char *at = g_str_has_prefix(filename, "iscsi://") ? strchr(place, '@') : NULL;
    if (at && memchr(place, '/', at - place)) {
        at = NULL; /* part of the target's name */
    }
    if (at && memchr(place, '%', at - place)) {
        error_set(error, "A password in the URL would be seen by others: use driver=iscsi with 'user' and "
                         "'password-secret'");
        return NULL;
    }
    g_auto(GStrv) parts =
        g_str_has_prefix(filename, "iscsi://") ? g_strsplit(at ? at + 1 : place, "/", 4) : NULL;
    uint64_t lun;
    if (!parts || g_strv_length(parts) != 3 || !parts[0][0] || !parts[1][0] ||
        options_parse_uint(parts[2], &lun) < 0) {
        error_set(error, "Failed to parse URL '%s': it has to be iscsi://HOST[:PORT]/TARGET/LUN", filename);
        return NULL;
    }
    Options *options = options_new();
    options_set(options, "driver", "iscsi");
    options_set(options, "transport", "tcp");
    options_set(options, "portal", parts[0]);
    options_set(options, "target", parts[1]);
    options_set(options, "lun", parts[2]);
    if (at) {
        g_autofree char *user = g_strndup(place, at - place);
        options_set(options, "user", user);
    }
    return options;
}

static const char *const iscsi_schemes[] = {"iscsi", NULL};

const BlockDriver block_driver_iscsi = {
    .name = "iscsi",
    .protocols = iscsi_schemes,
    .open = iscsi_open,
    REMOTE_FUNCTIONS,
};
