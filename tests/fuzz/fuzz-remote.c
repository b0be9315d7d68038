/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What servers and users write, by chance: heads of HTTP answers (status lines, Content-Range, Retry-After,
 * dates), names of images on servers, options of their drivers, objects. Right ones with a part that is cut,
 * doubled, replaced or noise. Nothing may crash, hang, leak or be believed that contradicts itself. Short by
 * default; SPINDLE_STRESS_SECONDS=600 for a long run. The seed is g_test's (--seed).
 */
#include <stdlib.h>
#include <string.h>

#include "block/block.h"
#include "block/curlmod-reply.h"
#include "block/secret-object.h"
#include "block/tls-object.h"

#define LINES_MAX 12
#define SIZE      INT64_C(1000000)

static unsigned below(unsigned n)
{
    return g_test_rand_int_range(0, (int)n);
}

static bool one_in(unsigned n)
{
    return below(n) == 0;
}

#define PICK(list) (list)[below(G_N_ELEMENTS(list))]

/* The text with something done to it. */
static char *damage(const char *text)
{
    g_autoptr(GString) s = g_string_new(text);
    for (unsigned times = one_in(3) ? 0 : 1 + below(3); times > 0; times--) {
        const gsize at = s->len ? below(s->len) : 0;
        switch (below(6)) {
        case 0:
            g_string_truncate(s, at);
            break;
        case 1:
            g_string_insert_c(s, at, (char)(1 + below(255)));
            break;
        case 2:
            g_string_insert(s, at, s->str + at);
            break;
        case 3:
            if (s->len) {
                g_string_erase(s, at, 1 + below(MIN(s->len - at, 5)));
            }
            break;
        case 4:
            g_string_insert(s, at, one_in(2) ? "99999999999999999999" : "-1");
            break;
        default:
            if (s->len) {
                s->str[at] = "0:/@%?&=,;\"\\[]{} \t*-"[below(20)];
            }
        }
        if (s->len > 8192) {
            g_string_truncate(s, 8192);
        }
    }
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static const char *const head_lines[] = {
    "HTTP/1.1 206 Partial Content",
    "HTTP/1.1 200 OK",
    "HTTP/2 206",
    "HTTP/1.0 302 Found",
    "HTTP/1.1 503 Service Unavailable",
    "HTTP/1.1 416 Range Not Satisfiable",
    "Content-Range: bytes 0-65535/1000000",
    "Content-Range: bytes */1000000",
    "Content-Range: bytes 4096-8191/*",
    "Content-Length: 65536",
    "content-length: 1000000",
    "ETag: \"v1\"",
    "ETag: W/\"v1\"",
    "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
    "Retry-After: 3",
    "Retry-After: Mon, 01 Jan 2024 00:00:00 GMT",
    "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
    "Content-Encoding: gzip",
    "Content-Encoding: identity",
    "Transfer-Encoding: chunked",
    "Location: http://localhost/other",
    "Location: file:///etc/passwd",
    "",
};

static void one_head(void)
{
    static const CurlKnown known = {
        .size = SIZE, .etag = "\"v1\"", .last_modified = "Mon, 01 Jan 2024 00:00:00 GMT"};
    g_auto(CurlReply) reply;
    char why[200] = "";
    bool good = true;
    curl_reply_init(&reply);
    for (unsigned n = below(LINES_MAX); n > 0 && good; n--) {
        g_autofree char *line = damage(PICK(head_lines));
        good = curl_reply_line(&reply, line, strlen(line));
    }
    g_assert_cmpint(reply.retry_after, >=, -1);
    if (reply.has_range && reply.first >= 0) {
        g_assert_cmpint(reply.first, <=, reply.last);
    }
    const uint64_t offset = below(200) * 4096, bytes = 4096 * (1 + below(32));
    const CurlVerdict verdict = curl_reply_judge(&reply, &known, offset, bytes, why);
    g_assert_nonnull(memchr(why, 0, sizeof why));
    if (verdict == REPLY_BODY) { /* only what was asked for, of the file that was opened */
        g_assert_cmpint(reply.status, ==, 206);
        g_assert_cmpint(reply.first, ==, (int64_t)offset);
        g_assert_true(reply.total == SIZE || reply.total == -1);
        g_assert_true(!reply.etag || !strcmp(reply.etag, known.etag) || reply.etag[0] == 'W');
    } else if (verdict == REPLY_WHOLE) {
        g_assert_cmpint(reply.status, ==, 200);
    } else if (verdict == REPLY_REDIRECT) {
        g_assert_nonnull(reply.location);
    }
}

static const char *const names[] = {
    "nbd:127.0.0.1:1:exportname=e",
    "nbd:unix:/nonexistent:exportname=e",
    "nbd://127.0.0.1:1/e",
    "nbd+unix:///e?socket=/nonexistent",
    "nbd:[::1]:1",
    "ssh://me@127.0.0.1:1/path/to%20file?host_key_check=sha256:00",
    "nfs://127.0.0.1:1/share/file?uid=0&version=4&nfsport=1",
    "iscsi://me@127.0.0.1:1/iqn.2020-01.org.x:t/1",
    "rbd:pool/namespace/image@snapshot:id=user:conf=/nonexistent:key\\:with=value",
    "http://127.0.0.1:1/file",
    "https://me@127.0.0.1:1/file?query",
    "ftp://127.0.0.1:1/file",
    "blkdebug:/nonexistent:nbd:127.0.0.1:1",
    "json:{\"driver\":\"nbd\",\"server\":{\"type\":\"inet\",\"host\":\"127.0.0.1\",\"port\":\"1\"}}",
};

static void one_name(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = damage(PICK(names));
    g_autoptr(Options) options = block_options_from_filename(name, &error);
    g_assert_true((options != NULL) == (error == NULL));
    if (options && !g_str_has_prefix(name, "json:")) {
        g_assert_nonnull(options_get(options, "driver"));
    }
}

/* Where nobody answers, so that an open ends at once. */
static const char *const settings[][2] = {
    {"driver", "nbd"},
    {"driver", "http"},
    {"driver", "ssh"},
    {"driver", "iscsi"},
    {"driver", "ftp"},
    {"url", "http://127.0.0.1:1/x"},
    {"url", "ftp://127.0.0.1:1/x"},
    {"server.type", "inet"},
    {"server.type", "unix"},
    {"server.path", "/nonexistent"},
    {"host", "127.0.0.1"},
    {"port", "1"},
    {"path", "/nonexistent"},
    {"export", "e"},
    {"tls-creds", "t"},
    {"tls-hostname", "h"},
    {"reconnect-delay", "1"},
    {"timeout", "1"},
    {"cache-size", "1M"},
    {"readahead", "64k"},
    {"prefetch", "on"},
    {"deadline", "1"},
    {"cookie", "a=b"},
    {"cookie-secret", "s"},
    {"header", "A: b"},
    {"header.0", "A: b"},
    {"sslverify", "off"},
    {"password-secret", "s"},
    {"username", "u"},
    {"portal", "127.0.0.1:1"},
    {"target", "iqn.x:t"},
    {"transport", "tcp"},
    {"lun", "1"},
    {"header-digest", "none"},
    {"user", "u"},
    {"host_key_check", "no"},
    {"host-key-check.mode", "hash"},
    {"host-key-check.type", "md5"},
    {"host-key-check.hash", "00"},
    {"read-only", "on"},
    {"auto-read-only", "on"},
    {"server.host", "127.0.0.1"},
    {"server.port", "1"},
};

/* These say where to connect to: not to be changed into a place that exists. */
static bool is_place(const char *key)
{
    return strstr(key, "host") || strstr(key, "url") || strstr(key, "port") || strstr(key, "path");
}

static void one_open(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) options = options_new();
    options_set(options, "retries", "0");
    for (unsigned n = 2 + below(12); n > 0; n--) {
        const char *const *setting = PICK(settings);
        g_autofree char *key = one_in(8) && !is_place(setting[0]) ? damage(setting[0]) : g_strdup(setting[0]);
        g_autofree char *value = is_place(key) ? g_strdup(setting[1]) : damage(setting[1]);
        if (key[0] && g_strcmp0(key, "open-timeout")) {
            options_set(options, key, value);
        }
    }
    const char *driver = options_get(options, "driver");
    const bool remote =
        driver && (!strcmp(driver, "nbd") || !strcmp(driver, "ssh") || !strcmp(driver, "iscsi"));
    if (remote) { /* http asks again for a while: its options are parsed below */
        BlockNode *node = block_open(options, &error);
        g_assert_null(node);
        g_assert_nonnull(error);
    }
}

