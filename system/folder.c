/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/folder.h"
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "util/cleanup.h"

void folder_remove(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;
    struct stat info;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        if (lstat(file, &info) == 0 && S_ISSOCK(info.st_mode)) {
            unlink(file);
        }
    }
    if (dir) {
        g_dir_close(dir);
        rmdir(path);
    }
}

/* The process whose folder it is by its name; 0: not such a name. */
static pid_t owner_of(const char *name)
{
    char *end;

    if (!g_str_has_prefix(name, FOLDER_PREFIX)) {
        return 0;
    }
    long pid = strtol(name + strlen(FOLDER_PREFIX), &end, 10);
    return pid > 0 && *end == '-' && strlen(end) == 9 ? (pid_t)pid : 0;
}

static bool takes_connections(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (strlen(path) >= sizeof address.sun_path) {
        return true; /* not to be told */
    }
    strcpy(address.sun_path, path);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != ECONNREFUSED;
}

/* Of another machine's, such as one in a container that shares this place but not its process ids. */
static bool is_in_use(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;
    bool used = !dir;

    while (dir && !used && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        used = takes_connections(file);
    }
    g_clear_pointer(&dir, g_dir_close);
    return used;
}

void folder_remove_stale(const char *place)
{
    GDir *dir = g_dir_open(place, 0, NULL);
    const char *name;
    struct stat info;

    while (dir && (name = g_dir_read_name(dir))) {
        pid_t owner = owner_of(name);
        if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH) {
            continue;
        }
        g_autofree char *folder = g_build_filename(place, name, NULL);
        if (lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
            !is_in_use(folder)) {
            folder_remove(folder);
        }
    }
    g_clear_pointer(&dir, g_dir_close);
}
