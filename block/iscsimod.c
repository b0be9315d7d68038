/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The iscsi module: one session, one command at a time.
 */
#include <errno.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <string.h>

#include "block/iscsi.h"
#include "block/serialmod.h"
#include "util/error.h"

#define PIECE       (512 * 1024)
#define ATTENTIONS  8 /* unit attentions in a row */
#define BUSY_US     100000
#define WP_BIT      0x80
#define ALIGN_MAX   4096
#define UNMAP_BYTES ((uint64_t)64 * 1024 * 1024)

typedef struct IscsiSource {
    SerialSource serial;
    IscsiConfig config; /* with copies */
    char *password;
    struct iscsi_context *iscsi;
    uint32_t block; /* bytes */
} IscsiSource;

/* What became of a task: 0, -EAGAIN (once more), -EHOSTUNREACH or what the target said. Frees it. */
static int judge(IscsiSource *s, struct scsi_task *task, CacheFailure *failure)
{
    int ret = -EIO;
    if (!task) {
        return serialmod_lost(failure, "%s", iscsi_get_error(s->iscsi));
    }
    if (task->status == SCSI_STATUS_GOOD) {
        ret = 0;
    } else if (task->status == SCSI_STATUS_CHECK_CONDITION && task->sense.key == SCSI_SENSE_UNIT_ATTENTION) {
        ret = -EAGAIN;
    } else if (task->status == SCSI_STATUS_BUSY || task->status == SCSI_STATUS_TASK_SET_FULL) {
        g_usleep(BUSY_US);
        ret = -EAGAIN;
    } else if (task->status > 0xff) { /* libiscsi's own: error, time-out, cancelled */
        ret = serialmod_lost(failure, "%s", iscsi_get_error(s->iscsi));
    } else {
        g_snprintf(failure->text, sizeof failure->text, "Target reports: %s", iscsi_get_error(s->iscsi));
        ret = task->status == SCSI_STATUS_CHECK_CONDITION && task->sense.key == SCSI_SENSE_DATA_PROTECTION
                  ? -EROFS
                  : -EIO;
    }
    scsi_free_scsi_task(task);
    return ret;
}

static struct scsi_task *start(IscsiSource *s, const RemoteCall *call)
{
    const uint64_t lba = call->offset / s->block;
    const unsigned lun = s->config.lun;
    switch (call->op) {
    case REMOTE_READ:
        return iscsi_read16_sync(s->iscsi, lun, lba, call->bytes, s->block, 0, 0, 0, 0, 0);
    case REMOTE_WRITE:
        return iscsi_write16_sync(s->iscsi, lun, lba, call->data, call->bytes, s->block, 0, 0, call->fua, 0,
                                  0);
    case REMOTE_FLUSH:
        return iscsi_synchronizecache16_sync(s->iscsi, lun, 0, 0, 0, 0);
    default:
        break;
    }
    struct unmap_list list = {.lba = lba, .num = call->bytes / s->block};
    return iscsi_unmap_sync(s->iscsi, lun, 0, 0, &list, 1);
}

static int run_once(IscsiSource *s, const RemoteCall *call, CacheFailure *failure)
{
    int ret = -EAGAIN;
    for (unsigned i = 0; ret == -EAGAIN && i < ATTENTIONS; i++) {
        struct scsi_task *task = start(s, call);
        if (task && task->status == SCSI_STATUS_GOOD && call->op == REMOTE_READ) {
            if (task->datain.size < 0 || (uint64_t)task->datain.size < call->bytes) {
                scsi_free_scsi_task(task);
                g_strlcpy(failure->text, "Target sent less than was asked for", sizeof failure->text);
                return -EIO;
            }
            memcpy(call->data, task->datain.data, call->bytes);
        }
        ret = judge(s, task, failure);
    }
    return ret == -EAGAIN ? -EBUSY : ret;
}

static int iscsi_run(SerialSource *serial, const RemoteCall *call, CacheFailure *failure)
{
    IscsiSource *s = (IscsiSource *)serial;
    RemoteCall rest = *call;
    int ret = call->op == REMOTE_ZERO ? -ENOTSUP : 0;
    iscsi_set_timeout(s->iscsi, call->wait_s);
    if (call->op != REMOTE_DISCARD || ret < 0) {
        return ret < 0 ? ret : run_once(s, call, failure);
    }
    while (ret == 0 && rest.bytes > 0) {
        RemoteCall part = rest;
        part.bytes = MIN(rest.bytes, UNMAP_BYTES);
        ret = run_once(s, &part, failure);
        rest.offset += part.bytes;
        rest.bytes -= part.bytes;
    }
    return ret;
}

/* READ CAPACITY (16), or (10) for devices without. */
static int read_capacity(IscsiSource *s, RemoteInfo *ret, CacheFailure *failure)
{
    int result = -EAGAIN;
    for (unsigned i = 0; result == -EAGAIN && i < ATTENTIONS; i++) {
        struct scsi_task *task = iscsi_readcapacity16_sync(s->iscsi, s->config.lun);
        struct scsi_readcapacity16 *rc =
            task && task->status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(task) : NULL;
        if (rc) {
            s->block = rc->block_length;
            ret->size = (rc->returned_lba + 1) * rc->block_length;
            ret->discard = rc->lbpme;
        }
        result = judge(s, task, failure);
    }
    if (result != -EIO) {
        return result;
    }
    struct scsi_task *task = iscsi_readcapacity10_sync(s->iscsi, s->config.lun, 0, 0);
    struct scsi_readcapacity10 *rc =
        task && task->status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(task) : NULL;
    if (rc) {
        s->block = rc->block_size;
        ret->size = ((uint64_t)rc->lba + 1) * rc->block_size;
    }
    return judge(s, task, failure);
}

