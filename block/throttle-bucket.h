/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The arithmetic of the leaky buckets; no clock, no lock: times are the caller's, in ns.
 */
#ifndef SPINDLE_BLOCK_THROTTLE_BUCKET_H
#define SPINDLE_BLOCK_THROTTLE_BUCKET_H

#include "block/throttle.h"

typedef struct ThrottleBuckets {
    ThrottleLimits limits;
    double level[THROTTLE_BUCKETS]; /* against the average */
    double burst[THROTTLE_BUCKETS]; /* against the maximum, where a burst may take longer than a second */
    int64_t leaked_at;              /* ns */
} ThrottleBuckets;

/* Lets leak what has leaked until `now`. */
void throttle_buckets_leak(ThrottleBuckets *buckets, int64_t now);

/* How long (ns) the next request of the direction has to wait. */
int64_t throttle_buckets_wait(const ThrottleBuckets *buckets, bool write);

/* A request passes. */
void throttle_buckets_add(ThrottleBuckets *buckets, bool write, uint64_t bytes);

#endif
