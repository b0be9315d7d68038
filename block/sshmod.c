/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ssh module: one session, one open file. Reads are many requests deep; writes are one after the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <libssh/libssh.h>
#include <libssh/sftp.h>
#include <string.h>

#include "block/serialmod.h"
#include "block/ssh.h"
#include "util/error.h"

#define PACKET ((size_t)32 * 1024) /* what every server takes */
#define PIECE  (1024 * 1024)
#define DEPTH  (PIECE / PACKET)

typedef struct SshSource {
    SerialSource serial;
    SshConfig config; /* with copies */
    char *password;
    ssh_session session;
    sftp_session sftp;
    sftp_file file;
} SshSource;

static bool fail(SshSource *s, CacheFailure *failure, const char *what, bool final)
{
    failure->final = final;
    g_snprintf(failure->text, sizeof failure->text, "%s: %s", what, ssh_get_error(s->session));
    return false;
}

static bool set_options(SshSource *s, CacheFailure *failure)
{
    const SshConfig *c = &s->config;
    const long timeout = c->timeout_s;
    const int no = 0;
    s->session = ssh_new();
    if (!s->session) {
        g_strlcpy(failure->text, "Out of memory", sizeof failure->text);
        return false;
    }
    /* The user's configuration may start programs, which the drive process must not. */
    if (ssh_options_set(s->session, SSH_OPTIONS_PROCESS_CONFIG, &no) < 0 ||
        ssh_options_set(s->session, SSH_OPTIONS_HOST, c->host) < 0 ||
        ssh_options_set(s->session, SSH_OPTIONS_PORT, &c->port) < 0 ||
        ssh_options_set(s->session, SSH_OPTIONS_USER, c->user) < 0 ||
        ssh_options_set(s->session, SSH_OPTIONS_TIMEOUT, &timeout) < 0 ||
        (c->known_hosts && ssh_options_set(s->session, SSH_OPTIONS_KNOWNHOSTS, c->known_hosts) < 0) ||
        (c->identity && ssh_options_set(s->session, SSH_OPTIONS_ADD_IDENTITY, c->identity) < 0)) {
        return fail(s, failure, "Options", true);
    }
    return true;
}

/* Hexadecimal digits, case and colons apart. */
static bool same_hash(const char *text, const unsigned char *hash, size_t bytes)
{
    size_t i = 0;
    for (; *text; text++) {
        if (*text == ':') {
            continue;
        }
        const int digit = g_ascii_xdigit_value(*text);
        if (digit < 0 || i >= bytes * 2 || digit != (hash[i / 2] >> (i % 2 ? 0 : 4) & 15)) {
            return false;
        }
        i++;
    }
    return i == bytes * 2;
}

static bool check_hash(SshSource *s, CacheFailure *failure)
{
    static const enum ssh_publickey_hash_type types[] = {SSH_PUBLICKEY_HASH_MD5, SSH_PUBLICKEY_HASH_SHA1,
                                                         SSH_PUBLICKEY_HASH_SHA256};
    ssh_key key;
    unsigned char *hash;
    size_t bytes;
    if (ssh_get_server_publickey(s->session, &key) != SSH_OK) {
        return fail(s, failure, "The server has no key", true);
    }
    const int ret = ssh_get_publickey_hash(key, types[s->config.hash_type], &hash, &bytes);
    ssh_key_free(key);
    if (ret < 0) {
        return fail(s, failure, "The server's key has no hash", true);
    }
    const bool same = same_hash(s->config.hash, hash, bytes);
    ssh_clean_pubkey_hash(&hash);
    if (!same) {
        failure->final = true;
        g_strlcpy(failure->text, "remote host key does not match host_key_check", sizeof failure->text);
    }
    return same;
}

static bool check_server(SshSource *s, CacheFailure *failure)
{
    const char *text = NULL;
    if (s->config.check == SSH_CHECK_NONE) {
        return true;
    }
    if (s->config.check == SSH_CHECK_HASH) {
        return check_hash(s, failure);
    }
    switch (ssh_session_is_known_server(s->session)) {
    case SSH_KNOWN_HOSTS_OK:
        return true;
    case SSH_KNOWN_HOSTS_CHANGED:
        text = "host key does not match the one in known_hosts; this may be an attack";
        break;
    case SSH_KNOWN_HOSTS_OTHER:
        text = "host key has another type than the one in known_hosts; this may be an attack";
        break;
    default:
        text = "no host key was found in known_hosts";
        break;
    }
    failure->final = true;
    g_strlcpy(failure->text, text, sizeof failure->text);
    return false;
}

