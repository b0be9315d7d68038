/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data path of `driver=luks` against a model in memory: odd sizes and offsets, many threads, faults
 * below.
 */
#include "tests/unit/luks-test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/iov.h"

#define SIZE (4 * 1024 * 1024)

typedef struct IoCase {
    const char *name, *format, *more;
} IoCase;

/* The first WAYS differ in how they do I/O, the others in the cipher. */
#define WAYS 4
static const IoCase io_cases[] = {
    {"xts/512/alone", "version=2", ",encrypt-in-parallel=off"},
    {"xts/512/crew", "version=2", ",encrypt-in-parallel=4"},
    {"luks1/no-helpers", "version=1", ",encrypt-in-parallel=4,aes-threads=0"},
    {"xts/4096/crew", "version=2,sector-size=4096", ",encrypt-in-parallel=4"},
    {"xts/4096/alone", "version=2,sector-size=4096", ",encrypt-in-parallel=off"},
    {"cbc/4096/crew", "version=2,sector-size=4096,cipher=aes-cbc-essiv:sha256", ",encrypt-in-parallel=4"},
    {"luks1/crew", "version=1", ",encrypt-in-parallel=4,aes-threads=2"},
    {"twofish/luks1", "version=1,cipher-alg=twofish-256", ",encrypt-in-parallel=2"},
    {"serpent/512", "version=2,cipher-alg=serpent-256", ",encrypt-in-parallel=2"},
};

/* Cuts [0, bytes) of `memory` into up to `max` parts of odd sizes. */
static int cut(GRand *rand, uint8_t *memory, size_t bytes, struct iovec *iov, int max)
{
    int n = 0;
    for (size_t at = 0; at < bytes; n++) {
        size_t left = bytes - at, part = g_rand_int_range(rand, 1, 70000);
        part = g_rand_int_range(rand, 0, 3) ? part : (part + 4095) / 4096 * 4096;
        part = n + 1 == max ? left : MIN(left, part);
        iov[n] = (struct iovec){memory + at, part};
        at += part;
    }
    return n;
}

static void sync_done(BlockRequest *request)
{
    *(bool *)request->opaque = true;
}

/* Through the boundary, with several parts of memory. */
static int submit(BlockNode *node, BlockOp op, uint64_t offset, const struct iovec *iov, int niov)
{
    bool done = false;
    BlockRequest request = {.node = node,
                            .op = op,
                            .offset = offset,
                            .bytes = iov_total(iov, niov),
                            .iov = iov,
                            .niov = niov,
                            .done = sync_done,
                            .opaque = &done};
    block_submit(&request);
    while (!done) {
        g_main_context_iteration(NULL, TRUE);
    }
    return request.result;
}

static void pick_range(GRand *rand, uint64_t *offset, size_t *bytes)
{
    static const int most[] = {1, 511, 513, 4096, 9000, 70000, SIZE};
    *offset = g_rand_int_range(rand, 0, SIZE);
    *bytes = g_rand_int_range(rand, 1, most[g_rand_int_range(rand, 0, G_N_ELEMENTS(most))] + 1);
    if (g_rand_boolean(rand)) {
        *offset &= ~4095ULL;
        *bytes = (*bytes + 4095) / 4096 * 4096;
    }
    *bytes = MIN(*bytes, SIZE - *offset);
}

