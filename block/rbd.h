/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=rbd` and the module that holds librbd.
 */
#ifndef SPINDLE_BLOCK_RBD_H
#define SPINDLE_BLOCK_RBD_H

#include "block/remote.h"
#include "util/secret.h"

#define RBD_MODULE_SYMBOL "spindle_rbd_module"

typedef struct RbdConfig {
    const char *pool, *image, *name_space, *snapshot, *user, *conf; /* NULL: none, or Ceph's default */
    const char *monitors;                                           /* "host:port,…" or NULL */
    const char *auth;                                               /* "cephx;none" or NULL */
    const Secret *key;                                              /* base64, or NULL */
    const char *const *settings;                                    /* name, value, …, NULL */
    unsigned timeout_s;
} RbdConfig;

/* `rbd:POOL[/NAMESPACE]/IMAGE[@SNAPSHOT][:id=USER][:conf=FILE][:NAME=VALUE…]` into options. NULL and an
 * error. */
Options *rbd_options_from_filename(const char *filename, GError **error);

#endif
