/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In the module: the bulk cipher, on libgcrypt (the fastest in Debian 12 by tests/bench/cipher-rate.c:
 * setting an IV costs it 11 ns where OpenSSL 3.0 takes 98).
 *
 * A libgcrypt handle holds a key schedule and the IV, so it serves one thread at a time. A LuksCipher keeps a
 * stack of handles; whoever ciphers takes one and puts it back, so that there are as many key schedules as
 * threads have ever been at it together, and none is set up per request. Handles come from libgcrypt's secure
 * memory, which luksmod-memory.c keeps out of core dumps.
 */
#include "block/luksmod.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "util/bytes.h"
#include "util/error.h"

#define IV_BYTES   16          /* the block of every cipher here */
#define BURN_BYTES (16 * 1024) /* more than libgcrypt uses to set a key */

typedef enum { IV_NONE, IV_NULL, IV_PLAIN, IV_PLAIN64, IV_PLAIN64BE, IV_BENBI, IV_ESSIV } IvKind;

typedef struct CipherContext {
    gcry_cipher_hd_t data;
    gcry_cipher_hd_t essiv; /* or NULL */
    struct CipherContext *next;
} CipherContext;

struct LuksCipher {
    int algo, mode;
    IvKind iv;
    uint32_t sector_size;
    Secret *key;
    int essiv_algo;
    Secret *essiv_key;    /* or NULL */
    pthread_mutex_t lock; /* guards free */
    CipherContext *free;
};

/* clang-format off */
static const struct CipherRow {
    const char *name;
    unsigned key_bytes;
    int algo;
} cipher_rows[] = {
    {"aes", 16, GCRY_CIPHER_AES128},           {"aes", 24, GCRY_CIPHER_AES192},
    {"aes", 32, GCRY_CIPHER_AES256},           {"serpent", 16, GCRY_CIPHER_SERPENT128},
    {"serpent", 24, GCRY_CIPHER_SERPENT192},   {"serpent", 32, GCRY_CIPHER_SERPENT256},
    {"twofish", 16, GCRY_CIPHER_TWOFISH128},   {"twofish", 32, GCRY_CIPHER_TWOFISH},
    {"camellia", 16, GCRY_CIPHER_CAMELLIA128}, {"camellia", 24, GCRY_CIPHER_CAMELLIA192},
    {"camellia", 32, GCRY_CIPHER_CAMELLIA256}, {"sm4", 16, GCRY_CIPHER_SM4},
};
/* clang-format on */

static const struct {
    const char *name;
    int mode;
} mode_rows[] = {{"xts", GCRY_CIPHER_MODE_XTS},
                 {"cbc", GCRY_CIPHER_MODE_CBC},
                 {"ctr", GCRY_CIPHER_MODE_CTR},
                 {"ecb", GCRY_CIPHER_MODE_ECB}};

static const struct {
    const char *name;
    IvKind kind;
} iv_rows[] = {{"null", IV_NULL},           {"plain", IV_PLAIN}, {"plain64", IV_PLAIN64},
               {"plain64be", IV_PLAIN64BE}, {"benbi", IV_BENBI}, {"essiv", IV_ESSIV}};

static int cipher_find_algo(const char *name, size_t key_bytes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cipher_rows); i++) {
        if (!strcmp(cipher_rows[i].name, name) && cipher_rows[i].key_bytes == key_bytes) {
            return cipher_rows[i].algo;
        }
    }
    return GCRY_CIPHER_NONE;
}

static bool cipher_find_mode(LuksCipher *cipher, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(mode_rows); i++) {
        if (!strcmp(mode_rows[i].name, name)) {
            cipher->mode = mode_rows[i].mode;
            return true;
        }
    }
    return false;
}

static bool cipher_find_iv(LuksCipher *cipher, const char *name)
{
    if (cipher->mode == GCRY_CIPHER_MODE_ECB) {
        cipher->iv = IV_NONE;
        return !*name || !strcmp(name, "null");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(iv_rows); i++) {
        if (!strcmp(iv_rows[i].name, name)) {
            cipher->iv = iv_rows[i].kind;
            return true;
        }
    }
    return false;
}

/* ESSIV's key is the hash of the volume key; the cipher that makes the IVs is the data's, at that key size.
 */
static bool cipher_set_essiv(LuksCipher *cipher, const char *name, const char *hash, GError **error)
{
    int md = gcry_md_map_name(hash);
    if (!md) {
        return error_set(error, "Hash algorithm '%s' of the IV generator is not supported", hash);
    }
    cipher->essiv_key = secret_new(gcry_md_get_algo_dlen(md));
    gcry_md_hash_buffer(md, cipher->essiv_key->data, cipher->key->data, cipher->key->size);
    cipher->essiv_algo = cipher_find_algo(name, cipher->essiv_key->size);
    if (!cipher->essiv_algo) {
        return error_set(error, "Hash algorithm '%s' does not fit cipher '%s' in the IV generator", hash,
                         name);
    }
    return true;
}

