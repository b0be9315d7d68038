/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between `driver=http` (https, ftp, ftps) and the module that holds libcurl. The driver owns the
 * CurlSource; the module keeps copies of what it is given. Any thread, several fetches at once.
 */
#ifndef SPINDLE_BLOCK_CURL_H
#define SPINDLE_BLOCK_CURL_H

#include "block/cache.h"
#include "util/secret.h"

#define CURL_MODULE_ABI    1
#define CURL_MODULE_SYMBOL "spindle_curl_module"
#define CURL_HEAD          (64 * 1024) /* bytes that an open brings along; the directory's start is in them */

typedef struct CurlSource CurlSource;

typedef struct CurlConfig {
    const char *url;
    bool sslverify;
    const char *cafile; /* or NULL: the system's */
    unsigned stall_s;   /* without a byte: the transfer is given up */
    unsigned connect_s;
    const char *username, *proxy_username, *cookie; /* or NULL */
    const Secret *password, *proxy_password;        /* or NULL */
    char **headers;                                 /* more of them, NULL-terminated, or NULL */
} CurlConfig;

/* What is there, as of the open; later answers are held against it. */
typedef struct CurlFound {
    int64_t size;               /* bytes, -1: the server does not say */
    bool ranges;                /* parts can be had */
    char *etag, *last_modified; /* as sent, or NULL */
    uint8_t *head;              /* the first bytes, … */
    size_t head_bytes;          /* … how many; 0: none */
    bool worth_retrying;        /* when it failed */
    unsigned delay_ms;          /* the server's wish */
} CurlFound;

typedef struct CurlModule {
    unsigned abi;
    /* Looks at the URL. NULL and an error in QEMU's words. *found is the caller's to clear either way. */
    CurlSource *(*open)(const CurlConfig *config, CurlFound *found, GError **error);
    /* As CacheSource. */
    int (*fetch)(void *source, uint64_t offset, uint64_t bytes, CachePut put, void *sink, CacheFailure *ret);
    void (*stop)(void *source);
    void (*close)(CurlSource *source);
} CurlModule;

static inline void curl_found_clear(CurlFound *found)
{
    g_free(found->etag);
    g_free(found->last_modified);
    g_free(found->head);
    *found = (CurlFound){.size = -1};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CurlFound, curl_found_clear)

#endif
