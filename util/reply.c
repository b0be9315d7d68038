/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/reply.h"

#include <string.h>

#include "util/bytes.h"

void reply_init(Reply *reply, void *buf, size_t room)
{
    reply->data = buf;
    reply->room = room;
    reply->used = 0;
    if (room) {
        memset(buf, 0, room);
    }
}

/* Stores what of [at, at + n) lies within the room. */
static void reply_store(Reply *reply, size_t at, const void *p, size_t n)
{
    if (at >= reply->room || !n) {
        return;
    }
    size_t left = reply->room - at;
    memcpy(reply->data + at, p, n < left ? n : left);
}

void reply_bytes(Reply *reply, const void *p, size_t n)
{
    reply_store(reply, reply->used, p, n);
    reply->used += n;
}

void reply_zeros(Reply *reply, size_t n)
{
    /* The room was zeroed at the start and nothing stores beyond `used`. */
    reply->used += n;
}

void reply_u8(Reply *reply, uint8_t v)
{
    reply_bytes(reply, &v, 1);
}

void reply_be16(Reply *reply, uint16_t v)
{
    uint8_t b[2];
    store_be16(b, v);
    reply_bytes(reply, b, sizeof b);
}

void reply_be24(Reply *reply, uint32_t v)
{
    uint8_t b[3];
    store_be24(b, v);
    reply_bytes(reply, b, sizeof b);
}

void reply_be32(Reply *reply, uint32_t v)
{
    uint8_t b[4];
    store_be32(b, v);
    reply_bytes(reply, b, sizeof b);
}

void reply_be64(Reply *reply, uint64_t v)
{
    uint8_t b[8];
    store_be64(b, v);
    reply_bytes(reply, b, sizeof b);
}

void reply_text(Reply *reply, const char *text, size_t n)
{
    size_t length = strnlen(text, n);
    reply_bytes(reply, text, length);
    for (size_t i = length; i < n; i++) {
        reply_u8(reply, ' ');
    }
}

/* An overwrite reaches only bytes already built, so that it cannot dirty the zeros that follow. */
static void reply_overwrite(Reply *reply, size_t at, const void *p, size_t n)
{
    if (at < reply->used) {
        size_t built = reply->used - at;
        reply_store(reply, at, p, n < built ? n : built);
    }
}

void reply_set_u8(Reply *reply, size_t at, uint8_t v)
{
    reply_overwrite(reply, at, &v, 1);
}

void reply_set_be16(Reply *reply, size_t at, uint16_t v)
{
    uint8_t b[2];
    store_be16(b, v);
    reply_overwrite(reply, at, b, sizeof b);
}

void reply_set_be32(Reply *reply, size_t at, uint32_t v)
{
    uint8_t b[4];
    store_be32(b, v);
    reply_overwrite(reply, at, b, sizeof b);
}

size_t reply_length(const Reply *reply, size_t limit)
{
    size_t n = reply->used < reply->room ? reply->used : reply->room;
    return n < limit ? n : limit;
}
