/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Behind the fork there is one thread in a copy of a program that may have had many: only system calls.
 */
#include "block/host-cdrom-guard.h"
#include "block/host-cdrom-poll.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/cdrom.h>
#include <pthread.h>
#include <scsi/sg.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES 64

/* A message. */
typedef struct GuardWord {
    uint8_t kind; /* CdromGuardKind */
    bool add;
    char path[254];
} GuardWord;

static struct {
    pthread_mutex_t lock;
    int fd; /* our end; -1: not started */
    bool failed;
    pid_t pid;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ALLOW MEDIUM REMOVAL (MMC-6 6.16), else the kernel's way. */
static void open_door(const char *path)
{
    uint8_t cdb[6] = {0x1e}, sense[32];
    struct sg_io_hdr io = {
        .interface_id = 'S',
        .dxfer_direction = SG_DXFER_NONE,
        .cmd_len = sizeof cdb,
        .mx_sb_len = sizeof sense,
        .cmdp = cdb,
        .sbp = sense,
        .timeout = 30000,
    };
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        if (ioctl(fd, SG_IO, &io) < 0) {
            (void)ioctl(fd, CDROM_LOCKDOOR, 0);
        }
        close(fd);
    }
}

static void put_back(const GuardWord *word)
{
    if (word->kind == CDROM_GUARD_POLL) {
        cdrom_poll_leave(word->path);
    } else {
        open_door(word->path);
    }
}

static void take_word(GuardWord *words, const GuardWord *word)
{
    for (unsigned i = 0; i < PLACES; i++) {
        if (word->add && !words[i].path[0]) {
            words[i] = *word;
            return;
        }
        if (!word->add && words[i].kind == word->kind && !strcmp(words[i].path, word->path)) {
            words[i].path[0] = 0;
            return;
        }
    }
}

/* No descriptor of the program's may live on here: its peers wait for them to be closed. */
static void let_go(int fd)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
    sigset_t none;
    for (unsigned i = 0; i < G_N_ELEMENTS(ignored); i++) {
        signal(ignored[i], SIG_IGN);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    (void)!chdir("/");
    dup2(fd, 0);
    if (syscall(SYS_close_range, 1u, ~0u, 0u) < 0) { /* Linux 5.9 */
        for (int i = 1; i < (int)sysconf(_SC_OPEN_MAX); i++) {
            close(i);
        }
    }
    prctl(PR_SET_NAME, "spindle-guard");
}

static G_NORETURN void run_guard(int fd)
{
    static GuardWord words[PLACES];
    GuardWord word;
    ssize_t n;
    let_go(fd);
    while ((n = read(0, &word, sizeof word)) == (ssize_t)sizeof word || (n < 0 && errno == EINTR)) {
        if (n > 0) {
            take_word(words, &word);
        }
    }
    for (unsigned i = 0; i < PLACES; i++) {
        if (words[i].path[0]) {
            put_back(&words[i]);
        }
    }
    _exit(0);
}

/* Under the lock. */
static bool start(void)
{
    int fds[2];
    if (guard.fd >= 0 || guard.failed) {
        return guard.fd >= 0;
    }
    guard.failed = true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        return false;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        run_guard(fds[0]);
    }
    close(fds[0]);
    if (pid < 0) {
        close(fds[1]);
        return false;
    }
    guard.fd = fds[1];
    guard.pid = pid;
    guard.failed = false;
    return true;
}

bool cdrom_guard_start(void)
{
    pthread_mutex_lock(&guard.lock);
    const bool good = start();
    pthread_mutex_unlock(&guard.lock);
    return good;
}

static void tell(CdromGuardKind kind, const char *path, bool add)
{
    GuardWord word = {.kind = kind, .add = add};
    if (g_strlcpy(word.path, path, sizeof word.path) >= sizeof word.path) {
        return;
    }
    pthread_mutex_lock(&guard.lock);
    const bool there = add ? start() : guard.fd >= 0;
    if (there) {
        (void)!send(guard.fd, &word, sizeof word, MSG_NOSIGNAL); /* somebody may have killed it */
    }
    pthread_mutex_unlock(&guard.lock);
}

void cdrom_guard_add(CdromGuardKind kind, const char *path)
{
    tell(kind, path, true);
}

void cdrom_guard_remove(CdromGuardKind kind, const char *path)
{
    tell(kind, path, false);
}

void cdrom_guard_end(void)
{
    pthread_mutex_lock(&guard.lock);
    if (guard.fd >= 0) {
        close(guard.fd);
        guard.fd = -1;
        while (waitpid(guard.pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    pthread_mutex_unlock(&guard.lock);
}
