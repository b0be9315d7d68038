/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=nbd` and the module that holds libnbd. Any thread, several calls at once: all of them share
 * one connection, which is made anew when it breaks.
 */
#ifndef SPINDLE_BLOCK_NBD_H
#define SPINDLE_BLOCK_NBD_H

#include "block/block.h"
#include "block/cache.h"

#define NBD_MODULE_ABI    1
#define NBD_MODULE_SYMBOL "spindle_nbd_module"

typedef struct NbdSource NbdSource;

typedef struct NbdConfig {
    const char *host, *port; /* or … */
    const char *path;        /* … a Unix socket */
    const char *export_name; /* "" for the default one */
    unsigned timeout_s;      /* without a byte */
} NbdConfig;

typedef struct NbdModule {
    unsigned abi;
    /* Connects; *ret_size in bytes. NULL and an error. */
    NbdSource *(*open)(const NbdConfig *config, uint64_t *ret_size, GError **error);
    /* As CacheSource. */
    int (*fetch)(void *source, uint64_t offset, uint64_t bytes, CachePut put, void *sink, CacheFailure *ret);
    void (*stop)(void *source);
    /* As block_status(); all data where the server does not tell. */
    int (*status)(NbdSource *source, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                  unsigned *ret_status);
    void (*close)(NbdSource *source);
} NbdModule;

/* filename.c's part: `nbd:…`, `nbd://…`, `nbd+unix://…` into options. NULL and an error. */
Options *nbd_options_from_filename(const char *filename, GError **error);

#endif
