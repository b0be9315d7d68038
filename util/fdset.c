/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/fdset.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "util/error.h"
#include "util/options.h"

#define PREFIX "/dev/fdset/"

static struct {
    pthread_mutex_t lock;
    GArray *entries; /* FdsetEntry, ordered by set; NULL: never used */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void entry_clear(gpointer data)
{
    g_free(((FdsetEntry *)data)->opaque);
}

static GArray *new_entries(void)
{
    GArray *entries = g_array_new(false, true, sizeof(FdsetEntry));

    g_array_set_clear_func(entries, entry_clear);
    return entries;
}

static FdsetEntry *entry_at(guint i)
{
    return &g_array_index(table.entries, FdsetEntry, i);
}

static int64_t free_number(void)
{
    int64_t number = 0;

    for (guint i = 0; i < table.entries->len; i++) {
        number = entry_at(i)->set == number ? number + 1 : number;
    }
    return number;
}

bool fdset_add(int fd, int64_t set, const char *opaque, int64_t *ret_set, GError **error)
{
    if (set < -1) {
        close(fd);
        return error_set(error, "Parameter 'fdset-id' expects a non-negative value");
    }
    pthread_mutex_lock(&table.lock);
    table.entries = table.entries ? table.entries : new_entries();
    FdsetEntry entry = {.set = set < 0 ? free_number() : set, .fd = fd, .opaque = g_strdup(opaque)};
    guint at = 0;
    while (at < table.entries->len && entry_at(at)->set <= entry.set) {
        at++;
    }
    g_array_insert_val(table.entries, at, entry);
    *ret_set = entry.set;
    pthread_mutex_unlock(&table.lock);
    return true;
}

bool fdset_remove(int64_t set, int fd, GError **error)
{
    bool found = false;

    pthread_mutex_lock(&table.lock);
    for (guint i = table.entries ? table.entries->len : 0; i > 0; i--) {
        FdsetEntry *entry = entry_at(i - 1);
        if (entry->set == set && (fd < 0 || entry->fd == fd)) {
            close(entry->fd);
            g_array_remove_index(table.entries, i - 1);
            found = true;
        }
    }
    pthread_mutex_unlock(&table.lock);
    if (found) {
        return true;
    }
    g_autofree char *name = fd < 0 ? g_strdup_printf("fdset-id:%" G_GINT64_FORMAT, set)
                                   : g_strdup_printf("fdset-id:%" G_GINT64_FORMAT ", fd:%d", set, fd);
    return error_set(error, "File descriptor named '%s' not found", name);
}

GArray *fdset_list(void)
{
    GArray *list = new_entries();

    pthread_mutex_lock(&table.lock);
    for (guint i = 0; table.entries && i < table.entries->len; i++) {
        FdsetEntry copy = *entry_at(i);
        copy.opaque = g_strdup(copy.opaque);
        g_array_append_val(list, copy);
    }
    pthread_mutex_unlock(&table.lock);
    return list;
}

bool fdset_is_path(const char *path)
{
    uint64_t number;

    return g_str_has_prefix(path, PREFIX) && options_parse_uint(path + strlen(PREFIX), &number) == 0;
}

/* Of its own where it can be, so that O_DIRECT is not for all who have the file; else a copy. */
static int open_copy(int fd, int flags)
{
    char path[32];

    if (flags & O_DIRECT) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int own = open(path, flags | O_CLOEXEC);
        return own < 0 ? -errno : own;
    }
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

int fdset_open(const char *path, int flags)
{
    uint64_t number;
    int ret = -ENOENT;

    if (options_parse_uint(path + strlen(PREFIX), &number) < 0) {
        return ret;
    }
    pthread_mutex_lock(&table.lock);
    for (guint i = 0; ret < 0 && table.entries && i < table.entries->len; i++) {
        const FdsetEntry *entry = entry_at(i);
        if ((uint64_t)entry->set == number) {
            int has = fcntl(entry->fd, F_GETFL);
            ret =
                has >= 0 && (has & O_ACCMODE) == (flags & O_ACCMODE) ? open_copy(entry->fd, flags) : -EACCES;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return ret;
}
