/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Copying, slicing and measuring arrays of iovecs. The arrays and what they point to stay the caller's. Any
 * thread.
 */
#ifndef SPINDLE_UTIL_IOV_H
#define SPINDLE_UTIL_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/uio.h>

/* Bytes that the array covers. */
size_t iov_total(const struct iovec *iov, int count);

/* Copies up to `bytes` bytes out of the array, starting `offset` bytes into it; returns the bytes copied. */
size_t iov_to_buf(const struct iovec *iov, int count, size_t offset, void *buf, size_t bytes);

/* Copies up to `bytes` bytes into the array, starting `offset` bytes into it; returns the bytes copied. */
size_t iov_from_buf(const struct iovec *iov, int count, size_t offset, const void *buf, size_t bytes);

/* Fills up to `bytes` bytes of the array with `value`; returns the bytes written. */
size_t iov_fill(const struct iovec *iov, int count, size_t offset, uint8_t value, size_t bytes);

/* Describes [offset, offset + bytes) of `iov` in `ret` (room for `ret_max` entries). Returns the number of
 * entries, or -1 when ret_max is too small or the range is not inside the array. */
int iov_slice(const struct iovec *iov, int count, size_t offset, size_t bytes, struct iovec *ret,
              int ret_max);

/* True when every base and every length is a multiple of `align` (a power of two). */
bool iov_is_aligned(const struct iovec *iov, int count, size_t align);

#endif
