/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The options of a new LUKS image, in qemu-img's words and cryptsetup's.
 */
#include "block/luks-crypto.h"

#include <string.h>

#include "util/error.h"

#define ITER_TIME 2000 /* ms, as QEMU's and cryptsetup's */

/* QEMU's cipher-alg names: the cipher and the bytes of one key. */
static const struct {
    const char *name, *cipher;
    unsigned key_size;
} algs[] = {
    {"aes-128", "aes", 16},           {"aes-192", "aes", 24},           {"aes-256", "aes", 32},
    {"serpent-128", "serpent", 16},   {"serpent-192", "serpent", 24},   {"serpent-256", "serpent", 32},
    {"twofish-128", "twofish", 16},   {"twofish-256", "twofish", 32},   {"camellia-128", "camellia", 16},
    {"camellia-192", "camellia", 24}, {"camellia-256", "camellia", 32}, {"sm4", "sm4", 16},
};

static const char *const hashes[] = {"sha256", "sha1", "sha224", "sha384", "sha512", "ripemd160", NULL};
static const char *const modes[] = {"xts", "cbc", "ctr", "ecb", NULL};
static const char *const ivgens[] = {"plain64", "plain", "essiv", NULL};
static const char *const pbkdfs[] = {"pbkdf2", "argon2i", "argon2id", NULL};

void luks_format_free(LuksFormat *format)
{
    if (format) {
        g_free(format->cipher);
        g_free(format->mode);
        g_free(format->hash);
        g_free(format->pbkdf);
        g_free(format->uuid);
        g_free(format->label);
        g_free(format);
    }
}

/* cryptsetup's form: "aes-xts-plain64" with the volume key's size in bits. */
static bool parse_whole_cipher(LuksFormat *f, Options *options, const char *name, GError **error)
{
    const char *dash = strchr(name, '-');
    uint64_t bits;
    if (!dash || dash == name || !dash[1]) {
        return error_set(error, "Parameter 'cipher' expects CIPHER-MODE-IV, as in 'aes-xts-plain64'");
    }
    if (options_has(options, "cipher-alg") || options_has(options, "cipher-mode") ||
        options_has(options, "ivgen-alg") || options_has(options, "ivgen-hash-alg")) {
        return error_set(error,
                         "'cipher' and 'cipher-alg', 'cipher-mode', 'ivgen-alg' are mutually exclusive");
    }
    f->cipher = g_strndup(name, dash - name);
    f->mode = g_strdup(dash + 1);
    if (!options_get_uint(options, "key-size", 64, 4096, g_str_has_prefix(f->mode, "xts-") ? 512 : 256, &bits,
                          error)) {
        return false;
    }
    f->key_size = bits / 8;
    return bits % 8 == 0 || error_set(error, "Parameter 'key-size' expects a multiple of 8 bits");
}

static bool parse_alg(LuksFormat *f, Options *options, GError **error)
{
    const char *name = options_get(options, "cipher-alg");
    name = name ? name : "aes-256";
    for (size_t i = 0; i < G_N_ELEMENTS(algs); i++) {
        if (!strcmp(algs[i].name, name)) {
            f->cipher = g_strdup(algs[i].cipher);
            f->key_size = algs[i].key_size;
            return true;
        }
    }
    return error_set(error, "Invalid parameter '%s'", name);
}

/* QEMU's form: four options. */
static bool parse_cipher_parts(LuksFormat *f, Options *options, GError **error)
{
    int mode, ivgen, ivgen_hash;
    bool has_hash = options_has(options, "ivgen-hash-alg");
    if (!parse_alg(f, options, error) || !options_get_enum(options, "cipher-mode", modes, 0, &mode, error) ||
        !options_get_enum(options, "ivgen-alg", ivgens, 0, &ivgen, error) ||
        !options_get_enum(options, "ivgen-hash-alg", hashes, 0, &ivgen_hash, error)) {
        return false;
    }
    if (!strcmp(modes[mode], "xts")) {
        f->key_size *= 2;
    }
    if (!strcmp(modes[mode], "ecb")) {
        f->mode = g_strdup("ecb");
    } else if (!strcmp(ivgens[ivgen], "essiv")) {
        f->mode = g_strdup_printf("%s-essiv:%s", modes[mode], hashes[ivgen_hash]);
    } else if (has_hash) {
        return error_set(error, "'ivgen-hash-alg' is used with ivgen-alg=essiv only");
    } else {
        f->mode = g_strdup_printf("%s-%s", modes[mode], ivgens[ivgen]);
    }
    return true;
}

static bool parse_pbkdf(LuksFormat *f, Options *options, GError **error)
{
    int pbkdf, hash;
    if (!options_get_enum(options, "hash-alg", hashes, 0, &hash, error) ||
        !options_get_enum(options, "pbkdf", pbkdfs, f->version == 1 ? 0 : 2, &pbkdf, error) ||
        !options_get_uint(options, "iter-time", 1, 3600 * 1000, ITER_TIME, &f->iter_time, error) ||
        !options_get_uint(options, "pbkdf-iterations", 0, G_MAXUINT32, 0, &f->iterations, error) ||
        !options_get_size(options, "pbkdf-memory", 0, &f->memory, error) ||
        !options_get_uint(options, "pbkdf-parallel", 0, 64, 0, &f->parallel, error)) {
        return false;
    }
    if (f->version == 1 && pbkdf != 0) {
        return error_set(error, "LUKS1 has pbkdf2 only: use version=2 for '%s'", pbkdfs[pbkdf]);
    }
    if (pbkdf == 0 && (f->memory || f->parallel)) {
        return error_set(error, "'pbkdf-memory' and 'pbkdf-parallel' are used with Argon2 only");
    }
    f->hash = g_strdup(hashes[hash]);
    f->pbkdf = g_strdup(pbkdfs[pbkdf]);
    return true;
}

static bool parse_all(LuksFormat *f, Options *options, GError **error)
{
    static const char *const sizes[] = {"512", "1024", "2048", "4096", NULL};
    uint64_t version;
    int size;
    if (!options_get_uint(options, "version", 1, 2, 1, &version, error) ||
        !options_get_enum(options, "sector-size", sizes, 0, &size, error)) {
        return false;
    }
    f->version = version;
    f->sector_size = LUKS_SECTOR << size;
    f->uuid = g_strdup(options_get(options, "uuid"));
    f->label = g_strdup(options_get(options, "label"));
    if (f->version == 1 && size) {
        return error_set(error, "LUKS1 has encryption sectors of 512 bytes only: use version=2");
    }
    if (f->version == 1 && f->label) {
        return error_set(error, "LUKS1 has no label: use version=2");
    }
    const char *whole = options_get(options, "cipher");
    return (whole ? parse_whole_cipher(f, options, whole, error) : parse_cipher_parts(f, options, error)) &&
           parse_pbkdf(f, options, error);
}

LuksFormat *luks_format_parse(Options *options, GError **error)
{
    g_autoptr(LuksFormat) f = g_new0(LuksFormat, 1);
    return parse_all(f, options, error) ? g_steal_pointer(&f) : NULL;
}
