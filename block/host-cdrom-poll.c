/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-poll.h"
#include "util/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PATH "/sys/module/block/parameters/events_dfl_poll_msecs"

static char *read_setting(const char *path)
{
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? g_strchomp(text) : NULL;
}

static bool write_setting(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    const ssize_t size = (ssize_t)strlen(value);
    const bool good = fd >= 0 && write(fd, value, size) == size;
    if (fd >= 0) {
        close(fd);
    }
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
    const long ms = strtol(now, NULL, 10);
    if (ms > 0 || (ms < 0 && usual && strtol(usual, NULL, 10) > 0)) {
        return true;
    }
    if (!write_setting(path, G_STRINGIFY(CDROM_POLL_MS))) {
        *ret_why = "the kernel does not look for media changes, and may not be told to";
        return false;
    }
    log_info("'/dev/%s': the kernel looks for media changes every %d ms while the drive is in use "
             "(events_poll_msecs was %s)",
             device->devname, CDROM_POLL_MS, now);
    poll->path = g_steal_pointer(&path);
    poll->before = g_steal_pointer(&now);
    return true;
}

void cdrom_poll_forget(CdromPoll *poll)
{
    g_clear_pointer(&poll->path, g_free);
    g_clear_pointer(&poll->before, g_free);
}

void cdrom_poll_end(CdromPoll *poll)
{
    g_autofree char *now = poll->path ? read_setting(poll->path) : NULL;
    if (now && !strcmp(now, G_STRINGIFY(CDROM_POLL_MS))) {
        (void)write_setting(poll->path, poll->before); /* unplugged: there is nothing to restore */
    }
    cdrom_poll_forget(poll);
}
