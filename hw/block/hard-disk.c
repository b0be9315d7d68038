/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 *   request:  submit            fails, policy "stop"
 *     RUNNING ------> done, gone
 *      | ^  '----------------------> KEPT --.
 *      | '---------- hard_disk_resume() ----'
 *      | abandon of a write               submit while there are LATE ones
 *      '----------> LATE --> gone           WAITING --> RUNNING when the last one is gone
 *
 * RUNNING: the block layer has it; an abandoned read or flush frees itself at its end. LATE: a write that its
 * command does not wait for any more. It was on its way with its own data, so it ends where it was to go, and
 * before what is submitted after it: else it could overwrite something newer. KEPT, WAITING: only the disk's
 * list has it; an abandoned one is freed at once.
 */
#include "hw/block/hard-disk.h"

#include <errno.h>

#include "util/checked.h"
#include "util/error.h"
#include "util/trace.h"

#define SECTOR 512 /* the least a disk must hold, bytes */

typedef enum { REQUEST_RUNNING, REQUEST_KEPT, REQUEST_LATE, REQUEST_WAITING } RequestState;

struct HardDiskRequest {
    BlockRequest block;
    struct iovec iov;
    HardDisk *disk; /* NULL: abandoned, and nothing follows from its end */
    Buffer *buffer;
    HardDiskDone done;
    void *opaque;
    RequestState state;
    GList link; /* in the disk's list of the state */
};

struct HardDisk {
    char *id;
    BlockNode *node;
    OnError rerror, werror;
    bool write_back, write_back_config;
    unsigned live; /* requests whose `done` is due */
    GQueue kept, late, waiting;
    HardDiskFailed failed;
    void *failed_opaque;
};

HardDisk *hard_disk_new(const HardDiskConfig *config, GError **error)
{
    const BlockInfo *info = block_info(config->node);
    HardDisk *disk;

    if (info->read_only) {
        error_set(error, "Block node is read-only");
        return NULL;
    }
    if (info->size < SECTOR) {
        error_set(error, "Device '%s' is too small for a hard disk: it needs at least %d bytes",
                  block_name(config->node), SECTOR);
        return NULL;
    }
    if (!config->released && !block_claim_write(config->node, error)) {
        return NULL;
    }
    disk = g_new0(HardDisk, 1);
    disk->id = g_strdup(config->id);
    disk->node = block_ref(config->node);
    disk->rerror = config->rerror;
    disk->werror = config->werror;
    disk->write_back = config->write_back;
    disk->write_back_config = config->write_back;
    g_queue_init(&disk->kept);
    g_queue_init(&disk->late);
    g_queue_init(&disk->waiting);
    return disk;
}

/* Nobody is interested in its end. */
static void request_orphan(HardDiskRequest *request)
{
    request->disk = NULL;
    request->state = REQUEST_RUNNING;
    if (!block_cancel(&request->block)) {
        block_abandon(&request->block);
    }
}

void hard_disk_free(HardDisk *disk)
{
    if (disk) {
        g_assert(!disk->live && !disk->kept.length && !disk->waiting.length);
        while (disk->late.head) {
            request_orphan(g_queue_pop_head_link(&disk->late)->data);
        }
        block_unref(disk->node);
        g_free(disk->id);
        g_free(disk);
    }
}

bool hard_disk_hold(HardDisk *disk, GError **error)
{
    return block_claim_write(disk->node, error);
}

bool hard_disk_idle(const HardDisk *disk)
{
    return block_active(disk->node) == 0;
}

const char *hard_disk_id(const HardDisk *disk)
{
    return disk->id;
}

BlockNode *hard_disk_node(const HardDisk *disk)
{
    return disk->node;
}

void hard_disk_replace_node(HardDisk *disk, BlockNode *node)
{
    block_ref(node);
    block_unref(disk->node);
    disk->node = node;
}

void hard_disk_report_errors(HardDisk *disk)
{
    disk->rerror = disk->werror = ON_ERROR_REPORT;
}

uint64_t hard_disk_size(const HardDisk *disk)
{
    return block_info(disk->node)->size;
}

void hard_disk_set_write_back(HardDisk *disk, bool on)
{
    disk->write_back = on;
}

bool hard_disk_write_back(const HardDisk *disk)
{
    return disk->write_back;
}

void hard_disk_reset(HardDisk *disk)
{
    disk->write_back = disk->write_back_config;
}

static void request_free(HardDiskRequest *request)
{
    buffer_unref(request->buffer);
    g_free(request);
}

static OnError action_for(const HardDisk *disk, BlockOp op, int error)
{
    return on_error_action(op == BLOCK_READ ? disk->rerror : disk->werror, error);
}

