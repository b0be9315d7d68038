/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/png-write.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <zlib.h>

#include "util/bytes.h"

/* Length, type, data, CRC of type and data (clause 5.3). */
static bool write_chunk(FILE *file, const char type[4], const void *data, uint32_t size)
{
    uint8_t head[8], tail[4];
    store_be32(head, size);
    memcpy(head + 4, type, 4);
    uLong crc = crc32(0, head + 4, 4);
    if (size) {
        crc = crc32(crc, data, size);
    }
    store_be32(tail, crc);
    return fwrite(head, 1, sizeof head, file) == sizeof head &&
           (!size || fwrite(data, 1, size, file) == size) &&
           fwrite(tail, 1, sizeof tail, file) == sizeof tail;
}

/* Rows of RGB, each after the number of its filter, 0: none (clause 9). */
static uint8_t *make_rows(const uint32_t *pixels, unsigned width, unsigned height, size_t *ret_size)
{
    size_t row_size = 1 + (size_t)width * 3;
    uint8_t *rows = g_malloc0(row_size * height), *at = rows;
    for (unsigned y = 0; y < height; y++) {
        at++;
        for (unsigned x = 0; x < width; x++, at += 3) {
            store_be24(at, pixels[(size_t)y * width + x]);
        }
    }
    *ret_size = row_size * height;
    return rows;
}

bool png_write(FILE *file, const uint32_t *pixels, unsigned width, unsigned height)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8 /* bits a sample */, [9] = 2 /* RGB */};
    store_be32(header, width);
    store_be32(header + 4, height);
    size_t size;
    g_autofree uint8_t *rows = make_rows(pixels, width, height, &size);
    uLongf packed_size = compressBound(size);
    g_autofree uint8_t *packed = g_malloc(packed_size);
    if (compress(packed, &packed_size, rows, size) != Z_OK) {
        errno = ENOMEM;
        return false;
    }
    return fwrite(signature, 1, sizeof signature, file) == sizeof signature &&
           write_chunk(file, "IHDR", header, sizeof header) &&
           write_chunk(file, "IDAT", packed, packed_size) && write_chunk(file, "IEND", NULL, 0);
}
