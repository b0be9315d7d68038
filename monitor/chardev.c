/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/chardev.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "util/cleanup.h"
#include "util/error.h"

typedef enum { CHARDEV_SOCKET, CHARDEV_STDIO, CHARDEV_NULL } ChardevKind;

struct Chardev {
    ChardevKind kind;
    char *path;        /* UNIX socket */
    char *remove;      /* the same from anywhere, once it is bound */
    char *host, *port; /* or TCP */
    int fd;            /* or a socket that was handed over; -1: none */
    bool server, wait;
    int listening; /* -1: not yet */
    bool busy;     /* a client is connected */
    guint source;
    ChardevConnected connected;
    void *opaque;
};

static bool read_socket(Chardev *chardev, Options *options, GError **error)
{
    uint64_t fd;
    bool nodelay;

    if (!options_get_bool(options, "server", false, &chardev->server, error) ||
        !options_get_bool(options, "wait", chardev->server, &chardev->wait, error) ||
        !options_get_bool(options, "nodelay", false, &nodelay, error) ||
        !options_get_uint(options, "fd", 0, INT32_MAX, UINT64_MAX, &fd, error)) {
        return false;
    }
    chardev->path = g_strdup(options_get(options, "path"));
    chardev->host = g_strdup(options_get(options, "host"));
    chardev->port = g_strdup(options_get(options, "port"));
    chardev->fd = fd == UINT64_MAX ? -1 : (int)fd;
    if (chardev->path && strlen(chardev->path) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        return error_set(error, "UNIX socket path '%s' is too long", chardev->path);
    }
    if (!chardev->path && !chardev->port && chardev->fd < 0) {
        return error_set(error, chardev->host ? "chardev: socket: no port given"
                                              : "chardev: socket: no path, host or fd given");
    }
    return true;
}

Chardev *chardev_new(Options *options, GError **error)
{
    static const char *const kinds[] = {"socket", "stdio", "null", NULL};
    Chardev *chardev = g_new0(Chardev, 1);
    const char *backend = options_get(options, "backend");
    int kind = -1;

    chardev->fd = chardev->listening = -1;
    for (int i = 0; kinds[i]; i++) {
        kind = !g_strcmp0(backend, kinds[i]) ? i : kind;
    }
    chardev->kind = (ChardevKind)kind;
    options_get(options, "id");
    options_get(options, "signal"); /* of stdio */
    if (kind < 0) {
        error_set(error, backend ? "'%s' is not a valid char driver" : "chardev: \"backend\" missing",
                  backend);
    } else if ((kind != CHARDEV_SOCKET || read_socket(chardev, options, error)) &&
               options_check_unused(options, error)) {
        return chardev;
    }
    chardev_free(chardev);
    return NULL;
}

/* Up to the first comma, a doubled one being part of it. */
static char *take_address(const char **text)
{
    g_autoptr(GString) address = g_string_new(NULL);
    const char *p = *text;

    for (; *p && (*p != ',' || p[1] == ','); p++) {
        g_string_append_c(address, *p);
        p += *p == ',';
    }
    *text = p;
    return g_strdup(address->str);
}

/* "unix:PATH,server=on" and "tcp:HOST:PORT,…" as options of a socket. Older switches without `=` are on. */
static Options *socket_options(const char *text, GError **error)
{
    bool tcp = g_str_has_prefix(text, "tcp:");
    const char *rest = strchr(text, ':') + 1;
    g_autofree char *name = take_address(&rest);
    g_autoptr(Options) options = *rest ? options_parse(rest + 1, NULL, error) : options_new();

    if (!options) {
        return NULL;
    }
    options_set(options, "backend", "socket");
    if (options_has(options, "nowait")) {
        options_remove(options, "nowait");
        options_set(options, "wait", "off");
    }
    if (!tcp) {
        options_set(options, "path", name);
        return g_steal_pointer(&options);
    }
    char *colon = strrchr(name, ':');
    if (!colon) {
        error_set(error, "error parsing address '%s'", name);
        return NULL;
    }
    *colon = '\0';
    options_set(options, "host", name);
    options_set(options, "port", colon + 1);
    return g_steal_pointer(&options);
}

Options *chardev_options_from_text(const char *text, GError **error)
{
    if (g_str_has_prefix(text, "unix:") || g_str_has_prefix(text, "tcp:")) {
        return socket_options(text, error);
    }
    Options *options = options_new();
    options_set(options, "backend", text);
    return options;
}

Chardev *chardev_new_from_text(const char *text, GError **error)
{
    g_autoptr(Options) options = chardev_options_from_text(text, error);

    return options ? chardev_new(options, error) : NULL;
}

static int open_unix(Chardev *chardev, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int ret;

    strcpy(address.sun_path, chardev->path);
    if (fd >= 0 && chardev->server) {
        unlink(chardev->path);
        ret = bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -1 : listen(fd, 1);
        chardev->remove = ret < 0 ? NULL : g_canonicalize_filename(chardev->path, NULL);
    } else {
        ret = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    if (ret < 0) {
        error_set_errno(error, errno,
                        chardev->server ? "Failed to bind socket to %s" : "Failed to connect to '%s'",
                        chardev->path);
        return -1;
    }
    return steal_fd(&fd);
}

static int open_address(const struct addrinfo *info, bool server)
{
    auto_fd fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, info->ai_protocol);
    int on = 1;

    if (fd < 0) {
        return -1;
    }
    if (server) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, 1) < 0) {
            return -1;
        }
    } else if (connect(fd, info->ai_addr, info->ai_addrlen) < 0) {
        return -1;
    }
    return steal_fd(&fd);
}

