/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A writer killed in the middle: what it had flushed is there when the image is opened again, in every sector
 * that it was not just writing.
 */
#include "tests/unit/luks-test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"

#define RECORDS      64
#define RECORD_BYTES 9001 /* neighbours share sectors */
#define PAYLOAD      (640 * 1024)
#define ROUNDS       12

/* Shared with the writer: generation of each record that is flushed, and the one being written (or -1). */
typedef struct Progress {
    volatile uint32_t flushed[RECORDS];
    volatile int32_t writing;
    volatile uint32_t total;
} Progress;

static void fill(uint8_t *data, unsigned record, uint32_t generation)
{
    luks_test_fill(data, RECORD_BYTES, record * 1000003 + generation);
}

static Progress *map_progress(const char *path)
{
    auto_fd fd = open(path, O_RDWR | O_CREAT, 0600);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, sizeof(Progress)), ==, 0);
    void *memory = mmap(NULL, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(memory != MAP_FAILED);
    return memory;
}

/* Writes records over and over until it is killed. */
static int writer_main(const char *image, const char *progress_path)
{
    Progress *p = map_progress(progress_path);
    uint8_t data[RECORD_BYTES];
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    g_autofree char *text = g_strdup_printf(
        "driver=luks,key-secret=sec0,encrypt-in-parallel=2,file.driver=file,file.filename=%s", image);
    BlockNode *node = open_node(text);
    g_autoptr(GRand) rand = g_rand_new_with_seed(getpid());
    for (;;) {
        unsigned record = g_rand_int_range(rand, 0, RECORDS);
        uint32_t generation = p->flushed[record] + 1;
        fill(data, record, generation);
        p->writing = (int32_t)record;
        if (block_pwrite(node, (uint64_t)record * RECORD_BYTES, data, RECORD_BYTES, 0) || block_flush(node)) {
            return 1;
        }
        p->flushed[record] = generation;
        p->writing = -1;
        p->total++;
    }
}

static void check(const Progress *p, const uint8_t *all)
{
    uint8_t want[RECORD_BYTES];
    for (unsigned record = 0; record < RECORDS; record++) {
        const uint8_t *have = all + (size_t)record * RECORD_BYTES;
        fill(want, record, p->flushed[record]);
        if ((int32_t)record != p->writing) {
            g_assert_cmpint(memcmp(have, want, RECORD_BYTES), ==, 0);
            continue;
        }
        /* Each byte of the one being written is the old or the new one. */
        uint8_t next[RECORD_BYTES];
        fill(next, record, p->flushed[record] + 1);
        for (size_t i = 0; i < RECORD_BYTES; i++) {
            g_assert_true(have[i] == want[i] || have[i] == next[i]);
        }
    }
}

static void test_kill(gconstpointer format)
{
    GError *error = NULL;
    luks_test_create("kill.img", format, PAYLOAD);
    g_autofree char *image = luks_test_path("kill.img"), *progress = luks_test_path("progress");
    g_autofree char *self = g_file_read_link("/proc/self/exe", &error);
    g_autofree uint8_t *all = g_malloc(PAYLOAD);
    unlink(progress);
    Progress *p = map_progress(progress);
    p->writing = -1;
    BlockNode *node = luks_test_open("kill.img", "");
    for (unsigned record = 0; record < RECORDS; record++) {
        fill(all + (size_t)record * RECORD_BYTES, record, 0);
    }
    g_assert_cmpint(block_pwrite(node, 0, all, PAYLOAD, 0), ==, 0);
    luks_test_close(node);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t before = p->total;
        g_autoptr(GSubprocess) writer =
            g_subprocess_new(G_SUBPROCESS_FLAGS_NONE, &error, self, "--writer", image, progress, NULL);
        g_assert_no_error(error);
        for (int i = 0; i < 10000 && p->total < before + 5; i++) {
            g_usleep(1000);
        }
        g_usleep(g_test_rand_int_range(0, 20000));
        g_subprocess_send_signal(writer, SIGKILL);
        g_subprocess_wait(writer, NULL, NULL);
        g_assert_cmpint(g_subprocess_get_term_sig(writer), ==, SIGKILL);
        g_assert_cmpuint(p->total, >=, before + 5);
        node = luks_test_open("kill.img", "");
        g_assert_cmpint(block_pread(node, 0, all, PAYLOAD), ==, 0);
        check(p, all);
        if (p->writing >= 0) { /* settle the one that was torn */
            unsigned record = p->writing;
            fill(all, record, p->flushed[record]);
            g_assert_cmpint(block_pwrite(node, (uint64_t)record * RECORD_BYTES, all, RECORD_BYTES, 0), ==, 0);
            p->writing = -1;
        }
        luks_test_close(node);
    }
    g_test_message("%u records were flushed", p->total);
    munmap(p, sizeof *p);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--writer")) {
        return writer_main(argv[2], argv[3]);
    }
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    g_test_add_data_func("/luks-kill/luks1", "version=1", test_kill);
    g_test_add_data_func("/luks-kill/luks2-4096", "version=2,sector-size=4096", test_kill);
    int status = g_test_run();
    luks_test_end();
    return status;
}
