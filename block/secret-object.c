/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/secret-object.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "block/luks-crypto.h"
#include "util/cleanup.h"
#include "util/error.h"

#define SECRET_MAX     (1024 * 1024) /* most bytes of a secret's file */
#define WRAP_KEY_BYTES 32            /* AES-256 */
#define WRAP_IV_BYTES  16

typedef enum { FORMAT_RAW, FORMAT_BASE64 } SecretFormat;

typedef struct SecretObject {
    char *id;
    Secret *secret;
} SecretObject;

static struct {
    pthread_mutex_t lock;
    GQueue objects; /* in order of creation */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void object_free(gpointer opaque)
{
    SecretObject *object = opaque;
    g_free(object->id);
    secret_free(object->secret);
    g_free(object);
}

/* The lock is held. */
static GList *table_find(const char *id)
{
    for (GList *l = table.objects.head; l; l = l->next) {
        if (!strcmp(((SecretObject *)l->data)->id, id)) {
            return l;
        }
    }
    return NULL;
}

/* The whole file, straight into locked memory; pipes and /dev/fd/N too. */
static Secret *read_file(const char *path, GError **error)
{
    auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        error_set_errno(error, errno, "Unable to read %s", path);
        return NULL;
    }
    g_autoptr(Secret) room = secret_new(SECRET_MAX);
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, room->data + used, room->size - used)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            error_set_errno(error, errno, "Unable to read %s", path);
            return NULL;
        }
        used += n;
    }
    if (used == room->size) {
        error_set(error, "Unable to read %s: it is larger than a secret may be (%d bytes)", path,
                  SECRET_MAX - 1);
        return NULL;
    }
    return secret_new_copy(room->data, used);
}

/* Base64 (RFC 4648) with line breaks allowed. The data is not shown: it may be the secret. */
static Secret *decode_base64(const Secret *text, GError **error)
{
    g_autoptr(Secret) out = secret_new(text->size / 4 * 3 + 3);
    gint state = 0;
    guint save = 0;
    for (size_t i = 0; i < text->size; i++) {
        uint8_t c = text->data[i];
        if (!g_ascii_isalnum(c) && !memchr("+/=\r\n", c, 5)) {
            error_set(error, "Base64 data contains invalid characters");
            return NULL;
        }
    }
    gsize n = g_base64_decode_step((const char *)text->data, text->size, out->data, &state, &save);
    secret_wipe(&save, sizeof save);
    return secret_new_copy(out->data, n);
}

/* QEMU's order: with format=base64 the ciphertext is in base64; what it decrypts to is the secret as it is.
 */
static Secret *unwrap(const Secret *data, SecretFormat format, const char *keyid, const char *iv_text,
                      GError **error)
{
    g_autoptr(Secret) key = secret_object_get(keyid, error);
    if (!key) {
        return NULL;
    }
    if (key->size != WRAP_KEY_BYTES) {
        error_set(error, "Key should be %d bytes in length", WRAP_KEY_BYTES);
        return NULL;
    }
    if (!iv_text) {
        error_set(error, "IV is required to decrypt secret");
        return NULL;
    }
    g_autoptr(Secret) iv64 = secret_new_copy(iv_text, strlen(iv_text));
    g_autoptr(Secret) iv = decode_base64(iv64, error);
    if (!iv) {
        return NULL;
    }
    if (iv->size != WRAP_IV_BYTES) {
        error_set(error, "IV should be %d bytes in length not %zu", WRAP_IV_BYTES, iv->size);
        return NULL;
    }
    g_autoptr(Secret) cipher =
        format == FORMAT_BASE64 ? decode_base64(data, error) : secret_new_copy(data->data, data->size);
    const LuksCryptoModule *module = cipher ? luks_module_get(error) : NULL;
    return module ? module->unwrap(key, iv->data, cipher->data, cipher->size, error) : NULL;
}

static Secret *load(Options *options, GError **error)
{
    static const char *const formats[] = {"raw", "base64", NULL};
    int format;
    const char *data = options_get(options, "data"), *file = options_get(options, "file");
    const char *keyid = options_get(options, "keyid"), *iv = options_get(options, "iv");
    if (!options_get_enum(options, "format", formats, FORMAT_RAW, &format, error)) {
        return NULL;
    }
    if (data && file) {
        error_set(error, "'file' and 'data' are mutually exclusive");
        return NULL;
    }
    if (!data && !file) {
        error_set(error, "Either 'file' or 'data' must be provided");
        return NULL;
    }
    g_autoptr(Secret) raw = file ? read_file(file, error) : secret_new_copy(data, strlen(data));
    if (!raw) {
        return NULL;
    }
    if (keyid) {
        return unwrap(raw, format, keyid, iv, error);
    }
    return format == FORMAT_BASE64 ? decode_base64(raw, error) : g_steal_pointer(&raw);
}

