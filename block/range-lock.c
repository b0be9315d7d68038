/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/range-lock.h"

void range_lock_init(RangeLock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, NULL);
    lock->waiting = 0;
    lock->first = lock->last = NULL;
}

void range_lock_clear(RangeLock *lock)
{
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
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

/* The mutex is held. */
static void append(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive)
{
    *hold = (RangeHold){.start = start, .end = end, .exclusive = exclusive, .prev = lock->last};
    *(lock->last ? &lock->last->next : &lock->first) = hold;
    lock->last = hold;
}

static void unlink_hold(RangeLock *lock, RangeHold *hold)
{
    *(hold->prev ? &hold->prev->next : &lock->first) = hold->next;
    *(hold->next ? &hold->next->prev : &lock->last) = hold->prev;
}

void range_lock_take(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive)
{
    pthread_mutex_lock(&lock->mutex);
    append(lock, hold, start, end, exclusive);
    while (must_wait(hold)) {
        lock->waiting++;
        pthread_cond_wait(&lock->changed, &lock->mutex);
        lock->waiting--;
    }
    pthread_mutex_unlock(&lock->mutex);
}

bool range_lock_try(RangeLock *lock, RangeHold *hold, uint64_t start, uint64_t end, bool exclusive)
{
    pthread_mutex_lock(&lock->mutex);
    append(lock, hold, start, end, exclusive);
    bool taken = !must_wait(hold);
    if (!taken) {
        unlink_hold(lock, hold);
    }
    pthread_mutex_unlock(&lock->mutex);
    return taken;
}

void range_lock_release(RangeLock *lock, RangeHold *hold)
{
    pthread_mutex_lock(&lock->mutex);
    unlink_hold(lock, hold);
    if (lock->waiting) {
        pthread_cond_broadcast(&lock->changed);
    }
    pthread_mutex_unlock(&lock->mutex);
}