static bool authenticate(SshSource *s, CacheFailure *failure)
{
    int ret = ssh_userauth_none(s->session, NULL);
    if (ret == SSH_AUTH_ERROR) {
        return fail(s, failure, "Authentication", false);
    }
    const int methods = ssh_userauth_list(s->session, NULL);
    if (ret != SSH_AUTH_SUCCESS && s->password && methods & SSH_AUTH_METHOD_PASSWORD) {
        ret = ssh_userauth_password(s->session, NULL, s->password);
    }
    if (ret != SSH_AUTH_SUCCESS && methods & SSH_AUTH_METHOD_PUBLICKEY) {
        ret = ssh_userauth_publickey_auto(s->session, NULL, NULL);
    }
    if (ret != SSH_AUTH_SUCCESS) {
        failure->final = ret != SSH_AUTH_ERROR;
        g_snprintf(
            failure->text, sizeof failure->text,
            "failed to authenticate as '%s' (by password-secret, identity, and the keys of the user and "
            "of the agent)",
            s->config.user);
    }
    return ret == SSH_AUTH_SUCCESS;
}

static int errno_of(SshSource *s)
{
    switch (sftp_get_error(s->sftp)) {
    case SSH_FX_NO_SUCH_FILE:
    case SSH_FX_NO_SUCH_PATH:
        return ENOENT;
    case SSH_FX_PERMISSION_DENIED:
        return EACCES;
    case SSH_FX_WRITE_PROTECT:
        return EROFS;
    case SSH_FX_NO_CONNECTION:
    case SSH_FX_CONNECTION_LOST:
    case SSH_FX_OK: /* not the server's word */
        return EHOSTUNREACH;
    default:
        return ssh_is_connected(s->session) ? EIO : EHOSTUNREACH;
    }
}

static bool open_file(SshSource *s, RemoteInfo *ret, CacheFailure *failure)
{
    const char *path = s->config.path;
    s->file = s->serial.write ? sftp_open(s->sftp, path, O_RDWR, 0) : NULL;
    ret->read_only = !s->file;
    if (!s->file) {
        s->file = sftp_open(s->sftp, path, O_RDONLY, 0);
    }
    sftp_attributes attributes = s->file ? sftp_fstat(s->file) : NULL;
    if (!attributes) {
        const int error = errno_of(s);
        failure->final = error != EHOSTUNREACH;
        g_snprintf(failure->text, sizeof failure->text, "failed to open remote file '%s': %s", path,
                   g_strerror(error));
        return false;
    }
    ret->size = attributes->size;
    ret->stamp =
        g_strdup_printf("%" G_GUINT64_FORMAT, attributes->mtime64 ? attributes->mtime64 : attributes->mtime);
    sftp_attributes_free(attributes);
    ret->most = ret->piece = PIECE;
    ret->flush = sftp_extension_supported(s->sftp, "fsync@openssh.com", "1");
    if (s->serial.write && !ret->read_only && !ret->flush) {
        ret->told = g_strdup("the server cannot flush: what was written may be lost with it");
    }
    return true;
}

static bool ssh_connect_source(SerialSource *serial, RemoteInfo *ret, CacheFailure *failure)
{
    SshSource *s = (SshSource *)serial;
    if (!set_options(s, failure)) {
        return false;
    }
    if (ssh_connect(s->session) != SSH_OK) {
        return fail(s, failure, "Could not connect", false);
    }
    serialmod_set_fd(serial, ssh_get_fd(s->session));
    if (!check_server(s, failure) || !authenticate(s, failure)) {
        return false;
    }
    s->sftp = sftp_new(s->session);
    if (!s->sftp || sftp_init(s->sftp) < 0) {
        return fail(s, failure, "No SFTP there", false);
    }
    return open_file(s, ret, failure);
}

static void ssh_disconnect_source(SerialSource *serial)
{
    SshSource *s = (SshSource *)serial;
    if (s->file) {
        sftp_close(s->file);
    }
    if (s->sftp) {
        sftp_free(s->sftp);
    }
    if (s->session) {
        ssh_disconnect(s->session);
        ssh_free(s->session);
    }
    s->file = NULL;
    s->sftp = NULL;
    s->session = NULL;
}

static int failed(SshSource *s, CacheFailure *failure)
{
    const int error = errno_of(s);
    if (error == EHOSTUNREACH) {
        return serialmod_lost(failure, "Connection to the server was lost");
    }
    g_snprintf(failure->text, sizeof failure->text, "Server reports: %s", g_strerror(error));
    return -error;
}