static bool table_add(const char *id, Secret *secret, GError **error)
{
    pthread_mutex_lock(&table.lock);
    bool taken = table_find(id) != NULL;
    if (!taken) {
        SecretObject *object = g_new0(SecretObject, 1);
        *object = (SecretObject){g_strdup(id), secret};
        g_queue_push_tail(&table.objects, object);
    }
    pthread_mutex_unlock(&table.lock);
    return !taken ||
           error_set(error, "attempt to add duplicate property '%s' to object (type 'container')", id);
}

bool secret_object_add(Options *options, GError **error)
{
    const char *id = options_get(options, "id");
    options_get(options, "qom-type");
    if (!id) {
        return error_set(error, "Parameter 'id' is missing");
    }
    if (!options_is_id(id)) {
        return error_set(error, "Parameter 'id' expects an identifier: letters, digits, '-', '.', '_', "
                                "starting with a letter");
    }
    g_autoptr(Secret) secret = load(options, error);
    if (!secret || !options_check_expected(options, error) || !table_add(id, secret, error)) {
        return false;
    }
    g_steal_pointer(&secret);
    char *data = (char *)options_get(options, "data");
    if (data) {
        memset(data, '*', strlen(data));
    }
    return true;
}

bool secret_object_remove(const char *id, GError **error)
{
    pthread_mutex_lock(&table.lock);
    GList *link = table_find(id);
    SecretObject *object = link ? link->data : NULL;
    if (link) {
        g_queue_delete_link(&table.objects, link);
    }
    pthread_mutex_unlock(&table.lock);
    if (!object) {
        return error_set(error, "object '%s' not found", id);
    }
    object_free(object);
    return true;
}

Secret *secret_object_get(const char *id, GError **error)
{
    pthread_mutex_lock(&table.lock);
    GList *link = table_find(id);
    Secret *secret = NULL;
    if (link) {
        const Secret *own = ((SecretObject *)link->data)->secret;
        secret = secret_new_copy(own->data, own->size);
    }
    pthread_mutex_unlock(&table.lock);
    if (!secret) {
        error_set(error, "No secret with id '%s'", id);
    }
    return secret;
}

bool secret_object_take(Options *options, const char *key, Secret **ret, GError **error)
{
    const char *id = options_get(options, key);
    return !id || (*ret = secret_object_get(id, error));
}

char **secret_object_list(void)
{
    GStrvBuilder *ids = g_strv_builder_new();
    pthread_mutex_lock(&table.lock);
    for (GList *l = table.objects.head; l; l = l->next) {
        g_strv_builder_add(ids, ((SecretObject *)l->data)->id);
    }
    pthread_mutex_unlock(&table.lock);
    char **list = g_strv_builder_end(ids);
    g_strv_builder_unref(ids);
    return list;
}

void secret_object_clear(void)
{
    pthread_mutex_lock(&table.lock);
    GQueue old = table.objects;
    g_queue_init(&table.objects);
    pthread_mutex_unlock(&table.lock);
    g_queue_foreach(&old, (GFunc)(void (*)(void))object_free, NULL);
    g_queue_clear(&old);
}

/* Blanks from `p` to the end of the value: an unescaped comma, or a quote in JSON. */
static void blank_value(char *p, bool json)
{
    while (*p) {
        if (json && *p == '"') {
            return;
        }
        if (json && *p == '\\' && p[1]) {
            *p++ = '*';
        }
        if (!json && *p == ',') {
            if (p[1] != ',') {
                return;
            }
            *p++ = '*';
        }
        *p++ = '*';
    }
}

static void hide_json(char *arg)
{
    for (char *p = arg; (p = strstr(p, "\"data\""));) {
        p += strlen("\"data\"");
        p += strspn(p, " \t\r\n");
        if (*p == ':') {
            p++;
            p += strspn(p, " \t\r\n");
            if (*p == '"') {
                blank_value(p + 1, true);
            }
        }
    }
}

void secret_object_hide_argv(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i];
        char *value = g_str_has_prefix(arg, "--") ? strchr(arg, '=') : NULL;
        if (value) { /* --object=secret,… */
            arg = value + 1;
        }
        if (arg[0] == '{' && strstr(arg, "\"secret\"")) {
            hide_json(arg);
            continue;
        }
        if (!g_str_has_prefix(arg, "secret,") && !g_str_has_prefix(arg, "qom-type=secret,")) {
            continue;
        }
        for (char *p = arg; (p = strstr(p, ",data="));) {
            p += strlen(",data=");
            blank_value(p, false);
        }
    }
}
