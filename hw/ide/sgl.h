/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A scatter list of guest memory and a cursor over it. The controller adds the entries of its own table
 * (AHCI PRDT, bus-master PRDs); neighbours that are adjacent in memory become one run, so that a transfer
 * takes as few DMA operations as it can. Pure: touches no guest memory. One owner.
 */
#ifndef SPINDLE_HW_IDE_SGL_H
#define SPINDLE_HW_IDE_SGL_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "util/state.h"

typedef struct SglRun {
    uint64_t addr; /* guest-physical */
    uint64_t len;  /* bytes, > 0 */
} SglRun;

typedef struct Sgl {
    SglRun *runs;
    unsigned count, room;
    unsigned index; /* the cursor: the current run… */
    uint64_t done;  /* …and the bytes of it that are used up */
    uint64_t left;  /* bytes from the cursor to the end */
} Sgl;

/* A zeroed Sgl is empty. Forgets the runs, keeps the memory. */
void sgl_reset(Sgl *sgl);

/* Frees the memory; the Sgl is empty again. */
void sgl_clear(Sgl *sgl);

/* Appends [addr, addr + len); len 0 is ignored. A range that would wrap at 2^64 is cut there. */
void sgl_add(Sgl *sgl, uint64_t addr, uint64_t len);

/* Takes the next contiguous piece of at most `max` bytes off the front. False at the end. */
bool sgl_take(Sgl *sgl, size_t max, uint64_t *ret_addr, size_t *ret_len);

/* A copy of the cursor, to look ahead without taking: shares the runs, lives no longer than `sgl`. */
Sgl sgl_peek(const Sgl *sgl);

/* What is left from the cursor on, at most `max` runs; `sgl` is empty and owned while loading. */
void sgl_visit(Sgl *sgl, StateIo *io, unsigned max);

/* Moves the cursor `bytes` on (to the end, at most). Returns the bytes skipped. */
uint64_t sgl_skip(Sgl *sgl, uint64_t bytes);

#endif