static void test_random(gconstpointer data)
{
    const IoCase *c = data;
    luks_test_create("io.img", c->format, SIZE);
    BlockNode *node = luks_test_open("io.img", c->more);
    g_assert_cmpuint(block_info(node)->size, ==, SIZE);
    g_autofree uint8_t *model = g_malloc(SIZE), *memory = g_malloc(SIZE), *before = g_malloc(SIZE);
    luks_test_fill(model, SIZE, 1);
    g_assert_cmpint(block_pwrite(node, 0, model, SIZE, 0), ==, 0);
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    for (int i = 0; i < 300; i++) {
        struct iovec iov[200];
        uint64_t offset;
        size_t bytes;
        pick_range(rand, &offset, &bytes);
        int niov = cut(rand, memory, bytes, iov, g_rand_int_range(rand, 1, 200));
        if (g_rand_boolean(rand)) {
            luks_test_fill(memory, bytes, i + 2);
            memcpy(before, memory, bytes);
            g_assert_cmpint(submit(node, BLOCK_WRITE, offset, iov, niov), ==, 0);
            g_assert_cmpint(memcmp(before, memory, bytes), ==, 0); /* the caller's memory is not touched */
            memcpy(model + offset, memory, bytes);
        } else {
            g_assert_cmpint(submit(node, BLOCK_READ, offset, iov, niov), ==, 0);
            g_assert_cmpint(memcmp(model + offset, memory, bytes), ==, 0);
        }
    }
    luks_test_close(node);
    node = luks_test_open("io.img", ",encrypt-in-parallel=off,read-only=on");
    g_assert_cmpint(block_pread(node, 0, memory, SIZE), ==, 0);
    g_assert_cmpint(memcmp(model, memory, SIZE), ==, 0);
    luks_test_close(node);
}

static void test_write_zeroes(void)
{
    luks_test_create("zero.img", "version=2,sector-size=4096", SIZE);
    BlockNode *node = luks_test_open("zero.img", "");
    g_autofree uint8_t *model = g_malloc(SIZE), *memory = g_malloc(SIZE);
    luks_test_fill(model, SIZE, 3);
    g_assert_cmpint(block_pwrite(node, 0, model, SIZE, 0), ==, 0);
    g_assert_cmpint(block_write_zeroes(node, 5000, 3000000, BLOCK_MAY_UNMAP), ==, 0);
    memset(model + 5000, 0, 3000000);
    g_assert_cmpint(block_pread(node, 0, memory, SIZE), ==, 0);
    g_assert_cmpint(memcmp(model, memory, SIZE), ==, 0);
    luks_test_close(node);
}

/* Every byte belongs to one thread; neighbours share sectors, so that a torn read-modify-write shows. */
#define WRITERS 6
#define SHARED  (256 * 1024)
#define STRIPE  700

typedef struct Writer {
    BlockNode *node;
    unsigned index;
    uint32_t seed;
    uint8_t model[SHARED];
} Writer;

static gpointer writer_run(gpointer opaque)
{
    Writer *w = opaque;
    g_autoptr(GRand) rand = g_rand_new_with_seed(w->seed);
    uint8_t memory[STRIPE];
    for (int i = 0; i < 400; i++) {
        unsigned stripe = g_rand_int_range(rand, 0, SHARED / STRIPE / WRITERS) * WRITERS + w->index;
        unsigned from = g_rand_int_range(rand, 0, STRIPE),
                 bytes = g_rand_int_range(rand, 1, STRIPE - from + 1);
        uint64_t offset = (uint64_t)stripe * STRIPE + from;
        if (g_rand_boolean(rand)) {
            luks_test_fill(memory, bytes, i * WRITERS + w->index);
            g_assert_cmpint(block_pwrite(w->node, offset, memory, bytes, 0), ==, 0);
            memcpy(w->model + offset, memory, bytes);
        } else {
            g_assert_cmpint(block_pread(w->node, offset, memory, bytes), ==, 0);
            g_assert_cmpint(memcmp(w->model + offset, memory, bytes), ==, 0);
        }
    }
    return NULL;
}

static void test_neighbours(gconstpointer data)
{
    const IoCase *c = data;
    luks_test_create("nb.img", c->format, SHARED);
    BlockNode *node = luks_test_open("nb.img", c->more);
    g_autofree uint8_t *all = g_malloc(SHARED);
    luks_test_fill(all, SHARED, 5);
    g_assert_cmpint(block_pwrite(node, 0, all, SHARED, 0), ==, 0);
    g_autofree Writer *writers = g_new0(Writer, WRITERS);
    GThread *threads[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i].node = node;
        writers[i].index = i;
        writers[i].seed = g_test_rand_int();
        memcpy(writers[i].model, all, SHARED);
        threads[i] = g_thread_new("writer", writer_run, &writers[i]);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        g_thread_join(threads[i]);
        for (size_t stripe = i; (stripe + 1) * STRIPE <= SHARED; stripe += WRITERS) {
            memcpy(all + stripe * STRIPE, writers[i].model + stripe * STRIPE, STRIPE);
        }
    }
    g_autofree uint8_t *have = g_malloc(SHARED);
    g_assert_cmpint(block_pread(node, 0, have, SHARED), ==, 0);
    g_assert_cmpint(memcmp(all, have, SHARED), ==, 0);
    luks_test_close(node);
}

