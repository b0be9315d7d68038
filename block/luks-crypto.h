/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the LUKS driver and the LUKS tools use of the cryptography libraries, as a table of functions. The
 * libraries (libcryptsetup with OpenSSL, device-mapper, json-c, …; libgcrypt) cost 3 MiB resident merely by
 * being linked, so they live in a module, `spindle-luks.so`, that luks-module.c loads at first use. The
 * module knows nothing of nodes: headers come to it as a file descriptor of a private copy (a memfd).
 */
#ifndef SPINDLE_BLOCK_LUKS_CRYPTO_H
#define SPINDLE_BLOCK_LUKS_CRYPTO_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "block/luks.h"
#include "util/secret.h"

#define LUKS_MODULE_ABI 1
#define LUKS_SECTOR     512         /* unit of IVs and of LUKS1's offsets, bytes */
#define LUKS_SECTOR_MAX 4096        /* largest encryption sector, bytes */
#define LUKS_HEADER_MAX (256 << 20) /* most bytes before a payload that are ever copied */

struct LuksFormat {
    unsigned version;  /* 1 or 2 */
    char *cipher;      /* "aes" */
    char *mode;        /* "xts-plain64" */
    unsigned key_size; /* bytes */
    char *hash;        /* of the key slot and (LUKS1) of the anti-forensic splitter */
    uint32_t sector_size;
    char *pbkdf;         /* "pbkdf2", "argon2i", "argon2id" */
    uint64_t iter_time;  /* ms */
    uint64_t iterations; /* 0: measured, so that unlocking takes iter_time */
    uint64_t memory;     /* bytes, Argon2; 0: libcryptsetup's default */
    uint64_t parallel;   /* threads, Argon2; 0: libcryptsetup's default */
    char *uuid, *label;  /* or NULL */
};

/* How much work a header may ask for before it is refused (it is not trusted: cves.md calls it denial of
 * service). */
typedef struct LuksLimits {
    uint64_t kdf_memory;     /* bytes, Argon2 */
    uint64_t kdf_iterations; /* PBKDF2 iterations; Argon2 passes times KiB of memory */
} LuksLimits;

#define LUKS_KDF_MEMORY_MAX     (1024ULL * 1024 * 1024) /* what cryptsetup's own defaults take */
#define LUKS_KDF_ITERATIONS_MAX 200000000ULL            /* about a minute of SHA-256 */

/* The opened volume, as the header describes it. */
typedef struct LuksVolume {
    unsigned version;
    char *cipher;            /* "aes-xts-plain64" */
    uint32_t sector_size;    /* bytes, 512..4096, a power of two */
    uint64_t payload_offset; /* bytes, a multiple of 512 */
    uint64_t payload_bytes;  /* 0: to the end of the file */
    uint64_t iv_offset;      /* added to the IV of the first sector, in units of 512 bytes */
    int slot;                /* the one that opened */
    Secret *key;             /* owned */
} LuksVolume;

/* Where things are in a new image, bytes. */
typedef struct LuksLayout {
    uint64_t fixed, total; /* as header_extent() */
    uint64_t payload;      /* 0 with a detached header */
} LuksLayout;

typedef struct LuksHeader LuksHeader; /* a loaded header; one thread at a time */
typedef struct LuksCipher LuksCipher; /* a volume's bulk cipher; any number of threads */

typedef struct LuksCryptoModule {
    unsigned abi; /* LUKS_MODULE_ABI */

    /* Loads the header in `fd` (the caller's; at least its fixed part must be there). */
    LuksHeader *(*header_load)(int fd, GError **error);
    void (*header_free)(LuksHeader *header); /* NULL is allowed */
    /* Bytes of key material of slot 0, 1, … in the file. False when there is no such active slot. */
    bool (*header_slot_area)(LuksHeader *header, int slot, uint64_t *ret_offset, uint64_t *ret_bytes);
    int (*header_slots)(LuksHeader *header); /* how many slots the format has */
    /* Tries the passphrase on every slot; fills `ret` (volume_clear() it). Key material must be in place. */
    bool (*header_unlock)(LuksHeader *header, const Secret *passphrase, const LuksLimits *limits,
                          LuksVolume *ret, GError **error);
    /* Bytes up to the payload; 0 for a detached header. */
    uint64_t (*header_payload_offset)(LuksHeader *header);
    /* Bytes of the part without key material, and with all slots' key material (active or not). */
    void (*header_extent)(LuksHeader *header, uint64_t *ret_fixed, uint64_t *ret_total);
    JsonObject *(*header_info)(LuksHeader *header, GError **error);
    /* *ret_old: the slot that is to be erased once this change is written, or -1. */
    bool (*header_amend)(LuksHeader *header, const LuksAmend *amend, int *ret_old, GError **error);

    /* Writes a new header into `fd`, whose size is that of the whole image. passphrase NULL: no slot, no
     * costly derivation (to measure). */
    bool (*header_format)(int fd, const LuksFormat *format, bool detached, const Secret *passphrase,
                          LuksLayout *ret_layout, GError **error);

    /* A cipher named as in the header, e.g. "aes-xts-plain64"; the key is copied. */
    LuksCipher *(*cipher_new)(const char *name, const Secret *key, uint32_t sector_size, GError **error);
    void (*cipher_free)(LuksCipher *cipher); /* NULL is allowed */
    /* `bytes` (a multiple of the sector size) from `in` to `out`, which may be the same memory; `iv` is the
     * number of the first sector in units of 512 bytes. 0 or -EIO. */
    int (*cipher_run)(LuksCipher *cipher, bool encrypt, uint64_t iv, void *out, const void *in, size_t bytes);

    /* AES-256-CBC with PKCS#7 padding undone: the plaintext or NULL. `key` 32 bytes, `iv` 16. */
    Secret *(*unwrap)(const Secret *key, const uint8_t *iv, const uint8_t *data, size_t bytes,
                      GError **error);
} LuksCryptoModule;

/* The module's one symbol. */
#define LUKS_MODULE_SYMBOL "spindle_luks_module"

/* Loads the module at first use; it stays. Any thread. NULL and an error that names the file. */
const LuksCryptoModule *luks_module_get(GError **error);

#endif
