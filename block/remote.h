/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the drivers of servers have in common (nbd, ssh, nfs, iscsi, rbd): a module that holds the library and
 * does one call at a time, the cache for reading, tries again when the server is away, and writes.
 *
 * Until somebody says that he will write, reads go through the cache; from then on every call goes to the
 * server, so that what is read is what was written.
 */
#ifndef SPINDLE_BLOCK_REMOTE_H
#define SPINDLE_BLOCK_REMOTE_H

#include "block/block-int.h"
#include "block/cache.h"
#include "block/module.h"

#define REMOTE_MODULE_ABI 1

typedef enum { REMOTE_READ, REMOTE_WRITE, REMOTE_FLUSH, REMOTE_DISCARD, REMOTE_ZERO } RemoteOp;

typedef struct RemoteCall {
    RemoteOp op;
    uint64_t offset, bytes;
    void *data;      /* of a read or a write: `bytes`, touched only inside the call */
    bool fua;        /* on stable storage at the end; only where RemoteInfo has it */
    bool unmap;      /* zeroes may be a hole */
    unsigned wait_s; /* without a sign of the server: it is given up */
} RemoteCall;

/* As found at the open. */
typedef struct RemoteInfo {
    uint64_t size;  /* bytes */
    uint32_t align; /* of calls; a power of two, 0: any */
    uint32_t piece; /* bytes of a read that the cache asks for at once; at most `most` */
    uint32_t most;  /* bytes of a read or a write */
    bool read_only;
    bool fua, flush, discard, zero; /* what it can */
    char *stamp;                    /* tells this content from a later one (a time), or NULL */
    char *told;                     /* more for people, as a warning, or NULL */
} RemoteInfo;

typedef struct RemoteModule {
    unsigned abi;
    /* `config` is the driver's; the module keeps copies. *ret is the caller's to clear. NULL and an error. */
    void *(*open)(const void *config, bool write, RemoteInfo *ret, GError **error);
    /* One try: 0, -EHOSTUNREACH and why when the server could not be reached or went away (a later try may
     * do), -ECANCELED after an interrupt, or what the server said. Any thread, several at once. */
    int (*call)(void *source, const RemoteCall *call, CacheFailure *ret);
    /* As block_status(). NULL: all data. */
    int (*status)(void *source, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes, unsigned *ret_status);
    /* Every call inside ends soon; `for_good`: later ones, too. Any thread, must not block. */
    void (*interrupt)(void *source, bool for_good);
    void (*close)(void *source);
} RemoteModule;

typedef struct RemoteOpen {
    ModuleLoader *loader;
    const void *config;
    const CacheConfig *cache;
    unsigned wait_s;     /* without a sign of the server */
    unsigned open_for_s; /* an open tries again for so long */
    const char *name;    /* for people; the node's filename */
    const char *denied;  /* when writes are wanted, and not allowed */
} RemoteOpen;

/* The first member of a driver's state. */
typedef struct RemoteNode RemoteNode;

/* Opens node->state, which must be a RemoteNode * (state_size = sizeof(RemoteNode *)). */
bool remote_open(BlockNode *node, const RemoteOpen *how, GError **error);

void remote_close(BlockNode *node);
int remote_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int remote_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov);
int remote_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, int niov,
                   BlockFlags flags);
int remote_flush(BlockNode *node);
int remote_discard(BlockNode *node, uint64_t offset, uint64_t bytes);
int remote_write_zeroes(BlockNode *node, uint64_t offset, uint64_t bytes, BlockFlags flags);
int remote_status(BlockNode *node, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                  unsigned *ret_status);
void remote_interrupt(BlockNode *node);
void remote_stats(BlockNode *node, BlockRemoteStats *ret);
bool remote_claim_write(BlockNode *node, GError **error);

/* The functions of a driver's table. */
#define REMOTE_FUNCTIONS                                                                                     \
    .parallel = true, .state_size = sizeof(RemoteNode *), .close = remote_close, .preadv = remote_preadv,    \
    .read_now = remote_read_now, .pwritev = remote_pwritev, .flush = remote_flush,                           \
    .discard = remote_discard, .write_zeroes = remote_write_zeroes, .status = remote_status,                 \
    .interrupt = remote_interrupt, .remote_stats = remote_stats, .claim_write = remote_claim_write

/* `timeout` (5) and `open-timeout` (0), seconds, and the cache's options. */
bool remote_options_read(Options *options, RemoteOpen *how, CacheConfig *cache, GError **error);

/* The options of a file that a URL names, SCHEME://HOST[:PORT]/PATH: `driver`, `server.host`, `server.port`,
 * `path`. NULL when there is no host or no path. */
Options *remote_options_from_url(const char *driver, GUri *uri);

#endif
