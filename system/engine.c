/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/engine.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/error.h"

#define EMULATOR "qemu-system-x86_64"
#define DEVICE   "vfio-user-pci"

/* `../scripts/engine` beside the folder that this program is in, if that is a source tree. */
static char *source_tree_script(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = self ? g_path_get_dirname(self) : NULL;
    g_autofree char *root = folder ? g_path_get_dirname(folder) : NULL;
    g_autofree char *mark = root ? g_build_filename(root, "system", "engine.c", NULL) : NULL;
    char *script = root ? g_build_filename(root, "scripts", "engine", NULL) : NULL;

    if (!script || access(script, X_OK) < 0 || access(mark, R_OK) < 0) {
        g_clear_pointer(&script, g_free);
    }
    return script;
}

/* Standard output without the newline. */
static char *run_for_output(const char *const *argv, int *ret_status, GError **error)
{
    char *out = NULL;
    g_autoptr(GError) failed = NULL;

    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, NULL, ret_status,
                      &failed)) {
        error_set(error, "Could not run '%s': %s", argv[0], failed->message);
        return NULL;
    }
    return g_strchomp(out);
}

static char *engine_from_script(const char *script, GError **error)
{
    const char *const argv[] = {script, NULL};
    int status;
    g_autofree char *path = run_for_output(argv, &status, error);

    if (path && (!g_spawn_check_wait_status(status, NULL) || !path[0])) {
        error_set(error, "'%s' found no QEMU with " DEVICE, script);
        return NULL;
    }
    return g_steal_pointer(&path);
}

static bool is_self(const char *path)
{
    struct stat self, other;

    return stat("/proc/self/exe", &self) == 0 && stat(path, &other) == 0 && self.st_dev == other.st_dev &&
           self.st_ino == other.st_ino;
}

/* The first in PATH that is not Spindle under another name. */
static char *search_path(void)
{
    const char *path = g_getenv("PATH");
    g_auto(GStrv) folders = g_strsplit(path ? path : "/usr/local/bin:/usr/bin:/bin", ":", -1);

    for (char **folder = folders; *folder; folder++) {
        g_autofree char *file = g_build_filename((*folder)[0] ? *folder : ".", EMULATOR, NULL);
        if (access(file, X_OK) == 0 && !is_self(file)) {
            return g_steal_pointer(&file);
        }
    }
    return NULL;
}

static char *engine_from_path(bool needs_vfio_user, GError **error)
{
    g_autofree char *file = search_path();
    const char *const argv[] = {file, "-machine", "none", "-device", DEVICE ",help", NULL};
    int status;

    if (!file) {
        error_set(error,
                  "No " EMULATOR " in PATH: install QEMU 10.1 or newer, or name one with SPINDLE_QEMU=PATH");
        return NULL;
    }
    if (needs_vfio_user) {
        g_autofree char *out = run_for_output(argv, &status, error);
        if (!out) {
            return NULL;
        }
        if (!strstr(out, "socket=")) {
            error_set(error,
                      "'%s' has no " DEVICE
                      " device, which came with QEMU 10.1: install a newer one, or name one "
                      "with SPINDLE_QEMU=PATH",
                      file);
            return NULL;
        }
    }
    return g_steal_pointer(&file);
}

char *engine_find(bool needs_vfio_user, GError **error)
{
    const char *user = g_getenv("SPINDLE_QEMU");
    g_autofree char *script = source_tree_script();

    if (user && user[0]) {
        return g_strdup(user);
    }
    if (SPINDLE_DEFAULT_QEMU[0]) {
        return g_strdup(SPINDLE_DEFAULT_QEMU);
    }
    return script ? engine_from_script(script, error) : engine_from_path(needs_vfio_user, error);
}
