/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=ssh`: a file on a server by SFTP.
 */
#include "block/ssh.h"

#include <string.h>

#include "block/secret-object.h"
#include "util/error.h"

#define PORT_DEFAULT 22

static ModuleLoader loader =
    MODULE_LOADER("spindle-ssh.so", SSH_MODULE_SYMBOL, REMOTE_MODULE_ABI, "A file by SSH");

static bool get_place(SshConfig *config, Options *options, GError **error)
{
    const char *server = options_has_prefix(options, "server") ? "server." : "";
    g_autofree char *host = g_strconcat(server, "host", NULL), *port = g_strconcat(server, "port", NULL);
    uint64_t number;
    config->host = options_get(options, host);
    config->path = options_get(options, "path");
    config->user = options_get(options, "user");
    config->user = config->user ? config->user : g_get_user_name();
    if (!config->host) {
        return error_set(error, "No hostname was specified");
    }
    if (!config->path) {
        return error_set(error, "No path was specified");
    }
    if (!options_get_uint(options, port, 1, 65535, PORT_DEFAULT, &number, error)) {
        return false;
    }
    config->port = number;
    return true;
}

/* `host_key_check=no|yes|md5:…|sha1:…|sha256:…`, the older form. */
static bool parse_check(SshConfig *config, const char *text, GError **error)
{
    static const char *const names[] = SSH_HASH_NAMES;
    if (!strcmp(text, "no")) {
        config->check = SSH_CHECK_NONE;
        return true;
    }
    if (!strcmp(text, "yes")) {
        config->check = SSH_CHECK_KNOWN_HOSTS;
        return true;
    }
    for (int i = 0; names[i]; i++) {
        const size_t n = strlen(names[i]);
        if (!strncmp(text, names[i], n) && text[n] == ':') {
            config->check = SSH_CHECK_HASH;
            config->hash_type = i;
            config->hash = text + n + 1;
            return true;
        }
    }
    return error_set(error, "unknown host_key_check setting (%s)", text);
}

static bool get_check(SshConfig *config, Options *options, GError **error)
{
    static const char *const modes[] = {"known_hosts", "none", "hash", NULL};
    static const char *const types[] = SSH_HASH_NAMES;
    const char *old = options_get(options, "host_key_check");
    int mode;
    if (old) {
        return parse_check(config, old, error);
    }
    if (!options_get_enum(options, "host-key-check.mode", modes, SSH_CHECK_KNOWN_HOSTS, &mode, error)) {
        return false;
    }
    config->check = (SshCheck)mode;
    if (config->check != SSH_CHECK_HASH) {
        return true;
    }
    config->hash = options_get(options, "host-key-check.hash");
    if (!config->hash || !options_has(options, "host-key-check.type")) {
        return error_set(error, "Parameter 'host-key-check.%s' is missing", config->hash ? "type" : "hash");
    }
    return options_get_enum(options, "host-key-check.type", types, 0, &config->hash_type, error);
}

static bool ssh_open(BlockNode *node, Options *options, GError **error)
{
    SshConfig config = {0};
    g_auto(CacheConfig) cache = {0};
    g_autoptr(Secret) password = NULL;
    RemoteOpen how = {.loader = &loader, .config = &config};
    if (!get_place(&config, options, error) || !get_check(&config, options, error) ||
        !remote_options_read(options, &how, &cache, error)) {
        return false;
    }
    config.known_hosts = options_get(options, "known-hosts");
    config.identity = options_get(options, "identity");
    config.timeout_s = how.wait_s;
    if (!secret_object_take(options, "password-secret", &password, error)) {
        return false;
    }
    config.password = password;
    g_autofree char *name = g_strdup_printf("ssh://%s@%s:%u%s%s", config.user, config.host, config.port,
                                            config.path[0] == '/' ? "" : "/", config.path);
    how.name = name;
    how.denied = "The file may not be written: use read-only=on";
    return remote_open(node, &how, error);
}

Options *ssh_options_from_filename(const char *filename, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(filename, G_URI_FLAGS_NONE, NULL);
    const char *query = uri ? g_uri_get_query(uri) : NULL;
    g_autoptr(Options) options = remote_options_from_url("ssh", uri);
    if (!options) {
        error_set(error, "Invalid SSH URL '%s': it has to be ssh://[USER@]HOST[:PORT]/PATH", filename);
        return NULL;
    }
    g_autoptr(GHashTable) params = query ? g_uri_parse_params(query, -1, "&", G_URI_PARAMS_NONE, NULL) : NULL;
    const char *check = params ? g_hash_table_lookup(params, "host_key_check") : NULL;
    if (params && (!check || g_hash_table_size(params) != 1)) {
        error_set(error, "Invalid SSH URL '%s': it may say 'host_key_check' and nothing else", filename);
        return NULL;
    }
    if (g_uri_get_userinfo(uri)) {
        options_set(options, "user", g_uri_get_userinfo(uri));
    }
    if (check) {
        options_set(options, "host_key_check", check);
    }
    return g_steal_pointer(&options);
}

static const char *const ssh_schemes[] = {"ssh", NULL};

const BlockDriver block_driver_ssh = {
    .name = "ssh",
    .protocols = ssh_schemes,
    .open = ssh_open,
    REMOTE_FUNCTIONS,
};
