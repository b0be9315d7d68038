/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Handles, and one transfer on one of them.
 */
#include <stdio.h>
#include <string.h>

#include "block/curlmod.h"

#define BUFFER_BYTES (256L * 1024)
#define POLL_MS      1000
#define SKIP_MAX     (8 * 1024 * 1024)
#define TRICKLE      1024 /* bytes in `stall_s`: less is none */
#define FTP_LINES    200  /* that a server may say before the data */

static void handle_free(CurlHandle *handle)
{
    curl_easy_cleanup(handle->easy);
    curl_multi_cleanup(handle->multi);
    g_free(handle);
}

void curl_handles_free(CurlSource *source)
{
    GList *link;
    while ((link = g_queue_pop_head_link(&source->idle))) {
        handle_free(link->data);
    }
}

/* The handle that was used last has the warmest connection. NULL: stopped. */
static CurlHandle *handle_take(CurlSource *source)
{
    CurlHandle *handle = NULL;
    pthread_mutex_lock(&source->lock);
    if (!source->stopped) {
        GList *link = g_queue_pop_head_link(&source->idle);
        if (link) {
            handle = link->data;
        } else {
            handle = g_new0(CurlHandle, 1);
            handle->link.data = handle;
            handle->easy = curl_easy_init();
            handle->multi = curl_multi_init();
        }
        g_queue_push_head_link(&source->busy, &handle->link);
    }
    pthread_mutex_unlock(&source->lock);
    return handle;
}

static void handle_put(CurlSource *source, CurlHandle *handle)
{
    pthread_mutex_lock(&source->lock);
    g_queue_unlink(&source->busy, &handle->link);
    g_queue_push_head_link(&source->idle, &handle->link);
    pthread_mutex_unlock(&source->lock);
}

static void note_progress(CurlTransfer *t)
{
    t->progress = g_get_monotonic_time();
    t->fresh = 0;
}

/* A server that sends a byte now and then stalls all the same. */
static void note_bytes(CurlTransfer *t, size_t bytes)
{
    t->fresh += bytes;
    if (t->fresh >= TRICKLE) {
        note_progress(t);
    }
}

/* Connected; until now curl watched the time. */
static int on_connected(void *opaque, char *peer, char *local, int peer_port, int local_port)
{
    CurlTransfer *t = opaque;
    note_progress(t);
    t->connected = true;
    return CURL_PREREQFUNC_OK;
}

static size_t on_header(char *data, size_t size, size_t count, void *opaque)
{
    CurlTransfer *t = opaque;
    note_bytes(t, size * count);
    if (!t->source->is_http) {
        note_progress(t);
        return ++t->lines > FTP_LINES ? 0 : size * count;
    }
    if (!curl_reply_line(&t->reply, data, size * count)) {
        g_strlcpy(t->why,
                  t->reply.bytes > REPLY_HEAD_MAX ? "Server sends an endless header"
                                                  : "Server sends a header that contradicts itself",
                  sizeof t->why);
        t->refused = true;
        return 0;
    }
    return size * count;
}

/* Before the first byte of the body: is it what was asked for? */
static bool judge(CurlTransfer *t)
{
    t->judged = true;
    if (!t->source->is_http) {
        t->verdict = REPLY_BODY;
        return true;
    }
    t->verdict = curl_reply_judge(&t->reply, &t->known, t->offset, t->bytes, t->why);
    if (t->verdict == REPLY_WHOLE) {
        t->skip = t->offset;
        /* One that could do ranges and does not now: only where it costs little. */
        if (t->source->ranges && t->offset > SKIP_MAX) {
            return false;
        }
    }
    return t->verdict == REPLY_BODY || t->verdict == REPLY_WHOLE;
}

static size_t on_body(char *data, size_t size, size_t count, void *opaque)
{
    CurlTransfer *t = opaque;
    size_t bytes = size * count;
    const size_t all = bytes;
    note_bytes(t, bytes);
    if (t->head_only) {
        return all; /* FTP's facts in the form of a header */
    }
    if (!t->judged && !judge(t)) {
        t->refused = true;
    }
    if (t->refused || !t->put) {
        return 0;
    }
    const size_t skip = MIN(t->skip, bytes);
    t->skip -= skip;
    data += skip;
    bytes -= skip;
    if (t->bytes && bytes > t->bytes - t->got) {
        t->surplus = true;
        bytes = t->bytes - t->got;
    }
    if (bytes && !t->put(t->sink, data, bytes)) {
        t->enough = true;
        return 0;
    }
    t->got += bytes;
    return t->surplus ? 0 : all;
}

static bool is_stopped(CurlSource *source)
{
    pthread_mutex_lock(&source->lock);
    const bool stopped = source->stopped;
    pthread_mutex_unlock(&source->lock);
    return stopped;
}

