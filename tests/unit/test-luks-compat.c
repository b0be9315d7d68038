/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * LUKS images of cryptsetup and ours, each opened by the other. What the data path must give is what
 * `cryptsetup reencrypt` makes of a plain file and back.
 */
#include "tests/unit/luks-test.h"

#include <string.h>

#define PAYLOAD (4 * 1024 * 1024 + 64 * 1024)

typedef struct CompatCase {
    const char *name, *options;
} CompatCase;

/* What cryptsetup formats: any of these is opened by us. */
static const CompatCase format_cases[] = {
    {"luks1/aes-xts-plain64", "--type luks1"},
    {"luks1/aes-cbc-essiv", "--type luks1 -c aes-cbc-essiv:sha256 -s 256"},
    {"luks1/aes-cbc-plain", "--type luks1 -c aes-cbc-plain -s 128"},
    {"luks1/sha1", "--type luks1 -h sha1"},
    {"luks1/sha512", "--type luks1 -h sha512"},
    {"luks2/512", "--type luks2 --sector-size 512"},
    {"luks2/1024", "--type luks2 --sector-size 1024"},
    {"luks2/2048", "--type luks2 --sector-size 2048"},
    {"luks2/4096", "--type luks2 --sector-size 4096"},
    {"luks2/argon2i", "--type luks2 --pbkdf argon2i --pbkdf-memory 32768 --pbkdf-force-iterations 4"},
    {"luks2/argon2id", "--type luks2 --pbkdf argon2id --pbkdf-memory 65536 --pbkdf-force-iterations 4"},
    {"luks2/sha512", "--type luks2 -h sha512"},
    {"luks2/offset", "--type luks2 --offset 40960"},
    {"luks2/small-metadata", "--type luks2 --luks2-metadata-size 16k --luks2-keyslots-size 512k"},
    {"luks2/large-metadata", "--type luks2 --luks2-metadata-size 1m --luks2-keyslots-size 2m"},
};

/* Ciphers of which cryptsetup itself can encrypt a file's data without device-mapper. */
static const CompatCase cipher_cases[] = {
    {"aes-xts-plain64/512", "-c aes-xts-plain64 -s 512 --sector-size 512"},
    {"aes-xts-plain64/1024", "-c aes-xts-plain64 -s 512 --sector-size 1024"},
    {"aes-xts-plain64/2048", "-c aes-xts-plain64 -s 512 --sector-size 2048"},
    {"aes-xts-plain64/4096", "-c aes-xts-plain64 -s 512 --sector-size 4096"},
    {"aes-xts-plain64/128-bit", "-c aes-xts-plain64 -s 256 --sector-size 512"},
    {"aes-xts-plain64be/4096", "-c aes-xts-plain64be -s 512 --sector-size 4096"},
    {"aes-xts-plain", "-c aes-xts-plain -s 512 --sector-size 512"},
    {"aes-cbc-essiv/512", "-c aes-cbc-essiv:sha256 -s 256 --sector-size 512"},
    {"aes-cbc-essiv/4096", "-c aes-cbc-essiv:sha256 -s 256 --sector-size 4096"},
    {"aes-cbc-essiv/128-bit", "-c aes-cbc-essiv:sha256 -s 128 --sector-size 512"},
    {"aes-cbc-plain64", "-c aes-cbc-plain64 -s 256 --sector-size 512"},
    {"aes-cbc-plain", "-c aes-cbc-plain -s 256 --sector-size 512"},
    {"aes-cbc-benbi", "-c aes-cbc-benbi -s 256 --sector-size 512"},
    {"aes-cbc-null", "-c aes-cbc-null -s 256 --sector-size 512"},
    {"aes-ctr-plain64", "-c aes-ctr-plain64 -s 256 --sector-size 512"},
    {"aes-xts-essiv", "-c aes-xts-essiv:sha256 -s 512 --sector-size 512"},
    {"camellia-cbc-plain64", "-c camellia-cbc-plain64 -s 256 --sector-size 512"},
    {"camellia-cbc-essiv/4096", "-c camellia-cbc-essiv:sha256 -s 256 --sector-size 4096"},
};

