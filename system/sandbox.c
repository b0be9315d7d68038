/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/sandbox.h"
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include "util/error.h"

/* clang-format off */
static const int denied[] = {
    /* programs and processes; threads are let through below */
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork),
    /* rights and namespaces */
    SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(setresuid), SCMP_SYS(setresgid),
    SCMP_SYS(setfsuid), SCMP_SYS(setfsgid), SCMP_SYS(setgroups), SCMP_SYS(capset), SCMP_SYS(unshare), SCMP_SYS(setns),
    SCMP_SYS(chroot), SCMP_SYS(pivot_root), SCMP_SYS(personality),
    /* other processes */
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd),
    /* file systems */
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(move_mount),
    SCMP_SYS(open_tree), SCMP_SYS(mount_setattr), SCMP_SYS(quotactl), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct),
    SCMP_SYS(open_by_handle_at), SCMP_SYS(name_to_handle_at), SCMP_SYS(mknod), SCMP_SYS(mknodat),
    /* the kernel itself */
    SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot), SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(add_key), SCMP_SYS(keyctl),
    SCMP_SYS(request_key), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime), SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(vhangup), SCMP_SYS(syslog),
};
/* clang-format on */

bool sandbox_parse(const char *text, bool *ret_on, GError **error)
{
    if (strcmp(text, "on") && strcmp(text, "off")) {
        return error_set(error, "Parameter 'sandbox' expects 'on' or 'off'");
    }
    *ret_on = !strcmp(text, "on");
    return true;
}

bool sandbox_default(void)
{
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return true;
#endif
}

/* 0 or a negative errno. */
static int fill_filter(scmp_filter_ctx filter)
{
    int ret = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

    for (size_t i = 0; ret == 0 && i < G_N_ELEMENTS(denied); i++) {
        ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
    }
    if (ret == 0) {
        ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    }
    if (ret == 0) {
        /* Its flags lie in memory, out of the filter's sight; the C library then uses clone(). */
        ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    }
    return ret == 0 ? seccomp_load(filter) : ret;
}

bool sandbox_enter(GError **error)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int ret = filter ? fill_filter(filter) : -ENOMEM;

    seccomp_release(filter);
    return ret == 0 ||
           error_set_errno(error, ret, "Could not enter the sandbox (--sandbox off does without)");
}
