/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Inside the curl module: curlmod.c (open, fetch, redirects), curlmod-transfer.c (a pool of handles, and one
 * transfer at a time on each), curlmod-reply.c.
 */
#ifndef SPINDLE_BLOCK_CURLMOD_H
#define SPINDLE_BLOCK_CURLMOD_H

#include <curl/curl.h>
#include <pthread.h>

#include "block/curl.h"
#include "block/curlmod-reply.h"

/* A connection and what is needed to use it: one transfer at a time, by whoever took it out of the pool. */
typedef struct CurlHandle {
    CURL *easy;
    CURLM *multi; /* its own, so that the transfer can be woken from outside */
    char text[CURL_ERROR_SIZE];
    GList link;
} CurlHandle;

struct CurlSource {
    /* constant */
    char *url, *username, *cookie, *cafile, *proxy_username;
    Secret *password, *proxy_password;
    struct curl_slist *headers; /* for the origin of `url` only */
    bool sslverify, is_http;
    unsigned stall_s, connect_s;
    CURLSH *share;
    pthread_mutex_t share_locks[CURL_LOCK_DATA_LAST];
    /* as found at the open, constant after it */
    int64_t size;
    bool ranges;
    char *etag, *last_modified;
    char *if_range; /* value of the header, or NULL */

    pthread_mutex_t lock; /* for the rest */
    GQueue idle, busy;    /* CurlHandle; the last one used first */
    char *where;          /* where redirects led, or NULL */
    bool stopped, changed;
    char *changed_text;
};

/* One transfer: what is asked for, and how it went. */
typedef struct CurlTransfer {
    CurlSource *source;
    const char *url;
    uint64_t offset, bytes; /* asked for; bytes 0: without a range */
    bool head_only;         /* FTP: facts only */
    CurlKnown known;
    CachePut put;
    void *sink;

    CurlReply reply;
    bool judged;
    CurlVerdict verdict;
    uint64_t skip; /* bytes of the body before `offset` */
    uint64_t got;  /* bytes put */
    bool enough;   /* the rest is not wanted */
    bool surplus, refused;
    bool connected;
    int64_t progress; /* us: when it last got on */
    size_t fresh;     /* bytes since then */
    unsigned lines;   /* FTP: of the control connection */
    int64_t ftp_size;
    long ftp_time;
    CURLcode code;
    char why[200];
} CurlTransfer;

/* Does it; the outcome is in `transfer`. False: the source was stopped. */
bool curl_transfer_run(CurlTransfer *transfer);

/* curlmod-url.c. What they return is for g_free(). */

/* The URL without name and password, with characters that do not belong into one encoded; what is none, as it
 * is. *ret_user and *ret_password: decoded, or untouched. */
char *curl_url_split(const char *text, char **ret_user, char **ret_password);
/* Scheme, host and port are the same: what is secret may go to both. */
bool curl_url_same_origin(const char *a, const char *b);
/* The absolute URL that an answer of `from` names, if it may be followed. NULL and why not (200 bytes). */
char *curl_url_redirect(const char *from, const char *location, char ret_why[200]);

/* Frees the handles; none may be in use. */
void curl_handles_free(CurlSource *source);

#endif
