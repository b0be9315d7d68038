/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finding and loading spindle-luks.so: in $SPINDLE_MODULE_DIR, beside the program, in the build tree that the
 * program runs from, or where it was installed.
 */
#include "block/luks-crypto.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "util/error.h"

#define MODULE_FILE "spindle-luks.so"

static struct {
    pthread_mutex_t lock;
    const LuksCryptoModule *module; /* once loaded, for good */
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Folders to look in, best first; relative to the program so that a build tree uses its own module. */
static char **module_folders(void)
{
    GStrvBuilder *folders = g_strv_builder_new();
    const char *named = g_getenv("SPINDLE_MODULE_DIR");
    if (named) {
        g_strv_builder_add(folders, named);
    }
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    if (program) {
        static const char *const beside[] = {"", "../block", "../../block", "../lib/spindle"};
        g_autofree char *folder = g_path_get_dirname(program);
        for (size_t i = 0; i < G_N_ELEMENTS(beside); i++) {
            g_autofree char *path = g_build_filename(folder, beside[i], NULL);
            g_strv_builder_add(folders, path);
        }
    }
    g_strv_builder_add(folders, SPINDLE_MODULE_DIR);
    char **list = g_strv_builder_end(folders);
    g_strv_builder_unref(folders);
    return list;
}

static char *module_find(void)
{
    g_auto(GStrv) folders = module_folders();
    for (char **folder = folders; *folder; folder++) {
        g_autofree char *path = g_build_filename(*folder, MODULE_FILE, NULL);
        if (access(path, R_OK) == 0) {
            return g_steal_pointer(&path);
        }
    }
    return NULL;
}

static const LuksCryptoModule *module_load(GError **error)
{
    g_autofree char *path = module_find();
    if (!path) {
        error_set(error,
                  "Encryption needs the module '" MODULE_FILE "', which was not found in '%s' (or "
                  "$SPINDLE_MODULE_DIR): is it installed?",
                  SPINDLE_MODULE_DIR);
        return NULL;
    }
    /* Never unloaded: its libraries do not like it, and quarks point into it. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        error_set(error, "Could not load the module for encryption: %s", dlerror());
        return NULL;
    }
    const LuksCryptoModule *module = dlsym(handle, LUKS_MODULE_SYMBOL);
    if (!module || module->abi != LUKS_MODULE_ABI) {
        error_set(error, "Module '%s' is of another version", path);
        dlclose(handle);
        return NULL;
    }
    return module;
}

const LuksCryptoModule *luks_module_get(GError **error)
{
    pthread_mutex_lock(&loaded.lock);
    if (!loaded.module) {
        loaded.module = module_load(error);
    }
    const LuksCryptoModule *module = loaded.module;
    pthread_mutex_unlock(&loaded.lock);
    return module;
}
