/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * For block drivers only: the driver table and what a driver may call. Drivers are plain blocking functions
 * that call their child; they run on worker threads, several at once when `parallel` is set, else one at a
 * time per node (request.c takes the lock, nobody else). A driver touches only its own node's `state`. Absent
 * functions have the default named beside them.
 */
#ifndef SPINDLE_BLOCK_BLOCK_INT_H
#define SPINDLE_BLOCK_BLOCK_INT_H

#include "block/block.h"
#include "block/packet.h"

/* The events that Spindle's layers reach, out of QEMU's list. */
typedef enum {
    BLOCK_DEBUG_NONE,
    BLOCK_DEBUG_READ_AIO,
    BLOCK_DEBUG_WRITE_AIO,
    BLOCK_DEBUG_PWRITEV,
    BLOCK_DEBUG_PWRITEV_ZERO,
    BLOCK_DEBUG_PWRITEV_DONE,
    BLOCK_DEBUG_FLUSH_TO_OS,
    BLOCK_DEBUG_FLUSH_TO_DISK,
    BLOCK_DEBUG_EVENTS,
} BlockDebugEvent;

typedef struct BlockDebugOps {
    int (*breakpoint)(BlockNode *node, const char *event, const char *tag);
    int (*remove_breakpoint)(BlockNode *node, const char *tag);
    int (*resume)(BlockNode *node, const char *tag);
    bool (*is_suspended)(BlockNode *node, const char *tag);
    bool (*has_breakpoint)(BlockNode *node, const char *tag); /* that no request has met yet */
} BlockDebugOps;

/* A drive that has a tray of its own; see block_tray() and the functions beside it. Loop thread, must not
 * block: what comes of it is told by events. */
typedef struct BlockTrayOps {
    BlockTray (*state)(const BlockNode *node);
    void (*move)(BlockNode *node, bool open);
    void (*lock)(BlockNode *node, bool locked);
    void (*check)(BlockNode *node);
} BlockTrayOps;

/* A drive that takes commands as they are: the functions of block/packet.h. */
typedef struct BlockPacketOps {
    uint32_t (*max)(const BlockNode *node);
    void (*submit)(BlockNode *node, BlockPacket *packet); /* sets packet->abandon */
    bool (*check_write)(const BlockNode *node, GError **error);
} BlockPacketOps;

typedef struct BlockDriver {
    const char *name;  /* `driver=` */
    bool parallel;     /* functions may run on several threads at once */
    size_t state_size; /* bytes of zeroed state allocated per node */
    const char *const
        *protocols; /* NULL-terminated URL schemes that block_options_from_filename() maps here, or NULL */

    /* Opens from options (getters mark what was used; the core reports the unused ones); children by
     * block_node_open_child(). Sets node->info. May block; any thread. On failure it frees what it made
     * (close is not called) and sets the error. */
    bool (*open)(BlockNode *node, Options *options, GError **error);
    void (*close)(BlockNode *node); /* nothing to do */

    /* 0 or -errno, all or nothing; the range is inside info.size. Alignment to info.align of offset, bytes
     * and memory is assured by the core (bounce buffers, read-modify-write at edges) when info.align > 1,
     * except at the end of the node: the last piece may be short. */
    int (*preadv)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
    int (*pwritev)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                   BlockFlags flags); /* -EROFS */
    int (*flush)(BlockNode *node);    /* flush every child; only called after a write through this node */
    int (*discard)(BlockNode *node, uint64_t offset, uint64_t bytes); /* 0: ignored */
    int (*write_zeroes)(BlockNode *node, uint64_t offset, uint64_t bytes,
                        BlockFlags flags); /* writes of a zero buffer */

    /* The answer without blocking, on the loop thread: 0, -EAGAIN (use a worker) or another -errno. Absent:
     * -EAGAIN. */
    int (*read_now)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

    /* The same for a write without flags: 0, or -EAGAIN when a worker has to do it (anew, if a part was
     * written): it finds out what is wrong, too. Absent: -EAGAIN. */
    int (*write_now)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

    int (*status)(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                  unsigned *ret_status);                           /* all data */
    int (*resize)(BlockNode *node, uint64_t size, GError **error); /* "does not support resize", -ENOTSUP */

    /* Wakes a worker that waits inside this node, as at close or abandon (network, fault layer). Any thread.
     * Absent: nothing to wake. */
    void (*interrupt)(BlockNode *node);

    /* Who waits in this node for a limit passes: now, or from now on for ever. Loop thread. Absent: there are
     * no limits. */
    void (*hurry)(BlockNode *node, bool for_good);

    /* The node below changed its info (medium, size): work out node->info anew; size by
     * block_node_set_size(). Loop thread, must not block. Absent: nothing depends on the child. */
    void (*refresh)(BlockNode *node);

    /* The node above reached a point in its work (fault injection): QEMU's BlkdebugEvent. May block. Absent:
     * nobody cares. */
    void (*debug_event)(BlockNode *node, BlockDebugEvent event);
    /* The functions of block.h. Absent: the child's. */
    const BlockDebugOps *debug;

    /* Absent: the child's. */
    const BlockTrayOps *tray;
    const BlockPacketOps *packet;

    /* Takes over the options `reopen_names` (NULL-terminated) from new ones, or only says whether it could
     * (block/reopen.h). Loop thread, must not block. Absent: it has none that may change. */
    bool (*reopen)(BlockNode *node, Options *options, bool apply, GError **error);
    const char *const *reopen_names;

    /* Bytes of storage that the image takes, or -errno. May block; any thread. Absent: the child's. */
    int64_t (*allocated)(BlockNode *node);

    /* What block_remote_stats() tells. Absent: nothing to tell. */
    void (*remote_stats)(BlockNode *node, BlockRemoteStats *ret);

    /* Takes the image's locks for writing, if it has any. Any thread. Absent: claims the child. */
    bool (*claim_write)(BlockNode *node, GError **error);

    /* Takes its own image's locks again, for reading, or lets go of all of them. Any thread. Absent: it has
     * none. */
    bool (*hold)(BlockNode *node, bool on, GError **error);
} BlockDriver;