#define QUICK "--pbkdf pbkdf2 --pbkdf-force-iterations 1000"

/* Formatted by cryptsetup, opened, written and read again by us, still good for cryptsetup. */
static void test_format(gconstpointer data)
{
    const CompatCase *c = data;
    bool argon2 = strstr(c->options, "argon2");
    luks_test_must(NULL, "rm -f a.img; truncate -s 40M a.img");
    luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup luksFormat -q %s %s a.img -",
                   argon2                        ? ""
                   : strstr(c->options, "luks1") ? "--pbkdf-force-iterations 1000"
                                                 : QUICK,
                   c->options);
    luks_test_random_file("plain", PAYLOAD - 32 * 1024, 7);
    BlockNode *node = luks_test_open("a.img", "");
    g_assert_cmpuint(block_info(node)->size % 4096, ==, 0);
    luks_test_store(node, 8192, "plain");
    luks_test_close(node);
    node = luks_test_open("a.img", ",read-only=on");
    luks_test_compare(node, 8192, "plain");
    luks_test_close(node);
    luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup open --test-passphrase a.img -d -");
}

/* cryptsetup encrypts a file of known content; we must read that content, and written by us it is the same
 * ciphertext to the byte. */
static void test_reencrypt_to(gconstpointer data)
{
    const CompatCase *c = data;
    luks_test_random_file("plain", PAYLOAD, 11);
    luks_test_must(NULL, "cp plain b.img; truncate -s +32M b.img");
    luks_test_must(LUKS_TEST_PASSPHRASE,
                   "cryptsetup reencrypt -q --encrypt --type luks2 --force-offline-reencrypt "
                   "--reduce-device-size 32M " QUICK " %s b.img -d -",
                   c->options);
    luks_test_copy("b.img", "b.old");
    BlockNode *node = luks_test_open("b.img", "");
    g_assert_cmpuint(block_info(node)->size, >=, PAYLOAD);
    luks_test_compare(node, 0, "plain");
    g_assert_cmpint(block_write_zeroes(node, 0, PAYLOAD, 0), ==, 0);
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    g_assert_true(luks_test_same("b.img", "b.old"));
}

/* The opposite: we write, cryptsetup decrypts the file. */
static void test_reencrypt_from(gconstpointer data)
{
    const CompatCase *c = data;
    luks_test_random_file("plain", PAYLOAD, 13);
    luks_test_must(NULL, "rm -f c.img c.hdr; truncate -s %d c.img", PAYLOAD);
    luks_test_must(LUKS_TEST_PASSPHRASE,
                   "cryptsetup luksFormat -q --type luks2 " QUICK " %s --header c.hdr c.img -", c->options);
    g_autofree char *more =
        g_strdup_printf(",header.driver=file,header.filename=%s/c.hdr", luks_test_folder());
    BlockNode *node = luks_test_open("c.img", more);
    g_assert_cmpuint(block_info(node)->size, ==, PAYLOAD);
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup reencrypt -q " QUICK
                                         " --decrypt --force-offline-reencrypt --header c.hdr c.img -d -");
    luks_test_must(NULL, "cmp plain c.img");
}

static const CompatCase create_cases[] = {
    {"luks1", "version=1"},
    {"luks1/aes-128", "version=1,cipher-alg=aes-128"},
    {"luks1/cbc-essiv", "version=1,cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256"},
    {"luks1/sha512", "version=1,hash-alg=sha512"},
    {"luks2/512", "version=2"},
    {"luks2/4096", "version=2,sector-size=4096"},
    {"luks2/argon2id", "version=2,pbkdf=argon2id,pbkdf-memory=32M,pbkdf-parallel=1"},
    {"luks2/argon2i", "version=2,pbkdf=argon2i,pbkdf-memory=32M,pbkdf-parallel=2"},
    {"luks2/cipher", "version=2,cipher=aes-cbc-essiv:sha256,key-size=256,label=disc"},
};

