/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Key slots: added, changed and erased by us, by cryptsetup and by QEMU, each used by the others; and the
 * errors.
 */
#include "tests/unit/luks-test.h"

#include <string.h>

#define PAYLOAD (256 * 1024)

static const char *const formats[] = {"version=1",
                                      "version=2",
                                      "version=2,cipher-alg=serpent-256",
                                      "version=1,cipher-alg=serpent-256",
                                      "version=1,cipher-alg=twofish-128,cipher-mode=cbc,hash-alg=sha1",
                                      NULL};

static Secret *secret(const char *text)
{
    return text ? secret_new_copy(text, strlen(text)) : NULL;
}

/* NULL when it worked, else the message. */
static char *amend(const char *name, LuksAmendAction action, int slot, const char *unlock,
                   const char *new_secret, const char *old_secret, bool force)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf("driver=file,filename=%s/%s", luks_test_folder(), name);
    g_autoptr(Secret) u = secret(unlock), n = secret(new_secret), o = secret(old_secret);
    const LuksAmend amend = {action, u, n, o, slot, .iterations = 1000, .pbkdf = "pbkdf2", .force = force};
    BlockNode *file = open_node(text);
    bool ok = luks_amend(file, &amend, &error);
    luks_test_close(file);
    g_assert_cmpint(ok, ==, error == NULL);
    char *message = error ? g_strdup(error->message) : NULL;
    g_clear_error(&error);
    return message;
}

#define assert_amend(want, ...)                                                                              \
    do {                                                                                                     \
        g_autofree char *message = amend(__VA_ARGS__);                                                       \
        g_assert_cmpstr(message, ==, want);                                                                  \
    } while (0)

/* Whether the passphrase opens the image and gives the content. */
static void assert_opens(const char *name, const char *passphrase, bool opens)
{
    GError *error = NULL;
    luks_test_secret("try", passphrase);
    g_autofree char *text =
        g_strdup_printf("driver=luks,read-only=on,key-secret=try,file.driver=file,file.filename=%s/%s",
                        luks_test_folder(), name);
    if (opens) {
        BlockNode *node = open_node(text);
        luks_test_compare(node, 0, "plain");
        luks_test_close(node);
    } else {
        g_autofree char *message = open_message(text);
        g_assert_cmpstr(message, ==, "Invalid password, cannot unlock any keyslot");
    }
    g_assert_true(secret_object_remove("try", &error));
}

static void make(const char *name, const char *format)
{
    luks_test_random_file("plain", PAYLOAD, 41);
    luks_test_create(name, format, PAYLOAD);
    BlockNode *node = luks_test_open(name, "");
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
}

static void test_add(gconstpointer format)
{
    make("a.img", format);
    assert_amend(NULL, "a.img", LUKS_AMEND_ADD, -1, LUKS_TEST_PASSPHRASE, "second", NULL, false);
    assert_amend(NULL, "a.img", LUKS_AMEND_ADD, 5, "second", "third", NULL, false);
    assert_amend("Refusing to overwrite active keyslot 5 - please erase it first", "a.img", LUKS_AMEND_ADD, 5,
                 "second", "fourth", NULL, false);
    assert_amend("Invalid password, cannot unlock any keyslot", "a.img", LUKS_AMEND_ADD, -1, "wrong", "x",
                 NULL, false);
    assert_amend("Invalid slot 40 specified, must be between 0 and 7",
                 strstr(format, "version=1") ? "a.img" : "b.img", LUKS_AMEND_ADD, 40, "second", "x", NULL,
                 false);
    assert_opens("a.img", LUKS_TEST_PASSPHRASE, true);
    assert_opens("a.img", "second", true);
    assert_opens("a.img", "third", true);
    assert_opens("a.img", "fourth", false);
    assert_amend(NULL, "a.img", LUKS_AMEND_ADD, 5, "second", "fourth", NULL, true);
    assert_opens("a.img", "third", false);
    assert_opens("a.img", "fourth", true);
}

static void test_change(gconstpointer format)
{
    make("c.img", format);
    assert_amend(NULL, "c.img", LUKS_AMEND_CHANGE, -1, LUKS_TEST_PASSPHRASE, "changed", NULL, false);
    assert_opens("c.img", LUKS_TEST_PASSPHRASE, false);
    assert_opens("c.img", "changed", true);
    assert_amend("Invalid password, cannot unlock any keyslot", "c.img", LUKS_AMEND_CHANGE, 0, "wrong", "x",
                 NULL, false);
}

