/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * LUKS1 images of QEMU and ours, each opened by the other, with the content compared; and its key slots. The
 * qemu-img is the engine's (scripts/engine).
 */
#include "tests/unit/luks-test.h"

#include <string.h>

#define PAYLOAD (2 * 1024 * 1024)

static char *qemu_img;

#define SECRET "--object secret,id=s,data='" LUKS_TEST_PASSPHRASE "'"

typedef struct QemuCase {
    const char *name, *qemu, *ours; /* qemu-img's options; ours, NULL: the same */
} QemuCase;

/* No 192-bit keys: QEMU 11.1 aborts on them (their key material is no whole number of sectors). */
static const QemuCase cases[] = {
    {"default", "iter-time=10", "version=1"},
    {"aes-128-xts-sha1", "cipher-alg=aes-128,hash-alg=sha1,iter-time=10", "cipher-alg=aes-128,hash-alg=sha1"},
    {"aes-256-cbc-essiv", "cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256,iter-time=10",
     "cipher-mode=cbc,ivgen-alg=essiv,ivgen-hash-alg=sha256"},
    {"serpent-256-xts-sha512", "cipher-alg=serpent-256,hash-alg=sha512,iter-time=10",
     "cipher-alg=serpent-256,hash-alg=sha512"},
    {"serpent-128-cbc", "cipher-alg=serpent-128,cipher-mode=cbc,iter-time=10",
     "cipher-alg=serpent-128,cipher-mode=cbc"},
    {"twofish-256-xts-plain", "cipher-alg=twofish-256,ivgen-alg=plain,iter-time=10",
     "cipher-alg=twofish-256,ivgen-alg=plain"},
    {"twofish-128-xts", "cipher-alg=twofish-128,iter-time=10", "cipher-alg=twofish-128"},
};

/* A very short iter-time sometimes measures as no time at all there. */
static void qemu_create(const char *name, const char *options)
{
    for (int i = 0; i < 5; i++) {
        if (luks_test_run(NULL, "%s create -q " SECRET " -f luks -o key-secret=s,%s %s %d", qemu_img, options,
                          name, PAYLOAD)) {
            return;
        }
    }
    g_test_message("%s", luks_test_output());
    g_assert_not_reached();
}

static void qemu_copy_in(const char *from, const char *image)
{
    luks_test_must(NULL,
                   "%s convert -n " SECRET " --image-opts --target-image-opts driver=raw,file.filename=%s "
                   "driver=luks,key-secret=s,file.filename=%s",
                   qemu_img, from, image);
}

static void qemu_copy_out(const char *image, const char *to)
{
    luks_test_must(NULL,
                   "%s convert " SECRET " --image-opts driver=luks,key-secret=s,file.filename=%s -O raw %s",
                   qemu_img, image, to);
}

static void test_theirs(gconstpointer data)
{
    const QemuCase *c = data;
    luks_test_random_file("plain", PAYLOAD, 51);
    qemu_create("q.img", c->qemu);
    qemu_copy_in("plain", "q.img");
    BlockNode *node = luks_test_open("q.img", "");
    g_assert_cmpuint(block_info(node)->size, ==, PAYLOAD);
    luks_test_compare(node, 0, "plain");
    luks_test_random_file("plain", PAYLOAD, 52);
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    qemu_copy_out("q.img", "out");
    luks_test_must(NULL, "cmp plain out");
}

static void test_ours(gconstpointer data)
{
    const QemuCase *c = data;
    luks_test_random_file("plain", PAYLOAD, 53);
    luks_test_create("o.img", c->ours, PAYLOAD);
    BlockNode *node = luks_test_open("o.img", "");
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    qemu_copy_out("o.img", "out");
    luks_test_must(NULL, "cmp plain out");
    luks_test_random_file("plain", PAYLOAD, 54);
    qemu_copy_in("plain", "o.img");
    node = luks_test_open("o.img", "");
    luks_test_compare(node, 0, "plain");
    luks_test_close(node);
}

