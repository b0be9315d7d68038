/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Locks on ranges of bytes: many readers or one writer of each byte. For a layer whose unit is larger than
 * its caller's, so that reading, changing and writing back one unit is not torn by a neighbour. First come,
 * first served: a range waits for every earlier one that it conflicts with, so nobody starves. A thread holds
 * at most one range of a RangeLock at a time. The RangeHold is the caller's, on its stack. Any thread.
 */
#ifndef SPINDLE_BLOCK_RANGE_LOCK_H
#define SPINDLE_BLOCK_RANGE_LOCK_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct RangeHold {
    uint64_t start, end; /* [start, end) */
    bool exclusive;
    /* private */
    struct RangeHold *prev, *next;
} RangeHold;

typedef struct RangeLock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned waiting;
    RangeHold *first, *last; /* held and waiting, in order of arrival */
} RangeLock;

void range_lock_init(RangeLock *lock);
void range_lock_clear(RangeLock *lock); /* nothing may be held */

/* Fills `hold` and waits until the range is free for it. */
void range_lock_take(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive);
/* Without waiting: false when it is not free. */
bool range_lock_try(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive);
void range_lock_release(RangeLock *lock, RangeHold *hold);

#endif
