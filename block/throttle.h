/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * I/O limits in QEMU's manner: named groups (`-object throttle-group`), whose members (`driver=throttle`
 * nodes) share their limits, first come first served in each direction.
 *
 * Each limit is a leaky bucket: what passes fills it, it leaks at the limit's rate, and a request waits while
 * it is fuller than a tenth of a second's worth, or than `max` for `length` seconds where a burst is allowed.
 *
 * A group is found by its name and lives while it is referenced. All functions: any thread, unless said
 * otherwise.
 */
#ifndef SPINDLE_BLOCK_THROTTLE_H
#define SPINDLE_BLOCK_THROTTLE_H

#include "util/options.h"

typedef enum {
    THROTTLE_BPS_TOTAL,
    THROTTLE_BPS_READ,
    THROTTLE_BPS_WRITE,
    THROTTLE_IOPS_TOTAL,
    THROTTLE_IOPS_READ,
    THROTTLE_IOPS_WRITE,
    THROTTLE_BUCKETS,
} ThrottleBucketIndex;

typedef struct ThrottleLimits {
    struct {
        uint64_t average; /* per second; 0: no limit */
        uint64_t max;     /* per second, in a burst; 0: none is allowed */
        uint64_t length;  /* seconds that a burst may take; at least 1 */
    } bucket[THROTTLE_BUCKETS];
    uint64_t iops_size; /* bytes that count as one operation; 0: any size does */
} ThrottleLimits;

/* Reads `PREFIXbps-total`, `PREFIXbps-total-max`, `PREFIXbps-total-max-length`, … and `PREFIXiops-size`:
 * QEMU's prefix is `x-` or `limits.` for the object and `throttling.` for -drive. Adds to what *limits holds;
 * start with throttle_limits_init(). Loop thread or the options' owner. */
bool throttle_limits_read(ThrottleLimits *limits, Options *options, const char *prefix, GError **error);
void throttle_limits_init(ThrottleLimits *limits);

/* True when they can be meant. */
bool throttle_limits_check(const ThrottleLimits *limits, GError **error);

/* True when there is any limit. */
bool throttle_limits_enabled(const ThrottleLimits *limits);

typedef struct ThrottleGroup ThrottleGroup;

/* A group with one reference. NULL and an error when the name is taken or the limits are bad. */
ThrottleGroup *throttle_group_new(const char *name, const ThrottleLimits *limits, GError **error);

/* From the options of `-object throttle-group` (`id`, `x-…`, `limits.…`). */
ThrottleGroup *throttle_group_new_from_options(Options *options, GError **error);

/* A new reference, or NULL. */
ThrottleGroup *throttle_group_find(const char *name);
void throttle_group_unref(ThrottleGroup *group);

/* Whether there is a node with these limits. Loop thread. */
bool throttle_group_in_use(const ThrottleGroup *group);

/* Stays the group's. */
const char *throttle_group_name(const ThrottleGroup *group);

/* QMP block_set_io_throttle: from now on; who waits is looked at anew. */
bool throttle_group_set_limits(ThrottleGroup *group, const ThrottleLimits *limits, GError **error);
void throttle_group_get_limits(ThrottleGroup *group, ThrottleLimits *ret);

/* The clock of a machine that stands still until it is set (-accel qtest), in ns: limits that are made from
 * now on follow it, earlier ones the host's clock and this one together. Who waits looks anew. Loop thread.
 */
void throttle_clock_set(int64_t ns);

/* When by that clock the next of those who wait may pass; INT64_MAX: nobody waits. Loop thread. */
int64_t throttle_clock_next(void);

#endif
