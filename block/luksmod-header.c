/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: loading a LUKS header through libcryptsetup. It works on plain files, so it is given the
 * private copy by its name in /proc/self/fd, and never sees the image.
 */
#include "block/luksmod.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "util/bytes.h"
#include "util/checked.h"
#include "util/error.h"

static pthread_mutex_t library_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void luksmod_lock(void)
{
    pthread_mutex_lock(&library_lock);
}

void luksmod_unlock(void)
{
    pthread_mutex_unlock(&library_lock);
}

/* Keeps the last error text; nothing is printed. */
static void header_log(int level, const char *message, void *opaque)
{
    LuksHeader *header = opaque;
    if (level != CRYPT_LOG_ERROR) {
        return;
    }
    g_free(header->message);
    header->message = g_strstrip(g_strdup(message));
    size_t length = strlen(header->message);
    if (length && header->message[length - 1] == '.') {
        header->message[length - 1] = '\0';
    }
}

/* Its texts name the copy; people know the image. */
static char *header_message(const LuksHeader *header)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", header->fd);
    g_auto(GStrv) parts = g_strsplit(header->message, path, -1);
    return g_strjoinv("(the image)", parts);
}

bool luksmod_fail(LuksHeader *header, int negative_errno, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *prefix = g_strdup_vprintf(format, args);
    va_end(args);
    if (!header->message) {
        return error_set_errno(error, negative_errno, "%s", prefix);
    }
    g_autofree char *message = header_message(header);
    return error_set(error, "%s: %s", prefix, message);
}

LuksHeader *luksmod_header_new(int fd, GError **error)
{
    LuksHeader *header = g_new0(LuksHeader, 1);
    header->fd = fd;
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    luksmod_lock();
    /* The copy is ours alone: no lock files under /run. */
    crypt_metadata_locking(NULL, 0);
    int r = crypt_init(&header->cd, path);
    luksmod_unlock();
    if (r < 0) {
        error_set_errno(error, r, "Could not set up libcryptsetup");
        luksmod_header_free(header);
        return NULL;
    }
    crypt_set_log_callback(header->cd, header_log, header);
    crypt_set_rng_type(header->cd, CRYPT_RNG_URANDOM);
    return header;
}

void luksmod_header_free(LuksHeader *header)
{
    if (!header) {
        return;
    }
    luksmod_lock();
    crypt_free(header->cd);
    luksmod_unlock();
    g_free(header->message);
    g_free(header);
}

/* The version in the primary header, or 0 when only LUKS2's secondary one may be left. */
static bool header_read_version(LuksHeader *header, GError **error)
{
    static const uint8_t magic[6] = {'L', 'U', 'K', 'S', 0xba, 0xbe};
    uint8_t head[8];
    ssize_t n = pread(header->fd, head, sizeof head, 0);
    if (n < (ssize_t)sizeof head) {
        return error_set(error, "Volume is not in LUKS format");
    }
    if (memcmp(head, magic, sizeof magic)) {
        header->version = 0;
        return true;
    }
    header->version = load_be16(head + 6);
    if (header->version != 1 && header->version != 2) {
        return error_set(error, "LUKS version %u is not supported", header->version);
    }
    return true;
}

LuksHeader *luksmod_header_load(int fd, GError **error)
{
    LuksHeader *header = luksmod_header_new(fd, error);
    if (!header) {
        return NULL;
    }
    if (!header_read_version(header, error)) {
        goto fail;
    }
    const char *type = header->version == 1 ? CRYPT_LUKS1 : CRYPT_LUKS2;
    luksmod_lock();
    int r = crypt_load(header->cd, type, NULL);
    luksmod_unlock();
    if (r < 0 && !header->version) {
        error_set(error, "Volume is not in LUKS format");
        goto fail;
    }
    if (r < 0) {
        luksmod_fail(header, r, error, "Volume header is damaged");
        goto fail;
    }
    header->version = strcmp(crypt_get_type(header->cd), CRYPT_LUKS1) ? 2 : 1;
    if (header->version == 2 && !luksmod_check_luks2(header, error)) {
        goto fail;
    }
    return header;
fail:
    luksmod_header_free(header);
    return NULL;
}

int luksmod_header_slots(LuksHeader *header)
{
    return crypt_keyslot_max(crypt_get_type(header->cd));
}

bool luksmod_header_slot_area(LuksHeader *header, int slot, uint64_t *ret_offset, uint64_t *ret_bytes)
{
    luksmod_lock();
    crypt_keyslot_info status = crypt_keyslot_status(header->cd, slot);
    bool active =
        status == CRYPT_SLOT_ACTIVE || status == CRYPT_SLOT_ACTIVE_LAST || status == CRYPT_SLOT_UNBOUND;
    active = active && crypt_keyslot_area(header->cd, slot, ret_offset, ret_bytes) == 0;
    luksmod_unlock();
    return active;
}

uint64_t luksmod_header_payload_offset(LuksHeader *header)
{
    return crypt_get_data_offset(header->cd) * LUKS_SECTOR;
}

/* The LUKS1 header's fields (specification 1.2.3, figures 1 and 2): where key material of inactive slots will
 * go is said only there. */
static uint64_t luks1_total(LuksHeader *header)
{
    uint8_t raw[LUKS1_HEADER_BYTES];
    uint64_t total = LUKS1_FIXED;
    if (pread(header->fd, raw, sizeof raw, 0) != sizeof raw) {
        return total;
    }
    uint64_t key_bytes = load_be32(raw + LUKS1_KEY_BYTES);
    for (int slot = 0; slot < luksmod_header_slots(header); slot++) {
        const uint8_t *at = raw + LUKS1_SLOTS + slot * LUKS1_SLOT_BYTES;
        uint64_t end = (uint64_t)load_be32(at + LUKS1_SLOT_OFFSET) * LUKS_SECTOR +
                       key_bytes * load_be32(at + LUKS1_SLOT_STRIPES);
        total = MAX(total, end);
    }
    return align_up(MIN(total, LUKS_HEADER_MAX), LUKS1_FIXED);
}

void luksmod_header_extent(LuksHeader *header, uint64_t *ret_fixed, uint64_t *ret_total)
{
    uint64_t one = 0, slots = 0;
    if (header->version == 1) {
        *ret_fixed = LUKS1_FIXED;
        *ret_total = luks1_total(header);
    } else if (crypt_get_metadata_size(header->cd, &one, &slots) == 0) {
        *ret_fixed = 2 * one;
        *ret_total = 2 * one + slots;
    } else {
        *ret_fixed = *ret_total = 0;
    }
}

const char *luksmod_header_json(LuksHeader *header)
{
    const char *json = NULL;
    luksmod_lock();
    int r = crypt_dump_json(header->cd, &json, 0);
    luksmod_unlock();
    return r < 0 ? NULL : json;
}
