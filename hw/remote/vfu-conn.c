/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One client: a GSource on its socket, the input parser, dispatch.
 *
 *   NEGOTIATING --VERSION accepted--> READY --EOF, bad stream--> broken --end of the turn--> freed
 *        |                                                         ^
 *        +--anything else------------------------------------------+
 *
 * A turn: what was queued since the last one is sent before the loop sleeps (prepare); input is read in large
 * pieces, its messages are handled in order, and the answers leave together (dispatch). While too many
 * answers wait for the client to read them, its input stays unread.
 *
 * Descriptors that come with a recvmsg belong to the message that holds the last byte of what it returned:
 * the kernel never reads past a buffer that carries descriptors, but messages sent earlier can come before
 * it.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util/trace.h"

#define READS_PER_TURN 8 /* then the loop's other sources have their turn */

typedef struct Command {
    VfuHandler *handler;
    uint32_t least, most; /* payload bytes */
    unsigned fds;
} Command;

#define ANY_SIZE VFU_MAX_MESSAGE

static const Command commands[] = {
    [VFU_VERSION] = {vfu_handle_version, sizeof(VfuVersionMsg), ANY_SIZE, 0},
    [VFU_DMA_MAP] = {vfu_handle_dma_map, sizeof(VfuDmaMapMsg), sizeof(VfuDmaMapMsg), 1},
    [VFU_DMA_UNMAP] = {vfu_handle_dma_unmap, sizeof(VfuDmaUnmapMsg), sizeof(VfuDmaUnmapMsg), 0},
    [VFU_DEVICE_GET_INFO] = {vfu_handle_device_info, sizeof(VfuDeviceInfoMsg), sizeof(VfuDeviceInfoMsg), 0},
    [VFU_DEVICE_GET_REGION_INFO] = {vfu_handle_region_info, sizeof(VfuRegionInfoMsg),
                                    sizeof(VfuRegionInfoMsg), 0},
    [VFU_DEVICE_GET_REGION_IO_FDS] = {vfu_handle_region_io_fds, sizeof(VfuRegionIoFdsMsg),
                                      sizeof(VfuRegionIoFdsMsg), 0},
    [VFU_DEVICE_GET_IRQ_INFO] = {vfu_handle_irq_info, sizeof(VfuIrqInfoMsg), sizeof(VfuIrqInfoMsg), 0},
    [VFU_DEVICE_SET_IRQS] = {vfu_handle_set_irqs, sizeof(VfuIrqSetMsg), ANY_SIZE, VFU_MAX_FDS},
    [VFU_REGION_READ] = {vfu_handle_region_read, sizeof(VfuRegionAccessMsg), sizeof(VfuRegionAccessMsg), 0},
    [VFU_REGION_WRITE] = {vfu_handle_region_write, sizeof(VfuRegionAccessMsg), ANY_SIZE, 0},
    [VFU_DEVICE_RESET] = {vfu_handle_reset, 0, 0, 0},
    [VFU_REGION_WRITE_MULTI] = {vfu_handle_write_multi, sizeof(VfuWriteMultiMsg), ANY_SIZE, 0},
};

static void message_close_fds(VfuMessage *message)
{
    for (unsigned i = 0; i < message->n_fds; i++) {
        if (message->fds[i] >= 0) {
            close(message->fds[i]);
        }
    }
}

static int command_run(VfuConn *conn, VfuMessage *message, VfuOut *reply)
{
    const VfuHeader *header = &message->header;

    if (header->flags & ~(VFU_TYPE_MASK | VFU_NO_REPLY)) {
        return -EINVAL;
    }
    if (header->command >= G_N_ELEMENTS(commands) || !commands[header->command].handler) {
        return -ENOTSUP; /* migration, features, and what only we may ask */
    }
    const Command *command = &commands[header->command];
    if (message->size < command->least || message->size > command->most || message->n_fds > command->fds ||
        (conn->negotiated && header->command == VFU_VERSION)) {
        return -EINVAL;
    }
    return command->handler(conn, message, reply);
}

static void handle_command(VfuConn *conn, VfuMessage *message)
{
    const VfuHeader *header = &message->header;
    VfuOut *reply = vfu_out_new(conn, VFU_OUT_REPLY);
    int ret = command_run(conn, message, reply);

    conn->server->stats.commands++;
    trace(vfu_command, header->id, header->command, message->size, message->n_fds, header->flags, ret);
    if (header->flags & VFU_NO_REPLY) {
        vfu_out_free(conn, reply);
        return;
    }
    if (ret < 0) {
        reply->head_size = sizeof(VfuHeader); /* an error has no payload */
        vfu_out_set_header(reply, header->id, header->command, VFU_TYPE_REPLY | VFU_ERROR, -ret);
    } else {
        vfu_out_set_header(reply, header->id, header->command, VFU_TYPE_REPLY, 0);
    }
    vfu_out_queue(conn, reply);
}

