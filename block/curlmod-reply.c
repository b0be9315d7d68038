/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/curlmod-reply.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WHY 200

void curl_reply_init(CurlReply *reply)
{
    *reply = (CurlReply){.length = -1, .first = -1, .last = -1, .total = -1, .retry_after = -1};
}

void curl_reply_clear(CurlReply *reply)
{
    g_free(reply->etag);
    g_free(reply->last_modified);
    g_free(reply->encoding);
    g_free(reply->location);
    curl_reply_init(reply);
}

/* Digits only, no sign, no overflow; moves *text behind them. -1: no number. */
static int64_t take_number(const char **text)
{
    int64_t value = 0;
    const char *p = *text;
    if (!g_ascii_isdigit(*p)) {
        return -1;
    }
    for (; g_ascii_isdigit(*p); p++) {
        if (value > (INT64_MAX - 9) / 10) {
            return -1;
        }
        value = value * 10 + (*p - '0');
    }
    *text = p;
    return value;
}

static int64_t whole_number(const char *text)
{
    const int64_t value = take_number(&text);
    return *text ? -1 : value;
}

/* RFC 9110, 14.4: `bytes FIRST-LAST/TOTAL`, `bytes FIRST-LAST/x` with a star, or with a star before the
 * slash. */
static bool parse_range(CurlReply *reply, const char *text)
{
    int64_t first = -1, last = -1, total = -1;
    if (g_ascii_strncasecmp(text, "bytes", 5) != 0 || (text[5] != ' ' && text[5] != '\t')) {
        return false;
    }
    for (text += 5; *text == ' ' || *text == '\t'; text++) {
    }
    if (*text == '*') {
        text++;
    } else {
        first = take_number(&text);
        if (first < 0 || *text++ != '-' || (last = take_number(&text)) < first) {
            return false;
        }
    }
    if (*text++ != '/') {
        return false;
    }
    if (strcmp(text, "*") != 0) {
        total = whole_number(text);
        if (total < 0 || last >= total) {
            return false;
        }
    }
    reply->has_range = true;
    reply->first = first;
    reply->last = last;
    reply->total = total;
    return true;
}

/* RFC 9110, 10.2.3: seconds, or a date. */
static int64_t parse_retry_after(const char *text)
{
    const int64_t seconds = whole_number(text);
    struct tm tm = {0};
    if (seconds >= 0) {
        return seconds;
    }
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return end ? MAX(0, (int64_t)timegm(&tm) - (int64_t)time(NULL)) : -1;
}

static void keep(char **where, const char *value)
{
    g_free(*where);
    *where = g_strdup(value);
}

static bool take_field(CurlReply *reply, const char *name, const char *value)
{
    if (!g_ascii_strcasecmp(name, "content-length")) {
        const int64_t length = whole_number(value);
        if (length < 0 || (reply->length >= 0 && reply->length != length)) {
            return false;
        }
        reply->length = length;
    } else if (!g_ascii_strcasecmp(name, "content-range")) {
        return !reply->has_range && parse_range(reply, value);
    } else if (!g_ascii_strcasecmp(name, "etag")) {
        keep(&reply->etag, value);
    } else if (!g_ascii_strcasecmp(name, "last-modified")) {
        keep(&reply->last_modified, value);
    } else if (!g_ascii_strcasecmp(name, "content-encoding")) {
        keep(&reply->encoding, value);
    } else if (!g_ascii_strcasecmp(name, "location")) {
        keep(&reply->location, value);
    } else if (!g_ascii_strcasecmp(name, "retry-after")) {
        reply->retry_after = parse_retry_after(value);
    }
    return true;
}

/* HTTP/1.1 206 Partial Content, HTTP/2 206 */
static void take_status(CurlReply *reply, const char *line)
{
    const size_t bytes = reply->bytes;
    const char *space = strchr(line, ' ');
    curl_reply_clear(reply);
    reply->bytes = bytes;
    if (space) {
        space++;
        const int64_t status = take_number(&space);
        reply->status = CLAMP(status, 0, 999);
    }
}