/* Takes the answers of all that was asked for, also after one that was short: the others are on their way. */
static int read_piece(SshSource *s, const RemoteCall *call, CacheFailure *failure)
{
    int ids[DEPTH];
    size_t lengths[DEPTH];
    unsigned asked = 0;
    uint64_t planned = 0, done = 0;
    bool short_answer = false, lost = false;
    if (sftp_seek64(s->file, call->offset) < 0) {
        return failed(s, failure);
    }
    for (; planned < call->bytes && asked < DEPTH && !lost; asked++, planned += lengths[asked - 1]) {
        lengths[asked] = MIN(PACKET, call->bytes - planned);
        ids[asked] = sftp_async_read_begin(s->file, lengths[asked]);
        lost = ids[asked] < 0;
    }
    for (unsigned i = 0; i < asked && !lost; i++) {
        uint8_t room[PACKET];
        const int n = sftp_async_read(s->file, room, lengths[i], ids[i]);
        lost = n < 0;
        if (!lost && !short_answer) {
            memcpy((uint8_t *)call->data + done, room, n);
            done += n;
            short_answer = (size_t)n < lengths[i];
            serialmod_alive(&s->serial, call->wait_s);
        }
    }
    if (lost) {
        /* Answers may still be on their way: the session is of no use. */
        const int ret = failed(s, failure);
        return ret == -EHOSTUNREACH ? ret
                                    : serialmod_lost(failure, "%s", failure->text[0] ? "Read error" : "");
    }
    return done;
}

static int ssh_read(SshSource *s, const RemoteCall *call, CacheFailure *failure)
{
    RemoteCall rest = *call;
    while (rest.bytes > 0) {
        const int n = read_piece(s, &rest, failure);
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            g_strlcpy(failure->text, "The file became shorter", sizeof failure->text);
            failure->final = true;
            return -EIO;
        }
        rest.data = (uint8_t *)rest.data + n;
        rest.offset += n;
        rest.bytes -= n;
    }
    return 0;
}

static int ssh_write(SshSource *s, const RemoteCall *call, CacheFailure *failure)
{
    if (sftp_seek64(s->file, call->offset) < 0) {
        return failed(s, failure);
    }
    for (uint64_t done = 0; done < call->bytes;) {
        const size_t n = MIN(PACKET, call->bytes - done);
        if (sftp_write(s->file, (const uint8_t *)call->data + done, n) != (ssize_t)n) {
            return failed(s, failure);
        }
        done += n;
        serialmod_alive(&s->serial, call->wait_s);
    }
    return 0;
}

static int ssh_run(SerialSource *serial, const RemoteCall *call, CacheFailure *failure)
{
    SshSource *s = (SshSource *)serial;
    switch (call->op) {
    case REMOTE_READ:
        return ssh_read(s, call, failure);
    case REMOTE_WRITE:
        return ssh_write(s, call, failure);
    case REMOTE_FLUSH:
        return sftp_fsync(s->file) < 0 ? failed(s, failure) : 0;
    default:
        return -ENOTSUP;
    }
}

static void ssh_source_free(SerialSource *serial)
{
    SshSource *s = (SshSource *)serial;
    g_free((char *)s->config.host);
    g_free((char *)s->config.user);
    g_free((char *)s->config.path);
    g_free((char *)s->config.hash);
    g_free((char *)s->config.known_hosts);
    g_free((char *)s->config.identity);
    if (s->password) {
        explicit_bzero(s->password, strlen(s->password));
        g_free(s->password);
    }
}

static void *module_open(const void *opaque, bool write, RemoteInfo *ret, GError **error)
{
    static const SerialOps ops = {.connect = ssh_connect_source,
                                  .disconnect = ssh_disconnect_source,
                                  .run = ssh_run,
                                  .free = ssh_source_free};
    const SshConfig *config = opaque;
    SshSource *s = g_new0(SshSource, 1);
    s->config = *config;
    s->config.host = g_strdup(config->host);
    s->config.user = g_strdup(config->user);
    s->config.path = g_strdup(config->path);
    s->config.hash = g_strdup(config->hash);
    s->config.known_hosts = g_strdup(config->known_hosts);
    s->config.identity = g_strdup(config->identity);
    s->config.password = NULL;
    if (config->password) {
        s->password = g_strndup((const char *)config->password->data, config->password->size);
    }
    s->serial.write = write;
    s->serial.wait_s = config->timeout_s;
    g_autofree char *prefix = g_strdup_printf("Failed to connect to '%s:%u'", config->host, config->port);
    return serialmod_start(&s->serial, &ops, prefix, ret, error) ? s : NULL;
}

extern const RemoteModule spindle_ssh_module;
const RemoteModule spindle_ssh_module = {
    .abi = REMOTE_MODULE_ABI,
    .open = module_open,
    .call = serialmod_call,
    .interrupt = serialmod_interrupt,
    .close = serialmod_close,
};
