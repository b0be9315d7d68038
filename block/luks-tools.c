/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Making, describing and amending LUKS headers on nodes (luks.h).
 */
#include "block/luks-header.h"

#include <errno.h>
#include <string.h>

#include "util/bytes.h"
#include "util/cleanup.h"
#include "util/error.h"

bool luks_format_measure(const LuksFormat *format, bool detached, uint64_t *ret_bytes, GError **error)
{
    const LuksCryptoModule *module = luks_module_get(error);
    auto_fd fd = module ? luks_memfd(LUKS_HEADER_MAX, error) : -1;
    LuksLayout layout;
    if (fd < 0 || !module->header_format(fd, format, detached, NULL, &layout, error)) {
        return false;
    }
    *ret_bytes = detached ? 0 : layout.payload;
    return true;
}

static bool resize_to(BlockNode *node, uint64_t size, GError **error)
{
    return block_info(node)->size == size || block_resize(node, size, error) >= 0;
}

/* Old content goes first and the headers come last, so that no moment has a header without its key material.
 */
static bool write_header(int fd, BlockNode *node, const LuksLayout *layout, GError **error)
{
    uint64_t second = layout->fixed / 2;
    int r = block_write_zeroes(node, 0, MIN(layout->total, block_info(node)->size), BLOCK_MAY_UNMAP);
    if (r < 0) {
        return error_set_errno(error, r, "Unable to write encryption header");
    }
    if (luks_write_changes(fd, node, layout->fixed, layout->total - layout->fixed, error) &&
        luks_write_changes(fd, node, second, layout->fixed - second, error) &&
        luks_write_changes(fd, node, 0, second, error)) {
        return true;
    }
    (void)block_write_zeroes(node, 0, MIN(layout->fixed, block_info(node)->size),
                             0); /* the error is set already */
    return false;
}

bool luks_create(BlockNode *file, BlockNode *header, const LuksFormat *format, const Secret *passphrase,
                 uint64_t payload, GError **error)
{
    const LuksCryptoModule *module = luks_module_get(error);
    LuksLayout layout;
    if (!module) {
        return false;
    }
    if (payload % format->sector_size) {
        return error_set(error, "The size of the volume must be a multiple of its sector size (%u bytes)",
                         format->sector_size);
    }
    if (payload > G_MAXINT64 - LUKS_HEADER_MAX) {
        return error_set(error, "The requested file size is too large");
    }
    auto_fd fd = luks_memfd(LUKS_HEADER_MAX + payload, error);
    if (fd < 0 || !module->header_format(fd, format, header != NULL, passphrase, &layout, error)) {
        return false;
    }
    if (layout.total > LUKS_HEADER_MAX) {
        return error_set(error, "LUKS header of %" G_GUINT64_FORMAT " bytes is too large", layout.total);
    }
    if (header) {
        return resize_to(header, layout.total, error) && resize_to(file, payload, error) &&
               write_header(fd, header, &layout, error);
    }
    return resize_to(file, layout.payload + payload, error) && write_header(fd, file, &layout, error);
}

unsigned luks_probe(BlockNode *file)
{
    static const uint8_t magic[6] = {'L', 'U', 'K', 'S', 0xba, 0xbe};
    uint8_t head[8];
    if (block_info(file)->size < sizeof head || block_pread(file, 0, head, sizeof head) < 0 ||
        memcmp(head, magic, sizeof magic)) {
        return 0;
    }
    unsigned version = load_be16(head + 6);
    return version == 1 || version == 2 ? version : 0;
}

JsonObject *luks_info(BlockNode *file, GError **error)
{
    LuksCopy copy;
    JsonObject *info =
        luks_copy_load(&copy, file, error) ? copy.module->header_info(copy.header, error) : NULL;
    luks_copy_clear(&copy);
    return info;
}

static bool amend_check(const LuksAmend *amend, GError **error)
{
    if (amend->action == LUKS_AMEND_ERASE) {
        return !amend->new_secret || error_set(error, "'new-secret' must not be given when erasing keyslots");
    }
    if (!amend->unlock) {
        return error_set(error, "Parameter 'key-secret' is required for cipher");
    }
    return amend->new_secret || error_set(error, "'new-secret' is required to activate a keyslot");
}

static bool amend_once(BlockNode *file, const LuksAmend *amend, int *ret_old, GError **error)
{
    LuksCopy copy;
    bool ok = luks_copy_load(&copy, file, error) &&
              copy.module->header_amend(copy.header, amend, ret_old, error) &&
              luks_copy_write_back(&copy, error);
    luks_copy_clear(&copy);
    return ok;
}

/* A changed passphrase is there in full before the old one goes. */
bool luks_amend(BlockNode *file, const LuksAmend *amend, GError **error)
{
    int old = -1, none;
    if (!amend_check(amend, error) || !amend_once(file, amend, &old, error)) {
        return false;
    }
    const LuksAmend erase = {.action = LUKS_AMEND_ERASE, .slot = old};
    return old < 0 || amend_once(file, &erase, &none, error);
}
