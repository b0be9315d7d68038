/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The queue of messages to the client. Everything queued during one turn of the loop leaves together,
 * gathered from where it lies: the data of a Buffer is copied by the kernel only.
 *
 *   queue     --flush-->  on the wire  --needs no reply-->  freed
 *                             |
 *                             +---------> awaiting  --vfu_out_take_awaited()-->  the caller's
 *
 * QEMU's reader gives up the connection when it finds a part of a header. A stream socket can show it one
 * when a sendmsg is cut into several kernel buffers of about 32 KiB. So a sendmsg takes either one message of
 * any size, or as many as fit in one such buffer: then every header lies whole in one.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The kernel's UNIX_SKB_FRAGS_SZ: a buffer holds this and a little more, unless the socket's send buffer is
 * small; then it holds half of that less 64 bytes. */
#define BATCH_BYTES    (32 * 1024)
#define BATCH_MESSAGES 64
#define KEEP_UNUSED    256

void vfu_out_init(VfuConn *conn)
{
    int send_buffer;
    socklen_t size = sizeof send_buffer;

    conn->out.batch = BATCH_BYTES;
    if (getsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, &size) == 0) {
        conn->out.batch = MIN(BATCH_BYTES, MAX(send_buffer / 2 - 64, 0));
    }
}

VfuOut *vfu_out_new(VfuConn *conn, VfuOutKind kind)
{
    VfuOutput *output = &conn->out;
    VfuOut *out = output->unused;

    if (out) {
        output->unused = out->next;
        output->n_unused--;
    } else {
        out = g_new(VfuOut, 1);
    }
    memset(out, 0, offsetof(VfuOut, space) + sizeof(VfuHeader));
    out->kind = kind;
    out->head = out->space;
    out->head_size = sizeof(VfuHeader);
    return out;
}

uint8_t *vfu_out_reserve(VfuOut *out, size_t bytes)
{
    size_t size = sizeof(VfuHeader) + bytes;

    if (size > sizeof out->space) {
        out->head = g_malloc(size);
    }
    out->head_size = size;
    return memset(out->head + sizeof(VfuHeader), 0, bytes);
}

void vfu_out_set_header(VfuOut *out, uint16_t id, uint16_t command, uint32_t flags, uint32_t error)
{
    VfuHeader header = {
        .id = id,
        .command = command,
        .size = out->head_size + out->body_size,
        .flags = flags,
        .error = error,
    };
    memcpy(out->head, &header, sizeof header);
}

static uint32_t out_flags(const VfuOut *out)
{
    VfuHeader header;
    memcpy(&header, out->head, sizeof header);
    return header.flags;
}

static void out_set_flags(VfuOut *out, uint32_t flags)
{
    memcpy(out->head + offsetof(VfuHeader, flags), &flags, sizeof flags);
}

static size_t out_size(const VfuOut *out)
{
    return out->head_size + out->body_size;
}

void vfu_out_free(VfuConn *conn, VfuOut *out)
{
    VfuOutput *output = &conn->out;

    if (out->head != out->space) {
        g_free(out->head);
    }
    buffer_unref(out->buffer);
    if (output->n_unused >= KEEP_UNUSED) {
        g_free(out);
        return;
    }
    out->next = output->unused;
    output->unused = out;
    output->n_unused++;
}

static void queue_append(VfuOutQueue *queue, VfuOut *out)
{
    out->next = NULL;
    if (queue->tail) {
        queue->tail->next = out;
    } else {
        queue->head = out;
    }
    queue->tail = out;
}

static VfuOut *queue_pop(VfuOutQueue *queue)
{
    VfuOut *out = queue->head;
    queue->head = out->next;
    if (!queue->head) {
        queue->tail = NULL;
    }
    return out;
}

void vfu_out_queue(VfuConn *conn, VfuOut *out)
{
    queue_append(&conn->out.queue, out);
    if (out->kind == VFU_OUT_REPLY) {
        conn->out.replies++;
    }
}

/* Describes the next sendmsg; returns the number of entries. */
static int output_gather(VfuOutput *output, struct iovec *iov)
{
    size_t total = 0, skip = output->sent;
    unsigned messages = 0;
    int n = 0;

    for (VfuOut *out = output->queue.head; out && messages < BATCH_MESSAGES; out = out->next) {
        size_t left = out_size(out) - skip;
        if (messages && total + left > output->batch) {
            break;
        }
        if (skip < out->head_size) {
            iov[n++] = (struct iovec){out->head + skip, out->head_size - skip};
            skip = 0;
        } else {
            skip -= out->head_size;
        }
        if (out->body_size) {
            iov[n++] = (struct iovec){(void *)(out->body + skip), out->body_size - skip};
        }
        skip = 0;
        total += left;
        messages++;
    }
    return n;
}

