/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Damaged and hostile LUKS headers: each is refused with a message that says why, and the image stays as it
 * was.
 */
#include "tests/unit/luks-test.h"

#include <string.h>
#include <unistd.h>

#include "util/bytes.h"

#define PAYLOAD (512 * 1024)

/* LUKS1 fields (specification 1.2.3, figures 1 and 2). */
#define L1_VERSION   6
#define L1_CIPHER    8
#define L1_MODE      40
#define L1_HASH      72
#define L1_PAYLOAD   104
#define L1_KEY       108
#define L1_MK_ITERS  164
#define L1_SLOT(n)   (208 + 48 * (n))
#define SLOT_STATE   0
#define SLOT_ITERS   4
#define SLOT_OFFSET  40
#define SLOT_STRIPES 44

static void poke(const char *name, uint64_t at, const void *bytes, size_t count)
{
    g_autofree char *path = luks_test_path(name);
    FILE *f = fopen(path, "r+");
    g_assert_nonnull(f);
    g_assert_cmpint(fseek(f, at, SEEK_SET), ==, 0);
    g_assert_cmpuint(fwrite(bytes, 1, count, f), ==, count);
    fclose(f);
}

static void poke_be32(const char *name, uint64_t at, uint32_t value)
{
    uint8_t raw[4];
    store_be32(raw, value);
    poke(name, at, raw, sizeof raw);
}

/* Opening fails with a message that has `want` in it; the image is not touched. */
static void assert_evil(const char *name, const char *more, const char *want)
{
    luks_test_copy(name, "before");
    g_autofree char *message = luks_test_open_message(name, more);
    g_test_message("%s", message);
    if (!strstr(message, want)) {
        g_assert_cmpstr(message, ==, want);
    }
    g_assert_null(strstr(message, "/proc/self"));
    g_assert_true(luks_test_same(name, "before"));
}

/* The image `name`, fresh; each format is made once. */
static void make(const char *name, const char *format)
{
    g_autofree char *master = g_strdelimit(g_strdup_printf("master-%s", format), "=,", '-');
    g_autofree char *path = luks_test_path(master);
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        luks_test_create(master, format, PAYLOAD);
    }
    luks_test_copy(master, name);
}

/* Cuts the file off. */
static void cut(const char *name, uint64_t size)
{
    g_autofree char *path = luks_test_path(name);
    g_assert_cmpint(truncate(path, size), ==, 0);
}

typedef struct Luks1Case {
    const char *name;
    uint64_t at;
    uint32_t value;
    const char *message;
} Luks1Case;

static const Luks1Case luks1_cases[] = {
    {"stripes-0", L1_SLOT(0) + SLOT_STRIPES, 0, "Volume header is damaged"},
    {"stripes-1", L1_SLOT(0) + SLOT_STRIPES, 1, "Volume header is damaged"},
    {"stripes-huge", L1_SLOT(0) + SLOT_STRIPES, 0xffffffff, "Volume header is damaged"},
    {"slot-in-header", L1_SLOT(0) + SLOT_OFFSET, 0, "Volume header is damaged"},
    {"slot-in-payload", L1_SLOT(0) + SLOT_OFFSET, 4090, "Volume header is damaged"},
    {"slot-past-the-end", L1_SLOT(0) + SLOT_OFFSET, 0xfffffff0, "Volume header is damaged"},
    {"slots-overlap", L1_SLOT(1) + SLOT_OFFSET, 8, "Volume header is damaged"},
    {"slot-state", L1_SLOT(0) + SLOT_STATE, 0x12345678, ""},
    {"payload-in-header", L1_PAYLOAD, 4, "Volume header is damaged"},
    {"payload-0", L1_PAYLOAD, 0, "LUKS payload is overlapping with the header"},
    {"payload-past-the-end", L1_PAYLOAD, 0x00ffffff, "past the end of the image"},
    {"payload-far-past-the-end", L1_PAYLOAD, 0xfffffff0, "past the end of the image"},
    {"key-bytes-0", L1_KEY, 0, "Volume header is damaged"},
    {"key-bytes-huge", L1_KEY, 0x7fffffff, "Volume header is damaged"},
    {"iterations-0", L1_SLOT(0) + SLOT_ITERS, 0, ""},
    {"iterations-huge", L1_SLOT(0) + SLOT_ITERS, 0xffffffff,
     "Key slot 0 takes 4294967295 iterations, more than"},
    {"digest-iterations-huge", L1_MK_ITERS, 0xffffffff, "Key digest takes 4294967295 iterations, more than"},
    {"version-3", L1_VERSION, 0x00036165, "LUKS version 3 is not supported"},
    {"version-0", L1_VERSION, 0x00006165, "LUKS version 0 is not supported"},
    {"magic", 0, 0x4c554b00, "Volume is not in LUKS format"},
    {"cipher-name", L1_CIPHER, 0x58585858,
     "Cipher 'XXXX-xts-plain64' with a key of 512 bits is not supported"},
    {"cipher-mode", L1_MODE, 0x58585858, "Cipher 'aes-XXXXplain64' is not supported"},
    {"hash", L1_HASH, 0x58585858, "Volume header is damaged"},
};