/* No slot is free: the old one is used again. */
static void test_change_full(gconstpointer format)
{
    make("f.img", format);
    int slots = strstr(format, "version=1") ? 8 : 32;
    for (int i = 1; i < slots; i++) {
        g_autofree char *passphrase = g_strdup_printf("pass %d", i);
        g_autofree char *message =
            amend("f.img", LUKS_AMEND_ADD, i, LUKS_TEST_PASSPHRASE, passphrase, NULL, false);
        if (message) {
            g_assert_nonnull(strstr(message, "Could not add a key slot"));
            break;
        }
    }
    assert_amend(NULL, "f.img", LUKS_AMEND_CHANGE, -1, "pass 3", "changed", NULL, false);
    assert_opens("f.img", "pass 3", false);
    assert_opens("f.img", "pass 2", true);
    assert_opens("f.img", "changed", true);
}

static void test_erase(gconstpointer format)
{
    make("e.img", format);
    assert_amend(NULL, "e.img", LUKS_AMEND_ADD, 1, LUKS_TEST_PASSPHRASE, "second", NULL, false);
    assert_amend(NULL, "e.img", LUKS_AMEND_ADD, 2, LUKS_TEST_PASSPHRASE, "second", NULL, false);
    assert_amend("No keyslots match given (old) password for erase operation", "e.img", LUKS_AMEND_ERASE, -1,
                 NULL, NULL, "wrong", false);
    assert_amend("Given keyslot 1 doesn't contain the expected password", "e.img", LUKS_AMEND_ERASE, 1, NULL,
                 NULL, LUKS_TEST_PASSPHRASE, false);
    assert_amend("Given keyslot 6 is already erased (inactive)", "e.img", LUKS_AMEND_ERASE, 6, NULL, NULL,
                 NULL, false);
    assert_amend(
        "To erase keyslot(s), either explicit keyslot index or the password currently contained in them must "
        "be given",
        "e.img", LUKS_AMEND_ERASE, -1, NULL, NULL, NULL, false);
    assert_amend(NULL, "e.img", LUKS_AMEND_ERASE, -1, NULL, NULL, "second", false);
    assert_opens("e.img", "second", false);
    assert_opens("e.img", LUKS_TEST_PASSPHRASE, true);
    assert_amend("Attempt to erase the only active keyslot 0 which will erase all the data in the image "
                 "irreversibly - "
                 "refusing operation",
                 "e.img", LUKS_AMEND_ERASE, 0, NULL, NULL, NULL, false);
    assert_amend(
        "All the active keyslots match the (old) password that was given and erasing them will erase all the "
        "data in the image irreversibly - refusing operation",
        "e.img", LUKS_AMEND_ERASE, -1, NULL, NULL, LUKS_TEST_PASSPHRASE, false);
    assert_opens("e.img", LUKS_TEST_PASSPHRASE, true);
    assert_amend(NULL, "e.img", LUKS_AMEND_ERASE, 0, NULL, NULL, NULL, true);
    assert_opens("e.img", LUKS_TEST_PASSPHRASE, false);
}

/* The key material is gone, not only the mark that it is in use. */
static void test_erase_wipes(gconstpointer format)
{
    make("w.img", format);
    assert_amend(NULL, "w.img", LUKS_AMEND_ADD, 1, LUKS_TEST_PASSPHRASE, "second", NULL, false);
    luks_test_must(NULL, "cp w.img w.old");
    assert_amend(NULL, "w.img", LUKS_AMEND_ERASE, 1, NULL, NULL, NULL, false);
    luks_test_must(NULL, "cmp -l w.img w.old | wc -l");
    g_assert_cmpint(atoi(luks_test_output()), >, 200000);
}

static void test_with_cryptsetup(gconstpointer format)
{
    make("g.img", format);
    assert_amend(NULL, "g.img", LUKS_AMEND_ADD, -1, LUKS_TEST_PASSPHRASE, "ours", NULL, false);
    luks_test_must("ours", "cryptsetup open --test-passphrase g.img -d -");
    luks_test_must(
        "ours",
        "printf theirs >new.key; cryptsetup luksAddKey -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "
        "g.img new.key -d -");
    assert_opens("g.img", "theirs", true);
    luks_test_must("ours", "cryptsetup luksRemoveKey -q g.img -d -");
    assert_opens("g.img", "ours", false);
    luks_test_must("theirs", "printf third >third.key; cryptsetup luksChangeKey -q --pbkdf pbkdf2 "
                             "--pbkdf-force-iterations 1000 g.img third.key -d -");
    assert_opens("g.img", "third", true);
    assert_opens("g.img", "theirs", false);
    assert_opens("g.img", LUKS_TEST_PASSPHRASE, true);
}