bool curl_reply_line(CurlReply *reply, const char *text, size_t bytes)
{
    reply->bytes += bytes;
    if (reply->bytes > REPLY_HEAD_MAX) {
        return false;
    }
    g_autofree char *line = g_strchomp(g_strndup(text, bytes));
    if (g_str_has_prefix(line, "HTTP/")) {
        take_status(reply, line);
        return true;
    }
    char *colon = strchr(line, ':');
    if (!colon) {
        return true;
    }
    *colon = '\0';
    return take_field(reply, line, g_strstrip(colon + 1));
}

static const char *opaque_tag(const char *etag)
{
    return etag && g_str_has_prefix(etag, "W/") ? etag + 2 : etag;
}

/* An answer that has the validator must have the same. */
static bool is_same(const char *known, const char *now)
{
    return !known || !now || !strcmp(known, now);
}

static CurlVerdict judge_partial(const CurlReply *reply, const CurlKnown *known, uint64_t offset,
                                 uint64_t bytes, char *why)
{
    if (!reply->has_range || reply->first < 0) {
        g_snprintf(why, WHY, "Server answered without saying which range");
        return REPLY_AGAIN;
    }
    if (reply->total >= 0 && known->size >= 0 && reply->total != known->size) {
        g_snprintf(why, WHY,
                   "File changed on the server (it has %" G_GINT64_FORMAT " bytes now, not %" G_GINT64_FORMAT
                   ")",
                   reply->total, known->size);
        return REPLY_CHANGED;
    }
    const uint64_t first = (uint64_t)reply->first, last = (uint64_t)reply->last;
    if (first != offset || last - first >= bytes) {
        g_snprintf(why, WHY,
                   "Server answered with a wrong range (%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT
                   " for %" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT ")",
                   first, last, offset, offset + bytes - 1);
        return REPLY_AGAIN;
    }
    if (reply->length >= 0 && (uint64_t)reply->length != last - first + 1) {
        g_snprintf(why, WHY,
                   "Server answered with a wrong length (%" G_GINT64_FORMAT " bytes in %" G_GUINT64_FORMAT
                   "-%" G_GUINT64_FORMAT ")",
                   reply->length, first, last);
        return REPLY_AGAIN;
    }
    return REPLY_BODY;
}

static CurlVerdict judge_whole(const CurlReply *reply, const CurlKnown *known, char *why)
{
    if (reply->length >= 0 && known->size >= 0 && reply->length != known->size) {
        g_snprintf(why, WHY,
                   "File changed on the server (it has %" G_GINT64_FORMAT " bytes now, not %" G_GINT64_FORMAT
                   ")",
                   reply->length, known->size);
        return REPLY_CHANGED;
    }
    return REPLY_WHOLE;
}

CurlVerdict curl_reply_judge(const CurlReply *reply, const CurlKnown *known, uint64_t offset, uint64_t bytes,
                             char ret_why[200])
{
    if (reply->status >= 300 && reply->status < 400 && reply->location) {
        return REPLY_REDIRECT;
    }
    if (reply->status == 200 || reply->status == 206) {
        /* Some servers call a tag weak while the file is new (RFC 9110, 8.8.3.2: weak comparison). */
        if (!is_same(opaque_tag(known->etag), opaque_tag(reply->etag)) ||
            !is_same(known->last_modified, reply->last_modified)) {
            g_snprintf(ret_why, WHY, "File changed on the server");
            return REPLY_CHANGED;
        }
        if (reply->encoding && g_ascii_strcasecmp(reply->encoding, "identity") != 0) {
            g_snprintf(ret_why, WHY, "Server encodes the content as '%.60s', which was not asked for",
                       reply->encoding);
            return REPLY_AGAIN;
        }
        return reply->status == 200 ? judge_whole(reply, known, ret_why)
                                    : judge_partial(reply, known, offset, bytes, ret_why);
    }
    if (reply->status == 416 && reply->total >= 0 && known->size >= 0 && reply->total != known->size) {
        g_snprintf(ret_why, WHY,
                   "File changed on the server (it has %" G_GINT64_FORMAT " bytes now, not %" G_GINT64_FORMAT
                   ")",
                   reply->total, known->size);
        return REPLY_CHANGED;
    }
    g_snprintf(ret_why, WHY, "The requested URL returned error: %d", reply->status);
    return REPLY_AGAIN;
}
