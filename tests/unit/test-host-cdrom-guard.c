/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The kernel's polling of a host's drive, by a file in the place of its setting: shared by several holders,
 * and put back when they end, killed ones too.
 */
#include "block/host-cdrom-guard.h"
#include "block/host-cdrom-poll.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Rig {
    char *folder, *setting;
    CdromDevice device;
} Rig;

static void put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void rig_new(Rig *rig, const char *setting)
{
    memset(rig, 0, sizeof *rig);
    rig->folder = g_dir_make_tmp("guard-XXXXXX", NULL);
    rig->setting = g_build_filename(rig->folder, "events_poll_msecs", NULL);
    put(rig->folder, "events", "media_change eject_request\n");
    put(rig->folder, "events_async", "\n");
    put(rig->folder, "events_poll_msecs", setting);
    rig->device.is_cdrom = true;
    g_assert_cmpuint(g_strlcpy(rig->device.sysfs, rig->folder, sizeof rig->device.sysfs), <,
                     sizeof rig->device.sysfs);
    g_strlcpy(rig->device.devname, "sr7", sizeof rig->device.devname);
}

static void rig_free(Rig *rig)
{
    static const char *const names[] = {"events", "events_async", "events_poll_msecs"};
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(rig->folder, names[i], NULL);
        g_remove(path);
    }
    g_assert_cmpint(g_rmdir(rig->folder), ==, 0);
    g_free(rig->folder);
    g_free(rig->setting);
}

static char *setting_of(const Rig *rig)
{
    char *text = NULL;
    g_assert_true(g_file_get_contents(rig->setting, &text, NULL, NULL));
    return g_strchomp(text);
}

static void assert_setting(const Rig *rig, const char *expected)
{
    g_autofree char *text = setting_of(rig);
    g_assert_cmpstr(text, ==, expected);
}

static void wait_setting(const Rig *rig, const char *expected)
{
    const gint64 end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
    for (;;) {
        g_autofree char *text = setting_of(rig);
        if (!strcmp(text, expected)) {
            return;
        }
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(2000);
    }
}

static void begin(CdromPoll *poll, const Rig *rig)
{
    const char *why = NULL;
    *poll = (CdromPoll){0};
    if (!cdrom_poll_begin(poll, &rig->device, &why)) {
        g_assert_cmpstr(why, ==, NULL);
    }
}

static bool events_come(void)
{
    Rig rig;
    CdromPoll poll = {0};
    const char *why = NULL;
    rig_new(&rig, "2000\n");
    const bool come = cdrom_poll_begin(&poll, &rig.device, &why);
    if (!come) {
        g_test_skip(why);
    }
    rig_free(&rig);
    return come;
}

/* One after the other, in any order of leaving; the last one restores. */
static void test_holders(void)
{
    static const struct {
        const char *before, *one, *two;
    } rows[] = {
        {"0", "1500", "1501"}, {"-1", "1000", "1001"}, {"1000", "1001", "1002"}, {"1003", "1004", "1005"}};
    CdromPoll a, b;
    if (!events_come()) {
        return;
    }
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(rows); i++) {
        Rig rig;
        rig_new(&rig, rows[i / 2].before);
        begin(&a, &rig);
        if (i / 2 == 1 && !a.path) { /* the kernel's default is on here */
            rig_free(&rig);
            continue;
        }
        assert_setting(&rig, rows[i / 2].one);
        begin(&b, &rig);
        assert_setting(&rig, rows[i / 2].two);
        cdrom_poll_end(i % 2 ? &a : &b);
        assert_setting(&rig, rows[i / 2].one);
        cdrom_poll_end(i % 2 ? &b : &a);
        assert_setting(&rig, rows[i / 2].before);
        cdrom_poll_end(&a);
        assert_setting(&rig, rows[i / 2].before);
        rig_free(&rig);
    }
}

/* What is on is left alone, and so is what somebody else set meanwhile. */
static void test_others(void)
{
    Rig rig;
    CdromPoll poll;
    if (!events_come()) {
        return;
    }
    rig_new(&rig, "2000");
    begin(&poll, &rig);
    assert_setting(&rig, "2000");
    cdrom_poll_end(&poll);
    assert_setting(&rig, "2000");
    put(rig.folder, "events_poll_msecs", "0");
    begin(&poll, &rig);
    put(rig.folder, "events_poll_msecs", "5000");
    cdrom_poll_end(&poll);
    assert_setting(&rig, "5000");
    put(rig.folder, "events_poll_msecs", "0");
    begin(&poll, &rig);
    g_remove(rig.setting); /* unplugged */
    cdrom_poll_end(&poll);
    put(rig.folder, "events_poll_msecs", "0");
    rig_free(&rig);
}

/* A process that holds the setting, then waits to be ended. */
static pid_t start_holder(const Rig *rig)
{
    int fds[2];
    char word;
    g_assert_cmpint(pipe(fds), ==, 0);
    const pid_t pid = fork();
    if (pid == 0) {
        CdromPoll poll;
        close(fds[0]);
        begin(&poll, rig);
        g_assert_cmpint(write(fds[1], "x", 1), ==, 1);
        pause();
        _exit(1);
    }
    close(fds[1]);
    g_assert_cmpint(read(fds[0], &word, 1), ==, 1);
    /* its guard has let go of this end: else a peer of a killed process would wait for ever */
    g_assert_cmpint(kill(pid, 0), ==, 0);
    close(fds[0]);
    return pid;
}

static void end_holder(pid_t pid)
{
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_killed(void)
{
    Rig rig;
    if (!events_come()) {
        return;
    }
    cdrom_guard_end(); /* the holders have their own */
    rig_new(&rig, "0");
    const pid_t a = start_holder(&rig), b = start_holder(&rig);
    assert_setting(&rig, "1501");
    end_holder(a);
    wait_setting(&rig, "1500");
    end_holder(b);
    wait_setting(&rig, "0");
    rig_free(&rig);
}

/* The guard keeps no descriptor of the process open, and ends with it. */
static void test_lets_go(void)
{
    int fds[2];
    char byte;
    cdrom_guard_end();
    g_assert_cmpint(pipe(fds), ==, 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        g_assert_true(cdrom_guard_start());
        cdrom_guard_add(CDROM_GUARD_DOOR, "/nonexistent");
        cdrom_guard_remove(CDROM_GUARD_DOOR, "/nonexistent");
        cdrom_guard_end();
        g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
        g_assert_cmpint(errno, ==, ECHILD);
        g_assert_true(cdrom_guard_start());
        cdrom_guard_add(CDROM_GUARD_DOOR, "/nonexistent");
        g_assert_cmpint(write(fds[1], "x", 1), ==, 1);
        pause();
        _exit(1);
    }
    close(fds[1]);
    g_assert_cmpint(read(fds[0], &byte, 1), ==, 1);
    end_holder(pid);
    g_assert_cmpint(read(fds[0], &byte, 1), ==, 0); /* the end, for nobody holds it */
    close(fds[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-cdrom/poll/holders", test_holders);
    g_test_add_func("/host-cdrom/poll/others", test_others);
    g_test_add_func("/host-cdrom/poll/killed", test_killed);
    g_test_add_func("/host-cdrom/poll/lets-go", test_lets_go);
    const int ret = g_test_run();
    cdrom_guard_end();
    return ret;
}
