/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Who is at the other end of the socket: its process, and whether it runs its guest on KVM, which decides how
 * guest memory may be written. Not knowing (another user's process, another PID namespace, no /proc) is
 * answered like no.
 */
#include "hw/remote/vfu-int.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FDS  4096 /* looked at; a machine has its VM descriptor among the first dozens */
#define VM_INODE "anon_inode:kvm-vm"

static bool fd_is_kvm_vm(int dir, const char *name)
{
    char target[sizeof VM_INODE + 1];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    return n == sizeof VM_INODE - 1 && memcmp(target, VM_INODE, n) == 0;
}

pid_t vfu_peer_pid(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0 ? 0 : peer.pid;
}

bool vfu_peer_has_kvm(int fd)
{
    pid_t pid = vfu_peer_pid(fd);

    if (pid == 0) {
        return false;
    }
    g_autofree char *path = g_strdup_printf("/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    if (!dir) {
        return false;
    }
    bool found = false;
    const struct dirent *entry;
    for (unsigned n = 0; !found && n < MAX_FDS && (entry = readdir(dir)); n++) {
        found = fd_is_kvm_vm(dirfd(dir), entry->d_name);
    }
    closedir(dir);
    return found;
}
