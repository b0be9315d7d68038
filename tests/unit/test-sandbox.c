/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The sandbox, entered in a child process: what it forbids and what it leaves.
 */
#include "system/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static gpointer nothing(gpointer data)
{
    return data;
}

static bool denied(long result)
{
    return result == -1 && errno == EPERM;
}

static bool try_exec(void)
{
    return denied(execl("/bin/true", "true", NULL));
}

static bool try_fork(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    return denied(pid);
}

static bool try_mount(void)
{
    return denied(mount("none", "/nonexistent", "tmpfs", 0, NULL));
}

static bool try_ptrace(void)
{
    return denied(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static bool try_setuid(void)
{
    return denied(setuid(getuid()));
}

static bool try_unshare(void)
{
    return denied(unshare(CLONE_NEWUSER));
}

static bool try_thread(void)
{
    GThread *thread = g_thread_try_new("test", nothing, &thread, NULL);

    return thread && g_thread_join(thread) == &thread;
}

static bool try_open(void)
{
    int fd = open("/dev/null", O_RDWR);

    return fd >= 0 && close(fd) == 0;
}

static bool try_socket(void)
{
    int fds[2];

    return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0;
}

static bool try_kill(void)
{
    return kill(getpid(), 0) == 0;
}

static gpointer wait_and_try(gpointer data)
{
    int *pipe_fd = data;
    char byte;

    return GINT_TO_POINTER(read(*pipe_fd, &byte, 1) == 1 && try_mount());
}

static const struct {
    const char *name;
    bool (*works)(void);
} cases[] = {
    {"exec-denied", try_exec},      {"fork-denied", try_fork},     {"mount-denied", try_mount},
    {"ptrace-denied", try_ptrace},  {"setuid-denied", try_setuid}, {"unshare-denied", try_unshare},
    {"thread-allowed", try_thread}, {"open-allowed", try_open},    {"socket-allowed", try_socket},
    {"signal-allowed", try_kill},
};

/* In each case a thread that ran before has to be bound as well. */
static int run_case(bool (*works)(void))
{
    int fds[2];
    GThread *older = NULL;
    GError *error = NULL;

    if (pipe(fds) < 0) {
        return 2;
    }
    older = g_thread_new("older", wait_and_try, &fds[0]);
    if (!sandbox_enter(&error)) {
        g_printerr("%s\n", error->message);
        return 3;
    }
    bool bound = write(fds[1], "x", 1) == 1 && GPOINTER_TO_INT(g_thread_join(older));
    return bound && works() ? 0 : 1;
}

static void test_case(gconstpointer data)
{
    bool (*works)(void) = *(bool (*const *)(void))data;
    pid_t pid = fork();
    int status;

    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        _exit(run_case(works));
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

static void test_parse(void)
{
    GError *error = NULL;
    bool on = false;

    g_assert_true(sandbox_parse("on", &on, NULL) && on);
    g_assert_true(sandbox_parse("off", &on, NULL) && !on);
    g_assert_false(sandbox_parse("perhaps", &on, &error));
    g_assert_cmpstr(error->message, ==, "Parameter 'sandbox' expects 'on' or 'off'");
    g_error_free(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sandbox/parse", test_parse);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strconcat("/sandbox/", cases[i].name, NULL);
        g_test_add_data_func(name, &cases[i].works, test_case);
    }
    return g_test_run();
}