/* What qemu-img info prints has a source for each field. */
static void test_info(gconstpointer format)
{
    GError *error = NULL;
    make("i.img", format);
    g_autofree char *text = g_strdup_printf("driver=file,filename=%s/i.img", luks_test_folder());
    BlockNode *file = open_node(text);
    g_assert_cmpuint(luks_probe(file), ==, strstr(format, "version=1") ? 1 : 2);
    g_autoptr(JsonObject) info = luks_info(file, &error);
    g_assert_no_error(error);
    luks_test_close(file);
    g_assert_cmpstr(json_object_get_string_member(info, "cipher-alg"), ==,
                    strstr(format, "serpent")   ? "serpent-256"
                    : strstr(format, "twofish") ? "twofish-128"
                                                : "aes-256");
    g_assert_cmpstr(json_object_get_string_member(info, "cipher-mode"), ==,
                    strstr(format, "cbc") ? "cbc" : "xts");
    g_assert_cmpstr(json_object_get_string_member(info, "ivgen-alg"), ==, "plain64");
    g_assert_cmpstr(json_object_get_string_member(info, "hash-alg"), ==,
                    strstr(format, "sha1") ? "sha1" : "sha256");
    g_assert_cmpint(json_object_get_int_member(info, "payload-offset"), >, 512 * 1024);
    g_assert_cmpint(json_object_get_int_member(info, "sector-size"), ==, 512);
    JsonObject *slot = json_array_get_object_element(json_object_get_array_member(info, "slots"), 0);
    g_assert_true(json_object_get_boolean_member(slot, "active"));
    g_assert_cmpint(json_object_get_int_member(slot, "iters"), ==, 1000);
    g_assert_cmpint(json_object_get_int_member(slot, "stripes"), ==, 4000);
    g_assert_cmpint(json_object_get_int_member(slot, "key-offset"), ==,
                    strstr(format, "version=1") ? 4096 : 32768);
}

/* Header and payload apart. */
static void test_detached(gconstpointer format_text)
{
    GError *error = NULL;
    luks_test_random_file("plain", PAYLOAD, 43);
    luks_test_must(NULL, "rm -f d.hdr d.img; touch d.hdr d.img");
    g_autofree char *header_text = g_strdup_printf("driver=file,filename=%s/d.hdr", luks_test_folder());
    g_autofree char *file_text = g_strdup_printf("driver=file,filename=%s/d.img", luks_test_folder());
    g_autoptr(Options) options = options_parse(format_text, NULL, &error);
    options_set(options, "pbkdf", "pbkdf2");
    options_set(options, "pbkdf-iterations", "1000");
    g_autoptr(LuksFormat) format = luks_format_parse(options, &error);
    g_assert_no_error(error);
    g_autoptr(Secret) passphrase = secret(LUKS_TEST_PASSPHRASE);
    BlockNode *header = open_node(header_text), *file = open_node(file_text);
    luks_create(file, header, format, passphrase, PAYLOAD, &error);
    g_assert_no_error(error);
    block_unref(header);
    luks_test_close(file);
    g_autofree char *more =
        g_strdup_printf(",header.driver=file,header.filename=%s/d.hdr", luks_test_folder());
    BlockNode *node = luks_test_open("d.img", more);
    g_assert_cmpuint(block_info(node)->size, ==, PAYLOAD);
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    bool kernel = strstr(format_text, "version=1,cipher"); /* cryptsetup would ask device-mapper */
    if (!kernel) {
        luks_test_must(LUKS_TEST_PASSPHRASE, "cryptsetup open --test-passphrase --header d.hdr d.img -d -");
    }
    node = luks_test_open("d.img", more);
    luks_test_compare(node, 0, "plain");
    luks_test_close(node);
}

/* An image that could not be made is no image. There are thousands of operations, nearly all of them key
 * material: the steps become longer. */
