/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/qtest/ram.h"
#include <errno.h>
#include <sys/mman.h>
#include "util/error.h"

#define ABOVE (UINT64_C(1) << 32)

bool ram_init(Ram *ram, uint64_t size, uint64_t below_max, GError **error)
{
    *ram = (Ram){.size = size, .below = MIN(size, below_max)};
    if (size == 0) {
        return true;
    }
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        ram->size = ram->below = 0;
        return error_set_errno(error, errno, "cannot set up guest memory of %" G_GUINT64_FORMAT " bytes",
                               size);
    }
    ram->data = data;
    return true;
}

void ram_clear(Ram *ram)
{
    if (ram->data) {
        munmap(ram->data, ram->size);
    }
    *ram = (Ram){0};
}

uint8_t *ram_at(const Ram *ram, uint64_t addr, uint64_t len, uint64_t *ret_len)
{
    uint64_t above = ram->size - ram->below;

    len = MIN(len, UINT64_MAX - addr + 1 ? UINT64_MAX - addr + 1 : len);
    if (addr < ram->below) {
        *ret_len = MIN(len, ram->below - addr);
        return ram->data + addr;
    }
    if (addr < ABOVE) {
        *ret_len = MIN(len, ABOVE - addr);
        return NULL;
    }
    if (addr - ABOVE < above) {
        *ret_len = MIN(len, above - (addr - ABOVE));
        return ram->data + ram->below + (addr - ABOVE);
    }
    *ret_len = len;
    return NULL;
}

uint8_t *ram_span(const Ram *ram, uint64_t addr, uint64_t len)
{
    uint64_t piece;
    uint8_t *data = len ? ram_at(ram, addr, len, &piece) : NULL;

    return data && piece == len ? data : NULL;
}
