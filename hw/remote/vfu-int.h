/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the vfio-user server. Loop thread only.
 *
 *   vfu-server.c   the listening socket, connect and disconnect, the public functions
 *   vfu-conn.c     one client: its GSource, the input parser, dispatch
 *   vfu-output.c   the queue of messages to the client
 *   vfu-version.c  negotiation
 *   vfu-command.c  device, region and reset commands
 *   vfu-irq.c      interrupts
 *   vfu-map.c      the table of guest memory
 *   vfu-dma.c      the DMA services of the PciHost
 *   vfu-peer.c     who the client is
 *
 * A VfuConn lives from accept to disconnect and owns everything that came from that client: mappings, event
 * descriptors, queued messages. A handler that finds the client beyond repair sets `broken`; the connection
 * is closed at the end of the turn, never under a handler's feet.
 */
#ifndef SPINDLE_HW_REMOTE_VFU_INT_H
#define SPINDLE_HW_REMOTE_VFU_INT_H

#include "hw/remote/vfio-user.h"
#include "hw/remote/vfu-protocol.h"

#define VFU_MAX_FDS     16   /* descriptors that one message may carry */
#define VFU_MAX_MAPS    4096 /* DMA regions at a time */
#define VFU_MAX_MESSAGE (VFU_DEFAULT_MAX_XFER + 64)
#define VFU_INPUT_SIZE  (64 * 1024) /* bytes asked for in one recvmsg */
#define VFU_MAX_REPLIES 1024        /* replies queued before input is left unread */
#define VFU_SMALL_WRITE 256         /* dma_write_small's limit */
#define VFU_OUT_SPACE   (sizeof(VfuHeader) + sizeof(VfuDmaAccessMsg) + VFU_SMALL_WRITE)
#define VFU_MAX_VERSION 4096 /* bytes of a VERSION message */

typedef struct VfuConn VfuConn;

/* A message being handled. Descriptors left in `fds` when the handler returns are closed. */
typedef struct VfuMessage {
    VfuHeader header;
    const uint8_t *payload;
    uint32_t size; /* of the payload */
    int *fds;
    unsigned n_fds;
} VfuMessage;

typedef enum {
    VFU_OUT_REPLY,
    VFU_OUT_DMA_WRITE,
    VFU_OUT_DMA_READ,
    VFU_OUT_SYNC, /* a read that only tells that the writes before it have landed */
    VFU_OUT_MSI,
} VfuOutKind;

/* A message to the client: `head` (header, fixed fields, small data), then `body`. */
typedef struct VfuOut {
    struct VfuOut *next;
    VfuOutKind kind;
    bool started;       /* some of it is on the wire */
    uint64_t seq;       /* of the DMA write it carries or follows */
    uint32_t head_size; /* bytes */
    uint8_t *head;      /* `space` or heap */
    Buffer *buffer;     /* the body's, one reference */
    const uint8_t *body;
    size_t body_size;
    PciDmaRead *read; /* DMA_READ: whom the data is for, NULL once cancelled */
    uint32_t read_offset;
    uint8_t space[VFU_OUT_SPACE];
} VfuOut;

typedef struct VfuOutQueue {
    VfuOut *head, *tail;
} VfuOutQueue;

typedef struct VfuOutput {
    VfuOutQueue queue;    /* to be sent */
    VfuOutQueue awaiting; /* sent, reply due */
    size_t sent;          /* bytes of queue.head on the wire */
    size_t batch;         /* most bytes of several messages in one sendmsg */
    unsigned replies;     /* VFU_OUT_REPLY in the queue */
    VfuOut *unused;
    unsigned n_unused;
    bool blocked; /* the socket takes no more */
    uint16_t next_id;
} VfuOutput;

typedef struct VfuInputFd {
    int fd;
    uint64_t position; /* in the stream, of the last byte of the batch that brought it */
} VfuInputFd;

typedef struct VfuInput {
    uint8_t *data;
    size_t capacity, start, end;
    uint64_t position; /* in the stream, of data[start] */
    VfuInputFd fds[VFU_MAX_FDS];
    unsigned n_fds;
} VfuInput;

typedef struct VfuMap {
    uint64_t address;
    uint64_t size;
    uint32_t flags;  /* VFU_DMA_READABLE, VFU_DMA_WRITABLE */
    uint8_t *memory; /* NULL: reached by messages only */
    bool sealed;     /* the file cannot shrink, so plain access cannot fault */
} VfuMap;

typedef struct VfuIrqs {
    int trigger_fd[2];  /* INTx, MSI */
    int intx_event[2];  /* mask, unmask: events from the client that do the action */
    GSource *source[2]; /* watching those */
    bool intx_masked;
} VfuIrqs;

struct VfuConn {
    GSource source;
    gpointer fd_tag;
    VfuServer *server;
    int fd;
    bool negotiated;
    bool dispatching;
    bool broken;
    bool hot; /* traffic may go on at once */
    GIOCondition watched;
    bool mmap_writes; /* the DMA mode in use */
    uint32_t max_xfer;
    VfuInput in;
    VfuOutput out;
    GArray *maps; /* of VfuMap, sorted by address */
    VfuIrqs irqs;
    uint64_t write_seq;    /* the last DMA write queued */
    uint64_t write_sent;   /* the last that is on the wire */
    uint64_t write_acked;  /* every write up to this one has landed */
    uint64_t write_asked;  /* the last one whose reply is due or queued to be asked for */
    uint64_t last_address; /* of the write write_seq */
};