static void test_luks1(gconstpointer data)
{
    const Luks1Case *c = data;
    make("evil.img", "version=1");
    poke_be32("evil.img", c->at, c->value);
    assert_evil("evil.img", "", c->message);
}

/* Names without a terminating NUL, and with formats in them. */
static void test_luks1_names(void)
{
    char name[32];
    memset(name, 'n', sizeof name);
    static const unsigned fields[] = {L1_CIPHER, L1_MODE, L1_HASH};
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        make("evil.img", "version=1");
        poke("evil.img", fields[i], name, sizeof name);
        assert_evil("evil.img", "", "");
        poke("evil.img", fields[i], "%s%n%s%n%s%n-%n", 16);
        assert_evil("evil.img", "", "");
    }
}

static void test_truncated(gconstpointer data)
{
    static const int sizes[] = {0,    1,    7,    8,     100,   511,   512,   591,   592,
                                4095, 4096, 4097, 10000, 16384, 20000, 32768, 40000, 260000};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        make("short.img", data);
        cut("short.img", sizes[i]);
        assert_evil("short.img", "", "");
    }
    make("short.img", data);
    cut("short.img", 1024 * 1024);
    assert_evil("short.img", "", "");
}

/* Changes text in both JSON areas, same length, and makes the checksums good: `sed` on bytes 4096 on. */
static void edit_json(const char *name, const char *from, const char *to)
{
    static const char script[] = "import sys,hashlib\n"
                                 "p,a,b=sys.argv[1],sys.argv[2].encode(),sys.argv[3].encode()\n"
                                 "d=bytearray(open(p,'rb').read(2*16384))\n"
                                 "for o in (0,16384):\n"
                                 "  j=bytes(d[o+4096:o+16384]).rstrip(b'\\0')\n"
                                 "  assert a in j,(a,j)\n"
                                 "  j=j.replace(a,b)\n"
                                 "  assert len(j)<16384-4096\n"
                                 "  d[o+4096:o+16384]=j+b'\\0'*(16384-4096-len(j))\n"
                                 "  d[o+448:o+512]=b'\\0'*64\n"
                                 "  d[o+448:o+480]=hashlib.sha256(bytes(d[o:o+16384])).digest()\n"
                                 "f=open(p,'r+b');f.write(d);f.close()\n";
    luks_test_must(script, "python3 - %s '%s' '%s'", name, from, to);
}

typedef struct Luks2Case {
    const char *name, *from, *to, *message;
} Luks2Case;

