/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/iov.h"

#include <string.h>

size_t iov_total(const struct iovec *iov, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total += iov[i].iov_len;
    }
    return total;
}

/* Where a walk over an array stands: the next piece begins `skip` bytes into iov[0]. */
typedef struct {
    const struct iovec *iov;
    int count;
    size_t skip;
} IovCursor;

static IovCursor iov_seek(const struct iovec *iov, int count, size_t offset)
{
    while (count > 0 && offset >= iov->iov_len) {
        offset -= iov->iov_len;
        iov++;
        count--;
    }
    return (IovCursor){iov, count, offset};
}

/* The next piece of at most `bytes` bytes; its length is 0 at the end of the array. */
static struct iovec iov_next(IovCursor *cursor, size_t bytes)
{
    while (cursor->count > 0 && cursor->iov->iov_len == cursor->skip) {
        cursor->iov++;
        cursor->count--;
        cursor->skip = 0;
    }
    if (cursor->count <= 0) {
        return (struct iovec){NULL, 0};
    }
    size_t left = cursor->iov->iov_len - cursor->skip;
    size_t n = bytes < left ? bytes : left;
    struct iovec piece = {(uint8_t *)cursor->iov->iov_base + cursor->skip, n};
    cursor->skip += n;
    return piece;
}

size_t iov_to_buf(const struct iovec *iov, int count, size_t offset, void *buf, size_t bytes)
{
    IovCursor cursor = iov_seek(iov, count, offset);
    size_t done = 0;
    while (done < bytes) {
        struct iovec piece = iov_next(&cursor, bytes - done);
        if (!piece.iov_len) {
            break;
        }
        memcpy((uint8_t *)buf + done, piece.iov_base, piece.iov_len);
        done += piece.iov_len;
    }
    return done;
}

size_t iov_from_buf(const struct iovec *iov, int count, size_t offset, const void *buf, size_t bytes)
{
    IovCursor cursor = iov_seek(iov, count, offset);
    size_t done = 0;
    while (done < bytes) {
        struct iovec piece = iov_next(&cursor, bytes - done);
        if (!piece.iov_len) {
            break;
        }
        memcpy(piece.iov_base, (const uint8_t *)buf + done, piece.iov_len);
        done += piece.iov_len;
    }
    return done;
}

size_t iov_fill(const struct iovec *iov, int count, size_t offset, uint8_t value, size_t bytes)
{
    IovCursor cursor = iov_seek(iov, count, offset);
    size_t done = 0;
    while (done < bytes) {
        struct iovec piece = iov_next(&cursor, bytes - done);
        if (!piece.iov_len) {
            break;
        }
        memset(piece.iov_base, value, piece.iov_len);
        done += piece.iov_len;
    }
    return done;
}

int iov_slice(const struct iovec *iov, int count, size_t offset, size_t bytes, struct iovec *ret, int ret_max)
{
    size_t total = iov_total(iov, count);
    if (offset > total || bytes > total - offset) {
        return -1;
    }
    IovCursor cursor = iov_seek(iov, count, offset);
    int used = 0;
    while (bytes) {
        struct iovec piece = iov_next(&cursor, bytes);
        if (used == ret_max) {
            return -1;
        }
        ret[used++] = piece;
        bytes -= piece.iov_len;
    }
    return used;
}

bool iov_is_aligned(const struct iovec *iov, int count, size_t align)
{
    uintptr_t bits = 0;
    for (int i = 0; i < count; i++) {
        bits |= (uintptr_t)iov[i].iov_base | iov[i].iov_len;
    }
    return !(bits & (align - 1));
}
