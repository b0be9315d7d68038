/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <curl/curl.h>
#include <string.h>

#include "block/curlmod.h"

#define WHY 200
/* People and servers write spaces and other alphabets as they are. */
#define LENIENT (CURLU_URLENCODE | CURLU_ALLOW_SPACE | CURLU_NON_SUPPORT_SCHEME)

static char *part_of(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK) {
        return NULL;
    }
    char *copy = g_strdup(text);
    curl_free(text);
    return copy;
}

char *curl_url_split(const char *text, char **ret_user, char **ret_password)
{
    CURLU *url = curl_url();
    char *plain = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, text, LENIENT) == CURLUE_OK) {
        *ret_user = part_of(url, CURLUPART_USER, CURLU_URLDECODE);
        *ret_password = part_of(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
        curl_url_set(url, CURLUPART_USER, NULL, 0);
        curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
        plain = part_of(url, CURLUPART_URL, 0);
    }
    curl_url_cleanup(url);
    return plain ? plain : g_strdup(text);
}

/* SCHEME://HOST:PORT, or NULL. */
static char *origin_of(const char *text)
{
    CURLU *url = curl_url();
    char *origin = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, text, LENIENT) == CURLUE_OK) {
        g_autofree char *scheme = part_of(url, CURLUPART_SCHEME, 0), *host = part_of(url, CURLUPART_HOST, 0),
                        *port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        origin = g_strdup_printf("%s://%s:%s", scheme ? scheme : "", host ? host : "", port ? port : "");
    }
    curl_url_cleanup(url);
    return origin;
}

bool curl_url_same_origin(const char *a, const char *b)
{
    g_autofree char *one = origin_of(a), *other = origin_of(b);
    return one && other && !g_ascii_strcasecmp(one, other);
}

static bool is_scheme(const char *url, const char *scheme)
{
    const size_t n = strlen(scheme);
    return !g_ascii_strncasecmp(url, scheme, n) && !strncmp(url + n, "://", 3);
}

char *curl_url_redirect(const char *from, const char *location, char ret_why[WHY])
{
    CURLU *url = curl_url();
    g_autofree char *text = NULL;
    if (!url || curl_url_set(url, CURLUPART_URL, from, LENIENT) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_URL, location, LENIENT) != CURLUE_OK ||
        !(text = part_of(url, CURLUPART_URL, 0))) {
        g_snprintf(ret_why, WHY, "Server redirects to something that is no URL");
    } else if (!is_scheme(text, "http") && !is_scheme(text, "https")) {
        g_snprintf(ret_why, WHY, "Server redirects to another protocol (%.100s), which is not followed",
                   text);
        g_clear_pointer(&text, g_free);
    } else if (is_scheme(from, "https") && !is_scheme(text, "https")) {
        g_snprintf(ret_why, WHY, "Server redirects from https to http, which is not followed");
        g_clear_pointer(&text, g_free);
    }
    curl_url_cleanup(url);
    return g_steal_pointer(&text);
}