static void test_create_fault(gconstpointer format_text)
{
    GError *error = NULL;
    g_autoptr(Secret) passphrase = secret(LUKS_TEST_PASSPHRASE);
    g_autofree char *plain = g_strdup_printf("driver=file,filename=%s/n.img", luks_test_folder());
    int n;
    for (n = 1; n < 20000; n += 1 + n / 4) {
        g_autoptr(Options) options = options_parse(format_text, NULL, &error);
        options_set(options, "pbkdf", "pbkdf2");
        options_set(options, "pbkdf-iterations", "1000");
        g_autoptr(LuksFormat) format = luks_format_parse(options, &error);
        g_assert_no_error(error);
        g_autofree char *path = luks_test_path("n.img");
        g_assert_true(g_file_set_contents(path, "", 0, NULL));
        g_autofree char *text = g_strdup_printf(
            "driver=fault,fail-nth=%d,file.driver=file,file.filename=%s/n.img", n, luks_test_folder());
        BlockNode *file = open_node(text);
        bool ok = luks_create(file, NULL, format, passphrase, PAYLOAD, &error);
        luks_test_close(file);
        g_assert_cmpint(ok, ==, error == NULL);
        g_clear_error(&error);
        file = open_node(plain);
        g_assert_cmpuint(luks_probe(file), ==, !ok ? 0 : strstr(format_text, "version=1") ? 1 : 2);
        luks_test_close(file);
        if (ok) {
            break;
        }
    }
    g_test_message("fewer than %d operations", n);
    g_assert_cmpint(n, >, 10);
    g_assert_cmpint(n, <, 20000);
}

/* A write that fails leaves the old passphrase good: for each Nth operation below. */
static void test_change_fault(gconstpointer format)
{
    GError *error = NULL;
    make("x.img", format);
    luks_test_copy("x.img", "x.old");
    g_autoptr(Secret) unlock = secret(LUKS_TEST_PASSPHRASE), new_secret = secret("new");
    const LuksAmend amend = {LUKS_AMEND_CHANGE,  unlock,           new_secret, NULL, -1,
                             .iterations = 1000, .pbkdf = "pbkdf2"};
    int n, either = 0;
    for (n = 1; n < 1000; n += luks_test_step()) {
        luks_test_copy("x.old", "x.img");
        g_autofree char *text = g_strdup_printf(
            "driver=fault,fail-nth=%d,file.driver=file,file.filename=%s/x.img", n, luks_test_folder());
        BlockNode *file = open_node(text);
        bool ok = luks_amend(file, &amend, &error);
        luks_test_close(file);
        g_clear_error(&error);
        if (ok) {
            break;
        }
        if (n % 7 == 0) { /* opening takes a while */
            luks_test_secret("n", "new");
            g_autofree char *again = g_strdup_printf(
                "driver=luks,read-only=on,key-secret=n,file.driver=file,file.filename=%s/x.img",
                luks_test_folder());
            g_autoptr(Options) options = options_parse(again, NULL, &error);
            BlockNode *node = block_open(options, &error);
            g_clear_error(&error);
            secret_object_remove("n", NULL);
            if (node) {
                luks_test_close(node);
                either++;
            } else {
                assert_opens("x.img", LUKS_TEST_PASSPHRASE, true);
            }
        }
    }
    g_test_message("%d operations; the new passphrase was already good %d times", n, either);
    g_assert_cmpint(n, >, 10);
    g_assert_cmpint(n, <, 1000);
}

static void add(const char *prefix, GTestDataFunc call, bool others)
{
    for (int i = 0; formats[i]; i++) {
        if (!others && strstr(formats[i], "cipher-alg")) {
            continue;
        }
        g_autofree char *name = g_strdelimit(g_strdup(formats[i]), "=,", '-');
        g_autofree char *path = g_strdup_printf("/luks-slots/%s/%s", prefix, name);
        g_test_add_data_func(path, formats[i], call);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    make("b.img", "version=1");
    add("add", test_add, true);
    add("change", test_change, true);
    add("change-full", test_change_full, false);
    add("change-fault", test_change_fault, false);
    add("create-fault", test_create_fault, false);
    add("erase", test_erase, true);
    add("erase-wipes", test_erase_wipes, false);
    add("with-cryptsetup", test_with_cryptsetup, false);
    add("info", test_info, true);
    add("detached", test_detached, true);
    int status = g_test_run();
    luks_test_end();
    return status;
}
