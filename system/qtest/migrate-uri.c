/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/migrate-uri.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util/error.h"
#include "util/options.h"

#define UNIX_PATH_LEN 107
#define ABORT_MS      1000 /* for a command to end in order */

static const struct {
    const char *prefix;
    MigrateKind kind;
} kinds[] = {{"unix:", MIGRATE_UNIX},
             {"tcp:", MIGRATE_TCP},
             {"exec:", MIGRATE_EXEC},
             {"file:", MIGRATE_FILE},
             {"fd:", MIGRATE_FD}};

static int reap_child(MigrateUri *uri)
{
    int status = 0;

    while (waitpid(uri->child, &status, 0) < 0 && errno == EINTR) {
    }
    uri->child = 0;
    return status;
}

void migrate_uri_free(MigrateUri *uri)
{
    if (!uri) {
        return;
    }
    if (uri->fd >= 0) {
        close(uri->fd);
    }
    if (uri->listener) {
        g_socket_listener_close(uri->listener);
        g_object_unref(uri->listener);
        if (uri->kind == MIGRATE_UNIX) {
            unlink(uri->text);
        }
    }
    if (uri->child) { /* was sent nothing yet, else migrate_uri_finish() or _abort() has seen to it */
        kill(-uri->child, SIGKILL);
        reap_child(uri);
    }
    g_free(uri->text);
    g_free(uri);
}

static bool parse_file(MigrateUri *uri, GError **error)
{
    char *offset = strstr(uri->text, ",offset=");

    if (!offset) {
        return true;
    }
    *offset = '\0';
    return options_parse_size(offset + strlen(",offset="), &uri->offset) == 0 ||
           error_set(error, "file URI has bad offset %s", offset + strlen(",offset="));
}

static bool take_fd(MigrateUri *uri, Monitor *monitor, GError **error)
{
    char *end;
    unsigned long number = strtoul(uri->text, &end, 10);

    if (!g_ascii_isdigit(uri->text[0])) {
        uri->fd = monitor_take_fd(monitor, uri->text);
        return uri->fd >= 0 || error_set(error, "File descriptor named '%s' has not been found", uri->text);
    }
    uri->fd = *end || number > INT_MAX ? -1 : fcntl((int)number, F_DUPFD_CLOEXEC, 3);
    return uri->fd >= 0 || error_set(error, "Invalid file descriptor number '%s'", uri->text);
}

static GSocketConnectable *address_of(const MigrateUri *uri, GError **error)
{
    if (uri->kind == MIGRATE_UNIX) {
        if (strlen(uri->text) > UNIX_PATH_LEN) {
            error_set(error, "UNIX socket path '%s' is too long", uri->text);
            return NULL;
        }
        return G_SOCKET_CONNECTABLE(g_unix_socket_address_new(uri->text));
    }
    GSocketConnectable *address = g_network_address_parse(uri->text, 0, NULL);
    const char *colon = strrchr(uri->text, ':');
    if (!address || !colon || !colon[1]) {
        g_clear_object(&address);
        error_set(error, "error parsing address '%s'", uri->text);
    }
    return address;
}

static GSocketListener *listen_on(const MigrateUri *uri, GError **error)
{
    GSocketListener *listener = g_socket_listener_new();
    g_autoptr(GSocketConnectable) connectable = address_of(uri, error);
    bool ok = connectable != NULL;

    if (ok && uri->kind == MIGRATE_UNIX) {
        unlink(uri->text); /* left over, as with QEMU */
        ok = g_socket_listener_add_address(listener, G_SOCKET_ADDRESS(connectable), G_SOCKET_TYPE_STREAM,
                                           G_SOCKET_PROTOCOL_DEFAULT, NULL, NULL, error);
    } else if (ok) {
        GNetworkAddress *network = G_NETWORK_ADDRESS(connectable);
        const char *host = g_network_address_get_hostname(network);
        g_autoptr(GSocketAddress) address =
            g_inet_socket_address_new_from_string(!host[0]                     ? "0.0.0.0"
                                                  : !strcmp(host, "localhost") ? "127.0.0.1"
                                                                               : host,
                                                  g_network_address_get_port(network));

        ok = address ? g_socket_listener_add_address(listener, address, G_SOCKET_TYPE_STREAM,
                                                     G_SOCKET_PROTOCOL_DEFAULT, NULL, NULL, error)
                     : error_set(error, "'%s' is no address of this host", host);
    }
    if (!ok) {
        g_prefix_error(error, "Failed to listen on '%s': ", uri->text);
        g_clear_object(&listener);
    }
    return listener;
}