struct BlockNode {
    const BlockDriver *driver;
    BlockInfo info;
    void *state;
    char *name;
    char *filename;       /* info.filename points here */
    struct BlockToc *toc; /* toc.h: a disc image's, made by open; freed with the node. NULL: none */
    BlockNode *child;     /* role "file", or what block_node_open_child() was told; reference held */
    /* private to node.c and request.c */
    struct BlockNodePrivate *priv;
};

/* The table of compiled-in drivers (drivers.c). */
const BlockDriver *block_driver_find(const char *name);
const BlockDriver *const *block_drivers(void); /* NULL-terminated */

/* Tells a node that the one above reached a point. */
static inline void block_node_debug_event(BlockNode *node, BlockDebugEvent event)
{
    if (node->driver->debug_event) {
        node->driver->debug_event(node, event);
    }
}

/* Opens the child named by `role` ("file": a node name, or `file.…` options) into node->child with a
 * reference; `role` is a literal. A child opened by name is shared. */
bool block_node_open_child(BlockNode *node, Options *options, const char *role, GError **error);
/* The same for further children (a detached header). The driver keeps the pointer, the core the reference: it
 * is dropped after close, or after a failed open. */
BlockNode *block_node_open_extra_child(BlockNode *node, Options *options, const char *role, GError **error);

/* Calls into another node from a driver, on the driver's thread: checks, serialises, aligns. 0 or -errno. For
 * discard, write zeroes, status and resize use block_discard(), … of block.h: they are the same kind of call.
 */
int block_node_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int block_node_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                       BlockFlags flags);
int block_node_flush(BlockNode *node);
int block_node_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int block_node_write_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);

/* "Parameter 'x' …" of the part `prefix` becomes "Parameter 'prefix.x' …". NULL is allowed. Any thread. */
void block_error_name_parameter(GError **error, const char *prefix);

/* Sets filename and info.filename. */
void block_node_set_filename(BlockNode *node, const char *filename);

/* Sets info.size so that other threads see it; after open the only way to change it. Any thread. */
void block_node_set_size(BlockNode *node, uint64_t size);

/* What block_medium_present() tells; true after open until this says otherwise. Any thread. */
void block_node_set_medium(BlockNode *node, bool present);

/* What the user allowed at open: the generic options, already parsed. */
bool block_node_wants_write(const BlockNode *node);    /* not read-only=on */
bool block_node_auto_read_only(const BlockNode *node); /* auto-read-only=on: fall back instead of failing */
bool block_node_cache_direct(const BlockNode *node);
bool block_node_cache_no_flush(const BlockNode *node);
bool block_node_discard(const BlockNode *node);     /* discard=unmap */
bool block_node_force_share(const BlockNode *node); /* force-share=on: take no locks on the image */

/* The one place where a path becomes a descriptor (O_CLOEXEC is added). -errno on failure. Any thread. */
int block_open_fd(const char *filename, int flags);

/* Something that blocks and is no request: `run` on a worker (one is kept back for such), then `done` on the
 * loop thread. The job is the caller's until then; it may be started again in `done`. Loop thread. */
typedef struct BlockJob BlockJob;
struct BlockJob {
    void (*run)(BlockJob *job);
    void (*done)(BlockJob *job);
    void *work[8]; /* private */
};
void block_job_start(BlockJob *job);

/* Around something that may hang in a drive of the host: it is under way, and block_drives_hang() knows of
 * it. Any thread. */
typedef enum {
    BLOCK_DRIVE_ASKED,   /* a command on a thread of its own: by its end nothing is won or lost */
    BLOCK_DRIVE_LOOK,    /* a job, likewise */
    BLOCK_DRIVE_CLOSING, /* a close puts back what was changed: worth waiting for, unless the drive hangs */
    BLOCK_DRIVE_KINDS,
} BlockDriveWork;
void block_drive_work_begin(BlockDriveWork kind);
void block_drive_work_end(BlockDriveWork kind);

/* Calls `func` on the loop thread, later. Any thread. */
void block_call_on_loop(void (*func)(void *data), void *data);

/* Tells listeners; any thread (it is handed to the loop). The driver has changed node->info in the same
 * hand-over: `apply` runs on the loop thread just before the listeners; `data` is freed with `free_data`. */
void block_node_post_event(BlockNode *node, BlockEvent event, void (*apply)(BlockNode *node, void *data),
                           void *data, GDestroyNotify free_data);

/* A driver's worker begins (1) or ends (-1) to wait for a word of this process that may not come by itself.
 */
void block_parked(int more);

#endif