static const char *const objects[] = {
    "tls-creds-x509,id=t,dir=/nonexistent,endpoint=client,verify-peer=on",
    "tls-creds-psk,id=t,dir=/nonexistent,endpoint=server,username=me",
    "secret,id=s,data=letmein,format=raw",
    "secret,id=s,data=bGV0bWVpbg==,format=base64",
    "secret,id=w,data=AAAA,keyid=s,iv=AAAA,format=base64",
    "secret,id=f,file=/nonexistent",
};

static void one_object(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = damage(PICK(objects));
    g_autoptr(Options) options = options_parse(text, "qom-type", &error);
    const char *type = options ? options_get(options, "qom-type") : NULL;
    if (!type) {
        return;
    }
    g_autofree char *kind = g_strdup(type);
    options_remove(options, "qom-type");
    const bool good =
        tls_object_is(kind) ? tls_object_add(kind, options, &error) : secret_object_add(options, &error);
    g_assert_true(good == (error == NULL));
    if (one_in(4)) {
        secret_object_clear();
        tls_object_remove("t");
    }
}

static const struct {
    const char *path;
    void (*one)(void);
    unsigned times; /* between two looks at the clock */
} kinds[] = {
    {"/fuzz-remote/head", one_head, 500},
    {"/fuzz-remote/name", one_name, 500},
    {"/fuzz-remote/open", one_open, 10},
    {"/fuzz-remote/object", one_object, 100},
};

static void test_kind(gconstpointer opaque)
{
    const unsigned kind = GPOINTER_TO_UINT(opaque);
    const char *seconds = g_getenv("SPINDLE_STRESS_SECONDS");
    const gint64 end = g_get_monotonic_time() + (seconds ? atoi(seconds) : 1) * G_USEC_PER_SEC;
    do {
        for (unsigned i = 0; i < kinds[kind].times; i++) {
            kinds[kind].one();
        }
    } while (g_get_monotonic_time() < end);
    secret_object_clear();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_test_add_data_func(kinds[i].path, GUINT_TO_POINTER(i), test_kind);
    }
    return g_test_run();
}
