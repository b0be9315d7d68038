/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Block nodes and the request boundary: everything that a device, a monitor or a tool sees of the block
 * layer.
 *
 * The request contract (each sentence is tested in tests/unit/test-block-request.c):
 *  1. block_submit() cannot fail and never calls `done` before it returns.
 *  2. `done` runs exactly once for each submitted request, on the loop thread.
 *  3. The request, its iovec array and the memory that it names stay untouched and alive until `done` runs.
 *  4. `result` is 0 or a negative errno; after an error the content of a read buffer is undefined.
 *  5. A range that is not inside the node, an odd write to a read-only node, a bad op complete with -EINVAL
 * or -EROFS; nothing reaches the driver.
 *  6. block_cancel() of a request that no worker has started completes it with -ECANCELED; else it changes
 * nothing.
 *  7. block_abandon() returns at once, whatever the driver does; `done` still runs once, later, so that the
 * owner can free; it may come with any result.
 *  8. Inside `done` the caller may submit (the same request again too), cancel, abandon, and unref nodes.
 *  9. A node with requests under way is not freed before they are done.
 * 10. Requests may complete in any order; a flush covers the writes whose `done` ran before the flush was
 * submitted.
 *
 * Loop thread, unless a comment says otherwise.
 */
#ifndef SPINDLE_BLOCK_BLOCK_H
#define SPINDLE_BLOCK_BLOCK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "util/options.h"

typedef struct BlockNode BlockNode;
typedef struct BlockRequest BlockRequest;
typedef struct BlockInfo BlockInfo;

struct BlockInfo {
    uint64_t size;  /* bytes; need not be a multiple of anything */
    uint32_t align; /* least alignment of offset, length and memory that spares a bounce buffer; power of two,
                       at least 1 */
    uint32_t opt_transfer; /* bytes a bulk request should have; at most BUFFER_MAX */
    bool read_only;        /* writes give -EROFS */
    bool slow;             /* remote or rotating: read-ahead pays */
    bool removable;        /* the medium may come and go (host drives); see block_medium_* */
    const char *driver;    /* as in `driver=` */
    const char *filename;  /* what it was opened from, as QEMU prints it, or "" */
};

typedef enum {
    BLOCK_READ,
    BLOCK_WRITE,
    BLOCK_FLUSH, /* everything written and completed before is on stable storage */
    BLOCK_DISCARD,
    BLOCK_WRITE_ZEROES,
} BlockOp;

typedef enum {
    BLOCK_FUA = 1 << 0,         /* on stable storage before `done` (write, write zeroes) */
    BLOCK_MAY_UNMAP = 1 << 1,   /* write zeroes may deallocate */
    BLOCK_BACKGROUND = 1 << 2,  /* read-ahead: never try read_now, never delay a foreground request for it */
    BLOCK_WRITE_BEHIND = 1 << 3 /* write: a flush will follow, so storage may begin at once; a hint */
} BlockFlags;

typedef void (*BlockDone)(BlockRequest *request);

struct BlockRequest {
    BlockNode *node;
    BlockOp op;
    BlockFlags flags;
    uint64_t offset;         /* bytes */
    uint64_t bytes;          /* equals iov_total() for read and write */
    const struct iovec *iov; /* NULL for the others */
    int niov;
    BlockDone done;
    void *opaque;
    int result; /* valid in `done` */
    /* private to request.c: zero it before the first submit */
    struct BlockRequestPrivate {
        void *work[8];
        int state;
        bool abandoned, hurried;
        BlockNode *held;
        int64_t started; /* us, when it had to wait for a worker */
        GList link;
        struct iovec inline_iov;
    } priv;
};

/* Fills a read or write of one contiguous piece; memory stays the caller's. */
void block_request_init(BlockRequest *request, BlockNode *node, BlockOp op, uint64_t offset, void *buf,
                        uint64_t bytes, BlockDone done, void *opaque);

void block_submit(BlockRequest *request);

/* Runs `done` of requests that completed without a worker and wait for the loop's next turn. A transport may
 * call this at the end of a message it handled, outside of any block_submit(), to spare the loop a poll;
 * inside a `done` it does nothing. */
void block_deliver_ready(void);

/* True: it was taken back and `done` will run with -ECANCELED (not inside this call). */
bool block_cancel(BlockRequest *request);

/* Nobody waits for the result any more. See sentence 7. */
void block_abandon(BlockRequest *request);

/* It is to end as soon as it can: no limit (throttle) holds it up any more, nor those who wait beside it. For
 * a request under way; in any other state nothing happens. */
void block_hurry(BlockRequest *request);

