/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/folder.h"
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

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
