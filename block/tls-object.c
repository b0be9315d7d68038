/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/tls-object.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "block/secret-object.h"
#include "util/error.h"

static struct {
    pthread_mutex_t lock;
    GHashTable *objects; /* id -> TlsCreds */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tls_creds_free(TlsCreds *creds)
{
    if (creds) {
        g_free(creds->dir);
        g_free(creds->user);
        g_free(creds);
    }
}

bool tls_object_is(const char *type)
{
    return !g_strcmp0(type, "tls-creds-x509") || !g_strcmp0(type, "tls-creds-psk");
}

static bool check_file(const char *dir, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    return access(path, R_OK) == 0 || error_set_errno(error, errno, "Unable to access credentials %s", path);
}

/* What libnbd cannot do is refused, not ignored. */
static bool check_absent(Options *options, GError **error)
{
    if (options_has(options, "passwordid")) {
        return error_set(error, "Parameter 'passwordid' is not supported: keep the key in the clear, in a "
                                "folder that only its owner may read");
    }
    if (options_has(options, "priority")) {
        return error_set(error, "Parameter 'priority' is not supported: set the system's GnuTLS priorities");
    }
    return true;
}

static bool read_creds(TlsCreds *c, Options *options, GError **error)
{
    static const char *const endpoints[] = {"client", "server", NULL};
    int endpoint;
    bool sane;
    c->dir = g_strdup(options_get(options, "dir"));
    if (!check_absent(options, error) ||
        !options_get_enum(options, "endpoint", endpoints, 0, &endpoint, error)) {
        return false;
    }
    c->client = endpoint == 0;
    if (!c->dir) {
        return error_set(error, "Missing 'dir' property value");
    }
    if (c->psk) {
        const char *user = options_get(options, "username");
        c->user = g_strdup(user ? user : "qemu");
        return options_get_bool(options, "verify-peer", true, &c->verify, error) &&
               check_file(c->dir, "keys.psk", error);
    }
    return options_get_bool(options, "verify-peer", true, &c->verify, error) &&
           options_get_bool(options, "sanity-check", true, &sane, error) &&
           check_file(c->dir, "ca-cert.pem", error);
}

bool tls_object_add(const char *type, Options *options, GError **error)
{
    const char *id = options_get(options, "id");
    options_get(options, "qom-type");
    if (!id) {
        return error_set(error, "Parameter 'id' is missing");
    }
    if (!options_is_id(id)) {
        return error_set(error, "Parameter 'id' expects an identifier");
    }
    g_autoptr(TlsCreds) creds = g_new0(TlsCreds, 1);
    creds->psk = !strcmp(type, "tls-creds-psk");
    if (!read_creds(creds, options, error) || !options_check_unused(options, error)) {
        return false;
    }
    g_auto(GStrv) secrets = secret_object_list();
    pthread_mutex_lock(&table.lock);
    if (!table.objects) {
        table.objects =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)(void *)tls_creds_free);
    }
    const bool taken =
        g_hash_table_contains(table.objects, id) || g_strv_contains((const char *const *)secrets, id);
    if (!taken) {
        g_hash_table_insert(table.objects, g_strdup(id), g_steal_pointer(&creds));
    }
    pthread_mutex_unlock(&table.lock);
    return !taken ||
           error_set(error, "attempt to add duplicate property '%s' to object (type 'container')", id);
}

bool tls_object_remove(const char *id)
{
    pthread_mutex_lock(&table.lock);
    const bool found = table.objects && g_hash_table_remove(table.objects, id);
    if (table.objects && g_hash_table_size(table.objects) == 0) {
        g_clear_pointer(&table.objects, g_hash_table_unref);
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

TlsCreds *tls_object_get(const char *id, GError **error)
{
    TlsCreds *copy = NULL;
    pthread_mutex_lock(&table.lock);
    const TlsCreds *found = table.objects ? g_hash_table_lookup(table.objects, id) : NULL;
    if (!found) {
        error_set(error, "No TLS credentials with id '%s'", id);
    } else if (!found->client) {
        error_set(error, "Expecting TLS credentials with a client endpoint");
    } else {
        copy = g_new(TlsCreds, 1);
        *copy = (TlsCreds){.psk = found->psk,
                           .dir = g_strdup(found->dir),
                           .user = g_strdup(found->user),
                           .client = true,
                           .verify = found->verify};
    }
    pthread_mutex_unlock(&table.lock);
    return copy;
}
