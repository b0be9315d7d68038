/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=luks`: opening an encrypted image. The header is read through the child node into a private copy,
 * unlocked there (luks-header.c, the module), and never written. docs/luks.rst is the users' page.
 */
#include "block/luks-int.h"

#include <errno.h>
#include <string.h>

#include "block/luks-header.h"
#include "block/secret-object.h"
#include "util/checked.h"
#include "util/error.h"

#define WIDTH_MAX      64 /* most threads that an option may ask for */
#define WIDTH_AUTO_MAX 8  /* most that `on` takes: beyond, memory bandwidth ends before CPUs do */
#define POOL_KEEP      4  /* free buffers of 1 MiB that stay with an idle node */

typedef struct LuksOptions {
    Secret *passphrase; /* owned */
    LuksLimits limits;
    uint64_t width, helpers;
    bool has_header;
} LuksOptions;

static bool parse_parallel(Options *options, uint64_t *ret, GError **error)
{
    const char *text = options_get(options, "encrypt-in-parallel");
    guint64 n;
    if (!text || !strcmp(text, "on")) {
        *ret = MIN(g_get_num_processors(), WIDTH_AUTO_MAX);
    } else if (!strcmp(text, "off")) {
        *ret = 1;
    } else if (g_ascii_string_to_unsigned(text, 10, 1, WIDTH_MAX, &n, NULL)) {
        *ret = n;
    } else {
        return error_set(
            error, "Parameter 'encrypt-in-parallel' expects 'on', 'off' or a number of threads from 1 to %d",
            WIDTH_MAX);
    }
    return true;
}

static bool parse_options(Options *options, LuksOptions *ret, GError **error)
{
    const char *secret = options_get(options, "key-secret");
    secret = secret ? secret : options_get(options, "encrypt.key-secret");
    options_get(options, "encrypt.format");
    ret->has_header = options_has_prefix(options, "header");
    if (!parse_parallel(options, &ret->width, error) ||
        !options_get_uint(options, "aes-threads", 0, WIDTH_MAX, ret->width - 1, &ret->helpers, error) ||
        !options_get_size(options, "kdf-memory-max", LUKS_KDF_MEMORY_MAX, &ret->limits.kdf_memory, error) ||
        !options_get_uint(options, "kdf-iterations-max", 0, G_MAXUINT64, LUKS_KDF_ITERATIONS_MAX,
                          &ret->limits.kdf_iterations, error)) {
        return false;
    }
    if (!secret) {
        return error_set(error, "Parameter 'key-secret' is required for cipher");
    }
    ret->passphrase = secret_object_get(secret, error);
    return ret->passphrase != NULL;
}

/* Bytes of payload on a child of that size; whole sectors. */
static uint64_t payload_size(const LuksState *s, uint64_t child_size)
{
    uint64_t room = child_size > s->payload_offset ? child_size - s->payload_offset : 0;
    return align_down(s->payload_bytes ? MIN(s->payload_bytes, room) : room, s->sector_size);
}

static bool check_payload(const LuksState *s, uint64_t child_size, GError **error)
{
    if (s->payload_offset > child_size) {
        return error_set(error,
                         "LUKS payload begins at byte %" G_GUINT64_FORMAT
                         ", past the end of the image (%" G_GUINT64_FORMAT " bytes): the image is truncated",
                         s->payload_offset, child_size);
    }
    if (s->payload_bytes > child_size - s->payload_offset) {
        return error_set(error,
                         "LUKS payload of %" G_GUINT64_FORMAT " bytes at byte %" G_GUINT64_FORMAT
                         " does not fit the image (%" G_GUINT64_FORMAT " bytes): the image is truncated",
                         s->payload_bytes, s->payload_offset, child_size);
    }
    return true;
}

/* Where header and payload share a file, writing the one must not reach the other. */
static bool check_overlap(const LuksCopy *copy, uint64_t payload_offset, GError **error)
{
    uint64_t fixed, total;
    copy->module->header_extent(copy->header, &fixed, &total);
    return payload_offset >= total || error_set(error, "LUKS payload is overlapping with the header");
}

static bool unlock(LuksState *s, BlockNode *from, const LuksOptions *o, GError **error)
{
    LuksCopy copy;
    LuksVolume volume = {0};
    bool ok = luks_copy_load(&copy, from, error) &&
              copy.module->header_unlock(copy.header, o->passphrase, &o->limits, &volume, error);
    if (ok) {
        s->module = copy.module;
        s->payload_offset = volume.payload_offset;
        s->payload_bytes = volume.payload_bytes;
        s->iv_offset = volume.iv_offset;
        s->sector_size = volume.sector_size;
        ok = o->has_header || check_overlap(&copy, s->payload_offset, error);
    }
    if (ok) {
        s->cipher = s->module->cipher_new(volume.cipher, volume.key, volume.sector_size, error);
    }
    luks_copy_clear(&copy);
    g_free(volume.cipher);
    secret_free(volume.key);
    return s->cipher != NULL;
}

static void luks_set_info(BlockNode *node)
{
    const LuksState *s = node->state;
    const BlockInfo *child = block_info(node->child);
    node->info.size = payload_size(s, child->size);
    /* The child's alignment is passed on; that of encryption sectors is not: see the range lock. */
    node->info.align = s->payload_offset % child->align ? 1 : child->align;
    node->info.opt_transfer = BUFFER_MAX;
}

static bool luks_open(BlockNode *node, Options *options, GError **error)
{
    LuksState *s = node->state;
    LuksOptions o = {0};
    if (!block_node_open_child(node, options, "file", error)) {
        return false;
    }
    bool ok = parse_options(options, &o, error);
    BlockNode *header =
        ok && o.has_header ? block_node_open_extra_child(node, options, "header", error) : node->child;
    ok = ok && header && unlock(s, header, &o, error) &&
         check_payload(s, block_info(node->child)->size, error);
    secret_free(o.passphrase);
    if (!ok) {
        if (s->cipher) {
            s->module->cipher_free(s->cipher);
        }
        return false;
    }
    s->width = o.width;
    s->crew = crew_new(o.helpers);
    s->pool = buffer_pool_new(BUFFER_MAX, block_info(node->child)->align, POOL_KEEP);
    range_lock_init(&s->ranges);
    luks_set_info(node);
    return true;
}

static void luks_close(BlockNode *node)
{
    LuksState *s = node->state;
    crew_free(s->crew);
    buffer_pool_free(s->pool);
    range_lock_clear(&s->ranges);
    s->module->cipher_free(s->cipher);
}

static void luks_refresh(BlockNode *node)
{
    block_node_set_size(node, payload_size(node->state, block_info(node->child)->size));
}

static int luks_resize(BlockNode *node, uint64_t size, GError **error)
{
    LuksState *s = node->state;
    if (s->payload_bytes) {
        error_set(error, "Cannot resize a LUKS2 volume with a segment of fixed size");
        return -ENOTSUP;
    }
    if (size % s->sector_size) {
        error_set(error, "The size of the volume must be a multiple of its sector size (%u bytes)",
                  s->sector_size);
        return -EINVAL;
    }
    if (size > G_MAXINT64 - s->payload_offset) {
        error_set(error, "The requested file size is too large");
        return -EFBIG;
    }
    return block_resize(node->child, s->payload_offset + size, error);
}

const BlockDriver block_driver_luks = {
    .name = "luks",
    .parallel = true,
    .state_size = sizeof(LuksState),
    .open = luks_open,
    .close = luks_close,
    .preadv = luks_preadv,
    .pwritev = luks_pwritev,
    .discard = luks_discard,
    .read_now = luks_read_now,
    .write_now = luks_write_now,
    .resize = luks_resize,
    .refresh = luks_refresh,
};