MigrateUri *migrate_uri_new(const char *text, bool incoming, Monitor *monitor, GError **error)
{
    MigrateUri *uri = NULL;
    bool ok = true;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_has_prefix(text, kinds[i].prefix)) {
            uri = g_new0(MigrateUri, 1);
            uri->kind = kinds[i].kind;
            uri->text = g_strdup(text + strlen(kinds[i].prefix));
            uri->fd = -1;
        }
    }
    if (!uri) {
        error_set(error, "unknown migration protocol: %s", text);
        return NULL;
    }
    if (uri->kind == MIGRATE_FILE) {
        ok = parse_file(uri, error);
    } else if (uri->kind == MIGRATE_FD) {
        ok = take_fd(uri, monitor, error);
    } else if (uri->kind != MIGRATE_EXEC && incoming) {
        uri->listener = listen_on(uri, error);
        ok = uri->listener != NULL;
    }
    if (!ok) {
        g_clear_pointer(&uri, migrate_uri_free);
    }
    return uri;
}

/* A descriptor of one's own of a connection. */
static int descriptor_of(GSocketConnection *connection, GError **error)
{
    int fd;

    if (!connection) {
        return -1;
    }
    fd = fcntl(g_socket_get_fd(g_socket_connection_get_socket(connection)), F_DUPFD_CLOEXEC, 3);
    if (fd < 0) {
        error_set_errno(error, errno, "Cannot keep the connection");
    }
    g_object_unref(connection);
    return fd;
}

static int open_socket(MigrateUri *uri, bool incoming, GCancellable *cancellable, GError **error)
{
    if (incoming) {
        return descriptor_of(g_socket_listener_accept(uri->listener, NULL, cancellable, error), error);
    }
    g_autoptr(GSocketConnectable) address = address_of(uri, error);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    GSocketConnection *connection =
        address ? g_socket_client_connect(client, address, cancellable, error) : NULL;
    if (!connection && address) {
        g_prefix_error(error, "Failed to connect to '%s': ", uri->text);
    }
    return descriptor_of(connection, error);
}

/* The shell's own children are to end with it. */
static void lead_group(gpointer data)
{
    setpgid(0, 0);
}

static int open_command(MigrateUri *uri, bool incoming, GError **error)
{
    char *argv[] = {"/bin/sh", "-c", uri->text, NULL};
    int fd = -1;

    g_spawn_async_with_pipes(
        NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD | (incoming ? G_SPAWN_CHILD_INHERITS_STDIN : 0),
        lead_group, NULL, &uri->child, incoming ? NULL : &fd, incoming ? &fd : NULL, NULL, error);
    return fd;
}

static int open_file(MigrateUri *uri, bool incoming, GError **error)
{
    int fd = open(uri->text,
                  O_CLOEXEC | (incoming ? O_RDONLY : O_WRONLY | O_CREAT | (uri->offset ? 0 : O_TRUNC)), 0660);

    if (fd < 0 || (uri->offset && lseek(fd, (off_t)uri->offset, SEEK_SET) < 0)) {
        error_set_errno(error, errno, "Failed to open '%s'", uri->text);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

int migrate_uri_open(MigrateUri *uri, bool incoming, GCancellable *cancellable, GError **error)
{
    int fd;

    switch (uri->kind) {
    case MIGRATE_UNIX:
    case MIGRATE_TCP:
        fd = open_socket(uri, incoming, cancellable, error);
        break;
    case MIGRATE_EXEC:
        fd = open_command(uri, incoming, error);
        break;
    case MIGRATE_FILE:
        fd = open_file(uri, incoming, error);
        break;
    default:
        fd = uri->fd;
        uri->fd = -1;
        break;
    }
    if (fd >= 0) {
        g_unix_set_fd_nonblocking(fd, true, NULL);
    }
    return fd;
}

/* False when it was cancelled. */
static bool wait_child(MigrateUri *uri, GCancellable *cancellable, GError **error)
{
    int pidfd = (int)syscall(SYS_pidfd_open, uri->child, 0);
    GPollFD cancel;
    bool watched = g_cancellable_make_pollfd(cancellable, &cancel);
    struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN},
                           {.fd = watched ? cancel.fd : -1, .events = POLLIN}};

    while (pidfd >= 0 && poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno == EINTR) {
    }
    if (watched) {
        g_cancellable_release_fd(cancellable);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    return !g_cancellable_set_error_if_cancelled(cancellable, error);
}

bool migrate_uri_finish(MigrateUri *uri, GCancellable *cancellable, GError **error)
{
    if (!uri->child) {
        return true;
    }
    if (!wait_child(uri, cancellable, error)) {
        return false;
    }
    int status = reap_child(uri);
    return status == 0 || error_set(error, "The command of the migration ended with %s %d",
                                    WIFSIGNALED(status) ? "signal" : "status",
                                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void migrate_uri_abort(MigrateUri *uri)
{
    if (!uri->child) {
        return;
    }
    kill(-uri->child, SIGTERM);
    struct pollfd fd = {.fd = (int)syscall(SYS_pidfd_open, uri->child, 0), .events = POLLIN};
    poll(&fd, 1, ABORT_MS);
    if (fd.fd >= 0) {
        close(fd.fd);
    }
    kill(-uri->child, SIGKILL);
    reap_child(uri);
}
