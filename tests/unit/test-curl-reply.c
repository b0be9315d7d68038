/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What heads of HTTP answers mean for a read of bytes 1000-1999 of 5000.
 */
#include "block/curlmod-reply.h"

#include <string.h>

typedef struct ReplyCase {
    const char *name, *head; /* lines end with \n */
    int verdict;             /* -1: the head itself is refused */
} ReplyCase;

static const ReplyCase cases[] = {
    {"right", "HTTP/1.1 206 Partial\nContent-Range: bytes 1000-1999/5000\nContent-Length: 1000\n",
     REPLY_BODY},
    {"http2", "HTTP/2 206\ncontent-range: bytes 1000-1999/5000\n", REPLY_BODY},
    {"a-beginning", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1499/5000\n", REPLY_BODY},
    {"total-unknown", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/*\n", REPLY_BODY},
    {"same-etag", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nETag: \"a\"\n", REPLY_BODY},
    {"identity", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nContent-Encoding: identity\n",
     REPLY_BODY},
    {"after-100",
     "HTTP/1.1 100 Continue\nContent-Length: 7\n\nHTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\n",
     REPLY_BODY},
    {"whole", "HTTP/1.1 200 OK\nContent-Length: 5000\n", REPLY_WHOLE},
    {"whole-without-length", "HTTP/1.1 200 OK\n", REPLY_WHOLE},
    {"redirect", "HTTP/1.1 302 F\nLocation: /x\n", REPLY_REDIRECT},
    {"redirect-without-place", "HTTP/1.1 302 F\n", REPLY_AGAIN},
    {"other-etag", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nETag: \"b\"\n", REPLY_CHANGED},
    {"other-date", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nLast-Modified: then\n",
     REPLY_CHANGED},
    {"other-total", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5001\n", REPLY_CHANGED},
    {"other-length", "HTTP/1.1 200 OK\nContent-Length: 4999\n", REPLY_CHANGED},
    {"shrunk", "HTTP/1.1 416 R\nContent-Range: bytes */900\n", REPLY_CHANGED},
    {"416-same-size", "HTTP/1.1 416 R\nContent-Range: bytes */5000\n", REPLY_AGAIN},
    {"too-early", "HTTP/1.1 206 P\nContent-Range: bytes 999-1999/5000\n", REPLY_AGAIN},
    {"too-late", "HTTP/1.1 206 P\nContent-Range: bytes 1001-1999/5000\n", REPLY_AGAIN},
    {"too-long", "HTTP/1.1 206 P\nContent-Range: bytes 1000-2000/5000\n", REPLY_AGAIN},
    {"no-range", "HTTP/1.1 206 P\nContent-Length: 1000\n", REPLY_AGAIN},
    {"multipart", "HTTP/1.1 206 P\nContent-Type: multipart/byteranges; boundary=x\n", REPLY_AGAIN},
    {"length-short", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nContent-Length: 999\n",
     REPLY_AGAIN},
    {"length-long", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nContent-Length: 1001\n",
     REPLY_AGAIN},
    {"gzip", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nContent-Encoding: gzip\n", REPLY_AGAIN},
    {"404", "HTTP/1.1 404 N\n", REPLY_AGAIN},
    {"no-status", "X: y\n", REPLY_AGAIN},
    {"backwards", "HTTP/1.1 206 P\nContent-Range: bytes 1999-1000/5000\n", -1},
    {"beyond-total", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/1500\n", -1},
    {"huge", "HTTP/1.1 206 P\nContent-Range: bytes 1000-99999999999999999999/5000\n", -1},
    {"negative", "HTTP/1.1 206 P\nContent-Range: bytes -1000-1999/5000\n", -1},
    {"words", "HTTP/1.1 206 P\nContent-Range: bytes one-two/three\n", -1},
    {"unit", "HTTP/1.1 206 P\nContent-Range: items 1000-1999/5000\n", -1},
    {"two-ranges", "HTTP/1.1 206 P\nContent-Range: bytes 1000-1999/5000\nContent-Range: bytes 0-1/5000\n",
     -1},
    {"two-lengths", "HTTP/1.1 200 OK\nContent-Length: 5000\nContent-Length: 5001\n", -1},
    {"length-word", "HTTP/1.1 200 OK\nContent-Length: x\n", -1},
    {"length-negative", "HTTP/1.1 200 OK\nContent-Length: -5\n", -1},
};

static void test_judge(gconstpointer data)
{
    const ReplyCase *c = data;
    const CurlKnown known = {5000, "\"a\"", "now"};
    g_auto(CurlReply) reply = {0};
    g_auto(GStrv) lines = g_strsplit(c->head, "\n", -1);
    bool good = true;
    char why[200] = "";
    curl_reply_init(&reply);
    for (char **line = lines; *line && good; line++) {
        good = curl_reply_line(&reply, *line, strlen(*line));
    }
    g_assert_cmpint(good, ==, c->verdict != -1);
    if (good) {
        g_assert_cmpint(curl_reply_judge(&reply, &known, 1000, 1000, why), ==, c->verdict);
        g_assert_true((c->verdict <= REPLY_REDIRECT) == (why[0] == '\0'));
    }
}

static void test_endless(void)
{
    g_auto(CurlReply) reply = {0};
    curl_reply_init(&reply);
    unsigned lines = 0;
    while (curl_reply_line(&reply, "X: 0123456789\r\n", 15)) {
        lines++;
    }
    g_assert_cmpuint(lines, ==, REPLY_HEAD_MAX / 15);
}

static void test_retry_after(void)
{
    g_auto(CurlReply) reply = {0};
    curl_reply_init(&reply);
    curl_reply_line(&reply, "Retry-After: 7", 14);
    g_assert_cmpint(reply.retry_after, ==, 7);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autoptr(GDateTime) then = g_date_time_add_seconds(now, 100);
    g_autofree char *date = g_date_time_format(then, "Retry-After: %a, %d %b %Y %H:%M:%S GMT");
    curl_reply_line(&reply, date, strlen(date));
    g_assert_cmpint(ABS(reply.retry_after - 100), <, 10);
    curl_reply_line(&reply, "Retry-After: soon", 17);
    g_assert_cmpint(reply.retry_after, ==, -1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/curl-reply/", cases[i].name, NULL);
        g_test_add_data_func(path, &cases[i], test_judge);
    }
    g_test_add_func("/curl-reply/endless", test_endless);
    g_test_add_func("/curl-reply/retry-after", test_retry_after);
    return g_test_run();
}
