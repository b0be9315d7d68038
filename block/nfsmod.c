/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The nfs module: one mount, one open file, one call at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <nfsc/libnfs.h>
#include <string.h>

#include "block/nfs.h"
#include "block/serialmod.h"
#include "util/error.h"

#define PIECE      ((uint64_t)512 * 1024)
#define PIECE_NFS4 ((uint64_t)256 * 1024) /* libnfs does not ask the server for its limit */

typedef struct NfsSource {
    SerialSource serial;
    char *url, *host, *folder, *file_name;
    unsigned timeout_s;
    bool version4;
    struct nfs_context *nfs;
    struct nfsfh *file;
} NfsSource;

/* libnfs tells a broken connection by errors that a server does not send. */
static int failed(NfsSource *s, int error, CacheFailure *failure)
{
    const char *text = nfs_get_error(s->nfs);
    if (error == -EIO || error == -EFAULT || error == -ETIMEDOUT || error == -EINTR || error == -EPIPE ||
        error == -ECONNREFUSED || error == -ENOTCONN || error == -ENOMEM) {
        return serialmod_lost(failure, "%s", text ? text : g_strerror(-error));
    }
    g_snprintf(failure->text, sizeof failure->text, "Server reports: %s", text ? text : g_strerror(-error));
    return error;
}

static bool open_file(NfsSource *s, const char *file, RemoteInfo *ret, CacheFailure *failure)
{
    struct nfs_stat_64 st;
    int error = s->serial.write ? nfs_open(s->nfs, file, O_RDWR, &s->file) : -EACCES;
    ret->read_only = error < 0;
#ifdef LIBNFS_WITHOUT_WRITE4
    if (error == 0 && s->version4) {
        ret->read_only = true;
        ret->told = g_strdup("this libnfs cannot write by NFS 4: use version=3");
    }
#endif
    if (error < 0) {
        error = nfs_open(s->nfs, file, O_RDONLY, &s->file);
    }
    if (error == 0) {
        error = nfs_fstat64(s->nfs, s->file, &st);
    } else {
        s->file = NULL;
    }
    if (error < 0) {
        failure->final = failed(s, error, failure) != -EHOSTUNREACH;
        return false;
    }
    ret->size = st.nfs_size;
    ret->stamp = g_strdup_printf("%" G_GUINT64_FORMAT ".%09" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                                 st.nfs_mtime, st.nfs_mtime_nsec, st.nfs_ino);
    const uint64_t limit = MIN(nfs_get_readmax(s->nfs), nfs_get_writemax(s->nfs));
    ret->most = ret->piece = limit ? MIN(PIECE, limit) : PIECE_NFS4;
    ret->flush = true;
    return true;
}

static bool nfs_connect_source(SerialSource *serial, RemoteInfo *ret, CacheFailure *failure)
{
    NfsSource *s = (NfsSource *)serial;
    s->nfs = nfs_init_context();
    /* What the URL says besides the path, which libnfs would take without its escapes. */
    struct nfs_url *url = s->nfs ? nfs_parse_url_incomplete(s->nfs, s->url) : NULL;
    if (!url) {
        failure->final = true;
        g_strlcpy(failure->text, s->nfs ? nfs_get_error(s->nfs) : "Out of memory", sizeof failure->text);
        return false;
    }
    nfs_destroy_url(url);
    nfs_set_autoreconnect(s->nfs, 0);
    nfs_set_timeout(s->nfs, s->timeout_s * 1000);
    const int error = nfs_mount(s->nfs, s->host, s->folder);
    if (error < 0) {
        const char *text = nfs_get_error(s->nfs);
        g_snprintf(failure->text, sizeof failure->text, "Failed to mount nfs share: %s",
                   text ? text : g_strerror(-error));
        return false;
    }
    serialmod_set_fd(serial, nfs_get_fd(s->nfs));
    return open_file(s, s->file_name, ret, failure);
}

static void nfs_disconnect_source(SerialSource *serial)
{
    NfsSource *s = (NfsSource *)serial;
    if (s->nfs) {
        /* Without nfs_close(): libnfs 4.0 would end that call a second time, in a frame that is gone. What it
         * costs is 150 bytes for each connection; data has been flushed, and the server closes the file when
         * the client is gone. */
        nfs_destroy_context(s->nfs);
    }
    s->file = NULL;
    s->nfs = NULL;
}

static int nfs_run(SerialSource *serial, const RemoteCall *call, CacheFailure *failure)
{
    NfsSource *s = (NfsSource *)serial;
    nfs_set_timeout(s->nfs, MIN(call->wait_s, 1000000u) * 1000);
    if (call->op == REMOTE_FLUSH) {
        const int ret = nfs_fsync(s->nfs, s->file);
        return ret < 0 ? failed(s, ret, failure) : 0;
    }
    if (call->op != REMOTE_READ && call->op != REMOTE_WRITE) {
        return -ENOTSUP;
    }
    for (uint64_t done = 0; done < call->bytes;) {
        uint8_t *data = (uint8_t *)call->data + done;
        const uint64_t bytes = call->bytes - done;
        const int n = call->op == REMOTE_READ ? nfs_pread(s->nfs, s->file, call->offset + done, bytes, data)
                                              : nfs_pwrite(s->nfs, s->file, call->offset + done, bytes, data);
        if (n < 0) {
            return failed(s, n, failure);
        }
        if (n == 0) {
            g_strlcpy(failure->text, "The file became shorter", sizeof failure->text);
            failure->final = true;
            return -EIO;
        }
        done += n;
        serialmod_alive(serial, call->wait_s);
    }
    return 0;
}

static void nfs_source_free(SerialSource *serial)
{
    NfsSource *s = (NfsSource *)serial;
    g_free(s->url);
    g_free(s->host);
    g_free(s->folder);
    g_free(s->file_name);
}

static void *module_open(const void *opaque, bool write, RemoteInfo *ret, GError **error)
{
    static const SerialOps ops = {.connect = nfs_connect_source,
                                  .disconnect = nfs_disconnect_source,
                                  .run = nfs_run,
                                  .free = nfs_source_free};
    const NfsConfig *config = opaque;
    NfsSource *s = g_new0(NfsSource, 1);
    s->url = g_strdup(config->url);
    s->host = g_strdup(config->host);
    s->folder = g_path_get_dirname(config->path);
    s->file_name = g_strdup(strrchr(config->path, '/'));
    s->timeout_s = config->timeout_s;
    s->version4 = config->version4;
    s->serial.write = write;
    s->serial.wait_s = config->timeout_s;
    g_autofree char *prefix = g_strdup_printf("Failed to open '%s'", config->name);
    return serialmod_start(&s->serial, &ops, prefix, ret, error) ? s : NULL;
}

extern const RemoteModule spindle_nfs_module;
const RemoteModule spindle_nfs_module = {
    .abi = REMOTE_MODULE_ABI,
    .open = module_open,
    .call = serialmod_call,
    .interrupt = serialmod_interrupt,
    .close = serialmod_close,
};