static int open_tcp(Chardev *chardev, GError **error)
{
    const char *host = chardev->host && chardev->host[0] ? chardev->host : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = chardev->server ? AI_PASSIVE : 0};
    struct addrinfo *list = NULL;
    int fd = -1, ret = getaddrinfo(host, chardev->port, &hints, &list);

    if (ret != 0) {
        error_set(error, "address resolution failed for %s:%s: %s", host ? host : "", chardev->port,
                  gai_strerror(ret));
        return -1;
    }
    for (const struct addrinfo *info = list; info && fd < 0; info = info->ai_next) {
        fd = open_address(info, chardev->server);
    }
    int failure = errno;
    freeaddrinfo(list);
    if (fd < 0) {
        error_set_errno(error, failure,
                        chardev->server ? "Failed to bind socket to '%s:%s'" : "Failed to connect to '%s:%s'",
                        host ? host : "", chardev->port);
    }
    return fd;
}

static void accept_one(Chardev *chardev)
{
    int fd = accept4(chardev->listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd >= 0) {
        chardev->busy = true;
        chardev->connected(fd, fd, chardev->opaque);
    }
}

static gboolean on_client(gint fd, GIOCondition condition, gpointer data)
{
    Chardev *chardev = data;

    chardev->source = 0;
    accept_one(chardev);
    if (!chardev->busy) {
        chardev_disconnected(chardev);
    }
    return G_SOURCE_REMOVE;
}

/* A socket, listening or connected as it is to be used. */
static bool check_fd(Chardev *chardev, GError **error)
{
    int listens = 0;
    socklen_t size = sizeof listens;

    if (getsockopt(chardev->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0) {
        int fd = chardev->fd;
        chardev->fd = -1; /* whosever it is, it is not a chardev's */
        return error_set(error, "File descriptor '%d' is not a socket", fd);
    }
    if (!listens == chardev->server) {
        return error_set(error, "File descriptor '%d' is %s socket: give server=%s", chardev->fd,
                         listens ? "a listening" : "not a listening", listens ? "on" : "off");
    }
    return fcntl(chardev->fd, F_SETFD, FD_CLOEXEC) == 0 ||
           error_set_errno(error, errno, "File descriptor '%d'", chardev->fd);
}

static int open_socket(Chardev *chardev, GError **error)
{
    return chardev->fd >= 0 ? steal_fd(&chardev->fd)
           : chardev->path  ? open_unix(chardev, error)
                            : open_tcp(chardev, error);
}

bool chardev_open(Chardev *chardev, ChardevConnected connected, void *opaque, GError **error)
{
    chardev->connected = connected;
    chardev->opaque = opaque;
    if (chardev->kind == CHARDEV_NULL) {
        return true;
    }
    if (chardev->kind == CHARDEV_STDIO) {
        connected(fcntl(0, F_DUPFD_CLOEXEC, 3), fcntl(1, F_DUPFD_CLOEXEC, 3), opaque);
        return true;
    }
    if (chardev->fd >= 0 && !check_fd(chardev, error)) {
        return false;
    }
    int fd = open_socket(chardev, error);
    if (fd < 0) {
        return false;
    }
    if (!chardev->server) {
        connected(fd, fd, opaque);
        return true;
    }
    chardev->listening = fd;
    if (chardev->wait) {
        accept_one(chardev);
    } else {
        chardev_disconnected(chardev);
    }
    return true;
}

bool chardev_detach(Chardev *chardev, ChardevEnds *ret, GError **error)
{
    *ret = (ChardevEnds){.in = -1, .out = -1};
    if (chardev->kind != CHARDEV_SOCKET) {
        ret->in = chardev->kind == CHARDEV_STDIO ? fcntl(0, F_DUPFD_CLOEXEC, 3) : -1;
        ret->out = chardev->kind == CHARDEV_STDIO ? fcntl(1, F_DUPFD_CLOEXEC, 3) : -1;
        return true;
    }
    if (chardev->fd >= 0 && !check_fd(chardev, error)) {
        return false;
    }
    int fd = open_socket(chardev, error);
    if (fd < 0) {
        return false;
    }
    ret->in = ret->out = fd;
    ret->server = chardev->server;
    ret->remove = g_steal_pointer(&chardev->remove);
    return true;
}

void chardev_disconnected(Chardev *chardev)
{
    chardev->busy = false;
    if (chardev->listening >= 0 && !chardev->source) {
        chardev->source = g_unix_fd_add(chardev->listening, G_IO_IN, on_client, chardev);
    }
}

void chardev_free(Chardev *chardev)
{
    if (!chardev) {
        return;
    }
    if (chardev->source) {
        g_source_remove(chardev->source);
    }
    if (chardev->listening >= 0) {
        close(chardev->listening);
    }
    if (chardev->remove) {
        unlink(chardev->remove);
    }
    if (chardev->fd >= 0) {
        close(chardev->fd);
    }
    g_free(chardev->path);
    g_free(chardev->remove);
    g_free(chardev->host);
    g_free(chardev->port);
    g_free(chardev);
}