/* "aes-xts-plain64", "aes-cbc-essiv:sha256", "aes-ecb" */
static bool cipher_parse(LuksCipher *cipher, const char *name, GError **error)
{
    g_auto(GStrv) part = g_strsplit(name, "-", 3);
    unsigned parts = g_strv_length(part);
    if (parts < 2 || !cipher_find_mode(cipher, part[1])) {
        return error_set(error, "Cipher '%s' is not supported", name);
    }
    size_t key_bytes = cipher->key->size;
    if (cipher->mode == GCRY_CIPHER_MODE_XTS) {
        key_bytes = key_bytes % 2 ? 0 : key_bytes / 2;
    }
    cipher->algo = cipher_find_algo(part[0], key_bytes);
    if (!cipher->algo) {
        return error_set(error, "Cipher '%s' with a key of %zu bits is not supported", name,
                         cipher->key->size * 8);
    }
    g_auto(GStrv) iv = g_strsplit(parts > 2 ? part[2] : "", ":", 2);
    if (!cipher_find_iv(cipher, iv[0] ? iv[0] : "") || (cipher->iv == IV_ESSIV) != (iv[0] && iv[1] != NULL)) {
        return error_set(error, "IV generator of cipher '%s' is not supported", name);
    }
    return cipher->iv != IV_ESSIV || cipher_set_essiv(cipher, part[0], iv[1], error);
}

static gcry_error_t cipher_open(gcry_cipher_hd_t *ret, int algo, int mode, const Secret *key)
{
    gcry_cipher_hd_t handle;
    gcry_error_t e = gcry_cipher_open(&handle, algo, mode, GCRY_CIPHER_SECURE);
    if (e) {
        return e;
    }
    e = gcry_cipher_setkey(handle, key->data, key->size);
    /* A weak key is the image's business; the schedule is complete. */
    if (e && gcry_err_code(e) != GPG_ERR_WEAK_KEY) {
        gcry_cipher_close(handle);
        return e;
    }
    *ret = handle;
    return 0;
}

static void context_free(CipherContext *context)
{
    if (context->data) {
        gcry_cipher_close(context->data);
    }
    if (context->essiv) {
        gcry_cipher_close(context->essiv);
    }
    g_free(context);
}

#if defined(__x86_64__)
#define WIPE_ZMM(n) __asm__ volatile("vpxorq %%zmm" #n ", %%zmm" #n ", %%zmm" #n ::: "zmm" #n)

__attribute__((target("avx512f"))) static void wipe_upper(void)
{
    WIPE_ZMM(16);
    WIPE_ZMM(17);
    WIPE_ZMM(18);
    WIPE_ZMM(19);
    WIPE_ZMM(20);
    WIPE_ZMM(21);
    WIPE_ZMM(22);
    WIPE_ZMM(23);
    WIPE_ZMM(24);
    WIPE_ZMM(25);
    WIPE_ZMM(26);
    WIPE_ZMM(27);
    WIPE_ZMM(28);
    WIPE_ZMM(29);
    WIPE_ZMM(30);
    WIPE_ZMM(31);
}

__attribute__((target("avx"))) static void wipe_lower(void)
{
    __builtin_ia32_vzeroall();
}

/* Ciphers and memcpy() leave round keys and keys in vector registers, and the dynamic linker saves all of
 * those on the stack when it binds a function at its first call, where a core dump would find them. */
static void wipe_registers(void)
{
    if (__builtin_cpu_supports("avx512f")) {
        wipe_upper();
    }
    if (__builtin_cpu_supports("avx")) {
        wipe_lower();
    }
}
#else
static void wipe_registers(void)
{
}
#endif

/* Setting a key leaves parts of it below on the stack, where a core dump would find them: overwrite that. */
__attribute__((noinline)) static void burn_stack(void)
{
    uint8_t room[BURN_BYTES];
    secret_wipe(room, sizeof room);
}

static CipherContext *context_new(LuksCipher *cipher, gcry_error_t *ret_error)
{
    CipherContext *context = g_new0(CipherContext, 1);
    gcry_error_t e = cipher_open(&context->data, cipher->algo, cipher->mode, cipher->key);
    if (!e && cipher->essiv_key) {
        e = cipher_open(&context->essiv, cipher->essiv_algo, GCRY_CIPHER_MODE_ECB, cipher->essiv_key);
    }
    wipe_registers();
    burn_stack();
    if (e) {
        *ret_error = e;
        context_free(context);
        return NULL;
    }
    return context;
}

static CipherContext *context_take(LuksCipher *cipher)
{
    pthread_mutex_lock(&cipher->lock);
    CipherContext *context = cipher->free;
    if (context) {
        cipher->free = context->next;
    }
    pthread_mutex_unlock(&cipher->lock);
    gcry_error_t ignored;
    return context ? context : context_new(cipher, &ignored);
}

