/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A bounded, zero-filled, big-endian reply builder. Nothing ever writes past the room: what does not fit is
 * counted, not stored, so length fields tell the full size while the data is cut to what was asked
 * (SPC-4 4.3.5.6, allocation length). Any thread.
 */
#ifndef SPINDLE_UTIL_REPLY_H
#define SPINDLE_UTIL_REPLY_H

#include <stddef.h>
#include <stdint.h>

typedef struct Reply {
    uint8_t *data;
    size_t room; /* bytes that may be stored */
    size_t used; /* bytes built, stored or not */
} Reply;

/* Zeroes buf[0, room) and starts at 0. The memory stays the caller's. */
void reply_init(Reply *reply, void *buf, size_t room);

void reply_u8(Reply *reply, uint8_t v);
void reply_be16(Reply *reply, uint16_t v);
void reply_be24(Reply *reply, uint32_t v);
void reply_be32(Reply *reply, uint32_t v);
void reply_be64(Reply *reply, uint64_t v);
void reply_bytes(Reply *reply, const void *p, size_t n);
void reply_zeros(Reply *reply, size_t n);

/* Appends `text` in a field of n bytes, cut or padded with spaces (SPC-4 4.4.1: left aligned). */
void reply_text(Reply *reply, const char *text, size_t n);

/* Overwrite at an offset already built; parts past the room are ignored. */
void reply_set_u8(Reply *reply, size_t at, uint8_t v);
void reply_set_be16(Reply *reply, size_t at, uint16_t v);
void reply_set_be32(Reply *reply, size_t at, uint32_t v);

/* min(used, limit, room): bytes to hand out for an allocation length of `limit`. */
size_t reply_length(const Reply *reply, size_t limit);

#endif