static bool is_protected(IscsiSource *s)
{
    struct scsi_task *task = iscsi_modesense6_sync(s->iscsi, s->config.lun, 1, SCSI_MODESENSE_PC_CURRENT,
                                                   SCSI_MODEPAGE_RETURN_ALL_PAGES, 0, 255);
    const bool told =
        task && task->status == SCSI_STATUS_GOOD && task->datain.size > 2 && task->datain.data[2] & WP_BIT;
    if (task) {
        scsi_free_scsi_task(task);
    }
    return told;
}

static bool fail(IscsiSource *s, CacheFailure *failure, const char *what)
{
    g_snprintf(failure->text, sizeof failure->text, "%s: %s", what, iscsi_get_error(s->iscsi));
    return false;
}

static bool set_options(IscsiSource *s, CacheFailure *failure)
{
    static const enum iscsi_header_digest digests[] = {ISCSI_HEADER_DIGEST_CRC32C, ISCSI_HEADER_DIGEST_NONE,
                                                       ISCSI_HEADER_DIGEST_CRC32C_NONE,
                                                       ISCSI_HEADER_DIGEST_NONE_CRC32C};
    const IscsiConfig *c = &s->config;
    s->iscsi = iscsi_create_context(c->initiator);
    if (!s->iscsi) {
        g_strlcpy(failure->text, "Out of memory", sizeof failure->text);
        return false;
    }
    iscsi_set_noautoreconnect(s->iscsi, 1);
    iscsi_set_timeout(s->iscsi, c->timeout_s);
    if (iscsi_set_targetname(s->iscsi, c->target) || iscsi_set_session_type(s->iscsi, ISCSI_SESSION_NORMAL) ||
        iscsi_set_header_digest(s->iscsi, digests[c->digest]) ||
        (s->password && iscsi_set_initiator_username_pwd(s->iscsi, c->user, s->password))) {
        failure->final = true;
        return fail(s, failure, "Options");
    }
    return true;
}

static bool iscsi_connect_source(SerialSource *serial, RemoteInfo *ret, CacheFailure *failure)
{
    IscsiSource *s = (IscsiSource *)serial;
    if (!set_options(s, failure)) {
        return false;
    }
    if (iscsi_full_connect_sync(s->iscsi, s->config.portal, s->config.lun)) {
        return fail(s, failure, "Could not log in");
    }
    serialmod_set_fd(serial, iscsi_get_fd(s->iscsi));
    if (read_capacity(s, ret, failure) < 0) {
        return false;
    }
    if (s->block < 512 || s->block > ALIGN_MAX || (s->block & (s->block - 1))) {
        failure->final = true;
        g_snprintf(failure->text, sizeof failure->text, "Blocks of %u bytes are not supported", s->block);
        return false;
    }
    ret->align = s->block;
    ret->read_only = is_protected(s);
    ret->most = ret->piece = PIECE;
    ret->flush = ret->fua = true;
    return true;
}

static void iscsi_disconnect_source(SerialSource *serial)
{
    IscsiSource *s = (IscsiSource *)serial;
    if (s->iscsi) {
        iscsi_destroy_context(s->iscsi);
        s->iscsi = NULL;
    }
}

static void iscsi_source_free(SerialSource *serial)
{
    IscsiSource *s = (IscsiSource *)serial;
    g_free((char *)s->config.portal);
    g_free((char *)s->config.target);
    g_free((char *)s->config.initiator);
    g_free((char *)s->config.user);
    if (s->password) {
        explicit_bzero(s->password, strlen(s->password));
        g_free(s->password);
    }
}

static void *module_open(const void *opaque, bool write, RemoteInfo *ret, GError **error)
{
    static const SerialOps ops = {.connect = iscsi_connect_source,
                                  .disconnect = iscsi_disconnect_source,
                                  .run = iscsi_run,
                                  .free = iscsi_source_free};
    const IscsiConfig *config = opaque;
    IscsiSource *s = g_new0(IscsiSource, 1);
    s->config = *config;
    s->config.portal = g_strdup(config->portal);
    s->config.target = g_strdup(config->target);
    s->config.initiator = g_strdup(config->initiator);
    s->config.user = g_strdup(config->user);
    s->config.password = NULL;
    if (config->password) {
        s->password = g_strndup((const char *)config->password->data, config->password->size);
    }
    s->serial.write = write;
    s->serial.wait_s = config->timeout_s;
    g_autofree char *prefix = g_strdup_printf("iSCSI: Failed to connect to LUN %u of '%s' at '%s'",
                                              config->lun, config->target, config->portal);
    return serialmod_start(&s->serial, &ops, prefix, ret, error) ? s : NULL;
}

extern const RemoteModule spindle_iscsi_module;
const RemoteModule spindle_iscsi_module = {
    .abi = REMOTE_MODULE_ABI,
    .open = module_open,
    .call = serialmod_call,
    .interrupt = serialmod_interrupt,
    .close = serialmod_close,
};