/* Writers of overlapping ranges, each with bytes of its own: what a reader sees of a range that all of them
 * cover is one writer's. */
#define OVERLAP (1536 * 1024)
#define CORE_AT (600 * 1024)
#define CORE    (300 * 1024)

typedef struct Overlapper {
    BlockNode *node;
    uint8_t value;
    uint32_t seed;
} Overlapper;

static gpointer overlap_run(gpointer opaque)
{
    Overlapper *o = opaque;
    g_autoptr(GRand) rand = g_rand_new_with_seed(o->seed);
    g_autofree uint8_t *memory = g_malloc(OVERLAP);
    for (int i = 0; i < 40; i++) {
        uint64_t from = g_rand_int_range(rand, 0, CORE_AT),
                 to = g_rand_int_range(rand, CORE_AT + CORE, OVERLAP);
        if (o->value) {
            memset(memory, o->value, to - from);
            g_assert_cmpint(block_pwrite(o->node, from, memory, to - from, 0), ==, 0);
            continue;
        }
        g_assert_cmpint(block_pread(o->node, from, memory, to - from), ==, 0);
        const uint8_t *core = memory + (CORE_AT - from);
        g_assert_cmpint(core[0], >, 0);
        g_assert_cmpint(core[0], <=, 4);
        g_assert_cmpint(memcmp(core, core + 1, CORE - 1), ==, 0);
    }
    return NULL;
}

static void test_overlap(gconstpointer data)
{
    const IoCase *c = data;
    luks_test_create("ov.img", c->format, OVERLAP);
    BlockNode *node = luks_test_open("ov.img", c->more);
    g_autofree uint8_t *all = g_malloc(OVERLAP);
    memset(all, 1, OVERLAP);
    g_assert_cmpint(block_pwrite(node, 0, all, OVERLAP, 0), ==, 0);
    Overlapper overlappers[6];
    GThread *threads[6];
    for (unsigned i = 0; i < 6; i++) {
        overlappers[i] = (Overlapper){node, i < 4 ? i + 1 : 0, g_test_rand_int()};
        threads[i] = g_thread_new("overlap", overlap_run, &overlappers[i]);
    }
    for (unsigned i = 0; i < 6; i++) {
        g_thread_join(threads[i]);
    }
    luks_test_close(node);
}

/* A fixed script over a child whose Nth operation fails, for every N until it passes. A failed call says so,
 * and what it did not cover is as it was. */
static void fault_script(BlockNode *node, uint8_t *model, uint8_t *memory)
{
    static const struct {
        uint64_t offset;
        size_t bytes;
    } steps[] = {{0, 2600000},  {4096, 8192},      {100, 50},
                 {1048570, 20}, {700000, 1500000}, {SIZE - 3000, 3000}};
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        luks_test_fill(memory, steps[i].bytes, i);
        int r = block_pwrite(node, steps[i].offset, memory, steps[i].bytes, 0);
        if (r < 0) {
            g_assert_cmpint(r, ==, -EIO);
            /* The layer goes on: the same write works now. */
            r = block_pwrite(node, steps[i].offset, memory, steps[i].bytes, 0);
            g_assert_cmpint(r, ==, 0);
        }
        memcpy(model + steps[i].offset, memory, steps[i].bytes);
        r = block_pread(node, steps[i].offset, memory, steps[i].bytes);
        if (r < 0) {
            g_assert_cmpint(r, ==, -EIO);
            r = block_pread(node, steps[i].offset, memory, steps[i].bytes);
        }
        g_assert_cmpint(r, ==, 0);
        g_assert_cmpint(memcmp(memory, model + steps[i].offset, steps[i].bytes), ==, 0);
    }
    int r = block_flush(node);
    g_assert_true(r == 0 || r == -EIO);
}

