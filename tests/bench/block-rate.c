/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Requests through the block boundary, as fast as they go: for the benchmarks.
 *
 *   block-rate read|write OPTIONS SIZE DEPTH COUNT [random] [misaligned]
 *   block-rate copy FROM TO SIZE DEPTH
 *   block-rate secret=ID,DATA …            (before the command, for `key-secret=ID`)
 *
 * OPTIONS are block_open()'s. Prints `bytes seconds cpu-seconds`; CPU is that of the whole process.
 */
#include "block/block.h"
#include "block/secret-object.h"
#include "util/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct Run {
    BlockNode *from, *to; /* the same node for read and write */
    uint64_t size, count, span;
    uint64_t begun, ended;
    bool random, copy, write;
    GRand *rand;
} Run;

typedef struct Slot {
    Run *run;
    BlockRequest request;
    Buffer *buffer;
    uint8_t *data;
    bool writing; /* second half of a copy */
} Slot;

static void slot_next(Slot *slot);

static void die(const char *what, GError *error)
{
    fprintf(stderr, "block-rate: %s: %s\n", what, error ? error->message : "failed");
    exit(1);
}

static void slot_done(BlockRequest *request)
{
    Slot *slot = request->opaque;
    if (request->result < 0) {
        fprintf(stderr, "block-rate: request at %" G_GUINT64_FORMAT " failed: %s\n", request->offset,
                g_strerror(-request->result));
        exit(1);
    }
    if (slot->run->copy && !slot->writing) {
        uint64_t offset = request->offset, bytes = request->bytes;
        slot->writing = true;
        memset(&slot->request, 0, sizeof slot->request);
        block_request_init(&slot->request, slot->run->to, BLOCK_WRITE, offset, slot->data, bytes, slot_done,
                           slot);
        block_submit(&slot->request);
        return;
    }
    slot->run->ended++;
    slot_next(slot);
}

static void slot_next(Slot *slot)
{
    Run *run = slot->run;
    if (run->begun == run->count) {
        return;
    }
    uint64_t places = run->span / run->size;
    uint64_t place = run->random ? (uint64_t)(g_rand_double(run->rand) * places) : run->begun % places;
    run->begun++;
    slot->writing = false;
    memset(&slot->request, 0, sizeof slot->request);
    block_request_init(&slot->request, run->from, run->write ? BLOCK_WRITE : BLOCK_READ, place * run->size,
                       slot->data, run->size, slot_done, slot);
    block_submit(&slot->request);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run_all(Run *run, unsigned depth, bool misaligned)
{
    g_autofree Slot *slots = g_new0(Slot, depth);
    run->rand = g_rand_new_with_seed(1);
    for (unsigned i = 0; i < depth; i++) {
        slots[i].run = run;
        slots[i].buffer = buffer_new(run->size + BUFFER_ALIGN, BUFFER_ALIGN);
        slots[i].data = slots[i].buffer->data + (misaligned ? 16 : 0);
        memset(slots[i].data, i + 1, run->size);
    }
    double cpu = cpu_seconds();
    gint64 start = g_get_monotonic_time();
    for (unsigned i = 0; i < depth; i++) {
        slot_next(&slots[i]);
    }
    while (run->ended < run->count) {
        g_main_context_iteration(NULL, TRUE);
    }
    if (run->copy || run->write) {
        block_flush(run->copy ? run->to : run->from);
    }
    printf("%" G_GUINT64_FORMAT " %.6f %.6f\n", run->count * run->size,
           (g_get_monotonic_time() - start) / 1e6, cpu_seconds() - cpu);
    for (unsigned i = 0; i < depth; i++) {
        buffer_unref(slots[i].buffer);
    }
    g_rand_free(run->rand);
}

static BlockNode *open_text(const char *text)
{
    GError *error = NULL;
    g_autoptr(Options) options = options_parse(text, NULL, &error);
    BlockNode *node = options ? block_open(options, &error) : NULL;
    if (!node) {
        die(text, error);
    }
    return node;
}

static void add_secret(const char *text)
{
    GError *error = NULL;
    g_auto(GStrv) part = g_strsplit(text, ",", 2);
    g_autoptr(Options) options = options_new();
    options_set(options, "id", part[0]);
    options_set(options, "data", part[1] ? part[1] : "");
    if (!secret_object_add(options, &error)) {
        die(text, error);
    }
}

int main(int argc, char **argv)
{
    for (; argc > 1 && g_str_has_prefix(argv[1], "secret="); argc--, argv++) {
        add_secret(argv[1] + strlen("secret="));
    }
    Run run = {0};
    unsigned depth;
    bool misaligned = false;
    if (argc == 6 && !strcmp(argv[1], "copy")) {
        run.copy = true;
        run.from = open_text(argv[2]);
        run.to = open_text(argv[3]);
        run.size = strtoull(argv[4], NULL, 10);
        depth = atoi(argv[5]);
        run.span = block_info(run.from)->size;
        run.count = run.span / run.size;
    } else if (argc >= 6 && (!strcmp(argv[1], "read") || !strcmp(argv[1], "write"))) {
        run.write = argv[1][0] == 'w';
        run.from = open_text(argv[2]);
        run.size = strtoull(argv[3], NULL, 10);
        depth = atoi(argv[4]);
        run.count = strtoull(argv[5], NULL, 10);
        run.span = block_info(run.from)->size;
        for (int i = 6; i < argc; i++) {
            run.random |= !strcmp(argv[i], "random");
            misaligned |= !strcmp(argv[i], "misaligned");
        }
    } else {
        fprintf(
            stderr,
            "usage: block-rate [secret=ID,DATA] read|write OPTIONS SIZE DEPTH COUNT [random] [misaligned]\n"
            "       block-rate [secret=ID,DATA] copy FROM TO SIZE DEPTH\n");
        return 2;
    }
    run_all(&run, MAX(depth, 1), misaligned);
    block_unref(run.from);
    block_unref(run.to);
    return block_shutdown(10000) ? 0 : 1;
}
