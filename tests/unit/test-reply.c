/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/reply.h"

#include <glib.h>
#include <string.h>

/* Every builder once: 1 + 2 + 3 + 4 + 8 + 3 + 2 + 4 = 27 bytes. */
#define FULL 27

static const uint8_t full[FULL] = {
    0x01,                                           /* u8 */
    0x02, 0x03,                                     /* be16 */
    0x04, 0x05, 0x06,                               /* be24 */
    0x07, 0x08, 0x09, 0x0a,                         /* be32 */
    0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, /* be64 */
    0x13, 0x14, 0x15,                               /* bytes */
    0x00, 0x00,                                     /* zeros */
    'a',  'b',  ' ',  ' ',                          /* text */
};

static void build(Reply *reply)
{
    reply_u8(reply, 0x01);
    reply_be16(reply, 0x0203);
    reply_be24(reply, 0xff040506);
    reply_be32(reply, 0x0708090a);
    reply_be64(reply, 0x0b0c0d0e0f101112);
    reply_bytes(reply, full + 18, 3);
    reply_zeros(reply, 2);
    reply_text(reply, "ab", 4);
}

/* For every room from none to plenty: the full length is counted, what fits is right, nothing beyond is
 * touched. */
static void test_every_room(void)
{
    for (size_t room = 0; room <= FULL + 3; room++) {
        uint8_t memory[FULL + 8];
        memset(memory, 0xee, sizeof memory);
        Reply reply;
        reply_init(&reply, memory, room);
        build(&reply);
        g_assert_cmpuint(reply.used, ==, FULL);
        size_t stored = MIN(room, FULL);
        g_assert_cmpmem(memory, stored, full, stored);
        for (size_t i = stored; i < sizeof memory; i++) {
            g_assert_cmphex(memory[i], ==, i < room ? 0 : 0xee);
        }
    }
}

static void test_length(void)
{
    static const struct {
        size_t room, used, limit, expect;
    } cases[] = {
        {10, 5, 100, 5}, {10, 5, 3, 3}, {4, 8, 100, 4}, {4, 8, 2, 2},
        {0, 8, 8, 0},    {8, 0, 8, 0},  {8, 8, 0, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint8_t memory[16];
        Reply reply;
        reply_init(&reply, memory, cases[i].room);
        reply_zeros(&reply, cases[i].used);
        g_assert_cmpuint(reply_length(&reply, cases[i].limit), ==, cases[i].expect);
    }
}

static void test_set(void)
{
    static const struct {
        size_t room, used, at;
        uint8_t expect[8]; /* of the 32-bit 0xa1a2a3a4 set there */
    } cases[] = {
        {8, 8, 0, {0xa1, 0xa2, 0xa3, 0xa4}},
        {8, 8, 4, {0, 0, 0, 0, 0xa1, 0xa2, 0xa3, 0xa4}},
        {6, 8, 4, {0, 0, 0, 0, 0xa1, 0xa2}}, /* past the room */
        {8, 5, 4, {0, 0, 0, 0, 0xa1}},       /* not built yet */
        {8, 8, 8, {0}},
        {8, 8, SIZE_MAX, {0}},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint8_t memory[8] = {0};
        Reply reply;
        reply_init(&reply, memory, cases[i].room);
        reply_zeros(&reply, cases[i].used);
        reply_set_be32(&reply, cases[i].at, 0xa1a2a3a4);
        g_assert_cmpmem(memory, 8, cases[i].expect, 8);
        g_assert_cmpuint(reply.used, ==, cases[i].used);
    }
    uint8_t memory[4];
    Reply reply;
    reply_init(&reply, memory, sizeof memory);
    reply_zeros(&reply, 4);
    reply_set_u8(&reply, 0, 0x7f);
    reply_set_be16(&reply, 2, 0x1234);
    g_assert_cmpmem(memory, 4, "\x7f\0\x12\x34", 4);
}

static void test_text(void)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"", "        "},
        {"abc", "abc     "},
        {"abcdefgh", "abcdefgh"},
        {"abcdefghij", "abcdefgh"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char memory[9] = "";
        Reply reply;
        reply_init(&reply, memory, 8);
        reply_text(&reply, cases[i].text, 8);
        g_assert_cmpstr(memory, ==, cases[i].expect);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reply/every-room", test_every_room);
    g_test_add_func("/reply/length", test_length);
    g_test_add_func("/reply/set", test_set);
    g_test_add_func("/reply/text", test_text);
    return g_test_run();
}
