/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The properties of `--device ide-cd`, QEMU's own. Strings stay the options'. Pure, any thread.
 */
#ifndef SPINDLE_SYSTEM_DRIVE_PROPS_H
#define SPINDLE_SYSTEM_DRIVE_PROPS_H

#include <glib.h>
#include <stdbool.h>
#include "util/options.h"

typedef struct DriveProps {
    const char *id, *bus, *drive, *serial, *model, *ver; /* NULL: not given */
    uint64_t wwn;                                        /* 0: none */
} DriveProps;

/* All of QEMU's properties of ide-cd, NULL-terminated. */
extern const char *const drive_prop_names[];

/* False with QEMU's message for an unknown driver, property or value. */
bool drive_props_parse(Options *options, DriveProps *ret_props, GError **error);

#endif
