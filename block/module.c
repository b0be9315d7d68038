/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include "util/error.h"

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
        static const char *const beside[] = {"",           "block",       "monitor",       "../block",
                                             "../monitor", "../../block", "../lib/spindle"};
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

static char *module_find(const char *file)
{
    g_auto(GStrv) folders = module_folders();
    for (char **folder = folders; *folder; folder++) {
        g_autofree char *path = g_build_filename(*folder, file, NULL);
        if (access(path, R_OK) == 0) {
            return g_steal_pointer(&path);
        }
    }
    return NULL;
}

bool block_module_present(const char *file)
{
    g_autofree char *path = module_find(file);
    return path != NULL;
}

const void *block_module_load(const char *file, const char *symbol, unsigned abi, const char *what,
                              GError **error)
{
    g_autofree char *path = module_find(file);
    if (!path) {
        error_set(error,
                  "%s needs the module '%s', which was not found in '%s' (or $SPINDLE_MODULE_DIR): is it "
                  "installed?",
                  what, file, SPINDLE_MODULE_DIR);
        return NULL;
    }
    /* Never unloaded: its libraries do not like it, and quarks point into it. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        error_set(error, "Could not load the module '%s': %s", path, dlerror());
        return NULL;
    }
    const unsigned *module = dlsym(handle, symbol);
    if (!module || *module != abi) {
        error_set(error, "Module '%s' is of another version", path);
        dlclose(handle);
        return NULL;
    }
    return module;
}

const void *block_module_get(ModuleLoader *loader, GError **error)
{
    pthread_mutex_lock(&loader->lock);
    if (!loader->module) {
        loader->module = block_module_load(loader->file, loader->symbol, loader->abi, loader->what, error);
    }
    const void *module = loader->module;
    pthread_mutex_unlock(&loader->lock);
    return module;
}