/* Made by us, opened by us and by cryptsetup. */
static void test_create(gconstpointer data)
{
    const CompatCase *c = data;
    luks_test_random_file("plain", PAYLOAD, 17);
    luks_test_create("d.img", c->options, PAYLOAD);
    BlockNode *node = luks_test_open("d.img", "");
    g_assert_cmpuint(block_info(node)->size, ==, PAYLOAD);
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup open --test-passphrase d.img -d -");
    /* As LUKS2 with the header apart, so that cryptsetup decrypts the payload in place. */
    luks_test_must(
        NULL, "cryptsetup isLuks --type luks1 d.img && cryptsetup convert -q --type luks2 d.img || true");
    luks_test_must(LUKS_TEST_PASSPHRASE, "rm -f d.hdr; cryptsetup reencrypt -q " QUICK
                                         " --decrypt --force-offline-reencrypt --header d.hdr d.img -d -");
    luks_test_must(NULL, "cmp -n %d plain d.img", PAYLOAD);
}

static void test_header_backup(void)
{
    luks_test_random_file("plain", PAYLOAD, 19);
    luks_test_create("e.img", "version=2,sector-size=4096", PAYLOAD);
    BlockNode *node = luks_test_open("e.img", "");
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(NULL, "rm -f e.hdr; cryptsetup luksHeaderBackup e.img --header-backup-file e.hdr");
    luks_test_must(NULL, "dd if=/dev/zero of=e.img bs=1M count=16 conv=notrunc status=none");
    g_autofree char *message = luks_test_open_message("e.img", "");
    g_assert_cmpstr(message, ==, "Volume is not in LUKS format");
    luks_test_must(NULL, "cryptsetup luksHeaderRestore -q e.img --header-backup-file e.hdr");
    node = luks_test_open("e.img", "");
    luks_test_compare(node, 0, "plain");
    luks_test_close(node);
}

/* LUKS2's second header serves when the first is damaged, and the image is not repaired behind the user's
 * back. */
static void test_second_header(gconstpointer data)
{
    luks_test_random_file("plain", PAYLOAD, 23);
    luks_test_create("f.img", "version=2", PAYLOAD);
    BlockNode *node = luks_test_open("f.img", "");
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(NULL,
                   "dd if=/dev/zero of=f.img bs=1 seek=%s count=8 conv=notrunc status=none; cp f.img f.old",
                   (const char *)data);
    node = luks_test_open("f.img", "");
    luks_test_compare(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(NULL, "cmp f.img f.old");
}

static void add_cases(const char *prefix, const CompatCase *cases, size_t count, unsigned step,
                      GTestDataFunc call)
{
    for (size_t i = 0; i < count; i += step * luks_test_step()) {
        g_autofree char *path = g_strdup_printf("/luks-compat/%s/%s", prefix, cases[i].name);
        g_test_add_data_func(path, &cases[i], call);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    add_cases("format", format_cases, G_N_ELEMENTS(format_cases), 1, test_format);
    add_cases("encrypted-by-cryptsetup", cipher_cases, G_N_ELEMENTS(cipher_cases), 1, test_reencrypt_to);
    /* It takes a second each, and says what the one above says already. */
    add_cases("decrypted-by-cryptsetup", cipher_cases, G_N_ELEMENTS(cipher_cases), 4, test_reencrypt_from);
    add_cases("create", create_cases, G_N_ELEMENTS(create_cases), 1, test_create);
    g_test_add_func("/luks-compat/header-backup", test_header_backup);
    g_test_add_data_func("/luks-compat/second-header/magic", "0", test_second_header);
    g_test_add_data_func("/luks-compat/second-header/checksum", "450", test_second_header);
    int status = g_test_run();
    luks_test_end();
    return status;
}