static void context_put(LuksCipher *cipher, CipherContext *context)
{
    pthread_mutex_lock(&cipher->lock);
    context->next = cipher->free;
    cipher->free = context;
    pthread_mutex_unlock(&cipher->lock);
}

LuksCipher *luksmod_cipher_new(const char *name, const Secret *key, uint32_t sector_size, GError **error)
{
    if (!luksmod_gcrypt_init(error)) {
        return NULL;
    }
    LuksCipher *cipher = g_new0(LuksCipher, 1);
    pthread_mutex_init(&cipher->lock, NULL);
    cipher->sector_size = sector_size;
    cipher->key = secret_new_copy(key->data, key->size);
    if (!cipher_parse(cipher, name, error)) {
        luksmod_cipher_free(cipher);
        return NULL;
    }
    gcry_error_t e = 0;
    CipherContext *context = context_new(cipher, &e);
    if (!context) {
        error_set(error, "Cannot initialize cipher '%s': %s", name, gcry_strerror(e));
        luksmod_cipher_free(cipher);
        return NULL;
    }
    context_put(cipher, context);
    return cipher;
}

void luksmod_cipher_free(LuksCipher *cipher)
{
    if (!cipher) {
        return;
    }
    while (cipher->free) {
        CipherContext *next = cipher->free->next;
        context_free(cipher->free);
        cipher->free = next;
    }
    secret_free(cipher->key);
    secret_free(cipher->essiv_key);
    pthread_mutex_destroy(&cipher->lock);
    g_free(cipher);
}

/* Two halves as they lie in memory, stored as one: the cipher loads the IV whole, and a load across two
 * stores waits until all stores before it, those of the last sector among them, have reached the cache. */
static void iv_store(uint8_t *iv, uint64_t low, uint64_t high)
{
    typedef uint64_t Halves __attribute__((vector_size(IV_BYTES)));
    const Halves halves = {low, high};
    memcpy(iv, &halves, IV_BYTES);
}

/* The IV of the sector at `n` units of 512 bytes, as the kernel's dm-crypt makes it. */
static gcry_error_t iv_make(const LuksCipher *cipher, CipherContext *context, uint64_t n, uint8_t *iv)
{
    switch (cipher->iv) {
    case IV_NONE:
    case IV_NULL:
        iv_store(iv, 0, 0);
        return 0;
    case IV_PLAIN:
        iv_store(iv, GUINT64_TO_LE(n & UINT32_MAX), 0);
        return 0;
    case IV_PLAIN64:
        iv_store(iv, GUINT64_TO_LE(n), 0);
        return 0;
    case IV_PLAIN64BE:
        iv_store(iv, 0, GUINT64_TO_BE(n));
        return 0;
    case IV_BENBI: /* counts blocks of the cipher from 1: 32 of 16 bytes in a unit */
        iv_store(iv, 0, GUINT64_TO_BE((n << 5) + 1));
        return 0;
    case IV_ESSIV:
        iv_store(iv, GUINT64_TO_LE(n), 0);
        return gcry_cipher_encrypt(context->essiv, iv, IV_BYTES, NULL, 0);
    }
    return GPG_ERR_INTERNAL;
}

static gcry_error_t sector_run(const LuksCipher *cipher, CipherContext *context, bool encrypt, uint64_t n,
                               uint8_t *out, const uint8_t *in)
{
    uint8_t iv[IV_BYTES];
    size_t size = cipher->sector_size;
    gcry_error_t e = iv_make(cipher, context, n, iv);
    if (!e && cipher->mode == GCRY_CIPHER_MODE_CTR) {
        e = gcry_cipher_setctr(context->data, iv, sizeof iv);
    } else if (!e && cipher->iv != IV_NONE) {
        e = gcry_cipher_setiv(context->data, iv, sizeof iv);
    }
    if (e) {
        return e;
    }
    if (out == in) {
        return encrypt ? gcry_cipher_encrypt(context->data, out, size, NULL, 0)
                       : gcry_cipher_decrypt(context->data, out, size, NULL, 0);
    }
    return encrypt ? gcry_cipher_encrypt(context->data, out, size, in, size)
                   : gcry_cipher_decrypt(context->data, out, size, in, size);
}

int luksmod_cipher_run(LuksCipher *cipher, bool encrypt, uint64_t iv, void *out, const void *in, size_t bytes)
{
    CipherContext *context = context_take(cipher);
    if (!context) {
        return -EIO;
    }
    gcry_error_t e = 0;
    uint8_t *to = out;
    const uint8_t *from = in;
    for (size_t at = 0; at < bytes && !e; at += cipher->sector_size) {
        e = sector_run(cipher, context, encrypt, iv + at / LUKS_SECTOR, to + at, from + at);
    }
    wipe_registers();
    context_put(cipher, context);
    return e ? -EIO : 0;
}
