/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * File descriptors that were handed over for later use: sets by number, opened as `/dev/fdset/N` (QMP's
 * add-fd,
 * `--add-fd`), as in QEMU. A set holds descriptors of one file that were opened in different ways. The table
 * is the program's, and locked: any thread.
 */
#ifndef SPINDLE_UTIL_FDSET_H
#define SPINDLE_UTIL_FDSET_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct FdsetEntry {
    int64_t set;
    int fd;
    char *opaque; /* a note of the user's, or NULL */
} FdsetEntry;

/* Puts `fd` into a set, -1: the lowest number that is free. The descriptor is the table's from then on, also
 * on failure. `opaque` is copied, NULL: none. False for a negative number below -1. */
bool fdset_add(int fd, int64_t set, const char *opaque, int64_t *ret_set, GError **error);

/* Closes one of a set, or all (fd -1); whoever opened it before keeps what he has. False with QEMU's "File
 * descriptor named … not found". */
bool fdset_remove(int64_t set, int fd, GError **error);

/* All, ordered by set; the strings are the array's (g_array_unref()). Array of FdsetEntry. */
GArray *fdset_list(void);

/* Whether the path is one of `/dev/fdset/N`. */
bool fdset_is_path(const char *path);

/* A descriptor of the path's set with the access mode of `flags` (O_RDONLY, O_WRONLY, O_RDWR) and O_DIRECT as
 * they say, close-on-exec; the caller's. -ENOENT: no such set; -EACCES: none in it was opened so. */
int fdset_open(const char *path, int flags);

#endif
