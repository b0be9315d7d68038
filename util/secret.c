/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/secret.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/checked.h"

Secret *secret_new(size_t size)
{
    Secret *secret = g_new0(Secret, 1);
    size_t page = sysconf(_SC_PAGESIZE);
    if (size > G_MAXSIZE - page) {
        g_error("failed to allocate %zu bytes for a secret", size);
    }
    secret->mapped = align_up(size + 1, page);
    void *data = mmap(NULL, secret->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        g_error("failed to allocate %zu bytes for a secret", size);
    }
    /* Both are best effort: RLIMIT_MEMLOCK may be used up, and a secret in swap beats no drive. */
    (void)mlock(data, secret->mapped);
    (void)madvise(data, secret->mapped, MADV_DONTDUMP);
    secret->data = data;
    secret->size = size;
    return secret;
}

Secret *secret_new_copy(const void *data, size_t size)
{
    Secret *secret = secret_new(size);
    if (size) {
        memcpy(secret->data, data, size);
    }
    return secret;
}

void secret_free(Secret *secret)
{
    if (!secret) {
        return;
    }
    secret_wipe(secret->data, secret->mapped);
    munmap(secret->data, secret->mapped);
    g_free(secret);
}

void secret_wipe(void *data, size_t size)
{
    if (size) {
        explicit_bzero(data, size);
    }
}
