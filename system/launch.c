/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/launch.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "system/conceal.h"
#include "system/folder.h"
#include "system/lifeline.h"
#include "system/spawn.h"
#include "util/cleanup.h"
#include "util/error.h"

#define LIFELINE_FD SPAWN_FIRST_FD /* in the drive process */
#define FOLDER_MAX  80             /* leaves room for a socket's name in sun_path */
#define ARGS_BEFORE 3              /* argv[0], --lifeline and its argument */

static bool is_usable(const char *place, bool for_all)
{
    struct stat info;

    return access(place, W_OK | X_OK) == 0 &&
           (!for_all || (stat(place, &info) == 0 && (info.st_mode & S_IRWXO) == S_IRWXO));
}

char *launch_choose_folder(bool for_all, GError **error)
{
    const char *places[] = {g_getenv("XDG_RUNTIME_DIR"), "/run", g_getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        if (places[i] && places[i][0] == '/' && is_usable(places[i], for_all)) {
            g_autofree char *name = g_strdup_printf(FOLDER_PREFIX "%ld-%08x", (long)getpid(), g_random_int());
            g_autofree char *path = g_build_filename(places[i], name, NULL);
            if (strlen(path) <= FOLDER_MAX) {
                return g_steal_pointer(&path);
            }
        }
    }
    error_set(
        error,
        "No folder for the drives' sockets: XDG_RUNTIME_DIR, /run, TMPDIR and /tmp cannot be written to");
    return NULL;
}

bool launch_make_folder(const char *folder, const RunAs *as, GError **error)
{
    g_autofree char *place = g_path_get_dirname(folder);

    folder_remove_stale(place);
    if (mkdir(folder, 0700) < 0) {
        return error_set_errno(error, errno, "Could not make the folder '%s'", folder);
    }
    return !as || chown(folder, as->uid, as->gid) == 0 ||
           error_set_errno(error, errno, "Could not give the folder '%s' to user %u", folder, as->uid);
}

/* A secret goes as key=value: a JSON parser would leave copies of it in the drive process's memory. */
static char *drive_arg(const Plan *plan, guint index)
{
    const PlanArg *arg = g_ptr_array_index(plan->drive, index);
    g_autofree char *path = plan_device_path(plan, index);
    if (path) {
        g_autoptr(Options) device = options_parse(arg->arg, "driver", NULL);
        options_set(device, "qdev", path);
        return options_to_string(device);
    }
    g_autoptr(Options) options =
        !strcmp(arg->name, "--object") && arg->arg ? options_parse(arg->arg, "qom-type", NULL) : NULL;

    return options && !g_strcmp0(options_get(options, "qom-type"), "secret") ? options_to_string(options)
                                                                             : g_strdup(arg->arg);
}

/* The drive process's argv; option i of the plan is at ARGS_BEFORE + 2 * i. */
static char **drive_argv(const Plan *plan, const char *folder, const RouterSetup *router)
{
    GPtrArray *argv = g_ptr_array_new();
    g_autoptr(Options) lifeline = options_new();
    g_autofree char *fd = g_strdup_printf("%d", LIFELINE_FD);

    options_set(lifeline, "fd", fd);
    options_set(lifeline, "folder", folder);
    options_set(lifeline, "quiet", plan->daemonize ? "on" : "off");
    g_ptr_array_add(argv, g_strdup("spindled"));
    g_ptr_array_add(argv, g_strdup("--lifeline"));
    g_ptr_array_add(argv, options_to_string(lifeline));
    for (guint i = 0; i < plan->drive->len; i++) {
        const PlanArg *arg = g_ptr_array_index(plan->drive, i);
        g_ptr_array_add(argv, g_strdup(arg->name));
        g_ptr_array_add(argv, drive_arg(plan, i));
    }
    if (plan->incoming) {
        g_ptr_array_add(argv, g_strdup("--incoming"));
    }
    if (plan->run_as) {
        g_autofree char *user = run_as_text(plan->run_as);
        g_ptr_array_add(argv, g_strdup("--run-with"));
        g_ptr_array_add(argv, g_strconcat("user=", user, NULL));
    }
    if (router) {
        router_add_drive_options(router, argv, LIFELINE_FD + 1);
    }
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, false);
}

static void set_launch_error(const Plan *plan, int index, const char *message, GError **error)
{
    int n = index >= ARGS_BEFORE ? (index - ARGS_BEFORE) / 2 : -1;
    const PlanArg *arg = n >= 0 && n < (int)plan->drive->len ? g_ptr_array_index(plan->drive, n) : NULL;

    if (!message) {
        error_set(error, "The drive process ended before it was ready");
    } else if (arg && arg->origin) {
        error_set(error, "%s: %s", arg->origin, message);
    } else {
        error_set(error, "%s", message);
    }
}

static void wait_for_end(GPid pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* The drive process's descriptors: its end of the lifeline, then its monitors. */
static pid_t start_drives(char **argv, int lifeline, const RouterSetup *router)
{
    g_autoptr(GArray) fds = g_array_new(false, false, sizeof(int));
    size_t n = 0;

    g_array_append_val(fds, lifeline);
    if (router) {
        const int *more = router_drive_fds(router, &n);
        g_array_append_vals(fds, more, (guint)n);
    }
    if (fds->len > SPAWN_FDS_MAX) {
        errno = EMFILE;
        return -1;
    }
    return spawn_self(argv, (const int *)(void *)fds->data, fds->len, false);
}

bool launch_drives(const Plan *plan, const char *folder, const RouterSetup *router, int *ret_fd,
                   GPid *ret_pid, GError **error)
{
    g_auto(GStrv) argv = drive_argv(plan, folder, router);
    auto_fd ours = -1, theirs = -1;
    g_autofree char *message = NULL;
    int index;

    if (!lifeline_pair(&ours, &theirs, error)) {
        return false;
    }
    pid_t pid = start_drives(argv, theirs, router);
    close(steal_fd(&theirs));
    if (pid < 0) {
        return error_set_errno(error, errno, "Could not fork");
    }
    if (!lifeline_wait(ours, &index, &message)) {
        set_launch_error(plan, index, message, error);
        wait_for_end(pid);
        return false;
    }
    *ret_fd = steal_fd(&ours);
    *ret_pid = pid;
    return true;
}

void launch_become(const char *program, char *const *args, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();

    g_ptr_array_add(argv, (char *)program);
    for (; *args; args++) {
        g_ptr_array_add(argv, *args);
    }
    g_ptr_array_add(argv, NULL);
    execvp(program, (char **)argv->pdata);
    error_set_errno(error, errno, "Could not run '%s'", program);
}

void launch_engine(const char *program, const Plan *plan, const RouterSetup *router, int fd, GPid pid,
                   GError **error)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);

    for (char **arg = plan->qemu_argv; *arg; arg++) {
        g_ptr_array_add(args, g_strdup(*arg));
    }
    if (router) {
        router_add_engine_options(router, args);
    }
    g_ptr_array_add(args, NULL);
    if (conceal_secrets(args, error)) {
        launch_become(program, (char **)args->pdata, error);
    }
    if (fd >= 0) {
        close(fd);
        wait_for_end(pid);
    }
}
