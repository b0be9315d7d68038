/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "system/router-state.h"
#include "util/bytes.h"
#include "util/cleanup.h"
#include "util/error.h"

#define STATE_HEADER 32
#define STATE_SIZE   16 /* where the length of the state stands, big-endian, 4 bytes */
#define STATE_MAX    (64u << 20)
#define PUMP_SIZE    (1u << 20)
#define ENGINE_FD    "spindle-state" /* the descriptor's name in QEMU */

static const char magic[STATE_SIZE + 1] = "SPINDLE-STATE-1\n";

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* -EPIPE: it ends before. */
static int read_all(int fd, uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = read(fd, bytes, size);
        if (n == 0) {
            return -EPIPE;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static void write_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    StateJob *job = data;
    uint8_t header[STATE_HEADER] = {0};
    gsize size;
    const uint8_t *bytes = g_bytes_get_data(job->data, &size);
    GError *error = NULL;

    memcpy(header, magic, STATE_SIZE);
    store_be32(header + STATE_SIZE, (uint32_t)size);
    if (job->fd < 0 && (job->fd = router_stream_connect(job->uri, &error)) < 0) {
        g_task_return_error(task, error);
        return;
    }
    int ret = write_all(job->fd, header, sizeof header);
    ret = ret < 0 ? ret : write_all(job->fd, bytes, size);
    if (ret < 0) {
        error_set_errno(&error, -ret, "Could not write the state of Spindle's drives");
        g_task_return_error(task, error);
    } else {
        g_task_return_boolean(task, true);
    }
}

/* A listening socket takes the one who brings the state. */
static int take_connection(StateJob *job)
{
    int listens = 0;
    socklen_t size = sizeof listens;

    if (getsockopt(job->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) {
        int fd = accept4(job->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return -errno;
        }
        close(job->fd);
        job->fd = fd;
    }
    return 0;
}

static bool read_state(StateJob *job, GError **error)
{
    uint8_t header[STATE_HEADER];
    int ret = take_connection(job);

    ret = ret < 0 ? ret : read_all(job->fd, header, sizeof header);
    if (ret < 0) {
        return error_set_errno(error, -ret, "Could not read the state of Spindle's drives");
    }
    uint32_t size = load_be32(header + STATE_SIZE);
    if (memcmp(header, magic, STATE_SIZE) != 0 || size > STATE_MAX) {
        return error_set(error,
                         "The machine was not saved with Spindle's drives in it: their state is missing");
    }
    uint8_t *bytes = g_malloc(size);
    ret = read_all(job->fd, bytes, size);
    job->data = g_bytes_new_take(bytes, size);
    return ret == 0 || error_set_errno(error, -ret, "Could not read the state of Spindle's drives");
}

static void read_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    GError *error = NULL;

    if (read_state(data, &error)) {
        g_task_return_boolean(task, true);
    } else {
        g_task_return_error(task, error);
    }
}

static void thread_done(GObject *source, GAsyncResult *result, gpointer opaque)
{
    StateJob *job = opaque;
    GError *error = NULL;

    g_task_propagate_boolean(G_TASK(result), &error);
    job->done(job, error);
}

static void run_thread(StateJob *job, GTaskThreadFunc function, void (*done)(StateJob *job, GError *error))
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, thread_done, job);

    job->done = done;
    g_task_set_task_data(task, job, NULL);
    g_task_run_in_thread(task, function);
}

void router_stream_write(StateJob *job, void (*done)(StateJob *job, GError *error))
{
    run_thread(job, write_thread, done);
}

void router_stream_read(StateJob *job, void (*done)(StateJob *job, GError *error))
{
    run_thread(job, read_thread, done);
}

static void ignore_reply(JsonObject *answer, void *opaque)
{
}

/* On a thread of its own, up to the end of either. */
static gpointer pump(gpointer opaque)
{
    StateJob *job = opaque;
    uint8_t *bytes = g_malloc(PUMP_SIZE);
    ssize_t n;

    while ((n = read(job->fd, bytes, PUMP_SIZE)) > 0 && write_all(job->pump, bytes, (size_t)n) == 0) {
    }
    g_free(bytes);
    close(job->pump);
    router_job_free(job);
    return NULL;
}

bool router_stream_from_file(StateJob *job)
{
    struct stat info;
    int fds[2];

    if (fstat(job->fd, &info) < 0 || !S_ISREG(info.st_mode) || pipe2(fds, O_CLOEXEC) < 0) {
        return false;
    }
    StateJob *pumped = g_new0(StateJob, 1);
    pumped->fd = job->fd;
    pumped->pump = fds[1];
    job->fd = fds[0];
    g_thread_unref(g_thread_new("state", pump, pumped));
    return true;
}

/* QEMU takes files by name only. */
static char *rest_of_way(StateJob *job)
{
    RouterPeer *engine = job->state->router->engine;

    if (g_str_has_prefix(job->uri, "file:")) {
        close(steal_fd(&job->fd));
        return g_strdup_printf("%s,offset=%zu", job->uri, STATE_HEADER + g_bytes_get_size(job->data));
    }
    g_autoptr(JsonObject) getfd = json_object_new();
    json_object_set_string_member(getfd, "fdname", ENGINE_FD);
    router_peer_ask_with_fd(engine, "getfd", getfd, steal_fd(&job->fd), ignore_reply, NULL);
    return g_strdup("fd:" ENGINE_FD);
}

void router_stream_hand_over(StateJob *job, const char *command, RouterReply *reply)
{
    g_autoptr(JsonObject) args = json_object_new();
    g_autofree char *uri = rest_of_way(job);
    g_autoptr(GList) members = job->call ? json_object_get_members(job->call->args) : NULL;

    for (GList *l = members; l; l = l->next) {
        json_object_set_member(args, l->data,
                               json_node_copy(json_object_get_member(job->call->args, l->data)));
    }
    json_object_set_string_member(args, "uri", uri);
    router_peer_ask(job->state->router->engine, command, args, reply, job);
}

void router_job_free(StateJob *job)
{
    if (job->fd >= 0) {
        close(job->fd);
    }
    if (job->data) {
        g_bytes_unref(job->data);
    }
    g_free(job->uri);
    g_free(job);
}
