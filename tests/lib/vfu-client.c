/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The connection: messages out, messages in, waiting. Memory, DMA and interrupts: vfu-client-guest.c.
 */
#include "tests/lib/vfu-client-int.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEADLINE_US (10 * G_USEC_PER_SEC)
#define SETTLE_MS   3

VfuClient *vfu_client_new(int fd)
{
    VfuClient *client = g_new0(VfuClient, 1);

    client->fd = fd;
    client->in = g_byte_array_new();
    client->replies = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    client->requests = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    client_guest_init(client);
    return client;
}

VfuClient *vfu_client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpuint(strlen(path), <, sizeof address.sun_path);
    strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        g_error("connect to %s: %s", path, g_strerror(errno));
    }
    return vfu_client_new(fd);
}

VfuClient *vfu_client_start(const char *path)
{
    VfuClient *client = vfu_client_connect(path);
    vfu_client_negotiate(client);
    return client;
}

void vfu_client_free(VfuClient *client)
{
    if (!client) {
        return;
    }
    close(client->fd);
    client_guest_clear(client);
    g_byte_array_unref(client->in);
    g_ptr_array_unref(client->replies);
    g_ptr_array_unref(client->requests);
    g_free(client);
}

/* One turn of everything; true: something happened. */
static bool client_turn(VfuClient *client)
{
    bool progress = g_main_context_iteration(NULL, FALSE);

    progress |= client_receive(client);
    if (!client->hold_dma && client->requests->len) {
        client_serve_requests(client);
        progress = true;
    }
    return progress;
}

static void client_turn_or_sleep(VfuClient *client, gint64 start)
{
    if (client_turn(client)) {
        return;
    }
    if (g_get_monotonic_time() - start > DEADLINE_US) {
        g_error("the server does not answer");
    }
    struct pollfd pfd = {.fd = client->fd, .events = client->closed ? 0 : POLLIN};
    poll(&pfd, 1, 1);
}

