/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The emulator command line.
 */
#include "system/programs.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "block/block.h"
#include "block/probe.h"
#include "block/secret-object.h"
#include "monitor/chardev.h"
#include "system/descriptors.h"
#include "system/engine.h"
#include "system/folder.h"
#include "system/launch.h"
#include "system/plan.h"
#include "system/qtest/choose.h"
#include "system/qtest/main.h"
#include "util/cleanup.h"
#include "util/log.h"

static bool is_image(const struct stat *info)
{
    return S_ISREG(info->st_mode) || (S_ISBLK(info->st_mode) && major(info->st_rdev) != SCSI_CDROM_MAJOR);
}

/* Read without waiting for whatever a FIFO or a device would do: from files and disks, not from drives. */
static ssize_t read_head(const char *filename, uint8_t *buf, size_t size, off_t offset)
{
    auto_fd fd = open(filename, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0 || !is_image(&info)) {
        return -1;
    }
    return pread(fd, buf, size, offset < 0 ? info.st_size + offset : offset);
}

/* A disc is never taken for a disk image: its first sectors are a boot record or zeros. */
static const char *probe_format(const char *filename)
{
    uint8_t head[BLOCK_PROBE_SIZE], tail[512] = {0};
    const char *dot = strrchr(filename, '.');

    if (dot && !g_ascii_strcasecmp(dot, ".cue")) {
        return "cue"; /* Spindle's own: QEMU would take the sheet's text for the disc */
    }
    ssize_t got = read_head(filename, head, sizeof head, 0);
    const char *format = got < 0 ? "raw" : block_probe_format(head, got);
    if (strcmp(format, "raw")) {
        return format;
    }
    if (read_head(filename, tail, sizeof tail, -512) == 512 && !memcmp(tail, "koly", 4)) {
        return "dmg";
    }
    return "raw";
}

/* A UEFI image begins with a firmware volume. A name without a folder may be QEMU's to find. */
static bool firmware_is_uefi(const char *filename)
{
    uint8_t head[0x2c];

    if (read_head(filename, head, sizeof head, 0) == (ssize_t)sizeof head) {
        return !memcmp(head + 0x28, "_FVH", 4);
    }
    return strstr(filename, "OVMF") || strstr(filename, "edk2");
}

static bool is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool on_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static const PlanHooks hooks = {
    .has_driver = block_has_driver,
    .options_from_filename = block_options_from_filename,
    .probe_format = probe_format,
    .firmware_is_uefi = firmware_is_uefi,
    .is_directory = is_directory,
    .on_terminal = on_terminal,
    .chardev_options = chardev_options_from_text,
};

static int fail(GError *error)
{
    log_gerror(error, NULL);
    return 1;
}

/* Without a CPU: as Spindle's own PC, or as QEMU where the command line names what that has not. Without a
 * QEMU at hand the PC says what it lacks. */
static int run_qtest(int argc, char **argv, QtestChoice choice, const char *reason)
{
    g_autofree char *engine = choice == QTEST_ENGINE ? engine_find(false, NULL) : NULL;
    g_autofree char *found = engine ? g_find_program_in_path(engine) : NULL;
    GError *error = NULL;

    if (!found) {
        return qtest_main(argc, argv);
    }
    log_info("%s: not in Spindle's PC for -accel qtest, QEMU runs this machine", reason);
    launch_become(engine, argv + 1, &error);
    return fail(error);
}

/* The processes beside QEMU, and QEMU. Returns on failure only, with the exit status: what went wrong is told
 * before the monitors' connections are closed, since libvirt kills an emulator that closes its own. */
static int launch(const Plan *plan, const char *engine, const char *folder)
{
    RouterSetup *router = NULL;
    GError *error = NULL;
    int fd = -1;
    GPid pid = 0;

    bool ok =
        !plan->serves ||
        (launch_make_folder(folder, plan->run_as, &error) &&
         ((!plan->monitors->len && !plan->incoming) || (router = router_setup_new(plan, folder, &error))) &&
         launch_drives(plan, folder, router, &fd, &pid, &error) && (!router || router_start(router, &error)));
    if (ok) {
        for (guint i = 0; i < plan->notes->len; i++) {
            log_info("%s", (char *)g_ptr_array_index(plan->notes, i));
        }
        launch_engine(engine, plan, router, fd, pid, &error);
    }
    int status = fail(error);
    router_setup_free(router);
    if (plan->serves) {
        folder_remove(folder);
    }
    return status;
}

int spindle_main(int argc, char **argv)
{
    GError *error = NULL;
    g_autofree char *reason = NULL;

    log_set_program(argv[0]);
    if (!descriptors_ensure(&error)) {
        return fail(error);
    }
    QtestChoice choice = qtest_choose((const char *const *)argv + 1, &reason);
    if (choice != QTEST_NOT) {
        return run_qtest(argc, argv, choice, reason);
    }
    g_autoptr(RunAs) as = NULL;
    if (!run_as_from_argv((const char *const *)argv + 1, &as, &error)) {
        return fail(error);
    }
    g_autofree char *folder = launch_choose_folder(as != NULL, &error);
    if (!folder) {
        return fail(error);
    }
    g_autoptr(Plan) plan = plan_new((const char *const *)argv + 1, folder, &hooks, &error);
    if (!plan) {
        return fail(error);
    }
    secret_object_hide_argv(argc, argv); /* the plan has copies, and starting may take a while */
    log_set_timestamp(plan->timestamp);
    plan->run_as = as;
    g_autofree char *engine = engine_find(plan->serves, &error);
    return engine ? launch(plan, engine, folder) : fail(error);
}
