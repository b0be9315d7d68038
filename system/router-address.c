/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The addresses that a state goes to or comes from, in QEMU's words: file:PATH, unix:PATH, tcp:HOST:PORT,
 * exec:COMMAND, fd:NAME.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "system/router-state.h"
#include "util/cleanup.h"
#include "util/error.h"
#include "util/log.h"

static int open_unix(const char *path, bool incoming, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int ret;

    if (strlen(path) >= sizeof address.sun_path) {
        error_set(error, "UNIX socket path '%s' is too long", path);
        return -1;
    }
    strcpy(address.sun_path, path);
    if (incoming) {
        unlink(path);
        ret = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -1 : listen(fd, 1);
    } else {
        ret = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    if (ret < 0) {
        error_set_errno(error, errno, incoming ? "Failed to bind socket to %s" : "Failed to connect to '%s'",
                        path);
        return -1;
    }
    return steal_fd(&fd);
}

static int open_file(const char *path, bool incoming, GError **error)
{
    int fd = open(path, incoming ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        error_set_errno(error, errno, "Could not open '%s'", path);
    }
    return fd;
}

/* What HOST:PORT stands for, the caller's; NULL: *error. A host in brackets may hold colons. */
static struct addrinfo *resolve(const char *address, bool incoming, GError **error)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = incoming ? AI_PASSIVE : 0};
    const char *colon = strrchr(address, ':');
    struct addrinfo *list = NULL;

    if (!colon || !colon[1]) {
        error_set(error, "error parsing address '%s'", address);
        return NULL;
    }
    bool brackets = address[0] == '[' && colon > address && colon[-1] == ']';
    g_autofree char *host = g_strndup(address + brackets, (gsize)(colon - address) - (brackets ? 2 : 0));
    int ret = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &list);
    if (ret != 0) {
        error_set(error, "address resolution failed for %s: %s", address, gai_strerror(ret));
        return NULL;
    }
    return list;
}

static int open_one(const struct addrinfo *item, bool incoming)
{
    auto_fd fd = socket(item->ai_family, item->ai_socktype | SOCK_CLOEXEC, item->ai_protocol);
    int on = 1;

    if (fd < 0) {
        return -1;
    }
    if (!incoming) {
        return connect(fd, item->ai_addr, item->ai_addrlen) < 0 ? -1 : steal_fd(&fd);
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, item->ai_addr, item->ai_addrlen) < 0 || listen(fd, 1) < 0 ? -1 : steal_fd(&fd);
}

static int open_tcp(const char *address, bool incoming, GError **error)
{
    struct addrinfo *list = resolve(address, incoming, error);
    int fd = -1;

    if (!list) {
        return -1;
    }
    for (const struct addrinfo *item = list; item && fd < 0; item = item->ai_next) {
        fd = open_one(item, incoming);
    }
    if (fd < 0) {
        error_set_errno(error, errno, incoming ? "Failed to listen on '%s'" : "Failed to connect to '%s'",
                        address);
    }
    freeaddrinfo(list);
    return fd;
}

/* The router ignores them; a command does not. */
static void restore_signals(gpointer data)
{
    static const int signals[] = {SIGPIPE, SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        signal(signals[i], SIG_DFL);
    }
}

static void on_command_ended(GPid pid, gint status, gpointer data)
{
    g_autofree char *command = data;
    g_autoptr(GError) error = NULL;

    if (!g_spawn_check_wait_status(status, &error)) {
        log_warn("exec:%s: %s", command, error->message);
    }
    g_spawn_close_pid(pid);
}

/* The end of a pipe that the command reads from, or writes to. */
static int open_command(const char *command, bool incoming, GError **error)
{
    char shell[] = "/bin/sh", option[] = "-c";
    g_autofree char *copy = g_strdup(command);
    char *argv[] = {shell, option, copy, NULL};
    int fd = -1;
    GPid pid;

    if (!g_spawn_async_with_pipes(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, restore_signals, NULL, &pid,
                                  incoming ? NULL : &fd, incoming ? &fd : NULL, NULL, error)) {
        return -1;
    }
    g_child_watch_add(pid, on_command_ended, g_steal_pointer(&copy));
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* One that QEMU was given: at its start, by number, or by the user's last getfd. */
static int find_fd(RouterPort *port, const RouterConfig *config, const char *name, GError **error)
{
    guint64 number;

    if (port && port->got_fd >= 0 && !strcmp(port->got_name, name)) {
        return steal_fd(&port->got_fd);
    }
    if (g_ascii_string_to_unsigned(name, 10, 0, INT32_MAX, &number, NULL)) {
        for (guint i = 0; i < config->inherited->len; i++) {
            const RouterConfigFd *item = &g_array_index(config->inherited, RouterConfigFd, i);
            if (item->number == (int)number) {
                return fcntl(item->fd, F_DUPFD_CLOEXEC, 3);
            }
        }
    }
    error_set(error,
              "File descriptor named '%s' has not been found: give it by getfd, next before this command",
              name);
    return -1;
}

int router_stream_open(RouterPort *port, const RouterConfig *config, const char *uri, bool incoming,
                       bool *ret_ours, GError **error)
{
    *ret_ours = !uri || !g_str_has_prefix(uri, "fd:");
    if (uri && !*ret_ours) {
        return find_fd(port, config, uri + strlen("fd:"), error);
    }
    if (uri && g_str_has_prefix(uri, "file:") && !strstr(uri, ",offset=")) {
        return open_file(uri + strlen("file:"), incoming, error);
    }
    if (uri && g_str_has_prefix(uri, "unix:")) {
        return open_unix(uri + strlen("unix:"), incoming, error);
    }
    if (uri && g_str_has_prefix(uri, "tcp:") && incoming) {
        return open_tcp(uri + strlen("tcp:"), true, error);
    }
    if (uri && g_str_has_prefix(uri, "exec:")) {
        return open_command(uri + strlen("exec:"), incoming, error);
    }
    error_set(
        error,
        "The state of Spindle's drives goes by 'fd:', 'file:', 'unix:', 'tcp:' or 'exec:' only, not by '%s'",
        uri ? uri : "channels");
    return -1;
}

bool router_stream_connects_late(const char *uri)
{
    return uri && g_str_has_prefix(uri, "tcp:");
}

int router_stream_connect(const char *uri, GError **error)
{
    return open_tcp(uri + strlen("tcp:"), false, error);
}
