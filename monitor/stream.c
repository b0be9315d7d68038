/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/stream.h"
#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 65536

/* Descriptors that wait for their byte. */
typedef struct FdBatch {
    size_t at; /* index in `output` of the byte that they go with */
    unsigned count;
    int fds[STREAM_FDS_MAX];
} FdBatch;

typedef union FdControl {
    char bytes[CMSG_SPACE(STREAM_FDS_MAX * sizeof(int))];
    struct cmsghdr align;
} FdControl;

struct Stream {
    int in, out;
    int priority;
    guint read_source, write_source;
    const StreamOps *ops;
    void *opaque;
    GByteArray *output;
    size_t sent;    /* of output */
    GQueue batches; /* FdBatch, in the order of their bytes */
    bool paused;
    bool ended;    /* the owner was told */
    bool over;     /* nothing can be written any more */
    unsigned busy; /* calls that use the struct after a callback */
    bool freed;
};

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        close(fds[i]);
    }
}

static void batch_free(FdBatch *batch)
{
    close_all(batch->fds, batch->count);
    g_free(batch);
}

static void drop_batches(Stream *stream)
{
    FdBatch *batch;

    while ((batch = g_queue_pop_head(&stream->batches))) {
        batch_free(batch);
    }
}

static void stream_destroy(Stream *stream)
{
    drop_batches(stream);
    g_byte_array_unref(stream->output);
    close(stream->in);
    if (stream->out != stream->in) {
        close(stream->out);
    }
    g_free(stream);
}

static void stream_leave(Stream *stream)
{
    if (--stream->busy == 0 && stream->freed) {
        stream_destroy(stream);
    }
}

/* `broken`: not only will no more come, nothing can be sent either. */
static void stream_end(Stream *stream, bool broken)
{
    if (broken) {
        stream->over = true;
        stream->sent = stream->output->len;
        drop_batches(stream);
    }
    if (!stream->ended) {
        stream->ended = true;
        stream->ops->closed(stream->opaque);
    } else if (broken && stream->ops->drained) {
        stream->ops->drained(stream->opaque);
    }
}

static void take_fds(Stream *stream, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        int fds[STREAM_FDS_MAX];
        unsigned count = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(c), count * sizeof(int));
        if (stream->ops->fds) {
            stream->ops->fds(fds, count, stream->opaque);
        } else {
            close_all(fds, count);
        }
    }
}

/* As read(2); a socket's descriptors are taken along. */
static ssize_t receive(Stream *stream, char *bytes)
{
    FdControl control;
    struct iovec iov = {bytes, READ_SIZE};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(stream->in, &message, MSG_CMSG_CLOEXEC);

    if (n < 0 && errno == ENOTSOCK) {
        return read(stream->in, bytes, READ_SIZE);
    }
    if (n > 0) {
        take_fds(stream, &message);
    }
    return n;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer data)
{
    Stream *stream = data;
    g_autofree char *bytes = g_malloc(READ_SIZE);
    ssize_t n = receive(stream, bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return G_SOURCE_CONTINUE;
    }
    if (n > 0) {
        stream->ops->data(bytes, (size_t)n, stream->opaque);
        return G_SOURCE_CONTINUE;
    }
    stream->read_source = 0;
    stream->busy++;
    stream_end(stream, n < 0);
    stream_leave(stream);
    return G_SOURCE_REMOVE;
}

static void watch_input(Stream *stream)
{
    if (!stream->read_source && !stream->paused && !stream->ended) {
        stream->read_source = g_unix_fd_add_full(stream->priority, stream->in, G_IO_IN | G_IO_HUP | G_IO_ERR,
                                                 on_readable, stream, NULL);
    }
}

