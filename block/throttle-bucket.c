/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/throttle-bucket.h"
#include "util/error.h"

#define VALUE_MAX 1000000000000000ull /* QEMU's */

static const char *const names[THROTTLE_BUCKETS] = {"bps-total",  "bps-read",  "bps-write",
                                                    "iops-total", "iops-read", "iops-write"};

void throttle_limits_init(ThrottleLimits *limits)
{
    *limits = (ThrottleLimits){0};
    for (int i = 0; i < THROTTLE_BUCKETS; i++) {
        limits->bucket[i].length = 1;
    }
}

static bool read_number(Options *options, const char *prefix, const char *name, const char *suffix,
                        uint64_t *value, GError **error)
{
    g_autofree char *key = g_strconcat(prefix, name, suffix, NULL);
    return options_get_uint(options, key, 0, INT64_MAX, *value, value, error);
}

bool throttle_limits_read(ThrottleLimits *limits, Options *options, const char *prefix, GError **error)
{
    bool good = true;
    for (int i = 0; good && i < THROTTLE_BUCKETS; i++) {
        good = read_number(options, prefix, names[i], "", &limits->bucket[i].average, error) &&
               read_number(options, prefix, names[i], "-max", &limits->bucket[i].max, error) &&
               read_number(options, prefix, names[i], "-max-length", &limits->bucket[i].length, error);
    }
    return good && read_number(options, prefix, "iops-size", "", &limits->iops_size, error);
}

bool throttle_limits_enabled(const ThrottleLimits *limits)
{
    bool any = false;
    for (int i = 0; i < THROTTLE_BUCKETS; i++) {
        any |= limits->bucket[i].average > 0;
    }
    return any;
}

/* Total and direction at once, of averages or of bursts. */
static bool conflicts(const ThrottleLimits *limits, int total)
{
    bool average = limits->bucket[total].average &&
                   (limits->bucket[total + 1].average || limits->bucket[total + 2].average);
    bool max = limits->bucket[total].max && (limits->bucket[total + 1].max || limits->bucket[total + 2].max);
    return average || max;
}

static bool check_bucket(const ThrottleLimits *limits, int i, GError **error)
{
    uint64_t average = limits->bucket[i].average, max = limits->bucket[i].max,
             length = limits->bucket[i].length;
    if (average > VALUE_MAX || max > VALUE_MAX) {
        return error_set(error, "bps/iops/max values must be within [0, %llu]", VALUE_MAX);
    }
    if (length == 0) {
        return error_set(error, "the burst length cannot be 0");
    }
    if (length > 1 && max == 0) {
        return error_set(error, "burst length set without burst rate");
    }
    if (max > 0 && length > VALUE_MAX / max) {
        return error_set(error, "burst length too high for this burst rate");
    }
    if (max > 0 && average == 0) {
        return error_set(error, "bps_max/iops_max require corresponding bps/iops values");
    }
    return max == 0 || max >= average || error_set(error, "bps_max/iops_max cannot be lower than bps/iops");
}

bool throttle_limits_check(const ThrottleLimits *limits, GError **error)
{
    if (conflicts(limits, THROTTLE_BPS_TOTAL) || conflicts(limits, THROTTLE_IOPS_TOTAL)) {
        return error_set(error,
                         "bps/iops/max total values and read/write values cannot be used at the same time");
    }
    if (limits->iops_size && !limits->bucket[THROTTLE_IOPS_TOTAL].average &&
        !limits->bucket[THROTTLE_IOPS_READ].average && !limits->bucket[THROTTLE_IOPS_WRITE].average) {
        return error_set(error, "iops size requires an iops value to be set");
    }
    for (int i = 0; i < THROTTLE_BUCKETS; i++) {
        if (!check_bucket(limits, i, error)) {
            return false;
        }
    }
    return true;
}

void throttle_buckets_leak(ThrottleBuckets *buckets, int64_t now)
{
    double seconds = MAX(now - buckets->leaked_at, 0) / 1e9;
    buckets->leaked_at = MAX(now, buckets->leaked_at);
    for (int i = 0; i < THROTTLE_BUCKETS; i++) {
        buckets->level[i] = MAX(buckets->level[i] - buckets->limits.bucket[i].average * seconds, 0);
        buckets->burst[i] = MAX(buckets->burst[i] - buckets->limits.bucket[i].max * seconds, 0);
    }
}

/* Until `excess` has leaked at `rate` a second, but for less than a nanosecond. */
static int64_t leak_time(double excess, double rate)
{
    return excess > 0 ? (int64_t)(excess * 1e9 / rate) : 0;
}

/* Without a burst a tenth of a second's worth may pass at once: else every other request would wait. */
static int64_t bucket_wait(const ThrottleBuckets *buckets, int i)
{
    double average = buckets->limits.bucket[i].average, max = buckets->limits.bucket[i].max;
    double length = buckets->limits.bucket[i].length;
    if (average == 0) {
        return 0;
    }
    double room = max > 0 ? max * length : average / 10;
    int64_t wait = leak_time(buckets->level[i] - room, average);
    if (wait == 0 && max > 0 && length > 1) {
        wait = leak_time(buckets->burst[i] - max / 10, max);
    }
    return wait;
}

int64_t throttle_buckets_wait(const ThrottleBuckets *buckets, bool write)
{
    int64_t wait = 0;
    for (int total = 0; total < THROTTLE_BUCKETS; total += THROTTLE_IOPS_TOTAL) {
        wait = MAX(wait, bucket_wait(buckets, total));
        wait = MAX(wait, bucket_wait(buckets, total + 1 + write));
    }
    return wait;
}

void throttle_buckets_add(ThrottleBuckets *buckets, bool write, uint64_t bytes)
{
    uint64_t iops_size = buckets->limits.iops_size;
    double operations = iops_size && bytes > iops_size ? (double)bytes / iops_size : 1;
    for (int total = 0; total < THROTTLE_BUCKETS; total += THROTTLE_IOPS_TOTAL) {
        double units = total == THROTTLE_BPS_TOTAL ? (double)bytes : operations;
        for (int i = total; i <= total + 2; i++) {
            if (i == total || i == total + 1 + write) {
                buckets->level[i] += units;
                buckets->burst[i] += units;
            }
        }
    }
}
