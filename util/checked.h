/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Arithmetic on values that a guest, an image or a peer chose. Any thread.
 */
#ifndef SPINDLE_UTIL_CHECKED_H
#define SPINDLE_UTIL_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* True when [offset, offset + bytes) lies within [0, size), without overflow. An empty range at `size` is
 * inside. */
static inline bool range_inside(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

/* True when align is a power of two. */
static inline bool is_power_of_2(uint64_t align)
{
    return align && !(align & (align - 1));
}

/* align must be a power of two. */
static inline uint64_t align_down(uint64_t v, uint64_t align)
{
    return v & ~(align - 1);
}

/* align must be a power of two; v + align must not overflow. */
static inline uint64_t align_up(uint64_t v, uint64_t align)
{
    return (v + align - 1) & ~(align - 1);
}

#endif