/* Each adds a slot that the other opens. */
static void test_slots(gconstpointer format)
{
    GError *error = NULL;
    luks_test_random_file("plain", PAYLOAD, 55);
    luks_test_create("s.img", format, PAYLOAD);
    BlockNode *node = luks_test_open("s.img", "");
    luks_test_store(node, 0, "plain");
    luks_test_close(node);
    luks_test_must(
        NULL,
        "%s amend " SECRET
        " --object secret,id=n,data=theirs --image-opts driver=luks,key-secret=s,file.filename=s.img "
        "-o state=active,new-secret=n,iter-time=10",
        qemu_img);
    secret_object_remove("theirs", NULL);
    luks_test_secret("theirs", "theirs");
    g_autofree char *text = g_strdup_printf(
        "driver=luks,key-secret=theirs,file.driver=file,file.filename=%s/s.img", luks_test_folder());
    node = open_node(text);
    luks_test_compare(node, 0, "plain");
    luks_test_close(node);
    g_autofree char *path = g_strdup_printf("driver=file,filename=%s/s.img", luks_test_folder());
    g_autoptr(Secret) unlock = secret_new_copy("theirs", 6), ours = secret_new_copy("ours", 4);
    const LuksAmend amend = {LUKS_AMEND_ADD, unlock, ours, NULL, -1, .iterations = 1000};
    BlockNode *file = open_node(path);
    g_assert_true(luks_amend(file, &amend, &error));
    luks_test_close(file);
    luks_test_must(NULL,
                   "%s convert --object secret,id=s,data=ours --image-opts "
                   "driver=luks,key-secret=s,file.filename=s.img -O raw out",
                   qemu_img);
    luks_test_must(NULL, "cmp plain out");
}

/* The messages are the same, for the same faults. */
static void test_messages(void)
{
    luks_test_secret("bad", "wrong");
    luks_test_create("m1.img", "version=1", PAYLOAD);
    luks_test_must(NULL, "head -c 3000000 /dev/urandom >m2.img; : >m3.img; cp m1.img m4.img; "
                         "printf '\\0\\3' | dd of=m4.img bs=1 seek=6 conv=notrunc status=none");
    static const struct {
        const char *image, *secret;
    } faults[] = {
        {"m1.img", "bad"}, {"m2.img", "sec0"}, {"m3.img", "sec0"}, {"m4.img", "sec0"}, {"m1.img", "nobody"}};
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autofree char *text =
            g_strdup_printf("driver=luks,key-secret=%s,file.driver=file,file.filename=%s/%s",
                            faults[i].secret, luks_test_folder(), faults[i].image);
        g_autofree char *message = open_message(text);
        g_assert_false(luks_test_run(
            NULL,
            "%s bench -c 1 --object secret,id=sec0,data='" LUKS_TEST_PASSPHRASE
            "' --object secret,id=bad,data=wrong --image-opts driver=luks,key-secret=%s,file.filename=%s",
            qemu_img, faults[i].secret, faults[i].image));
        g_test_message("%s", message);
        if (!strstr(luks_test_output(), message)) {
            g_assert_cmpstr(luks_test_output(), ==, message);
        }
    }
}

static void add(const char *prefix, GTestDataFunc call)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i += luks_test_step()) {
        g_autofree char *path = g_strdup_printf("/luks-qemu/%s/%s", prefix, cases[i].name);
        g_test_add_data_func(path, &cases[i], call);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    luks_test_must(NULL, "'%s/scripts/engine' qemu-img 2>/dev/null", SOURCE_ROOT);
    g_autofree char *path = g_strstrip(g_strdup(luks_test_output()));
    qemu_img = g_shell_quote(path);
    add("theirs", test_theirs);
    add("ours", test_ours);
    g_test_add_data_func("/luks-qemu/slots/aes", "version=1", test_slots);
    g_test_add_data_func("/luks-qemu/slots/serpent", "version=1,cipher-alg=serpent-256", test_slots);
    g_test_add_func("/luks-qemu/messages", test_messages);
    int status = g_test_run();
    luks_test_end();
    g_free(qemu_img);
    return status;
}