static void test_fault(gconstpointer data)
{
    const IoCase *c = data;
    luks_test_create("fault.img", c->format, SIZE);
    g_autofree uint8_t *model = g_malloc(SIZE), *memory = g_malloc(SIZE);
    luks_test_fill(model, SIZE, 29);
    BlockNode *node = luks_test_open("fault.img", "");
    g_assert_cmpint(block_pwrite(node, 0, model, SIZE, 0), ==, 0);
    luks_test_close(node);
    unsigned failed_opens = 0, n;
    for (n = 1; n < 200; n++) {
        g_autofree char *text = g_strdup_printf(
            "driver=luks,key-secret=sec0%s,file.driver=fault,file.fail-nth=%u,file.file.driver=file,"
            "file.file.filename=%s/fault.img",
            c->more, n, luks_test_folder());
        GError *error = NULL;
        g_autoptr(Options) options = options_parse(text, NULL, &error);
        node = block_open(options, &error);
        if (!node) {
            g_assert_nonnull(strstr(error->message, "Unable to read encryption header: Input/output error"));
            g_clear_error(&error);
            failed_opens++;
            continue;
        }
        fault_script(node, model, memory);
        if (block_pread(node, 0, memory, SIZE) < 0) {
            g_assert_cmpint(block_pread(node, 0, memory, SIZE), ==, 0);
        }
        g_assert_cmpint(memcmp(memory, model, SIZE), ==, 0);
        const BlockStats *stats = block_stats(block_child(node, "file"));
        bool failed = stats->failed[BLOCK_READ] || stats->failed[BLOCK_WRITE] || stats->failed[BLOCK_FLUSH];
        luks_test_close(node);
        if (!failed) {
            break;
        }
    }
    g_test_message("%u operations, %u of them while opening", n, failed_opens);
    g_assert_cmpuint(failed_opens, >, 0);
    g_assert_cmpuint(n, >, 20);
    g_assert_cmpuint(n, <, 200);
}

/* Where the child is a tmpfs, small writes of whole sectors take no worker; all others do, and both see each
 * other's data. */
static void test_write_now(gconstpointer data)
{
    static const struct {
        uint64_t offset;
        size_t bytes;
        BlockFlags flags;
        bool now;
    } writes[] = {
        {0, 4096, 0, true},
        {8192, 16384, 0, true},
        {12288, 4096, 0, true},
        {16384, 20480, 0, false},
        {100, 4096, 0, false},
        {4096, 4000, 0, false},
        {40960, 4096, BLOCK_FUA, false},
        {SIZE - 4096, 4096, 0, true},
    };
    const IoCase *c = data;
    luks_test_create("now.img", c->format, SIZE);
    g_autofree char *path = g_strdup_printf("/dev/shm/spindle-test-%d.img", (int)getpid());
    luks_test_must(NULL, "cp now.img %s", path);
    g_autofree char *text =
        g_strdup_printf("driver=luks,key-secret=sec0,file.driver=file,file.filename=%s", path);
    BlockNode *node = open_node(text);
    g_autofree uint8_t *model = g_malloc0(SIZE), *memory = g_malloc(SIZE);
    g_assert_cmpint(block_pwrite(node, 0, model, SIZE, 0), ==, 0);
    uint64_t now = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(writes); i++) {
        bool done = false;
        luks_test_fill(model + writes[i].offset, writes[i].bytes, i + 1);
        BlockRequest request;
        memset(&request, 0, sizeof request);
        block_request_init(&request, node, BLOCK_WRITE, writes[i].offset, model + writes[i].offset,
                           writes[i].bytes, sync_done, &done);
        request.flags = writes[i].flags;
        block_submit(&request);
        g_assert_false(done); /* never from inside of submit */
        while (!done) {
            g_main_context_iteration(NULL, TRUE);
        }
        g_assert_cmpint(request.result, ==, 0);
        now += writes[i].now;
        g_assert_cmpuint(block_stats(node)->write_now, ==, now);
    }
    luks_test_close(node);
    node = open_node(text); /* what reached the file */
    g_assert_cmpint(block_pread(node, 0, memory, SIZE), ==, 0);
    g_assert_cmpint(memcmp(memory, model, SIZE), ==, 0);
    luks_test_close(node);
    g_assert_cmpint(unlink(path), ==, 0);
}

