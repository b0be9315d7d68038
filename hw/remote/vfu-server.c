/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The server: its socket, clients coming and going, the public functions.
 */
#include "hw/remote/vfu-int.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "util/cleanup.h"
#include "util/error.h"
#include "util/trace.h"

#define BACKLOG           4
#define ACCEPT_REST_MS    100
#define LEAST_SEND_BUFFER (32u * 1024)
#define DEFAULT_DMA_CHUNK (128 * 1024)

void vfu_server_reset_device(VfuServer *server)
{
    PciDevice *device = server->device;

    if (device->ops->reset) {
        device->ops->reset(device);
    }
    pci_config_reset(device);
    server->host.ops->dma_drop(&server->host);
    server->dma_fault = false;
    server->intx_level = false;
    if (server->conn) {
        vfu_irq_reset(server->conn);
    }
}

/* The client is gone, or not wanted any more. */
void vfu_server_disconnect(VfuServer *server)
{
    VfuConn *conn = server->conn;

    trace(vfu_disconnect, server->path ? server->path : "", server->stats.commands);
    conn->broken = true; /* no DMA while the function lets go of it */
    vfu_server_reset_device(server);
    vfu_dma_abort_reads(conn);
    server->conn = NULL;
    vfu_conn_free(conn);
    vfu_dma_run_fences(server);
    server->dma_fault = false;
    if (server->notify) {
        server->notify(server, false, server->notify_opaque);
    }
}

static void server_connect(VfuServer *server, int fd)
{
    server->conn = vfu_conn_new(server, fd);
    trace(vfu_connect, server->path ? server->path : "", server->conn->mmap_writes);
    if (server->notify) {
        server->notify(server, true, server->notify_opaque);
    }
}

/* What such a client has sent and we have not read does not matter: the function is reset. */
static bool peer_hung_up(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};
    return poll(&pfd, 1, 0) == 1;
}

static void server_watch(VfuServer *server);

static gboolean server_accept_again(void *opaque)
{
    VfuServer *server = opaque;

    g_clear_pointer(&server->retry_source, g_source_unref);
    server_watch(server);
    return G_SOURCE_REMOVE;
}

/* Out of descriptors or memory: the client stays in the queue, and the socket would stay ready. */
static gboolean server_rest(VfuServer *server)
{
    g_clear_pointer(&server->listen_source, g_source_unref);
    server->retry_source = g_timeout_source_new(ACCEPT_REST_MS);
    g_source_set_callback(server->retry_source, server_accept_again, server, NULL);
    g_source_attach(server->retry_source, server->context);
    return G_SOURCE_REMOVE;
}

static gboolean server_accept(int listen_fd, GIOCondition condition, void *opaque)
{
    VfuServer *server = opaque;
    auto_fd fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return exhausted ? server_rest(server) : G_SOURCE_CONTINUE;
    }
    if (server->conn && peer_hung_up(server->conn->fd)) {
        vfu_server_disconnect(server); /* its end has not been noticed yet */
    }
    if (server->conn) {
        return G_SOURCE_CONTINUE; /* one at a time: closed, so that the newcomer knows at once */
    }
    server_connect(server, steal_fd(&fd));
    return G_SOURCE_CONTINUE;
}

static VfuServer *server_alloc(PciDevice *device, VfuDmaMode mode)
{
    VfuServer *server = g_new0(VfuServer, 1);

    server->host.ops = &vfu_host_ops;
    server->device = device;
    server->mode = mode;
    server->tuning.dma_chunk = DEFAULT_DMA_CHUNK;
    server->listen_fd = -1;
    server->context = g_main_context_ref_thread_default();
    g_queue_init(&server->fences);
    device->host = &server->host;
    return server;
}

static void server_watch(VfuServer *server)
{
    server->listen_source = g_unix_fd_source_new(server->listen_fd, G_IO_IN);
    g_source_set_callback(server->listen_source, G_SOURCE_FUNC(server_accept), server, NULL);
    g_source_attach(server->listen_source, server->context);
}

static void server_listen(VfuServer *server, int fd)
{
    server->listen_fd = fd;
    server_watch(server);
}

/* True when somebody listens on the address, or when that cannot be ruled out. */
static bool address_is_live(const struct sockaddr_un *address)
{
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
           errno != ECONNREFUSED;
}

static bool bind_replacing_stale(int fd, const struct sockaddr_un *address, GError **error)
{
    const char *path = address->sun_path;
    struct stat st;

    if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
        return true;
    }
    if (errno == EADDRINUSE && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !address_is_live(address)) {
        if (unlink(path) < 0 && errno != ENOENT) {
            return error_set_errno(error, errno, "Could not remove the stale socket '%s'", path);
        }
        if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
            return true;
        }
    }
    return error_set_errno(error, errno, "Failed to bind socket to %s", path);
}

