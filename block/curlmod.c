/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The module's table: opening a URL, and reads from it. Redirects are followed here and not by libcurl, so
 * that where they led is remembered, what they may lead to is decided in one place, and nothing secret goes
 * to another server.
 */
#include "block/curlmod.h"

#include <errno.h>
#include <string.h>

#include "util/error.h"

#define REDIRECTS_MAX 10

static void share_lock(CURL *easy, curl_lock_data data, curl_lock_access access, void *opaque)
{
    pthread_mutex_lock(&((CurlSource *)opaque)->share_locks[data]);
}

static void share_unlock(CURL *easy, curl_lock_data data, void *opaque)
{
    pthread_mutex_unlock(&((CurlSource *)opaque)->share_locks[data]);
}

static Secret *copy_secret(const Secret *secret)
{
    return secret ? secret_new_copy(secret->data, secret->size) : NULL;
}

/* A name and a password in the URL are as those in the options, which go before. */
static void take_url(CurlSource *s, const CurlConfig *config)
{
    g_autofree char *user = NULL;
    char *password = NULL;
    s->url = curl_url_split(config->url, &user, &password);
    s->username = g_strdup(config->username ? config->username : user);
    s->password = copy_secret(config->password);
    if (!s->password && !config->username && password) {
        s->password = secret_new_copy(password, strlen(password));
    }
    if (password) {
        explicit_bzero(password, strlen(password));
    }
    g_free(password);
}