struct VfuServer {
    PciHost host;
    PciDevice *device;
    VfuDmaMode mode;
    VfuTuning tuning;
    VfuStats stats;
    GMainContext *context;
    char *path; /* NULL: the socket file is not ours */
    uint64_t path_dev, path_ino;
    int listen_fd; /* -1: none */
    GSource *listen_source;
    GSource *retry_source; /* accepting rests: no descriptors or memory left */
    VfuConn *conn;         /* NULL: no client */
    VfuNotify notify;
    void *notify_opaque;
    void (*deliver)(void);
    GQueue fences; /* PciFence.link, oldest first */
    bool dma_fault;
    bool intx_level;
};

/* vfu-server.c */
void vfu_server_disconnect(VfuServer *server);
void vfu_server_reset_device(VfuServer *server);

/* vfu-conn.c */
/* Takes over fd. */
VfuConn *vfu_conn_new(VfuServer *server, int fd);
void vfu_conn_free(VfuConn *conn);
/* Reads and handles what has arrived; closes the connection if it is over. */
void vfu_conn_process(VfuConn *conn);

/* vfu-output.c */
/* The socket's send buffer has its size by then. */
void vfu_out_init(VfuConn *conn);
VfuOut *vfu_out_new(VfuConn *conn, VfuOutKind kind);
/* Room for `bytes` zeroed payload bytes behind the header. Once per message. */
uint8_t *vfu_out_reserve(VfuOut *out, size_t bytes);
void vfu_out_set_header(VfuOut *out, uint16_t id, uint16_t command, uint32_t flags, uint32_t error);
void vfu_out_free(VfuConn *conn, VfuOut *out);
void vfu_out_queue(VfuConn *conn, VfuOut *out);
/* Sends what the socket takes. A dead socket sets conn->broken. */
void vfu_out_flush(VfuConn *conn);
/* Takes the oldest awaited message with this id and command out; NULL: there is none. */
VfuOut *vfu_out_take_awaited(VfuConn *conn, uint16_t id, uint16_t command);
/* Lets the queued message that carries write `seq` ask for a reply; false: it is on the wire already. */
bool vfu_out_ask_reply(VfuConn *conn, uint64_t seq);
/* Forgets DMA writes and MSI messages of which nothing is on the wire; true: there was such a write. */
bool vfu_out_drop_writes(VfuConn *conn);
void vfu_out_forget_read(VfuConn *conn, PciDmaRead *read);
void vfu_out_clear(VfuConn *conn);

/* Handlers return 0, having filled `reply` if there is a payload, or a negative errno to be sent. */
typedef int VfuHandler(VfuConn *conn, VfuMessage *message, VfuOut *reply);

VfuHandler vfu_handle_version;                                                       /* vfu-version.c */
VfuHandler vfu_handle_dma_map, vfu_handle_dma_unmap;                                 /* vfu-map.c */
VfuHandler vfu_handle_set_irqs, vfu_handle_irq_info;                                 /* vfu-irq.c */
VfuHandler vfu_handle_device_info, vfu_handle_region_info, vfu_handle_region_io_fds, /* vfu-command.c */
    vfu_handle_region_read, vfu_handle_region_write, vfu_handle_write_multi, vfu_handle_reset;

/* vfu-map.c */
/* The part of [address, address + bytes) that lies in one map that allows `flags`: its map, and in *ret_bytes
 * how much of it, at least 1. NULL: the first byte lies in none. */
const VfuMap *vfu_map_find(VfuConn *conn, uint64_t address, uint64_t bytes, uint32_t flags,
                           uint64_t *ret_bytes);
/* True when all of the range is covered by maps that allow `flags`. */
bool vfu_map_covers(VfuConn *conn, uint64_t address, uint64_t bytes, uint32_t flags);
/* Copies from or to mapped memory; 0 or -EFAULT when the client has taken the memory away. */
int vfu_map_read(const VfuMap *map, uint64_t address, void *buf, size_t bytes);
int vfu_map_write(const VfuMap *map, uint64_t address, const void *buf, size_t bytes);
void vfu_map_clear(VfuConn *conn);

/* vfu-irq.c */
void vfu_irq_init(VfuConn *conn);
void vfu_irq_clear(VfuConn *conn);
/* Forgets masks, as a reset of the function does. */
void vfu_irq_reset(VfuConn *conn);
/* Fires INTx if it is up, enabled and not masked. */
void vfu_irq_update_intx(VfuConn *conn);
/* False: the client has not given a descriptor for it. */
bool vfu_irq_signal(VfuConn *conn, unsigned index);

/* vfu-dma.c */
extern const PciHostOps vfu_host_ops;
void vfu_dma_handle_reply(VfuConn *conn, const VfuMessage *message);
/* Runs fences that have nothing left to wait for. */
void vfu_dma_run_fences(VfuServer *server);
bool vfu_dma_fences_ready(const VfuServer *server);
/* The client is about to be forgotten: fails the reads that wait for it. */
void vfu_dma_abort_reads(VfuConn *conn);

/* vfu-peer.c */
/* 0: not known. */
pid_t vfu_peer_pid(int fd);
/* True when the process at the other end of the socket is known to have a KVM virtual machine open. */
bool vfu_peer_has_kvm(int fd);

#endif
