/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Between the files of the module spindle-luks.so. Nothing outside it includes this; luks-crypto.h says what
 * each function does.
 */
#ifndef SPINDLE_BLOCK_LUKSMOD_H
#define SPINDLE_BLOCK_LUKSMOD_H

#include <gcrypt.h>
#include <libcryptsetup.h>
#include "block/luks-crypto.h"

/* Offsets in the LUKS1 header, bytes (LUKS1 On-Disk Format Specification 1.2.3, figures 1 and 2). */
#define LUKS1_HEADER_BYTES      592
#define LUKS1_FIXED             4096 /* no key material before */
#define LUKS1_NAME_BYTES        32
#define LUKS1_CIPHER            8
#define LUKS1_MODE              40
#define LUKS1_HASH              72
#define LUKS1_KEY_BYTES         108
#define LUKS1_DIGEST            112 /* 20 bytes */
#define LUKS1_DIGEST_SALT       132 /* 32 bytes */
#define LUKS1_DIGEST_ITERATIONS 164
#define LUKS1_SLOTS             208
#define LUKS1_SLOT_BYTES        48
#define LUKS1_SLOT_ITERATIONS   4
#define LUKS1_SLOT_SALT         8 /* 32 bytes */
#define LUKS1_SLOT_OFFSET       40
#define LUKS1_SLOT_STRIPES      44

/* Once per process; any thread. */
bool luksmod_gcrypt_init(GError **error);

LuksCipher *luksmod_cipher_new(const char *name, const Secret *key, uint32_t sector_size, GError **error);
void luksmod_cipher_free(LuksCipher *cipher);
int luksmod_cipher_run(LuksCipher *cipher, bool encrypt, uint64_t iv, void *out, const void *in,
                       size_t bytes);

/* The memory of libgcrypt's secure allocations. */
void *luksmod_secure_alloc(size_t size);
void *luksmod_secure_realloc(void *memory, size_t size);
void luksmod_secure_free(void *memory);
int luksmod_is_secure(const void *memory);

/* A loaded header. libcryptsetup's contexts are not to be used by two threads, and its set-up is
 * process-wide, so all calls into it hold luksmod_lock. */
struct LuksHeader {
    struct crypt_device *cd;
    int fd;           /* the caller's */
    unsigned version; /* 1 or 2 */
    char *message;    /* libcryptsetup's last complaint, or NULL */
};

void luksmod_lock(void);
void luksmod_unlock(void);

/* Sets "PREFIX: what libcryptsetup said" (or the errno's text). Always returns false. */
bool luksmod_fail(LuksHeader *header, int negative_errno, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

LuksHeader *luksmod_header_new(int fd, GError **error); /* no header loaded yet */
LuksHeader *luksmod_header_load(int fd, GError **error);
void luksmod_header_free(LuksHeader *header);
bool luksmod_header_slot_area(LuksHeader *header, int slot, uint64_t *ret_offset, uint64_t *ret_bytes);
int luksmod_header_slots(LuksHeader *header);
uint64_t luksmod_header_payload_offset(LuksHeader *header);
void luksmod_header_extent(LuksHeader *header, uint64_t *ret_fixed, uint64_t *ret_total);
bool luksmod_header_unlock(LuksHeader *header, const Secret *passphrase, const LuksLimits *limits,
                           LuksVolume *ret, GError **error);
JsonObject *luksmod_header_info(LuksHeader *header, GError **error);
bool luksmod_header_amend(LuksHeader *header, const LuksAmend *amend, int *ret_old, GError **error);
bool luksmod_header_format(int fd, const LuksFormat *format, bool detached, const Secret *passphrase,
                           LuksLayout *ret_layout, GError **error);

/* The LUKS2 header's JSON as text (libcryptsetup's own, valid until the next call), or NULL. */
const char *luksmod_header_json(LuksHeader *header);

/* False with an error when the segments, requirements or digests of a LUKS2 header are not what we can serve.
 */
bool luksmod_check_luks2(LuksHeader *header, GError **error);

#endif