static CurlSource *source_new(const CurlConfig *config)
{
    CurlSource *s = g_new0(CurlSource, 1);
    take_url(s, config);
    s->proxy_username = g_strdup(config->proxy_username);
    s->proxy_password = copy_secret(config->proxy_password);
    s->cookie = g_strdup(config->cookie);
    s->cafile = g_strdup(config->cafile);
    s->sslverify = config->sslverify;
    s->stall_s = config->stall_s;
    s->connect_s = config->connect_s;
    s->is_http = !g_ascii_strncasecmp(config->url, "http", 4);
    for (char **h = config->headers; h && *h; h++) {
        s->headers = curl_slist_append(s->headers, *h);
    }
    s->size = -1;
    pthread_mutex_init(&s->lock, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(s->share_locks); i++) {
        pthread_mutex_init(&s->share_locks[i], NULL);
    }
    s->share = curl_share_init();
    curl_share_setopt(s->share, CURLSHOPT_LOCKFUNC, share_lock);
    curl_share_setopt(s->share, CURLSHOPT_UNLOCKFUNC, share_unlock);
    curl_share_setopt(s->share, CURLSHOPT_USERDATA, s);
    curl_share_setopt(s->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(s->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return s;
}

static void module_close(CurlSource *s)
{
    if (!s) {
        return;
    }
    curl_handles_free(s);
    curl_share_cleanup(s->share);
    for (unsigned i = 0; i < G_N_ELEMENTS(s->share_locks); i++) {
        pthread_mutex_destroy(&s->share_locks[i]);
    }
    pthread_mutex_destroy(&s->lock);
    curl_slist_free_all(s->headers);
    secret_free(s->password);
    secret_free(s->proxy_password);
    g_free(s->proxy_username);
    g_free(s->username);
    g_free(s->cookie);
    g_free(s->cafile);
    g_free(s->etag);
    g_free(s->last_modified);
    g_free(s->if_range);
    g_free(s->where);
    g_free(s->changed_text);
    g_free(s->url);
    g_free(s);
}

static void module_stop(void *source)
{
    CurlSource *s = source;
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    for (GList *l = s->busy.head; l; l = l->next) {
        curl_multi_wakeup(((CurlHandle *)l->data)->multi);
    }
    pthread_mutex_unlock(&s->lock);
}

static char *get_where(CurlSource *s)
{
    pthread_mutex_lock(&s->lock);
    char *where = g_strdup(s->where ? s->where : s->url);
    pthread_mutex_unlock(&s->lock);
    return where;
}

/* Remembers where the content is; the URL itself: forgets. */
static void set_where(CurlSource *s, const char *where)
{
    pthread_mutex_lock(&s->lock);
    g_free(s->where);
    s->where = strcmp(where, s->url) ? g_strdup(where) : NULL;
    pthread_mutex_unlock(&s->lock);
}

/* Where redirects led is of no use any more: the link is too old, or nobody is there. Ask anew. */
static bool has_expired(const CurlTransfer *t)
{
    const int status = t->reply.status;
    return (status == 0 && t->code != CURLE_OK) || (status >= 400 && status != 416 && status != 429);
}

/* Runs the transfer, along redirects. `*t` is as the last answer left it, its reply the caller's to clear.
 * False: `t->why` says why there is no answer; *ret_final: there will be none. */
static bool run_along(CurlSource *s, CurlTransfer *t, bool *ret_final)
{
    const CurlTransfer asked = *t;
    g_autofree char *url = get_where(s);
    const bool remembered = strcmp(url, s->url) != 0;
    *ret_final = false;
    for (unsigned hops = 0;; hops++) {
        *t = asked;
        t->url = url;
        if (!curl_transfer_run(t)) {
            *ret_final = true;
            return false;
        }
        if (!t->judged || t->verdict != REPLY_REDIRECT) {
            break;
        }
        char *next = curl_url_redirect(url, t->reply.location, t->why);
        if (!next || hops >= REDIRECTS_MAX) {
            if (next) {
                g_snprintf(t->why, sizeof t->why, "Server redirects in a circle");
            }
            g_free(next);
            *ret_final = true;
            return false;
        }
        curl_reply_clear(&t->reply);
        g_free(url);
        url = next;
    }
    if (remembered && has_expired(t)) {
        set_where(s, s->url);
    } else if (t->judged && (t->verdict == REPLY_BODY || t->verdict == REPLY_WHOLE)) {
        set_where(s, url);
    }
    t->url = NULL;
    return true;
}

/* Whether a status may be another one soon. */
static bool status_may_pass(int status)
{
    return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

static unsigned wish_of(const CurlReply *reply)
{
    return reply->retry_after > 0 ? MIN(reply->retry_after, 3600) * 1000 : 0;
}

static bool put_head(void *opaque, const void *data, size_t bytes)
{
    CurlFound *found = opaque;
    const size_t n = MIN(bytes, CURL_HEAD - found->head_bytes);
    memcpy(found->head + found->head_bytes, data, n);
    found->head_bytes += n;
    return n == bytes;
}

/* A validator that If-Range takes: a strong ETag, else a date (RFC 9110, 13.1.5). */
static char *choose_if_range(const CurlFound *found)
{
    if (found->etag && found->etag[0] == '"') {
        return g_strdup(found->etag);
    }
    return g_strdup(found->last_modified);
}

/* What the first answer tells. */
static bool take_facts(CurlSource *s, CurlTransfer *t, CurlFound *found, GError **error)
{
    const CurlReply *r = &t->reply;
    if (r->status == 416 && r->total == 0) {
        found->size = 0;
        found->ranges = true;
    } else if (!t->judged || (t->verdict != REPLY_BODY && t->verdict != REPLY_WHOLE) || t->refused ||
               (t->surplus && t->verdict == REPLY_BODY)) {
        found->worth_retrying = status_may_pass(r->status) && t->code != CURLE_COULDNT_CONNECT &&
                                t->code != CURLE_PEER_FAILED_VERIFICATION &&
                                t->code != CURLE_COULDNT_RESOLVE_HOST &&
                                t->code != CURLE_COULDNT_RESOLVE_PROXY && t->code != CURLE_URL_MALFORMAT &&
                                t->code != CURLE_SSL_CACERT_BADFILE;
        found->delay_ms = wish_of(r);
        return error_set(error, "CURL: Error opening file: %s",
                         t->surplus ? "Server sends more than it was asked for" : t->why);
    } else if (t->verdict == REPLY_WHOLE) {
        found->size = r->length;
        found->head_bytes = 0;
    } else {
        found->size = r->total;
        found->ranges = r->total >= 0;
        if (found->size < 0 || (t->code != CURLE_OK && t->code != CURLE_PARTIAL_FILE)) {
            found->head_bytes = 0;
        }
        /* Only what is whole. */
        if ((int64_t)found->head_bytes != found->size) {
            found->head_bytes -= found->head_bytes % CACHE_GRANULE;
        }
    }
    found->etag = g_strdup(r->etag);
    found->last_modified = g_strdup(r->last_modified);
    s->if_range = found->ranges ? choose_if_range(found) : NULL;
    return true;
}

static bool look_http(CurlSource *s, CurlFound *found, GError **error)
{
    CurlTransfer t = {.source = s, .bytes = CURL_HEAD, .known = {.size = -1}, .put = put_head, .sink = found};
    bool final;
    found->head = g_malloc(CURL_HEAD);
    found->head_bytes = 0;
    bool good = run_along(s, &t, &final);
    if (!good) {
        error_set(error, "CURL: Error opening file: %s", t.why);
    } else {
        good = take_facts(s, &t, found, error);
    }
    curl_reply_clear(&t.reply);
    return good;
}

static bool look_ftp(CurlSource *s, CurlFound *found, GError **error)
{
    CurlTransfer t = {.source = s, .head_only = true, .url = s->url};
    const bool answered = curl_transfer_run(&t);
    if (!answered || t.code != CURLE_OK) {
        found->worth_retrying = t.code == CURLE_OPERATION_TIMEDOUT || t.code == CURLE_RECV_ERROR;
        return error_set(error, "CURL: Error opening file: %s", t.why);
    }
    if (t.ftp_size < 0) {
        return error_set(error, "CURL: Error opening file: Server didn't report file size.");
    }
    found->size = t.ftp_size;
    found->ranges = true;
    if (t.ftp_time > 0) {
        found->last_modified = g_strdup_printf("%ld", t.ftp_time);
    }
    return true;
}

static CurlSource *module_open(const CurlConfig *config, CurlFound *found, GError **error)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        error_set(error, "libcurl initialization failed");
        return NULL;
    }
    CurlSource *s = source_new(config);
    curl_found_clear(found);
    if (!(s->is_http ? look_http(s, found, error) : look_ftp(s, found, error))) {
        module_close(s);
        return NULL;
    }
    s->size = found->size;
    s->ranges = found->ranges;
    s->etag = g_strdup(found->etag);
    s->last_modified = g_strdup(found->last_modified);
    return s;
}

static bool is_changed(CurlSource *s, CacheFailure *failure)
{
    pthread_mutex_lock(&s->lock);
    const bool changed = s->changed;
    if (changed) {
        g_strlcpy(failure->text, s->changed_text, sizeof failure->text);
    }
    pthread_mutex_unlock(&s->lock);
    return changed;
}

static void set_changed(CurlSource *s, const char *why)
{
    pthread_mutex_lock(&s->lock);
    if (!s->changed) {
        s->changed = true;
        s->changed_text = g_strdup(why);
    }
    pthread_mutex_unlock(&s->lock);
}

/* The errno for what curl could not do: the server is away, or its answer is bad. */
static int errno_of(CURLcode code)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return -EHOSTUNREACH;
    default:
        return -EIO;
    }
}

