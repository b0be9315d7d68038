/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/lifeline.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "system/folder.h"
#include "util/error.h"
#include "util/options.h"

#define LINE_MAX_BYTES 65536

struct Lifeline {
    int fd;
    char *folder;
    bool quiet;
    guint source;
    void (*closed)(void *opaque);
    void *opaque;
};

Lifeline *lifeline_new(const char *arg, GError **error)
{
    g_autoptr(Options) options = options_parse(arg, "fd", error);
    uint64_t fd;
    bool quiet;

    if (!options || !options_get_uint(options, "fd", 0, INT32_MAX, UINT64_MAX, &fd, error) ||
        !options_get_bool(options, "quiet", false, &quiet, error)) {
        return NULL;
    }
    const char *folder = options_get(options, "folder");
    if (fd == UINT64_MAX) {
        error_set(error, "Parameter 'fd' is missing");
        return NULL;
    }
    if (!options_check_unused(options, error)) {
        return NULL;
    }
    if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0) {
        error_set_errno(error, errno, "File descriptor %d", (int)fd);
        return NULL;
    }
    Lifeline *lifeline = g_new0(Lifeline, 1);
    lifeline->fd = (int)fd;
    lifeline->folder = g_strdup(folder);
    lifeline->quiet = quiet;
    return lifeline;
}

void lifeline_free(Lifeline *lifeline)
{
    if (!lifeline) {
        return;
    }
    if (lifeline->source) {
        g_source_remove(lifeline->source);
    }
    if (lifeline->folder) {
        folder_remove(lifeline->folder);
    }
    close(lifeline->fd);
    g_free(lifeline->folder);
    g_free(lifeline);
}

static gboolean on_event(int fd, GIOCondition condition, gpointer data)
{
    Lifeline *lifeline = data;

    lifeline->source = 0;
    lifeline->closed(lifeline->opaque);
    return G_SOURCE_REMOVE;
}

void lifeline_watch(Lifeline *lifeline, void (*closed)(void *opaque), void *opaque)
{
    lifeline->closed = closed;
    lifeline->opaque = opaque;
    lifeline->source = g_unix_fd_add(lifeline->fd, G_IO_HUP | G_IO_ERR | G_IO_IN, on_event, lifeline);
}

static void send_line(Lifeline *lifeline, const char *line)
{
    size_t size = strlen(line);

    while (size > 0) {
        ssize_t n = send(lifeline->fd, line, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return; /* nobody listens any more; the watch tells */
        }
        line += n > 0 ? n : 0;
        size -= n > 0 ? n : 0;
    }
}

void lifeline_send_ready(Lifeline *lifeline)
{
    if (lifeline->quiet) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0) {
            dup2(null, 2);
            close(null);
        }
    }
    send_line(lifeline, "ready\n");
}

void lifeline_send_error(Lifeline *lifeline, int index, const char *message)
{
    g_autofree char *line = g_strdup_printf("error %d %s", index, message);

    send_line(lifeline, line);
}

bool lifeline_pair(int *ret_ours, int *ret_theirs, GError **error)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || fcntl(fds[0], F_SETFD, 0) < 0) {
        return error_set_errno(error, errno, "Could not make a socket pair");
    }
    *ret_ours = fds[0];
    *ret_theirs = fds[1];
    return true;
}

bool lifeline_wait(int fd, int *ret_index, char **ret_message)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char *end;

    while (text->len < LINE_MAX_BYTES && strcmp(text->str, "ready\n")) {
        char piece[4096];
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        g_string_append_len(text, piece, MAX(n, 0));
    }
    if (!strcmp(text->str, "ready\n")) {
        return true;
    }
    *ret_index = 0;
    *ret_message = NULL;
    if (g_str_has_prefix(text->str, "error ")) {
        *ret_index = (int)strtol(text->str + strlen("error "), &end, 10);
        *ret_message = g_strdup(end + 1);
    }
    return false;
}
