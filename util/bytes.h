/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Unaligned loads and stores of big- and little-endian integers. Any thread.
 */
#ifndef SPINDLE_UTIL_BYTES_H
#define SPINDLE_UTIL_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BYTES_DEFINE(order, bits)                                                                            \
    static inline uint##bits##_t load_##order##bits(const void *p)                                           \
    {                                                                                                        \
        uint##bits##_t v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                             \
        return order##bits##toh(v);                                                                          \
    }                                                                                                        \
    static inline void store_##order##bits(void *p, uint##bits##_t v)                                        \
    {                                                                                                        \
        v = hto##order##bits(v);                                                                             \
        memcpy(p, &v, sizeof v);                                                                             \
    }

BYTES_DEFINE(be, 16)
BYTES_DEFINE(be, 32)
BYTES_DEFINE(be, 64)
BYTES_DEFINE(le, 16)
BYTES_DEFINE(le, 32)
BYTES_DEFINE(le, 64)
#undef BYTES_DEFINE

/* Three-byte big-endian integers, as MODE SELECT block descriptors and MSF-style replies hold them. */
static inline uint32_t load_be24(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void store_be24(void *p, uint32_t v)
{
    uint8_t *b = p;
    b[0] = v >> 16;
    b[1] = v >> 8;
    b[2] = v;
}

#endif
