/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/descriptors.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "util/error.h"

/* By trying: what is open already counts, and may lie above the limit. */
static bool can_open(unsigned n)
{
    int fds[DESCRIPTORS_MIN];
    unsigned opened = 0;

    while (opened < n && (fds[opened] = eventfd(0, EFD_CLOEXEC)) >= 0) {
        opened++;
    }
    for (unsigned i = 0; i < opened; i++) {
        close(fds[i]);
    }
    return opened == n;
}

static bool raise_limit(struct rlimit *limit)
{
    if (getrlimit(RLIMIT_NOFILE, limit) < 0 || limit->rlim_cur >= limit->rlim_max) {
        return false;
    }
    limit->rlim_cur = limit->rlim_max;
    return setrlimit(RLIMIT_NOFILE, limit) == 0;
}

bool descriptors_ensure(GError **error)
{
    struct rlimit limit = {0};

    if (can_open(DESCRIPTORS_MIN) || (raise_limit(&limit) && can_open(DESCRIPTORS_MIN))) {
        return true;
    }
    return error_set(
        error,
        "Too few file descriptors are left: of %lu that the limit allows, at least %d have to be "
        "free (see ulimit -n)",
        (unsigned long)limit.rlim_cur, DESCRIPTORS_MIN);
}
