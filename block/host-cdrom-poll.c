/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-poll.h"
#include "block/host-cdrom-guard.h"
#include "util/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define DEFAULT_PATH "/sys/module/block/parameters/events_dfl_poll_msecs"

static char *read_setting(const char *path)
{
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

/* The setting's next value; INT_MIN: it stays. */
typedef int SettingChange(int now);

static int joined(int now)
{
    if (now == -1 || now == 0) {
        return now ? CDROM_POLL_MS : CDROM_POLL_OFF_MS;
    }
    return now + 1; /* somebody else's, or we are not alone */
}

static bool is_counted(int ms)
{
    return (ms >= CDROM_POLL_MS && ms < CDROM_POLL_MS + CDROM_POLL_HOLDERS) ||
           (ms >= CDROM_POLL_OFF_MS && ms < CDROM_POLL_OFF_MS + CDROM_POLL_HOLDERS);
}

static int left(int now)
{
    if (!is_counted(now)) {
        return INT_MIN;
    }
    return now == CDROM_POLL_MS ? -1 : now == CDROM_POLL_OFF_MS ? 0 : now - 1;
}

static int parse_setting(const char *text)
{
    int value = 0;
    const bool minus = text[0] == '-';
    for (text += minus; *text >= '0' && *text <= '9' && value < 100000000; text++) {
        value = value * 10 + (*text - '0');
    }
    return minus ? -value : value;
}

static bool write_number(int fd, int value)
{
    char text[16], *at = &text[sizeof text - 1];
    unsigned rest = (unsigned)(value < 0 ? -value : value);
    *at = '\n';
    do {
        *--at = (char)('0' + rest % 10);
    } while ((rest /= 10));
    if (value < 0) {
        *--at = '-';
    }
    const ssize_t size = &text[sizeof text] - at;
    return (ftruncate(fd, 0) == 0 || errno == EINVAL || errno == EPERM) &&
           pwrite(fd, at, (size_t)size, 0) == size;
}

/* Under a lock of all who do this. Only system calls. */
static bool change_setting(const char *path, SettingChange *change)
{
    char text[32] = "";
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = false;
    if (flock(fd, LOCK_EX) == 0 && pread(fd, text, sizeof text - 1, 0) > 0) {
        const int value = change(parse_setting(text));
        good = value != INT_MIN && write_number(fd, value);
    }
    close(fd); /* and unlocks */
    return good;
}

/* Device events reach the first user namespace's network namespaces only: a container with users of its own
 * hears nothing, and nothing tells it so. */
static bool events_reach_us(void)
{
    unsigned long long inside = 0, outside = 0, count = 0;
    g_autofree char *map = read_setting("/proc/self/uid_map");
    return !map || (sscanf(map, "%llu %llu %llu", &inside, &outside, &count) == 3 && inside == outside &&
                    count == UINT32_MAX);
}

bool cdrom_poll_begin(CdromPoll *poll, const CdromDevice *device, const char **ret_why)
{
    g_autofree char *path = g_build_filename(device->sysfs, "events_poll_msecs", NULL);
    g_autofree char *events_path = g_build_filename(device->sysfs, "events", NULL);
    g_autofree char *async_path = g_build_filename(device->sysfs, "events_async", NULL);
    g_autofree char *events = read_setting(events_path), *async = read_setting(async_path);
    g_autofree char *now = read_setting(path), *usual = read_setting(DEFAULT_PATH);
    if (!events_reach_us()) {
        *ret_why = "this user namespace gets no device events";
        return false;
    }
    if (!device->is_cdrom || (async && strstr(async, "media_change"))) {
        return true; /* nothing to poll for: whoever changes a loop device tells */
    }
    if (!events || !strstr(events, "media_change") || !now) {
        *ret_why = "the kernel has no media events for it";
        return false;
    }
    const int ms = parse_setting(now);
    const bool on = ms > 0 || (ms < 0 && usual && parse_setting(usual) > 0);
    if (on && !is_counted(ms)) {
        return true;
    }
    if (!change_setting(path, joined)) {
        *ret_why = "the kernel does not look for media changes, and may not be told to";
        return on;
    }
    cdrom_guard_add(CDROM_GUARD_POLL, path);
    if (!on) {
        log_info("'/dev/%s': the kernel looks for media changes every %d ms while the drive is in use "
                 "(events_poll_msecs was %s)",
                 device->devname, ms ? CDROM_POLL_MS : CDROM_POLL_OFF_MS, now);
    }
    poll->path = g_steal_pointer(&path);
    return true;
}

void cdrom_poll_forget(CdromPoll *poll)
{
    if (poll->path) {
        cdrom_guard_remove(CDROM_GUARD_POLL, poll->path);
        g_clear_pointer(&poll->path, g_free);
    }
}

void cdrom_poll_leave(const char *path)
{
    (void)change_setting(path, left); /* unplugged: there is nothing to restore */
}

void cdrom_poll_end(CdromPoll *poll)
{
    if (poll->path) {
        cdrom_guard_remove(CDROM_GUARD_POLL, poll->path);
        cdrom_poll_leave(poll->path);
        g_clear_pointer(&poll->path, g_free);
    }
}
