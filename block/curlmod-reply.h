/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The head of an HTTP answer (RFC 9110), line by line, and what it means for a read. No network here. One
 * owner at a time.
 */
#ifndef SPINDLE_BLOCK_CURLMOD_REPLY_H
#define SPINDLE_BLOCK_CURLMOD_REPLY_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define REPLY_HEAD_MAX (128 * 1024) /* bytes of an answer's head */

typedef struct CurlReply {
    int status;     /* 0: no status line yet */
    size_t bytes;   /* of the head so far */
    int64_t length; /* Content-Length or -1 */
    bool has_range;
    int64_t first, last, total; /* Content-Range; -1 where it says `*` */
    char *etag, *last_modified, *encoding, *location;
    int64_t retry_after; /* seconds, -1: none */
} CurlReply;

void curl_reply_init(CurlReply *reply);
void curl_reply_clear(CurlReply *reply);

/* A header line, with or without its end. False: the head is too long, or contradicts itself. A status line
 * starts anew. */
bool curl_reply_line(CurlReply *reply, const char *line, size_t bytes);

/* What a read of [offset, offset + bytes) of `size` may do with the answer. */
typedef enum {
    REPLY_BODY,     /* the body is the range, or a beginning of it */
    REPLY_WHOLE,    /* the body is the whole file */
    REPLY_REDIRECT, /* ask at `location` */
    REPLY_CHANGED,  /* it is another file now */
    REPLY_AGAIN,    /* no good; trying again may help */
} CurlVerdict;

/* The file as it was when it was opened. */
typedef struct CurlKnown {
    int64_t size;
    const char *etag, *last_modified; /* or NULL */
} CurlKnown;

/* *ret_why (200 bytes) says what is wrong when it is. */
CurlVerdict curl_reply_judge(const CurlReply *reply, const CurlKnown *known, uint64_t offset, uint64_t bytes,
                             char ret_why[200]);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CurlReply, curl_reply_clear)

#endif
