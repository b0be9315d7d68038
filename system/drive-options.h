/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The command line of spindled, in the manner of qemu-storage-daemon. Pure, any thread.
 */
#ifndef SPINDLE_SYSTEM_DRIVE_OPTIONS_H
#define SPINDLE_SYSTEM_DRIVE_OPTIONS_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    DRIVE_OPTION_BLOCKDEV,
    DRIVE_OPTION_CHARDEV,
    DRIVE_OPTION_DAEMONIZE,
    DRIVE_OPTION_DEBUG,
    DRIVE_OPTION_DEBUG_FILE,
    DRIVE_OPTION_DEVICE,
    DRIVE_OPTION_HELP,
    DRIVE_OPTION_INCOMING,
    DRIVE_OPTION_LIFELINE,
    DRIVE_OPTION_MONITOR,
    DRIVE_OPTION_OBJECT,
    DRIVE_OPTION_PIDFILE,
    DRIVE_OPTION_RUN_WITH,
    DRIVE_OPTION_SANDBOX,
    DRIVE_OPTION_TRACE,
    DRIVE_OPTION_VERSION,
    DRIVE_OPTION_VFIO_USER,
} DriveOptionKind;

typedef struct DriveOption {
    DriveOptionKind kind;
    int index;        /* in argv */
    const char *word; /* as written: "--device"; argv's */
    const char *arg;  /* NULL: takes none; argv's */
} DriveOption;

/* All options in order, as GArray of DriveOption. NULL with "--foo: invalid option" or "--device: requires an
 * argument". Both `-x` and `--x` will do, and `--x=ARG`. */
GArray *drive_options_parse(int argc, char **argv, GError **error);

/* What --help prints. Static. */
const char *drive_options_help(void);

#endif