/* No limit of this node's chain holds anyone up any more, as for a node that goes away (`for_good`), or who
 * waits just now. */
void block_unlimit(BlockNode *node, bool for_good);

/* Waits until the workers have done all that does not wait for a limit or a breakpoint, at most `timeout_ms`
 * of real time. Runs `done`. For a clock that stands still: before and after it is moved. */
void block_settle(unsigned timeout_ms);

/* Opens a chain from `driver=`, … options (`node-name`, `read-only`, `cache.direct`, `cache.no-flush`,
 * `auto-read-only`, `discard`, `detect-zeroes` and the driver's own; a child is a `file.`-prefixed set of
 * options or the node name in `file`). May block (DNS, key derivation): at program start, or on a worker
 * through block_open_async(). A returned node has one reference. NULL and an error in QEMU's words. Any
 * thread. */
BlockNode *block_open(Options *options, GError **error);

/* As block_open(), on a worker: `done` gets the node (its reference) or the error (its to free), on the loop
 * thread. The options are held, and not the caller's to touch, until then. */
typedef void (*BlockOpened)(BlockNode *node, GError *error, void *opaque);
void block_open_async(Options *options, BlockOpened done, void *opaque);

/* Turns what people write after `file=`, `-cdrom` or as qemu-img's FILENAME (a path, `json:{…}`, `http://…`,
 * `nbd:…`, `/dev/sr0`) into options for block_open(), choosing the protocol driver; no format layer. NULL and
 * an error when the protocol is unknown. */
Options *block_options_from_filename(const char *filename, GError **error);

BlockNode *block_ref(BlockNode *node);

/* The last reference closes the node on a worker (flush first when written to); it leaves the name table at
 * once. NULL is allowed. Loop thread. */
void block_unref(BlockNode *node);

/* From now on this process cannot start others (a sandbox): what needs one to guard it is given one, also
 * what may still come by a monitor. */
void block_before_sandbox(bool may_open_more);

/* For the end of a program: wakes what hangs, runs the loop until no request, open or close is under way, and
 * ends the worker threads. False when something still hangs after timeout_ms: then the caller can only exit.
 * No node is usable afterwards but by opening it anew. */
bool block_shutdown(unsigned timeout_ms);

/* After block_shutdown() gave up: true when all that is left hangs in drives of the host. They may hang for
 * as long as they like, and nothing that anybody waits for is lost with them. */
bool block_drives_hang(void);

/* Says that the owner is going to write (a hard disk, a tool): takes the image's locks for writing, so that a
 * second writer is refused here and not in the middle of its work. The first write does the same, but can
 * only fail with -EBUSY. */
bool block_claim_write(BlockNode *node, GError **error);

/* A machine that moves to another process leaves it its images. Nodes opened while `on` take no locks. */
void block_open_released(bool on);
bool block_opens_released(void);
/* Takes the locks of all nodes, for reading (block_claim_write() does the rest). On failure none are held. */
bool block_hold_images(GError **error);
/* Lets go of all locks. A write then takes them anew, and fails while another process has them. */
void block_release_images(void);

/* Requests on the node that the drivers have: abandoned ones too. */
unsigned block_active(const BlockNode *node);

/* Whether `driver=` may be this. Any thread. */
bool block_has_driver(const char *name);

/* The node-name, user-given or generated (`#block042`). */
const char *block_name(const BlockNode *node);

/* A named node or NULL; no new reference. Any thread: the table is locked. */
BlockNode *block_find(const char *name);

/* All named nodes in order of creation (no references); free the list with g_list_free(). */
GList *block_list(void);

/* Facts of the node; they change only with a medium (listeners are told). Stays the node's. */
const BlockInfo *block_info(const BlockNode *node);

/* The node below by role ("file"; "image" of blkdebug) or NULL; no new reference. */
BlockNode *block_child(const BlockNode *node, const char *role);

/* What the drivers count: completed requests and bytes by op since open, and errors. */
typedef struct BlockStats {
    uint64_t ops[5], bytes[5], failed[5];
    uint64_t read_now, write_now; /* reads and writes done without a worker */
    uint64_t ns[5];               /* that requests made here waited for a worker and its source */
    uint64_t highest;             /* byte behind the farthest one written */
} BlockStats;
const BlockStats *block_stats(const BlockNode *node);

