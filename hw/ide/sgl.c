/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/sgl.h"

void sgl_reset(Sgl *sgl)
{
    sgl->count = 0;
    sgl->index = 0;
    sgl->done = 0;
    sgl->left = 0;
}

void sgl_clear(Sgl *sgl)
{
    g_clear_pointer(&sgl->runs, g_free);
    sgl->room = 0;
    sgl_reset(sgl);
}

void sgl_add(Sgl *sgl, uint64_t addr, uint64_t len)
{
    len = MIN(len, UINT64_MAX - addr);
    if (!len) {
        return;
    }
    sgl->left += len;
    if (sgl->index < sgl->count) {
        SglRun *last = &sgl->runs[sgl->count - 1];

        if (last->addr + last->len == addr) {
            last->len += len;
            return;
        }
    }
    if (sgl->count == sgl->room) {
        sgl->room = sgl->room ? sgl->room * 2 : 16;
        sgl->runs = g_renew(SglRun, sgl->runs, sgl->room);
    }
    sgl->runs[sgl->count++] = (SglRun){.addr = addr, .len = len};
}

bool sgl_take(Sgl *sgl, size_t max, uint64_t *ret_addr, size_t *ret_len)
{
    const SglRun *run;
    size_t len;

    if (!max || sgl->index >= sgl->count) {
        return false;
    }
    run = &sgl->runs[sgl->index];
    len = MIN(run->len - sgl->done, max);
    *ret_addr = run->addr + sgl->done;
    *ret_len = len;
    sgl->left -= len;
    sgl->done += len;
    if (sgl->done == run->len) {
        sgl->index++;
        sgl->done = 0;
    }
    return true;
}

Sgl sgl_peek(const Sgl *sgl)
{
    return *sgl;
}

uint64_t sgl_skip(Sgl *sgl, uint64_t bytes)
{
    uint64_t skipped = 0, addr;
    size_t len;

    while (skipped < bytes && sgl_take(sgl, bytes - skipped, &addr, &len)) {
        skipped += len;
    }
    return skipped;
}

void sgl_visit(Sgl *sgl, StateIo *io, unsigned max)
{
    Sgl left = sgl_peek(sgl);
    uint32_t count = left.count - left.index;
    uint64_t addr = 0, bytes = 0;
    size_t len = 0;

    STATE_NUMBER(io, count, 0, max);
    for (unsigned i = 0; i < count && !state_failed(io); i++) {
        if (!state_loading(io) && sgl_take(&left, SIZE_MAX, &addr, &len)) {
            bytes = len;
        }
        state_u64(io, &addr);
        state_u64(io, &bytes);
        if (!bytes || bytes > UINT64_MAX - addr || bytes > UINT64_MAX - sgl->left) {
            state_fail(io, "a piece of memory has no length, or too much");
        } else if (state_loading(io)) {
            sgl_add(sgl, addr, bytes);
        }
    }
}