static void client_sendmsg(VfuClient *client, const uint8_t *bytes, size_t size, const int *fds,
                           unsigned n_fds)
{
    union {
        char space[CMSG_SPACE(64 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    gint64 start = g_get_monotonic_time();

    g_assert_cmpuint(n_fds, <=, 64);
    while (size && !client->closed) {
        struct iovec iov = {(void *)bytes, size};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        if (n_fds) {
            msg.msg_control = control.space;
            msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
            struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
            *c = (struct cmsghdr){CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
            memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
        }
        ssize_t sent = sendmsg(client->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            client_turn_or_sleep(client, start);
            continue;
        }
        if (sent < 0) {
            return; /* closed; the receiving side notices */
        }
        n_fds = 0;
        bytes += sent;
        size -= sent;
    }
}

void vfu_client_send_raw(VfuClient *client, const void *bytes, size_t size, const int *fds, unsigned n_fds)
{
    client_sendmsg(client, bytes, size, fds, n_fds);
}

uint16_t vfu_client_send(VfuClient *client, unsigned command, uint32_t flags, const void *payload,
                         size_t size, const int *fds, unsigned n_fds)
{
    VfuHeader header = {
        .id = client->next_id++, .command = command, .size = sizeof header + size, .flags = flags};
    g_autofree uint8_t *message = g_malloc(header.size);

    memcpy(message, &header, sizeof header);
    if (size) {
        memcpy(message + sizeof header, payload, size);
    }
    client_sendmsg(client, message, header.size, fds, n_fds);
    return header.id;
}

void client_reply(VfuClient *client, const VfuHeader *request, uint32_t error, const void *payload,
                  size_t size)
{
    VfuHeader header = *request;
    header.size = sizeof header + size;
    header.flags = VFU_TYPE_REPLY | (error ? VFU_ERROR : 0);
    header.error = error;
    g_autofree uint8_t *message = g_malloc(header.size);

    memcpy(message, &header, sizeof header);
    if (size) {
        memcpy(message + sizeof header, payload, size);
    }
    client_sendmsg(client, message, header.size, NULL, 0);
}

static void client_sort_messages(VfuClient *client)
{
    VfuHeader header;

    while (client->in->len >= sizeof header) {
        memcpy(&header, client->in->data, sizeof header);
        g_assert_cmpuint(header.size, >=, sizeof header);
        if (client->in->len < header.size) {
            return;
        }
        GBytes *message = g_bytes_new(client->in->data, header.size);
        bool reply = (header.flags & VFU_TYPE_MASK) == VFU_TYPE_REPLY;
        g_ptr_array_add(reply ? client->replies : client->requests, message);
        g_byte_array_remove_range(client->in, 0, header.size);
    }
}

bool client_receive(VfuClient *client)
{
    g_autofree uint8_t *buf = NULL;

    if (client->closed) {
        return false;
    }
    buf = g_malloc(256 * 1024);
    ssize_t n = recv(client->fd, buf, 256 * 1024, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
        return false;
    }
    if (n <= 0) {
        client->closed = true;
        return true;
    }
    g_byte_array_append(client->in, buf, n);
    client_sort_messages(client);
    return true;
}

static GBytes *client_take_reply(VfuClient *client, uint16_t id)
{
    for (guint i = 0; i < client->replies->len; i++) {
        GBytes *message = g_ptr_array_index(client->replies, i);
        const VfuHeader *header = g_bytes_get_data(message, NULL);
        if (header->id == id) {
            return g_ptr_array_steal_index(client->replies, i);
        }
    }
    return NULL;
}

int vfu_client_await(VfuClient *client, uint16_t id, void *ret_payload, size_t room)
{
    gint64 start = g_get_monotonic_time();
    g_autoptr(GBytes) reply = NULL;

    while (!(reply = client_take_reply(client, id))) {
        if (client->closed) {
            return -ECONNRESET;
        }
        client_turn_or_sleep(client, start);
    }
    gsize size;
    const uint8_t *data = g_bytes_get_data(reply, &size);
    VfuHeader header;
    memcpy(&header, data, sizeof header);
    size -= sizeof header;
    if (header.flags & VFU_ERROR) {
        g_assert_cmpuint(size, ==, 0);
        g_assert_cmpuint(header.error, >, 0);
        return -(int)header.error;
    }
    if (ret_payload) {
        memcpy(ret_payload, data + sizeof header, MIN(size, room));
    }
    return size;
}

int vfu_client_call(VfuClient *client, unsigned command, const void *payload, size_t size, void *ret_payload,
                    size_t room)
{
    uint16_t id = vfu_client_send(client, command, 0, payload, size, NULL, 0);
    return vfu_client_await(client, id, ret_payload, room);
}

void vfu_client_negotiate(VfuClient *client)
{
    uint8_t message[sizeof(VfuVersionMsg) + sizeof VFU_CLIENT_QEMU_JSON] = {0};

    memcpy(message + sizeof(VfuVersionMsg), VFU_CLIENT_QEMU_JSON, sizeof VFU_CLIENT_QEMU_JSON);
    g_assert_cmpint(vfu_client_call(client, VFU_VERSION, message, sizeof message, NULL, 0), >, 0);
}

bool vfu_client_is_closed(VfuClient *client, bool wait)
{
    gint64 start = g_get_monotonic_time();

    while (wait && !client->closed) {
        client_turn_or_sleep(client, start);
    }
    return client->closed;
}

void vfu_client_settle(VfuClient *client)
{
    gint64 start = g_get_monotonic_time(), quiet = start;

    while (g_get_monotonic_time() - quiet < SETTLE_MS * 1000) {
        if (client_turn(client)) {
            quiet = g_get_monotonic_time();
            g_assert_cmpint(quiet - start, <, DEADLINE_US);
        }
    }
}

void vfu_client_wait_until(VfuClient *client, const bool *flag)
{
    gint64 start = g_get_monotonic_time();

    while (!*flag) {
        client_turn_or_sleep(client, start);
    }
}