/* How a node on a server, or a cache, is doing. False for other nodes. Any thread. */
typedef enum {
    BLOCK_REMOTE_CONNECTED,
    BLOCK_REMOTE_RETRYING, /* the last try failed */
    BLOCK_REMOTE_STALLED,  /* a reader waits, and nothing has come for a second or more */
} BlockRemoteState;
typedef struct BlockRemoteStats {
    BlockRemoteState state;
    int64_t since_us;         /* RETRYING, STALLED: for so long */
    uint64_t served, fetched; /* bytes read from the node, bytes that came from the server */
    uint64_t from_file;       /* bytes, from the cache file */
    uint64_t hits, misses;    /* pieces of reads that were there, that had to wait */
    uint64_t failures;        /* fetches that went wrong, most of them unseen by the reader */
    uint64_t rate;            /* bytes a second, while something was being fetched lately */
} BlockRemoteStats;
bool block_remote_stats(BlockNode *node, BlockRemoteStats *ret);

/* A read that is answered inside the call, so that its memory need not outlive it: 0, -EAGAIN when only a
 * worker can tell, or another negative errno. Loop thread. */
int block_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

/* Blocking forms for tools, tests and workers: straight through the drivers on the calling thread. Any
 * thread. 0 or -errno. */
int block_pread(BlockNode *node, uint64_t offset, void *buf, uint64_t bytes);
int block_pwrite(BlockNode *node, uint64_t offset, const void *buf, uint64_t bytes, BlockFlags flags);
int block_flush(BlockNode *node);
int block_discard(BlockNode *node, uint64_t offset, uint64_t bytes);
int block_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags);
int block_resize(BlockNode *node, uint64_t size, GError **error);

/* What is at `offset`: *ret_bytes (at least 1, at most `bytes`) have the same status. Any thread. 0 or
 * -errno. */
typedef enum { BLOCK_STATUS_DATA = 1, BLOCK_STATUS_ZERO = 2, BLOCK_STATUS_ALLOCATED = 4 } BlockStatus;
int block_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status);

/* Breakpoints in the `blkdebug` node at or below `node`, as QEMU's `qemu-io` commands break, resume,
 * wait_break and remove_break: a request that reaches `event` ("write_aio", "flush_to_os", …) waits until its
 * tag is resumed. 0, -ENOTSUP without such a node, -ENOENT for an unknown event or tag. */
int block_debug_breakpoint(BlockNode *node, const char *event, const char *tag);
int block_debug_remove_breakpoint(BlockNode *node, const char *tag);
int block_debug_resume(BlockNode *node, const char *tag);
/* A breakpoint of that tag that no request has met yet, while requests are under way. Loop thread. */
bool block_debug_is_awaited(BlockNode *node, const char *tag);
bool block_debug_is_suspended(BlockNode *node, const char *tag);

/* Removable media. A driver whose BlockInfo says `removable` posts these on the loop thread. */
typedef enum {
    BLOCK_EVENT_MEDIUM, /* inserted, removed or changed, or the tray moved: block_info(), block_tray() and
                           block_medium_present() are already new */
    BLOCK_EVENT_EJECT_REQUEST, /* somebody pressed the button of a locked drive */
    BLOCK_EVENT_RESIZE,        /* size changed (block_resize) */
    BLOCK_EVENT_GONE,          /* the device was unplugged: there is no medium until BLOCK_EVENT_MEDIUM */
    BLOCK_EVENT_THRESHOLD,     /* a write went past the mark of block_set_write_threshold() (inspect.h) */
    BLOCK_EVENT_TRAY, /* a command for the tray is over, and no medium has changed by it: see block_tray() */
} BlockEvent;
typedef void (*BlockListener)(BlockNode *node, BlockEvent event, void *opaque);
void block_listen(BlockNode *node, BlockListener listener, void *opaque);
void block_unlisten(BlockNode *node, BlockListener listener, void *opaque);

/* True when there is a readable medium (always, for nodes that are not removable). A variable, no system
 * call. */
bool block_medium_present(const BlockNode *node);

/* The tray of a host drive, at or below `node`. These return at once; whether the tray moved is told by
 * BLOCK_EVENT_MEDIUM. Without a tray nothing happens. */
typedef enum {
    BLOCK_TRAY_NONE,
    BLOCK_TRAY_CLOSED,
    BLOCK_TRAY_LOADING, /* closed, and the drive is making a disc ready */
    BLOCK_TRAY_OPEN,
} BlockTray;
BlockTray block_tray(const BlockNode *node);
void block_move_tray(BlockNode *node, bool open);
/* Keeps the button from opening it. The lock goes with the node, or with the process. */
void block_lock_tray(BlockNode *node, bool locked);
/* Somebody wants to know whether the drive is ready. The kernel tells of a new disc but not of a tray that
 * was opened by hand, so the drive is asked, in a worker and not more often than every other second. */
void block_check_tray(BlockNode *node);

#endif
