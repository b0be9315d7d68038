/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The rbd module. librbd takes calls from several threads at once, and finds its servers again by itself;
 * what it cannot do in time fails by its own time-outs.
 */
#include <errno.h>
#include <rbd/librbd.h>
#include <string.h>

#include "block/rbd.h"
#include "util/error.h"

#define PIECE ((uint32_t)1024 * 1024)

typedef struct RbdSource {
    rados_t cluster;
    rados_ioctx_t io;
    rbd_image_t image;
    bool connected, has_io, has_image;
    gint stopped; /* atomic */
    unsigned timeout_s;
} RbdSource;

static bool set_one(RbdSource *s, const char *name, const char *value, GError **error)
{
    const int ret = value ? rados_conf_set(s->cluster, name, value) : 0;
    return ret == 0 || error_set_errno(error, ret, "invalid conf option %s", name);
}

static bool configure(RbdSource *s, const RbdConfig *c, GError **error)
{
    g_autofree char *seconds = g_strdup_printf("%u", c->timeout_s);
    int ret = rados_conf_read_file(s->cluster, c->conf);
    if (ret < 0 && c->conf) {
        return error_set_errno(error, ret, "error reading conf file %s", c->conf);
    }
    g_autofree char *key = c->key ? g_strndup((const char *)c->key->data, c->key->size) : NULL;
    bool good = set_one(s, "mon_host", c->monitors, error) &&
                set_one(s, "auth_client_required", c->auth, error) && set_one(s, "key", key, error) &&
                set_one(s, "rados_osd_op_timeout", seconds, error) &&
                set_one(s, "rados_mon_op_timeout", seconds, error) &&
                set_one(s, "client_mount_timeout", seconds, error) &&
                /* Ours does it, and a drive's writes are not to wait in memory. */
                set_one(s, "rbd_cache", "false", error);
    for (const char *const *p = c->settings; good && p && *p; p += 2) {
        good = set_one(s, p[0], p[1], error);
    }
    if (key) {
        explicit_bzero(key, strlen(key));
    }
    return good;
}

static void module_close(void *source)
{
    RbdSource *s = source;
    if (s->has_image) {
        rbd_close(s->image);
    }
    if (s->has_io) {
        rados_ioctx_destroy(s->io);
    }
    if (s->cluster) {
        rados_shutdown(s->cluster);
    }
    g_free(s);
}

static bool open_image(RbdSource *s, const RbdConfig *c, bool write, RemoteInfo *ret, GError **error)
{
    int result = rados_connect(s->cluster);
    if (result < 0) {
        return error_set_errno(error, result, "error connecting");
    }
    result = rados_ioctx_create(s->cluster, c->pool, &s->io);
    if (result < 0) {
        return error_set_errno(error, result, "error opening pool %s", c->pool);
    }
    s->has_io = true;
    rados_ioctx_set_namespace(s->io, c->name_space ? c->name_space : "");
    ret->read_only = !write || c->snapshot;
    result = ret->read_only ? rbd_open_read_only(s->io, c->image, &s->image, c->snapshot)
                            : rbd_open(s->io, c->image, &s->image, NULL);
    if (result == -EROFS && !ret->read_only) {
        ret->read_only = true;
        result = rbd_open_read_only(s->io, c->image, &s->image, c->snapshot);
    }
    if (result < 0) {
        return error_set_errno(error, result, "error reading header from %s", c->image);
    }
    s->has_image = true;
    result = rbd_get_size(s->image, &ret->size);
    return result == 0 || error_set_errno(error, result, "error getting image size from %s", c->image);
}

static void *module_open(const void *opaque, bool write, RemoteInfo *ret, GError **error)
{
    const RbdConfig *c = opaque;
    RbdSource *s = g_new0(RbdSource, 1);
    const int result = rados_create(&s->cluster, c->user);
    s->timeout_s = c->timeout_s;
    if (result < 0) {
        error_set_errno(error, result, "error initializing");
        s->cluster = NULL;
    } else if (configure(s, c, error) && open_image(s, c, write, ret, error)) {
        ret->most = ret->piece = PIECE;
        ret->flush = ret->discard = ret->zero = true;
        return s;
    }
    module_close(s);
    return NULL;
}

static int judge(int result, const RemoteCall *call, CacheFailure *failure)
{
    if (result >= 0) {
        const bool whole = call->op != REMOTE_READ || (uint64_t)result == call->bytes;
        if (!whole) {
            g_strlcpy(failure->text, "The image became shorter", sizeof failure->text);
        }
        failure->final = !whole;
        return whole ? 0 : -EIO;
    }
    g_snprintf(failure->text, sizeof failure->text, "Cluster reports: %s", g_strerror(-result));
    return result == -ETIMEDOUT || result == -ENOTCONN ? -EHOSTUNREACH : result;
}

static int module_call(void *source, const RemoteCall *call, CacheFailure *ret)
{
    RbdSource *s = source;
    ssize_t result = -ENOTSUP;
    if (g_atomic_int_get(&s->stopped)) {
        return -ECANCELED;
    }
    switch (call->op) {
    case REMOTE_READ:
        result = rbd_read2(s->image, call->offset, call->bytes, call->data, 0);
        break;
    case REMOTE_WRITE:
        result = rbd_write2(s->image, call->offset, call->bytes, call->data, 0);
        break;
    case REMOTE_FLUSH:
        result = rbd_flush(s->image);
        break;
    case REMOTE_DISCARD:
        result = rbd_discard(s->image, call->offset, call->bytes);
        break;
    case REMOTE_ZERO:
        result = rbd_write_zeroes(s->image, call->offset, call->bytes,
                                  call->unmap ? 0 : RBD_WRITE_ZEROES_FLAG_THICK_PROVISION, 0);
        break;
    }
    return judge(MAX(result, G_MININT), call, ret);
}

static void module_interrupt(void *source, bool for_good)
{
    RbdSource *s = source;
    if (for_good) {
        g_atomic_int_set(&s->stopped, 1);
    }
}

extern const RemoteModule spindle_rbd_module;
const RemoteModule spindle_rbd_module = {
    .abi = REMOTE_MODULE_ABI,
    .open = module_open,
    .call = module_call,
    .interrupt = module_interrupt,
    .close = module_close,
};