static int listen_on(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_fd fd = -1;

    if (!*path || strlen(path) >= sizeof address.sun_path) {
        error_set(error, "UNIX socket path '%s' is %s", path, *path ? "too long" : "empty");
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        error_set_errno(error, errno, "Failed to create a socket");
        return -1;
    }
    if (!bind_replacing_stale(fd, &address, error)) {
        return -1;
    }
    if (listen(fd, BACKLOG) < 0) {
        error_set_errno(error, errno, "Failed to listen on %s", path);
        unlink(path);
        return -1;
    }
    return steal_fd(&fd);
}

VfuServer *vfu_server_new(PciDevice *device, const char *path, VfuDmaMode mode, GError **error)
{
    struct stat st;
    int fd = listen_on(path, error);

    if (fd < 0) {
        return NULL;
    }
    VfuServer *server = server_alloc(device, mode);
    if (lstat(path, &st) == 0) {
        server->path = g_canonicalize_filename(path, NULL); /* holds after a chdir() */
        server->path_dev = st.st_dev;
        server->path_ino = st.st_ino;
    }
    server_listen(server, fd);
    return server;
}

static bool socket_check(int fd, bool listening, GError **error)
{
    int type, accepting;
    struct sockaddr_un address;
    socklen_t size = sizeof type, address_size = sizeof address;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &address_size) < 0) {
        return error_set_errno(error, errno, "File descriptor %d cannot be used as a vfio-user socket", fd);
    }
    size = sizeof accepting;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &size) < 0 || address.sun_family != AF_UNIX ||
        type != SOCK_STREAM || !accepting == listening) {
        return error_set(error, "File descriptor %d is not a %s UNIX stream socket", fd,
                         listening ? "listening" : "connected");
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return error_set_errno(error, errno, "Failed to set up file descriptor %d", fd);
    }
    return true;
}

VfuServer *vfu_server_new_listening(PciDevice *device, int fd, VfuDmaMode mode, GError **error)
{
    auto_fd own = fd;

    if (!socket_check(fd, true, error)) {
        return NULL;
    }
    VfuServer *server = server_alloc(device, mode);
    server_listen(server, steal_fd(&own));
    return server;
}

VfuServer *vfu_server_new_connected(PciDevice *device, int fd, VfuDmaMode mode, GError **error)
{
    auto_fd own = fd;

    if (!socket_check(fd, false, error)) {
        return NULL;
    }
    VfuServer *server = server_alloc(device, mode);
    server_connect(server, steal_fd(&own));
    return server;
}

static void source_end(GSource **source)
{
    if (*source) {
        g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
    }
}

void vfu_server_free(VfuServer *server)
{
    struct stat st;

    if (!server) {
        return;
    }
    server->notify = NULL;
    if (server->path && lstat(server->path, &st) == 0 && st.st_dev == server->path_dev &&
        st.st_ino == server->path_ino) {
        unlink(server->path);
    }
    source_end(&server->listen_source);
    source_end(&server->retry_source);
    if (server->listen_fd >= 0) {
        close(server->listen_fd);
    }
    if (server->conn) {
        vfu_server_disconnect(server);
    }
    server->device->host = NULL;
    g_main_context_unref(server->context);
    g_free(server->path);
    g_free(server);
}

void vfu_server_set_notify(VfuServer *server, VfuNotify notify, void *opaque)
{
    server->notify = notify;
    server->notify_opaque = opaque;
}

pid_t vfu_server_client_pid(const VfuServer *server)
{
    return server->conn ? vfu_peer_pid(server->conn->fd) : 0;
}

void vfu_server_set_deliver(VfuServer *server, void (*deliver)(void))
{
    server->deliver = deliver;
}

bool vfu_server_is_connected(const VfuServer *server)
{
    return server->conn;
}

VfuDmaMode vfu_server_dma_mode(const VfuServer *server)
{
    if (!server->conn) {
        return server->mode;
    }
    return server->conn->mmap_writes ? VFU_DMA_MODE_MMAP : VFU_DMA_MODE_MESSAGE;
}

bool vfu_dma_mode_parse(const char *text, VfuDmaMode *ret_mode)
{
    static const char *const names[] = {
        [VFU_DMA_MODE_AUTO] = "auto",
        [VFU_DMA_MODE_MMAP] = "mmap",
        [VFU_DMA_MODE_MESSAGE] = "message",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_mode = i;
            return true;
        }
    }
    return false;
}

void vfu_server_get_tuning(const VfuServer *server, VfuTuning *ret_tuning)
{
    *ret_tuning = server->tuning;
}

void vfu_server_set_tuning(VfuServer *server, const VfuTuning *tuning)
{
    server->tuning = *tuning;
    server->tuning.poll_us = MIN(tuning->poll_us, 1000);
    server->tuning.dma_chunk = CLAMP(tuning->dma_chunk, 4096, VFU_DEFAULT_MAX_XFER);
    server->tuning.send_buffer =
        tuning->send_buffer ? CLAMP(tuning->send_buffer, LEAST_SEND_BUFFER, 64u * 1024 * 1024) : 0;
}

void vfu_server_get_stats(const VfuServer *server, VfuStats *ret_stats)
{
    *ret_stats = server->stats;
}