/* What is wrong with a transfer that did not bring all. */
static int explain(CurlSource *s, const CurlTransfer *t, CacheFailure *failure)
{
    failure->delay_ms = wish_of(&t->reply);
    if (t->judged && t->verdict == REPLY_CHANGED) {
        set_changed(s, t->why);
        failure->final = true;
        g_strlcpy(failure->text, t->why, sizeof failure->text);
        return -EIO;
    }
    if (t->judged && t->verdict == REPLY_WHOLE && s->ranges) {
        g_strlcpy(failure->text, "Server ignores the range that it was asked for", sizeof failure->text);
        return -EIO;
    }
    if (t->judged && t->verdict == REPLY_AGAIN) {
        g_strlcpy(failure->text, t->why, sizeof failure->text);
        return -EIO;
    }
    if (t->surplus) {
        g_strlcpy(failure->text, "Server sends more than it was asked for", sizeof failure->text);
        return -EIO;
    }
    g_strlcpy(failure->text, t->code == CURLE_OK ? "Server sends less than it was asked for" : t->why,
              sizeof failure->text);
    return t->code == CURLE_OK ? -EIO : errno_of(t->code);
}

static int module_fetch(void *source, uint64_t offset, uint64_t bytes, CachePut put, void *sink,
                        CacheFailure *ret_failure)
{
    CurlSource *s = source;
    CurlTransfer t = {
        .source = s,
        .offset = offset,
        .bytes = bytes,
        .known = {.size = s->size, .etag = s->etag, .last_modified = s->is_http ? s->last_modified : NULL},
        .put = put,
        .sink = sink,
    };
    bool final;
    if (is_changed(s, ret_failure)) {
        ret_failure->final = true;
        return -EIO;
    }
    if (!run_along(s, &t, &final)) {
        g_strlcpy(ret_failure->text, t.why, sizeof ret_failure->text);
        ret_failure->final = final;
        curl_reply_clear(&t.reply);
        return -EIO;
    }
    /* Without a length the end of the answer is the end of the file. */
    const bool all = bytes ? t.got == bytes : t.code == CURLE_OK && t.judged && t.verdict == REPLY_WHOLE;
    const int ret = all ? 0 : explain(s, &t, ret_failure);
    curl_reply_clear(&t.reply);
    return ret;
}

extern const CurlModule spindle_curl_module;
const CurlModule spindle_curl_module = {
    .abi = CURL_MODULE_ABI,
    .open = module_open,
    .fetch = module_fetch,
    .stop = module_stop,
    .close = module_close,
};
