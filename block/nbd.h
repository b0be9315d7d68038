/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=nbd` and the module that holds libnbd. All threads share one connection, which is made anew
 * when it breaks.
 */
#ifndef SPINDLE_BLOCK_NBD_H
#define SPINDLE_BLOCK_NBD_H

#include "block/remote.h"
#include "block/tls-object.h"

#define NBD_MODULE_SYMBOL "spindle_nbd_module"

typedef struct NbdConfig {
    const char *host, *port; /* or … */
    const char *path;        /* … a Unix socket */
    const char *export_name; /* "" for the default one */
    const TlsCreds *tls;     /* or NULL */
    unsigned timeout_s;      /* to connect */
} NbdConfig;

/* filename.c's part: `nbd:…`, `nbd://…`, `nbd+unix://…` into options. NULL and an error. */
Options *nbd_options_from_filename(const char *filename, GError **error);

#endif