static const Luks2Case luks2_cases[] = {
    {"json/broken", "\"segments\"", "\"segments", "Volume"},
    {"segment/none", "\"segments\":{\"0\"", "\"segments\":{},\"other\":{\"0\"", "Volume"},
    {"segment/type", "\"type\":\"crypt\"", "\"type\":\"linear\"", ""},
    {"segment/sector-size-0", "\"sector_size\":512", "\"sector_size\":0", "Volume"},
    {"segment/sector-size-513", "\"sector_size\":512", "\"sector_size\":513", "Volume"},
    {"segment/sector-size-8192", "\"sector_size\":512", "\"sector_size\":8192", ""},
    {"segment/offset-in-header", "\"offset\":\"16777216\",\"size\":\"dynamic\"",
     "\"offset\":\"0\",\"size\":\"dynamic\"", ""},
    {"segment/offset-past-the-end", "\"offset\":\"16777216\",\"size\":\"dynamic\"",
     "\"offset\":\"16777216000000\",\"size\":\"dynamic\"", "past the end of the image"},
    {"segment/offset-overflow", "\"offset\":\"16777216\",\"size\":\"dynamic\"",
     "\"offset\":\"18446744073709551104\",\"size\":\"dynamic\"", ""},
    {"segment/size-too-large", "\"size\":\"dynamic\"", "\"size\":\"1099511627776\"", ""},
    {"segment/size-overflow", "\"size\":\"dynamic\"", "\"size\":\"18446744073709551104\"", ""},
    {"segment/cipher", "\"encryption\":\"aes-xts-plain64\",\"sector_size\"",
     "\"encryption\":\"rot13-xts-plain64\",\"sector_size\"",
     "Cipher 'rot13-xts-plain64' with a key of 512 bits is not supported"},
    {"slot/stripes-0", "\"stripes\":4000", "\"stripes\":0", ""},
    {"slot/stripes-huge", "\"stripes\":4000", "\"stripes\":2147483647", ""},
    {"slot/area-in-header", "\"offset\":\"32768\"", "\"offset\":\"4096\"", "Volume"},
    {"slot/area-past-the-end", "\"offset\":\"32768\"", "\"offset\":\"99999744\"", "Volume"},
    {"slot/area-huge", "\"size\":\"258048\"", "\"size\":\"1099511627776\"", "Volume"},
    {"slot/iterations-huge", "\"iterations\":1000,\"salt\"", "\"iterations\":2147483647,\"salt\"",
     "more than kdf-iterations-max"},
    {"slot/iterations-0", "\"iterations\":1000,\"salt\"", "\"iterations\":0,\"salt\"", ""},
    {"requirement/online-reencrypt", "\"config\":{",
     "\"config\":{\"requirements\":{\"mandatory\":[\"online-reencrypt-v2\"]},", ""},
    {"requirement/offline-reencrypt", "\"config\":{",
     "\"config\":{\"requirements\":{\"mandatory\":[\"offline-reencrypt\"]},",
     "in the middle of a re-encryption"},
    {"requirement/unknown", "\"config\":{", "\"config\":{\"requirements\":{\"mandatory\":[\"quantum\"]},",
     "requirements that are not supported"},
    {"integrity", "\"sector_size\":512",
     "\"sector_size\":512,\"integrity\":{\"type\":\"hmac(sha256)\",\"journal_encryption\":\"none\",\"journal_"
     "integrity\":\"none\"}",
     ""},
    {"keyslots-size-huge", "\"keyslots_size\":\"16744448\"", "\"keyslots_size\":\"1099511623680\"", ""},
};

static void test_luks2(gconstpointer data)
{
    const Luks2Case *c = data;
    make("evil2.img", "version=2");
    edit_json("evil2.img", c->from, c->to);
    assert_evil("evil2.img", "", c->message);
}

/* Many segments (CVE-2020-14382): as many as the JSON area holds. */
static void test_luks2_segments(void)
{
    make("evil3.img", "version=2");
    GString *many = g_string_new("\"segments\":{");
    for (int i = 1; i < 90; i++) {
        g_string_append_printf(
            many,
            "\"%d\":{\"type\":\"crypt\",\"offset\":\"16777216\",\"size\":\"dynamic\",\"iv_tweak\":\"0\","
            "\"encryption\":\"aes-xts-plain64\",\"sector_size\":512},",
            i);
    }
    g_string_append(many, "\"0\"");
    edit_json("evil3.img", "\"segments\":{\"0\"", many->str);
    assert_evil("evil3.img", "", "");
    g_string_free(many, TRUE);
}

/* A re-encryption that cryptsetup was stopped in is left to cryptsetup (CVE-2021-4122). */
static void test_reencryption(void)
{
    luks_test_must(NULL, "rm -f r.img; truncate -s 40M r.img");
    luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup reencrypt -q --encrypt --init-only --type luks2 "
                                         "--force-offline-reencrypt --reduce-device-size "
                                         "32M --pbkdf pbkdf2 --pbkdf-force-iterations 1000 r.img -d -");
    assert_evil("r.img", "", "in the middle of a re-encryption");
}

static void test_argon2_memory(void)
{
    luks_test_create("argon.img", "version=2,pbkdf=argon2id,pbkdf-memory=64M,pbkdf-parallel=1", PAYLOAD);
    assert_evil("argon.img", ",kdf-memory-max=32M",
                "Key slot 0 takes 64 MiB of memory, more than kdf-memory-max");
    assert_evil("argon.img", ",kdf-iterations-max=100000", "more than kdf-iterations-max");
    luks_test_close(luks_test_open("argon.img", ",kdf-memory-max=64M"));
}