static ssize_t send_batch(int out, const void *bytes, size_t size, const FdBatch *batch)
{
    FdControl control;
    struct iovec iov = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(batch->count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(batch->count * sizeof(int));
    memcpy(CMSG_DATA(header), batch->fds, batch->count * sizeof(int));
    ssize_t n = sendmsg(out, &message, MSG_NOSIGNAL);
    return n < 0 && errno != EAGAIN && errno != EINTR ? write(out, bytes, size) : n;
}

/* As write(2), of what is next: up to the byte that other descriptors go along with. */
static ssize_t send_some(Stream *stream)
{
    FdBatch *batch = g_queue_peek_head(&stream->batches);
    const guint8 *bytes = stream->output->data + stream->sent;
    bool with = batch && batch->at == stream->sent;
    const FdBatch *next = with ? g_queue_peek_nth(&stream->batches, 1) : batch;
    size_t size = (next ? next->at : stream->output->len) - stream->sent;
    ssize_t n = with ? send_batch(stream->out, bytes, size, batch) : write(stream->out, bytes, size);

    if (n > 0 && with) {
        batch_free(g_queue_pop_head(&stream->batches));
    }
    return n;
}

/* False when the other side is gone. */
static bool flush_output(Stream *stream)
{
    while (stream->sent < stream->output->len) {
        ssize_t n = send_some(stream);
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno == EAGAIN;
        }
        stream->sent += (size_t)n;
    }
    g_byte_array_set_size(stream->output, 0);
    stream->sent = 0;
    return true;
}

static gboolean on_writable(gint fd, GIOCondition condition, gpointer data)
{
    Stream *stream = data;
    bool more = true;

    stream->busy++;
    if (!flush_output(stream)) {
        more = false;
        stream->write_source = 0;
        stream_end(stream, true);
    } else if (!stream_pending(stream)) {
        more = false;
        stream->write_source = 0;
        if (stream->ops->drained) {
            stream->ops->drained(stream->opaque);
        }
    }
    stream_leave(stream);
    return more ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

Stream *stream_new(int in, int out, int priority, const StreamOps *ops, void *opaque)
{
    Stream *stream = g_new0(Stream, 1);

    stream->in = in;
    stream->out = out;
    stream->priority = priority;
    stream->ops = ops;
    stream->opaque = opaque;
    stream->output = g_byte_array_new();
    g_unix_set_fd_nonblocking(in, true, NULL);
    g_unix_set_fd_nonblocking(out, true, NULL);
    watch_input(stream);
    return stream;
}

static void clear_source(guint *source)
{
    if (*source) {
        g_source_remove(*source);
        *source = 0;
    }
}

void stream_free(Stream *stream)
{
    if (!stream || stream->freed) {
        return;
    }
    clear_source(&stream->read_source);
    clear_source(&stream->write_source);
    if (!stream->over) {
        flush_output(stream);
    }
    stream->over = stream->freed = true;
    if (stream->busy == 0) {
        stream_destroy(stream);
    }
}

/* Forgets what was sent. */
static void shift_output(Stream *stream)
{
    g_byte_array_remove_range(stream->output, 0, (guint)stream->sent);
    for (GList *l = stream->batches.head; l; l = l->next) {
        ((FdBatch *)l->data)->at -= stream->sent;
    }
    stream->sent = 0;
}

void stream_write(Stream *stream, const void *bytes, size_t size)
{
    stream_write_fds(stream, bytes, size, NULL, 0);
}

/* A side that is gone is noticed by the loop, never inside this call. */
void stream_write_fds(Stream *stream, const void *bytes, size_t size, const int *fds, unsigned count)
{
    if (stream->over || size == 0) {
        close_all(fds, count);
        return;
    }
    if (stream->sent > READ_SIZE && stream->sent > stream->output->len / 2) {
        shift_output(stream);
    }
    if (count > 0) {
        FdBatch *batch = g_new0(FdBatch, 1);
        batch->at = stream->output->len;
        batch->count = MIN(count, STREAM_FDS_MAX);
        memcpy(batch->fds, fds, batch->count * sizeof(int));
        close_all(fds + batch->count, count - batch->count);
        g_queue_push_tail(&stream->batches, batch);
    }
    g_byte_array_append(stream->output, bytes, (guint)size);
    if (!stream->write_source && (!flush_output(stream) || stream_pending(stream))) {
        stream->write_source = g_unix_fd_add_full(stream->priority, stream->out,
                                                  G_IO_OUT | G_IO_HUP | G_IO_ERR, on_writable, stream, NULL);
    }
}

size_t stream_pending(const Stream *stream)
{
    return stream->output->len - stream->sent;
}

void stream_pause(Stream *stream, bool paused)
{
    stream->paused = paused;
    if (paused) {
        clear_source(&stream->read_source);
    } else {
        watch_input(stream);
    }
}