/* Drives the transfer until it ends, stalls or is stopped. */
static void perform(CurlTransfer *t, CurlHandle *handle)
{
    const int64_t stall = (int64_t)t->source->stall_s * G_USEC_PER_SEC;
    int running = 1, left;
    note_progress(t);
    t->code = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(handle->multi, handle->easy) != CURLM_OK) {
        return;
    }
    while (running) {
        if (curl_multi_perform(handle->multi, &running) != CURLM_OK || !running) {
            break;
        }
        const int64_t quiet = t->connected ? g_get_monotonic_time() - t->progress : 0;
        if (is_stopped(t->source) || quiet >= stall) {
            t->code = CURLE_OPERATION_TIMEDOUT;
            g_snprintf(handle->text, sizeof handle->text, "No data for %u seconds", t->source->stall_s);
            break;
        }
        curl_multi_poll(handle->multi, NULL, 0, MIN(POLL_MS, (stall - quiet) / 1000 + 1), NULL);
    }
    CURLMsg *message;
    while ((message = curl_multi_info_read(handle->multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            t->code = message->data.result;
        }
    }
    curl_multi_remove_handle(handle->multi, handle->easy);
}

static void set_identity(const CurlTransfer *t, CURL *easy)
{
    const CurlSource *s = t->source;
    const bool home = curl_url_same_origin(t->url, s->url);
    /* What is for one server is not for those that it points to. */
    curl_easy_setopt(easy, CURLOPT_USERNAME, home ? s->username : NULL);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, home && s->password ? (const char *)s->password->data : NULL);
    curl_easy_setopt(easy, CURLOPT_COOKIE, home ? s->cookie : NULL);
    curl_easy_setopt(easy, CURLOPT_PROXYUSERNAME, s->proxy_username);
    curl_easy_setopt(easy, CURLOPT_PROXYPASSWORD,
                     s->proxy_password ? (const char *)s->proxy_password->data : NULL);
}

/* The request's own headers; free with curl_slist_free_all(). */
static struct curl_slist *request_headers(const CurlTransfer *t)
{
    struct curl_slist *list = curl_slist_append(NULL, "Accept-Encoding: identity");
    const CurlSource *s = t->source;
    if (t->bytes && s->if_range) {
        g_autofree char *line = g_strdup_printf("If-Range: %s", s->if_range);
        list = curl_slist_append(list, line);
    }
    for (struct curl_slist *l = curl_url_same_origin(t->url, s->url) ? s->headers : NULL; l; l = l->next) {
        list = curl_slist_append(list, l->data);
    }
    return list;
}

static void set_up(CurlTransfer *t, CurlHandle *handle, struct curl_slist *headers)
{
    const CurlSource *s = t->source;
    CURL *easy = handle->easy;
    curl_easy_reset(easy);
    handle->text[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, t->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, s->is_http ? "http,https" : "ftp,ftps");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* by hand: see curlmod.c */
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handle->text);
    curl_easy_setopt(easy, CURLOPT_SHARE, s->share);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)s->connect_s);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* does not wait for a name service that hangs */
#endif
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, (long)s->sslverify);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, s->sslverify ? 2L : 0L);
    if (s->cafile) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, s->cafile);
    }
    set_identity(t, easy);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, s->is_http ? headers : NULL);
    curl_easy_setopt(easy, CURLOPT_NOBODY, (long)t->head_only);
    curl_easy_setopt(easy, CURLOPT_FILETIME, 1L);
    if (t->bytes) {
        char range[64];
        snprintf(range, sizeof range, "%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT, t->offset,
                 t->offset + t->bytes - 1);
        curl_easy_setopt(easy, CURLOPT_RANGE, range);
    }
}

bool curl_transfer_run(CurlTransfer *t)
{
    CurlHandle *handle = handle_take(t->source);
    if (!handle) {
        return false;
    }
    curl_reply_init(&t->reply);
    t->code = CURLE_FAILED_INIT;
    struct curl_slist *headers = request_headers(t);
    if (handle->easy && handle->multi) {
        set_up(t, handle, headers);
        perform(t, handle);
        curl_off_t size = -1;
        curl_easy_getinfo(handle->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        t->ftp_size = size;
        t->ftp_time = -1;
        curl_easy_getinfo(handle->easy, CURLINFO_FILETIME, &t->ftp_time);
    }
    if (!t->judged && t->code == CURLE_OK && t->reply.status) {
        judge(t);
    }
    if (!t->why[0]) {
        g_strlcpy(t->why, handle->text[0] ? handle->text : curl_easy_strerror(t->code), sizeof t->why);
    }
    curl_slist_free_all(headers);
    handle_put(t->source, handle);
    return !is_stopped(t->source);
}