static void test_range(void)
{
    luks_test_create("range.img", "version=2,sector-size=4096", 8192);
    BlockNode *node = luks_test_open("range.img", "");
    uint8_t memory[100] = {0};
    g_assert_cmpuint(block_info(node)->size, ==, 8192);
    g_assert_cmpint(block_pread(node, 8192, memory, 1), ==, -EINVAL);
    g_assert_cmpint(block_pread(node, 8100, memory, 100), ==, -EINVAL);
    g_assert_cmpint(block_pwrite(node, 8100, memory, 92, 0), ==, 0);
    luks_test_close(node);
}

static void test_resize(void)
{
    GError *error = NULL;
    luks_test_create("resize.img", "version=2,sector-size=4096", 8192);
    BlockNode *node = luks_test_open("resize.img", "");
    g_assert_cmpint(block_resize(node, 8704, &error), <, 0);
    g_assert_cmpstr(error->message, ==,
                    "The size of the volume must be a multiple of its sector size (4096 bytes)");
    g_clear_error(&error);
    g_assert_cmpint(block_resize(node, 40960, &error), ==, 0);
    uint8_t byte = 77;
    g_assert_cmpint(block_pwrite(node, 40959, &byte, 1, 0), ==, 0);
    luks_test_close(node);
    node = luks_test_open("resize.img", "");
    g_assert_cmpuint(block_info(node)->size, ==, 40960);
    byte = 0;
    g_assert_cmpint(block_pread(node, 40959, &byte, 1), ==, 0);
    g_assert_cmpint(byte, ==, 77);
    luks_test_close(node);
}

/* Discard is the user's choice, reaches whole sectors only, and leaves the others alone. */
static void test_discard(void)
{
    g_autofree uint8_t *model = g_malloc(SIZE), *memory = g_malloc(SIZE);
    luks_test_create("discard.img", "version=2,sector-size=4096", SIZE);
    luks_test_fill(model, SIZE, 31);
    for (int allowed = 0; allowed < 2; allowed++) {
        BlockNode *node = luks_test_open("discard.img", allowed ? ",discard=unmap" : "");
        g_assert_cmpint(block_pwrite(node, 0, model, SIZE, 0), ==, 0);
        g_assert_cmpint(block_discard(node, 100, 1000000), ==, 0);
        g_assert_cmpint(block_pread(node, 0, memory, SIZE), ==, 0);
        g_assert_cmpint(memcmp(memory, model, 4096), ==, 0);
        g_assert_cmpint(memcmp(memory + 4096, model + 4096, 900000) != 0, ==, allowed);
        g_assert_cmpint(memcmp(memory + 1000100, model + 1000100, SIZE - 1000100), ==, 0);
        luks_test_close(node);
    }
}

static void add_cases(const char *prefix, GTestDataFunc call, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        g_autofree char *path = g_strdup_printf("/luks-io/%s/%s", prefix, io_cases[i].name);
        g_test_add_data_func(path, &io_cases[i], call);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    luks_test_secret("sec0", LUKS_TEST_PASSPHRASE);
    add_cases("random", test_random, G_N_ELEMENTS(io_cases));
    add_cases("neighbours", test_neighbours, G_N_ELEMENTS(io_cases));
    add_cases("overlap", test_overlap, WAYS);
    add_cases("fault", test_fault, WAYS);
    add_cases("write-now", test_write_now, WAYS);
    g_test_add_func("/luks-io/write-zeroes", test_write_zeroes);
    g_test_add_func("/luks-io/range", test_range);
    g_test_add_func("/luks-io/resize", test_resize);
    g_test_add_func("/luks-io/discard", test_discard);
    int status = g_test_run();
    luks_test_end();
    return status;
}
