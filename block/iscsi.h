/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=iscsi` and the module that holds libiscsi.
 */
#ifndef SPINDLE_BLOCK_ISCSI_H
#define SPINDLE_BLOCK_ISCSI_H

#include "block/remote.h"
#include "util/secret.h"

#define ISCSI_MODULE_SYMBOL "spindle_iscsi_module"

#define ISCSI_DIGEST_NAMES                                                                                   \
    {                                                                                                        \
        "crc32c", "none", "crc32c-none", "none-crc32c", NULL                                                 \
    }

typedef struct IscsiConfig {
    const char *portal; /* HOST[:PORT] */
    const char *target, *initiator, *user;
    const Secret *password; /* or NULL */
    unsigned lun;
    int digest; /* place in ISCSI_DIGEST_NAMES */
    unsigned timeout_s;
} IscsiConfig;

/* `iscsi://[USER[%PASSWORD]@]HOST[:PORT]/TARGET/LUN` into options. NULL and an error. */
Options *iscsi_options_from_filename(const char *filename, GError **error);

#endif