static void handle_message(VfuConn *conn, VfuMessage *message)
{
    uint32_t type = message->header.flags & VFU_TYPE_MASK;

    if (!conn->negotiated && (type != VFU_TYPE_COMMAND || message->header.command != VFU_VERSION)) {
        conn->broken = true;
    } else if (type == VFU_TYPE_COMMAND) {
        handle_command(conn, message);
    } else if (type == VFU_TYPE_REPLY && message->n_fds == 0) {
        vfu_dma_handle_reply(conn, message);
    } else {
        conn->broken = true;
    }
}

/* Input */

static void input_reserve(VfuInput *in, size_t bytes)
{
    if (in->start == in->end) {
        in->start = in->end = 0;
        if (in->capacity > VFU_INPUT_SIZE && bytes <= VFU_INPUT_SIZE) {
            g_free(in->data); /* one large message has passed */
            in->data = g_malloc(VFU_INPUT_SIZE);
            in->capacity = VFU_INPUT_SIZE;
        }
    }
    if (in->capacity - in->start < bytes || in->end == in->capacity) {
        memmove(in->data, in->data + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    if (in->capacity < bytes) {
        in->data = g_realloc(in->data, bytes);
        in->capacity = bytes;
    }
}

/* Descriptors whose batch ends inside the message of `size` bytes at the start of the buffer. */
static unsigned input_take_fds(VfuInput *in, uint32_t size, int *ret_fds)
{
    unsigned n = 0;

    while (n < in->n_fds && in->fds[n].position < in->position + size) {
        ret_fds[n] = in->fds[n].fd;
        n++;
    }
    in->n_fds -= n;
    memmove(in->fds, in->fds + n, in->n_fds * sizeof in->fds[0]);
    return n;
}

/* Handles one message; false: none is complete, or the stream is beyond repair. */
static bool input_handle_one(VfuConn *conn)
{
    VfuInput *in = &conn->in;
    size_t available = in->end - in->start;
    int fds[VFU_MAX_FDS];
    VfuMessage message = {.fds = fds};

    if (available < sizeof message.header) {
        return false;
    }
    memcpy(&message.header, in->data + in->start, sizeof message.header);
    uint32_t size = message.header.size;
    uint32_t most = conn->negotiated ? VFU_MAX_MESSAGE : VFU_MAX_VERSION;
    if (size < sizeof message.header || size > most) {
        conn->broken = true;
        return false;
    }
    if (available < size) {
        input_reserve(in, size);
        return false;
    }
    message.payload = in->data + in->start + sizeof message.header;
    message.size = size - sizeof message.header;
    message.n_fds = input_take_fds(in, size, fds);
    handle_message(conn, &message);
    message_close_fds(&message);
    in->start += size;
    in->position += size;
    return !conn->broken;
}

static void input_collect_fds(VfuConn *conn, struct msghdr *msg)
{
    VfuInput *in = &conn->in;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        unsigned n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (unsigned i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (in->n_fds == VFU_MAX_FDS) {
                close(fd);
                conn->broken = true;
                continue;
            }
            in->fds[in->n_fds++] =
                (VfuInputFd){.fd = fd, .position = in->position + (in->end - in->start) - 1};
        }
    }
}

/* Reads once; false: nothing there, or the connection is over. *ret_more: there may be more to read at once.
 */
static bool input_receive(VfuConn *conn, bool *ret_more)
{
    VfuInput *in = &conn->in;
    union {
        char space[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;

    input_reserve(in, 0);
    struct iovec iov = {in->data + in->end, in->capacity - in->end};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof control.space};
    ssize_t n;
    do {
        n = recvmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        conn->broken |= n == 0 || errno != EAGAIN;
        return false;
    }
    conn->server->stats.receives++;
    in->end += n;
    input_collect_fds(conn, &msg);
    conn->broken |= (msg.msg_flags & MSG_CTRUNC) != 0;
    *ret_more = (size_t)n == iov.iov_len;
    return !conn->broken;
}

static bool output_is_full(const VfuConn *conn)
{
    return conn->out.replies >= VFU_MAX_REPLIES;
}

void vfu_conn_process(VfuConn *conn)
{
    VfuServer *server = conn->server;
    bool more = true;

    for (unsigned reads = 0; !conn->broken; reads++) {
        while (!output_is_full(conn) && input_handle_one(conn)) {
        }
        if (output_is_full(conn)) {
            vfu_out_flush(conn);
            if (output_is_full(conn)) {
                break;
            }
            continue;
        }
        if (conn->broken || !more || reads >= READS_PER_TURN || !input_receive(conn, &more)) {
            break;
        }
    }
    if (server->deliver && !conn->broken) {
        server->deliver();
    }
    vfu_out_flush(conn);
    if (conn->broken) {
        vfu_server_disconnect(server);
    }
}

/* The source */

static void conn_watch(VfuConn *conn)
{
    GIOCondition wanted = output_is_full(conn) ? 0 : G_IO_IN;
    if (conn->out.blocked) {
        wanted |= G_IO_OUT;
    }
    if (wanted != conn->watched) {
        conn->watched = wanted;
        g_source_modify_unix_fd(&conn->source, conn->fd_tag, wanted | G_IO_HUP | G_IO_ERR);
    }
}

/* Looks at the socket for a while: the client's next access often follows within microseconds, and a sleep
 * and a wake-up cost more. */
static bool conn_poll_briefly(VfuConn *conn)
{
    unsigned us = conn->server->tuning.poll_us;
    if (!us || !conn->hot) {
        return false;
    }
    gint64 end = g_get_monotonic_time() + us;
    do {
        struct pollfd pfd = {.fd = conn->fd, .events = POLLIN};
        if (poll(&pfd, 1, 0) == 1) {
            conn->server->stats.polled++;
            return true;
        }
    } while (g_get_monotonic_time() < end);
    conn->hot = false;
    return false;
}

static gboolean conn_prepare(GSource *source, gint *timeout)
{
    VfuConn *conn = (VfuConn *)source;

    *timeout = -1;
    if (!conn->out.blocked) {
        vfu_out_flush(conn);
    }
    conn_watch(conn);
    return conn->broken || vfu_dma_fences_ready(conn->server) || conn_poll_briefly(conn);
}

static gboolean conn_check(GSource *source)
{
    VfuConn *conn = (VfuConn *)source;
    return conn->broken || g_source_query_unix_fd(source, conn->fd_tag);
}

static gboolean conn_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    VfuConn *conn = (VfuConn *)source;

    if (conn->dispatching) {
        return G_SOURCE_CONTINUE; /* a loop inside of a callback of ours: messages are handled in order or not
                                     at all */
    }
    conn->dispatching = true;
    conn->server->stats.wakeups++;
    conn->hot = true;
    vfu_dma_run_fences(conn->server);
    if (conn->out.blocked) {
        vfu_out_flush(conn);
    }
    vfu_conn_process(conn); /* may end the connection; the structure stays until this returns */
    conn->dispatching = false;
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs conn_funcs = {
    .prepare = conn_prepare,
    .check = conn_check,
    .dispatch = conn_dispatch,
};

VfuConn *vfu_conn_new(VfuServer *server, int fd)
{
    VfuConn *conn = (VfuConn *)g_source_new(&conn_funcs, sizeof *conn);
    size_t own = offsetof(VfuConn, fd_tag);

    memset((char *)conn + own, 0, sizeof *conn - own);
    conn->server = server;
    conn->fd = fd;
    conn->max_xfer = VFU_DEFAULT_MAX_XFER;
    conn->mmap_writes =
        server->mode == VFU_DMA_MODE_MMAP || (server->mode == VFU_DMA_MODE_AUTO && vfu_peer_has_kvm(fd));
    conn->in.data = g_malloc(VFU_INPUT_SIZE);
    conn->in.capacity = VFU_INPUT_SIZE;
    conn->maps = g_array_new(FALSE, FALSE, sizeof(VfuMap));
    vfu_irq_init(conn);
    if (server->tuning.send_buffer) {
        int bytes = server->tuning.send_buffer;
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    vfu_out_init(conn);
    conn->watched = G_IO_IN;
    conn->fd_tag = g_source_add_unix_fd(&conn->source, fd, G_IO_IN | G_IO_HUP | G_IO_ERR);
    g_source_set_static_name(&conn->source, "vfio-user");
    /* The priority stays that of block completions: a guest that polls registers must not keep them from
     * coming. */
    /* Else GLib takes the descriptor out of its poll and puts it back around each dispatch, and wakes itself
     * up by four system calls to notice. */
    g_source_set_can_recurse(&conn->source, TRUE);
    g_source_attach(&conn->source, server->context);
    return conn;
}

void vfu_conn_free(VfuConn *conn)
{
    vfu_out_clear(conn);
    vfu_irq_clear(conn);
    vfu_map_clear(conn);
    g_array_free(conn->maps, TRUE);
    for (unsigned i = 0; i < conn->in.n_fds; i++) {
        close(conn->in.fds[i].fd);
    }
    g_free(conn->in.data);
    close(conn->fd);
    g_source_destroy(&conn->source);
    g_source_unref(&conn->source);
}
