/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/range-lock.h"

void range_lock_init(RangeLock *lock)
{
    g_mutex_init(&lock->mutex);
    g_cond_init(&lock->changed);
    lock->waiting = 0;
    lock->first = lock->last = NULL;
}

void range_lock_clear(RangeLock *lock)
{
    g_cond_clear(&lock->changed);
    g_mutex_clear(&lock->mutex);
}

static bool conflict(const RangeHold *a, const RangeHold *b)
{
    return (a->exclusive || b->exclusive) && a->start < b->end && b->start < a->end;
}

static bool must_wait(const RangeHold *hold)
{
    for (const RangeHold *earlier = hold->prev; earlier; earlier = earlier->prev) {
        if (conflict(earlier, hold)) {
            return true;
        }
    }
    return false;
}

void range_lock_take(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive)
{
    g_mutex_lock(&lock->mutex);
    *hold = (RangeHold){.start = start, .end = end, .exclusive = exclusive, .prev = lock->last};
    *(lock->last ? &lock->last->next : &lock->first) = hold;
    lock->last = hold;
    while (must_wait(hold)) {
        lock->waiting++;
        g_cond_wait(&lock->changed, &lock->mutex);
        lock->waiting--;
    }
    g_mutex_unlock(&lock->mutex);
}

void range_lock_release(RangeLock *lock, RangeHold *hold)
{
    g_mutex_lock(&lock->mutex);
    *(hold->prev ? &hold->prev->next : &lock->first) = hold->next;
    *(hold->next ? &hold->next->prev : &lock->last) = hold->prev;
    if (lock->waiting) {
        g_cond_broadcast(&lock->changed);
    }
    g_mutex_unlock(&lock->mutex);
}