/* Neither opening nor changing key slots pays for what a header demands. */
static void test_amend_limits(void)
{
    static const struct {
        LuksAmendAction action;
        const char *message;
    } cases[] = {
        {LUKS_AMEND_ADD, "Key slot 0 takes 4095 MiB of memory, more than kdf-memory-max"},
        {LUKS_AMEND_CHANGE, "Key slot 0 takes 4095 MiB of memory, more than kdf-memory-max"},
        {LUKS_AMEND_ERASE, "No keyslots match given (old) password for erase operation"},
    };
    g_autoptr(Secret) right = secret_new_copy(LUKS_TEST_PASSPHRASE, strlen(LUKS_TEST_PASSPHRASE));
    make("argon.img", "version=2,pbkdf=argon2id,pbkdf-memory=64M,pbkdf-parallel=1");
    edit_json("argon.img", "\"memory\":65536", "\"memory\":4193280");
    luks_test_copy("argon.img", "before");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        bool erase = cases[i].action == LUKS_AMEND_ERASE;
        const LuksAmend amend = {
            cases[i].action,    erase ? NULL : right, erase ? NULL : right, erase ? right : NULL, -1,
            .iterations = 1000, .pbkdf = "pbkdf2"};
        g_autofree char *text = g_strdup_printf("driver=file,filename=%s/argon.img", luks_test_folder());
        BlockNode *file = open_node(text);
        g_assert_false(luks_amend(file, &amend, &error));
        g_assert_cmpstr(error->message, ==, cases[i].message);
        g_clear_error(&error);
        luks_test_close(file);
    }
    g_assert_true(luks_test_same("argon.img", "before"));
}

static void test_noise(void)
{
    for (int i = 0; i < 40; i++) {
        g_autofree uint8_t *noise = g_malloc(32768);
        make("noise.img", i % 2 ? "version=2" : "version=1");
        luks_test_fill(noise, 32768, g_test_rand_int());
        poke("noise.img", 8 + i, noise, 32000);
        assert_evil("noise.img", "", "");
    }
}

static void test_messages(void)
{
    make("good.img", "version=1");
    luks_test_secret("bad", "wrong");
    g_autofree char *base = g_strdup_printf("file.driver=file,file.filename=%s/good.img", luks_test_folder());
    static const struct {
        const char *more, *message;
    } cases[] = {
        {"", "Parameter 'key-secret' is required for cipher"},
        {",key-secret=nobody", "No secret with id 'nobody'"},
        {",key-secret=bad", "Invalid password, cannot unlock any keyslot"},
        {",key-secret=sec0,encrypt-in-parallel=65",
         "Parameter 'encrypt-in-parallel' expects 'on', 'off' or a number of threads from 1 to 64"},
        {",key-secret=sec0,encrypt-in-parallel=0",
         "Parameter 'encrypt-in-parallel' expects 'on', 'off' or a number of threads from 1 to 64"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("driver=luks,%s%s", base, cases[i].more);
        g_autofree char *message = open_message(text);
        g_assert_cmpstr(message, ==, cases[i].message);
    }
    g_assert_true(secret_object_remove("bad", NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    for (size_t i = 0; i < G_N_ELEMENTS(luks1_cases); i++) {
        g_autofree char *path = g_strdup_printf("/luks-evil/luks1/%s", luks1_cases[i].name);
        g_test_add_data_func(path, &luks1_cases[i], test_luks1);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(luks2_cases); i++) {
        g_autofree char *path = g_strdup_printf("/luks-evil/luks2/%s", luks2_cases[i].name);
        g_test_add_data_func(path, &luks2_cases[i], test_luks2);
    }
    g_test_add_func("/luks-evil/luks1/names", test_luks1_names);
    g_test_add_func("/luks-evil/luks2/segments-many", test_luks2_segments);
    g_test_add_func("/luks-evil/luks2/reencryption", test_reencryption);
    g_test_add_data_func("/luks-evil/truncated/luks1", "version=1", test_truncated);
    g_test_add_data_func("/luks-evil/truncated/luks2", "version=2", test_truncated);
    g_test_add_func("/luks-evil/argon2-memory", test_argon2_memory);
    g_test_add_func("/luks-evil/amend-limits", test_amend_limits);
    g_test_add_func("/luks-evil/noise", test_noise);
    g_test_add_func("/luks-evil/messages", test_messages);
    int status = g_test_run();
    luks_test_end();
    return status;
}
