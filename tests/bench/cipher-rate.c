/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which library ciphers sectors fastest: AES-256-XTS with a new plain64 tweak for each sector and one key
 * schedule, on one thread, over the same buffer again and again. Prints a row for each library, sector size
 * and direction: `LIBRARY SECTOR encrypt|decrypt BYTES-PER-CPU-SECOND`. With arguments `BUFFER-KIB LIBRARY`
 * only that library.
 */
#include <errno.h>
#include <gcrypt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_OPENSSL
#include <openssl/evp.h>
#endif
#ifdef HAVE_NETTLE
#include <nettle/aes.h>
#include <nettle/xts.h>
#endif

#define KEY_BYTES   64
#define LEAST_SPENT 0.3 /* CPU seconds a row */

static uint8_t key[KEY_BYTES];

static void tweak(uint64_t sector, uint8_t *iv)
{
    memset(iv, 0, 16);
    memcpy(iv, &sector, sizeof sector);
}

static void run_gcrypt(int encrypt, uint8_t *data, size_t bytes, size_t sector)
{
    static gcry_cipher_hd_t handle;
    uint8_t iv[16];
    if (!handle) {
        gcry_check_version(NULL);
        gcry_cipher_open(&handle, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_XTS, 0);
        gcry_cipher_setkey(handle, key, KEY_BYTES);
    }
    for (size_t at = 0; at < bytes; at += sector) {
        tweak(at / 512, iv);
        gcry_cipher_setiv(handle, iv, sizeof iv);
        if (encrypt) {
            gcry_cipher_encrypt(handle, data + at, sector, NULL, 0);
        } else {
            gcry_cipher_decrypt(handle, data + at, sector, NULL, 0);
        }
    }
}

#ifdef HAVE_OPENSSL
static void run_openssl(int encrypt, uint8_t *data, size_t bytes, size_t sector)
{
    static EVP_CIPHER_CTX *contexts[2];
    uint8_t iv[16];
    if (!contexts[encrypt]) {
        contexts[encrypt] = EVP_CIPHER_CTX_new();
        EVP_CipherInit_ex(contexts[encrypt], EVP_aes_256_xts(), NULL, key, NULL, encrypt);
    }
    for (size_t at = 0; at < bytes; at += sector) {
        int out;
        tweak(at / 512, iv);
        EVP_CipherInit_ex(contexts[encrypt], NULL, NULL, NULL, iv, -1);
        EVP_CipherUpdate(contexts[encrypt], data + at, &out, data + at, sector);
    }
}
#endif

#ifdef HAVE_NETTLE
static void run_nettle(int encrypt, uint8_t *data, size_t bytes, size_t sector)
{
    static struct xts_aes256_key enc, dec;
    static int ready;
    uint8_t iv[16];
    if (!ready++) {
        xts_aes256_set_encrypt_key(&enc, key);
        xts_aes256_set_decrypt_key(&dec, key);
    }
    for (size_t at = 0; at < bytes; at += sector) {
        tweak(at / 512, iv);
        if (encrypt) {
            xts_aes256_encrypt_message(&enc, iv, sector, data + at, data + at);
        } else {
            xts_aes256_decrypt_message(&dec, iv, sector, data + at, data + at);
        }
    }
}
#endif

static const struct {
    const char *name;
    void (*run)(int encrypt, uint8_t *data, size_t bytes, size_t sector);
} libraries[] = {
    {"libgcrypt", run_gcrypt},
#ifdef HAVE_OPENSSL
    {"openssl", run_openssl},
#endif
#ifdef HAVE_NETTLE
    {"nettle", run_nettle},
#endif
};

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1024) * 1024;
    const char *only = argc > 2 ? argv[2] : NULL;
    uint8_t *data = bytes ? aligned_alloc(4096, bytes) : NULL;
    if (!data || bytes % 4096) {
        fprintf(stderr, "usage: cipher-rate [BUFFER-KIB [LIBRARY]]\n");
        return 2;
    }
    for (size_t i = 0; i < bytes; i++) {
        data[i] = i * 31;
    }
    for (size_t i = 0; i < sizeof key; i++) {
        key[i] = i * 7 + 1;
    }
    for (size_t l = 0; l < sizeof libraries / sizeof *libraries; l++) {
        for (size_t sector = 512; sector <= 4096 && (!only || !strcmp(only, libraries[l].name));
             sector *= 8) {
            for (int encrypt = 1; encrypt >= 0; encrypt--) {
                libraries[l].run(encrypt, data, bytes, sector);
                double start = cpu(), spent;
                size_t done = 0;
                do {
                    libraries[l].run(encrypt, data, bytes, sector);
                    done += bytes;
                    spent = cpu() - start;
                } while (spent < LEAST_SPENT);
                printf("%s %zu %s %.0f\n", libraries[l].name, sector, encrypt ? "encrypt" : "decrypt",
                       done / spent);
            }
        }
    }
    free(data);
    return 0;
}
