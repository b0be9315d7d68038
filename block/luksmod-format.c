/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: making headers, on the private copy.
 */
#include "block/luksmod-slot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/error.h"

#define STANDIN_PAYLOAD_SIZE    (1024 * 1024)
#define PBKDF2_LEAST_ITERATIONS 1000 /* libcryptsetup's least */

static const char *text_of(const Secret *secret)
{
    return (const char *)secret->data;
}

/* `quick`: only the layout matters, nobody will unlock it. */
static bool format_set_pbkdf(LuksHeader *header, const LuksFormat *format, bool quick, GError **error)
{
    bool argon2 = strcmp(format->pbkdf, CRYPT_KDF_PBKDF2) != 0;
    struct crypt_pbkdf_type pbkdf = {
        .type = quick ? CRYPT_KDF_PBKDF2 : format->pbkdf,
        .hash = format->hash,
        .time_ms = format->iter_time,
        .max_memory_kb = argon2 && !quick ? format->memory / 1024 : 0,
        .parallel_threads = argon2 && !quick ? format->parallel : 0,
    };
    if (argon2 && !quick) {
        const struct crypt_pbkdf_type *fallback = crypt_get_pbkdf_default(CRYPT_LUKS2);
        pbkdf.max_memory_kb = pbkdf.max_memory_kb ? pbkdf.max_memory_kb : fallback->max_memory_kb;
        pbkdf.parallel_threads = pbkdf.parallel_threads ? pbkdf.parallel_threads : fallback->parallel_threads;
    }
    if (quick || format->iterations) {
        pbkdf.time_ms = 0;
        pbkdf.iterations = quick ? PBKDF2_LEAST_ITERATIONS : format->iterations;
        pbkdf.flags = CRYPT_PBKDF_NO_BENCHMARK;
    }
    int r = crypt_set_pbkdf_type(header->cd, &pbkdf);
    return r >= 0 || luksmod_fail(header, r, error, "Parameters of the key derivation are not valid");
}

/* A file that stands for the payload's device: libcryptsetup wants a regular file or a block device. */
static int standin_payload(void)
{
    int fd = memfd_create("payload", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, STANDIN_PAYLOAD_SIZE) < 0) {
        close(fd);
        fd = -1;
    }
    return fd < 0 ? -errno : fd;
}

/* `payload_fd` is that of standin_payload() for a detached header, else -1. */
static bool format_is_easy(const LuksFormat *format)
{
    g_autofree char *name = g_strdup_printf("%s-%s", format->cipher, format->mode);
    return luksmod_cipher_is_easy(name);
}

static int format_write(LuksHeader *header, const LuksFormat *format, int payload_fd)
{
    g_autofree char *payload = g_strdup_printf("/proc/self/fd/%d", payload_fd);
    struct crypt_params_luks1 luks1 = {.hash = format->hash, .data_device = NULL};
    struct crypt_params_luks2 luks2 = {.sector_size = format->sector_size, .label = format->label};
    if (payload_fd >= 0) {
        /* The payload is on a device of its own from its first byte; libcryptsetup takes an alignment of a
         * device other than the header's as a data offset, so say 0 outright. */
        int r = crypt_set_data_offset(header->cd, 0);
        if (r < 0) {
            return r;
        }
        luks1.data_device = luks2.data_device = payload;
    }
    const char *mode = format_is_easy(format) ? format->mode : luksmod_standin_mode(format);
    if (!mode) {
        return -EINVAL;
    }
    return crypt_format(header->cd, format->version == 1 ? CRYPT_LUKS1 : CRYPT_LUKS2, "aes", mode,
                        format->uuid, NULL, format->key_size,
                        format->version == 1 ? (void *)&luks1 : (void *)&luks2);
}

static bool format_header(LuksHeader *header, const LuksFormat *format, bool detached,
                          const Secret *passphrase, GError **error)
{
    if (!format_set_pbkdf(header, format, !passphrase, error)) {
        return false;
    }
    auto_fd payload_fd = detached ? standin_payload() : -1;
    int r = detached && payload_fd < 0 ? payload_fd : format_write(header, format, payload_fd);
    if (r < 0) {
        return luksmod_fail(header, r, error, "Could not make a LUKS%u header", format->version);
    }
    if (passphrase) {
        r = crypt_keyslot_add_by_volume_key(header->cd, 0, NULL, 0, text_of(passphrase), passphrase->size);
    }
    if (r < 0) {
        return luksmod_fail(header, r, error, "Could not add the key slot");
    }
    return format_is_easy(format) || luksmod_standin_finish(header, format, passphrase, error);
}

bool luksmod_header_format(int fd, const LuksFormat *format, bool detached, const Secret *passphrase,
                           LuksLayout *ret_layout, GError **error)
{
    LuksHeader *header = luksmod_header_new(fd, error);
    if (!header) {
        return false;
    }
    header->version = format->version;
    luksmod_lock();
    bool ok = format_header(header, format, detached, passphrase, error);
    luksmod_unlock();
    if (ok) {
        ret_layout->payload = luksmod_header_payload_offset(header);
        luksmod_header_extent(header, &ret_layout->fixed, &ret_layout->total);
    }
    luksmod_header_free(header);
    return ok;
}
