/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=nfs` and the module that holds libnfs.
 */
#ifndef SPINDLE_BLOCK_NFS_H
#define SPINDLE_BLOCK_NFS_H

#include "block/remote.h"

#define NFS_MODULE_SYMBOL "spindle_nfs_module"

typedef struct NfsConfig {
    const char *host, *path; /* absolute */
    const char *url;         /* nfs://HOST?…, for libnfs: the options */
    const char *name;
    bool version4;
    unsigned timeout_s;
} NfsConfig;

/* `nfs://HOST[:PORT]/PATH[?uid=…&gid=…&…]` into options. NULL and an error. */
Options *nfs_options_from_filename(const char *filename, GError **error);

#endif