static void request_list(HardDiskRequest *request, RequestState state, GQueue *list)
{
    request->state = state;
    request->link = (GList){.data = request};
    g_queue_push_tail_link(list, &request->link);
}

static void request_start(HardDiskRequest *request)
{
    HardDisk *disk = request->disk;

    if (disk->late.length) {
        request_list(request, REQUEST_WAITING, &disk->waiting);
        return;
    }
    request->state = REQUEST_RUNNING;
    request->block.node = disk->node; /* which may be another by now */
    block_submit(&request->block);
}

/* A late one has ended. */
static void request_late_over(HardDiskRequest *request)
{
    HardDisk *disk = request->disk;

    g_queue_unlink(&disk->late, &request->link);
    request_free(request);
    while (!disk->late.length && disk->waiting.head) {
        request_start(g_queue_pop_head_link(&disk->waiting)->data);
    }
}

static void request_over(HardDiskRequest *request, int result)
{
    HardDiskDone done = request->done;
    void *opaque = request->opaque;

    request->disk->live--;
    request_free(request);
    done(opaque, result);
}

static void request_failed(HardDiskRequest *request)
{
    HardDisk *disk = request->disk;
    BlockOp op = request->block.op;
    int error = request->block.result;
    OnError action = action_for(disk, op, error);

    trace(hard_disk_failed, disk->id ? disk->id : "", (int)op, error, (int)action);
    if (action == ON_ERROR_STOP) {
        request_list(request, REQUEST_KEPT, &disk->kept);
    }
    if (disk->failed) {
        disk->failed(disk, op, error, action, disk->failed_opaque);
    }
    if (action != ON_ERROR_STOP) {
        request_over(request, action == ON_ERROR_IGNORE ? 0 : error);
    }
}

static void block_done(BlockRequest *block)
{
    HardDiskRequest *request = block->opaque;

    if (!request->disk) {
        request_free(request);
    } else if (request->state == REQUEST_LATE) {
        request_late_over(request);
    } else if (block->result < 0 && !(block->op == BLOCK_DISCARD && block->result == -ENOTSUP)) {
        request_failed(request);
    } else {
        request_over(request, 0);
    }
}

HardDiskRequest *hard_disk_submit(HardDisk *disk, BlockOp op, uint64_t offset, Buffer *buffer, size_t at,
                                  uint64_t bytes, bool fua, HardDiskDone done, void *opaque)
{
    HardDiskRequest *request = g_new0(HardDiskRequest, 1);
    BlockRequest *block = &request->block;

    request->disk = disk;
    request->done = done;
    request->opaque = opaque;
    block->op = op;
    block->offset = offset;
    block->bytes = bytes;
    block->flags = fua || (op == BLOCK_WRITE && !disk->write_back) ? BLOCK_FUA : 0;
    block->done = block_done;
    block->opaque = request;
    if (buffer) {
        request->buffer = buffer_ref(buffer);
        request->iov = (struct iovec){.iov_base = buffer->data + at, .iov_len = bytes};
        block->iov = &request->iov;
        block->niov = 1;
    }
    disk->live++;
    request_start(request);
    return request;
}

void hard_disk_abandon(HardDiskRequest *request)
{
    HardDisk *disk = request->disk;

    disk->live--;
    if (request->state != REQUEST_RUNNING) {
        g_queue_unlink(request->state == REQUEST_KEPT ? &disk->kept : &disk->waiting, &request->link);
        request_free(request);
    } else if (request->block.op == BLOCK_READ || request->block.op == BLOCK_FLUSH) {
        request_orphan(request);
    } else {
        request_list(request, REQUEST_LATE, &disk->late);
        block_hurry(&request->block);
    }
}

int hard_disk_read_now(HardDisk *disk, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov)
{
    if (disk->late.length || !range_inside(offset, bytes, hard_disk_size(disk))) {
        return -EAGAIN;
    }
    return block_read_now(disk->node, offset, bytes, iov, niov) < 0 ? -EAGAIN : 0;
}

void hard_disk_on_failed(HardDisk *disk, HardDiskFailed failed, void *opaque)
{
    disk->failed = failed;
    disk->failed_opaque = opaque;
}

/* Only those kept now: one that fails again is kept behind them for the next time. */
void hard_disk_resume(HardDisk *disk)
{
    for (unsigned n = disk->kept.length; n > 0; n--) {
        request_start(g_queue_pop_head_link(&disk->kept)->data);
    }
}

unsigned hard_disk_kept(const HardDisk *disk)
{
    return disk->kept.length;
}
