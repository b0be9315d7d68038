/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A process that puts back what was changed outside of this one, if this one is killed: the kernel's polling
 * of a drive, and the lock of its door where others have the drive open (else the kernel does that). It is
 * forked once, waits at the end of a socket pair, and holds nothing else: no descriptor, no terminal.
 *
 * Where there is no such process (fork forbidden), things are put back at every end but by SIGKILL.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_GUARD_H
#define SPINDLE_BLOCK_HOST_CDROM_GUARD_H

#include <stdbool.h>

typedef enum {
    CDROM_GUARD_POLL, /* `path`: a setting that cdrom_poll_leave() is for */
    CDROM_GUARD_DOOR, /* `path`: the device */
} CdromGuardKind;

/* Makes the process if there is none. False: there cannot be one. Any thread. */
bool cdrom_guard_start(void);

/* Remembers, or forgets one of, `path` (shorter than 256 bytes; longer ones are not guarded). The first one
 * starts the process. Any thread. */
void cdrom_guard_add(CdromGuardKind kind, const char *path);
void cdrom_guard_remove(CdromGuardKind kind, const char *path);

/* At the end of a program, when nothing is left to be guarded: ends the process. Any thread. */
void cdrom_guard_end(void);

#endif
