/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/wave.h"
#include "util/bytes.h"
#include "util/error.h"
#include <string.h>

#define CHUNKS_MAX 64 /* before the data */

static int read_bytes(BlockNode *node, uint64_t offset, void *buf, size_t bytes)
{
    const struct iovec iov = {buf, bytes};
    return block_node_preadv(node, offset, bytes, &iov, 1);
}

/* PCM, or the extensible form of it. */
static bool is_cd_format(const uint8_t *fmt, uint32_t size)
{
    const uint16_t tag = load_le16(fmt);
    return size >= 16 && (tag == 1 || tag == 0xfffe) && load_le16(fmt + 2) == 2 &&
           load_le32(fmt + 4) == 44100 && load_le16(fmt + 14) == 16;
}

bool wave_find_data(BlockNode *node, uint64_t *ret_offset, uint64_t *ret_bytes, GError **error)
{
    const uint64_t size = block_info(node)->size;
    const char *name = block_info(node)->filename;
    uint8_t head[12], chunk[8], fmt[16];
    bool format = false;
    if (size < sizeof head || read_bytes(node, 0, head, sizeof head) < 0 || memcmp(head, "RIFF", 4) ||
        memcmp(head + 8, "WAVE", 4)) {
        return error_set(error, "'%s' is not a WAVE file", name);
    }
    uint64_t at = sizeof head;
    for (unsigned i = 0; i < CHUNKS_MAX && size - at >= sizeof chunk; i++) {
        if (read_bytes(node, at, chunk, sizeof chunk) < 0) {
            return error_set(error, "Could not read the header of '%s'", name);
        }
        const uint32_t bytes = load_le32(chunk + 4);
        at += sizeof chunk;
        if (!memcmp(chunk, "data", 4) && format) {
            *ret_offset = at;
            *ret_bytes = MIN(bytes, size - at);
            return true;
        }
        if (!memcmp(chunk, "fmt ", 4)) {
            format = size - at >= sizeof fmt && read_bytes(node, at, fmt, sizeof fmt) == 0 &&
                     is_cd_format(fmt, bytes);
            if (!format) {
                return error_set(error, "'%s' is not CD audio: PCM of 44100 Hz, 2 channels, 16 bits", name);
            }
        }
        const uint64_t step = (uint64_t)bytes + (bytes & 1);
        if (step > size - at) {
            break;
        }
        at += step;
    }
    return error_set(error, "'%s' has no WAVE data", name);
}