/* The whole of the first message is on the wire. */
static void output_finish_first(VfuConn *conn)
{
    VfuOutput *output = &conn->out;
    VfuOut *out = queue_pop(&output->queue);

    if (out->kind == VFU_OUT_REPLY) {
        output->replies--;
    }
    if (out->kind == VFU_OUT_REPLY || (out_flags(out) & VFU_NO_REPLY)) {
        vfu_out_free(conn, out);
        return;
    }
    buffer_unref(out->buffer);
    out->buffer = NULL;
    queue_append(&output->awaiting, out);
}

static void output_mark_started(VfuConn *conn, VfuOut *out)
{
    out->started = true;
    if (out->kind == VFU_OUT_DMA_WRITE) {
        conn->write_sent = out->seq;
    }
}

static void output_advance(VfuConn *conn, size_t bytes)
{
    VfuOutput *output = &conn->out;

    while (bytes) {
        VfuOut *out = output->queue.head;
        size_t left = out_size(out) - output->sent;
        output_mark_started(conn, out);
        if (bytes < left) {
            output->sent += bytes;
            return;
        }
        bytes -= left;
        output->sent = 0;
        output_finish_first(conn);
    }
}

void vfu_out_flush(VfuConn *conn)
{
    VfuOutput *output = &conn->out;
    struct iovec iov[2 * BATCH_MESSAGES];

    output->blocked = false;
    while (output->queue.head) {
        int n = output_gather(output, iov);
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
        ssize_t sent = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno == EAGAIN) {
                output->blocked = true;
                return;
            }
            conn->broken = true;
            return;
        }
        conn->server->stats.sends++;
        output_advance(conn, sent);
    }
}

VfuOut *vfu_out_take_awaited(VfuConn *conn, uint16_t id, uint16_t command)
{
    VfuOutQueue *queue = &conn->out.awaiting;
    VfuOut *previous = NULL;

    for (VfuOut *out = queue->head; out; previous = out, out = out->next) {
        VfuHeader header;
        memcpy(&header, out->head, sizeof header);
        if (header.id != id || header.command != command) {
            continue;
        }
        if (previous) {
            previous->next = out->next;
        } else {
            queue->head = out->next;
        }
        if (queue->tail == out) {
            queue->tail = previous;
        }
        return out;
    }
    return NULL;
}

bool vfu_out_ask_reply(VfuConn *conn, uint64_t seq)
{
    VfuOut *found = NULL;

    for (VfuOut *out = conn->out.queue.head; out; out = out->next) {
        if (out->kind == VFU_OUT_DMA_WRITE && out->seq == seq && !out->started) {
            found = out;
        }
    }
    if (found) {
        out_set_flags(found, out_flags(found) & ~VFU_NO_REPLY);
    }
    return found;
}

bool vfu_out_drop_writes(VfuConn *conn)
{
    VfuOutQueue kept = {0};
    bool dropped = false;

    while (conn->out.queue.head) {
        VfuOut *out = queue_pop(&conn->out.queue);
        if ((out->kind == VFU_OUT_DMA_WRITE || out->kind == VFU_OUT_MSI) && !out->started) {
            dropped |= out->kind == VFU_OUT_DMA_WRITE;
            vfu_out_free(conn, out);
        } else {
            queue_append(&kept, out);
        }
    }
    conn->out.queue = kept;
    return dropped;
}

void vfu_out_forget_read(VfuConn *conn, PciDmaRead *read)
{
    VfuOutQueue *queues[] = {&conn->out.queue, &conn->out.awaiting};

    for (unsigned i = 0; i < G_N_ELEMENTS(queues); i++) {
        for (VfuOut *out = queues[i]->head; out; out = out->next) {
            if (out->read == read) {
                out->read = NULL;
            }
        }
    }
}

void vfu_out_clear(VfuConn *conn)
{
    VfuOutQueue *queues[] = {&conn->out.queue, &conn->out.awaiting};

    for (unsigned i = 0; i < G_N_ELEMENTS(queues); i++) {
        while (queues[i]->head) {
            vfu_out_free(conn, queue_pop(queues[i]));
        }
    }
    while (conn->out.unused) {
        VfuOut *out = conn->out.unused;
        conn->out.unused = out->next;
        g_free(out);
    }
    conn->out.n_unused = 0;
}
