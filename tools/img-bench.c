/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img bench: requests of one size at a fixed depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/img-copy.h"
#include "tools/img.h"
#include "util/log.h"

#define MISALIGN 16

typedef struct Bench Bench;

typedef struct Slot {
    BlockRequest request;
    Bench *bench;
    uint8_t *memory, *data; /* allocated; used */
    gint64 start;
} Slot;

struct Bench {
    BlockNode *node;
    uint64_t count, depth, size, step, offset, flush_interval;
    bool write, no_drain, random, misalign, quiet;
    uint64_t pattern, seed;
    BlockFlags flags;
    uint64_t submitted, finished, in_flight;
    uint64_t since_flush; /* requests since the last flush was asked for */
    bool flush_due, flushing;
    BlockRequest flush;
    int result;
    Slot *slots;
    float *latencies; /* microseconds, `count` of them */
    Progress *progress;
};

static void submit_next(Slot *slot);

static uint64_t next_offset(Bench *b)
{
    uint64_t image = block_info(b->node)->size;
    if (b->random) { /* xorshift64: even, fast, the same each time */
        b->seed ^= b->seed << 13;
        b->seed ^= b->seed >> 7;
        b->seed ^= b->seed << 17;
        uint64_t slots = image / b->size;
        return slots ? b->seed % slots * b->size : 0;
    }
    uint64_t offset = b->offset;
    b->offset += b->step;
    if (b->offset >= image || b->size > image - b->offset) {
        b->offset = image && b->offset % image + b->size <= image ? b->offset % image : 0;
    }
    return offset;
}

/* Sets every idle slot to work, as far as flushes allow. */
static void fill_slots(Bench *b)
{
    for (uint64_t i = 0; i < b->depth; i++) {
        Slot *slot = &b->slots[i];
        if (!slot->start) {
            submit_next(slot);
        }
    }
}

static void flush_done(BlockRequest *request)
{
    Bench *b = request->opaque;
    b->flushing = false;
    b->in_flight--;
    b->result = request->result < 0 ? request->result : b->result;
    fill_slots(b);
}

/* A flush that is due begins when everything before it is done, or at once with --no-drain. */
static void start_flush(Bench *b)
{
    if (!b->flush_due || b->flushing || (!b->no_drain && b->in_flight)) {
        return;
    }
    b->flush_due = false;
    b->flushing = true;
    b->in_flight++;
    b->flush = (BlockRequest){.node = b->node, .op = BLOCK_FLUSH, .done = flush_done, .opaque = b};
    block_submit(&b->flush);
}

static void slot_done(BlockRequest *request)
{
    Slot *slot = request->opaque;
    Bench *b = slot->bench;
    b->latencies[b->finished++] = g_get_monotonic_time() - slot->start;
    slot->start = 0;
    b->in_flight--;
    b->result = request->result < 0 ? request->result : b->result;
    progress_add(b->progress, b->size);
    if (b->flush_interval && ++b->since_flush == b->flush_interval) {
        b->since_flush = 0;
        b->flush_due = true;
    }
    start_flush(b);
    submit_next(slot); /* or flush_done() does */
}

static void submit_next(Slot *slot)
{
    Bench *b = slot->bench;
    bool held = !b->no_drain && (b->flush_due || b->flushing);
    if (b->result < 0 || b->submitted == b->count || held) {
        return;
    }
    b->submitted++;
    b->in_flight++;
    slot->start = g_get_monotonic_time();
    slot->request.priv = (struct BlockRequestPrivate){0};
    block_request_init(&slot->request, b->node, b->write ? BLOCK_WRITE : BLOCK_READ, next_offset(b),
                       slot->data, b->size, slot_done, slot);
    slot->request.flags = b->flags;
    block_submit(&slot->request);
}

static bool bench_prepare(Bench *b)
{
    b->slots = g_new0(Slot, b->depth);
    b->latencies = g_new0(float, b->count);
    for (uint64_t i = 0; i < b->depth; i++) {
        Slot *slot = &b->slots[i];
        slot->bench = b;
        if (posix_memalign((void **)&slot->memory, 4096, b->size + MISALIGN)) {
            slot->memory = NULL;
            log_error("Cannot allocate %" G_GUINT64_FORMAT " buffers of %" G_GUINT64_FORMAT " bytes",
                      b->depth, b->size);
            return false;
        }
        slot->data = slot->memory + (b->misalign ? MISALIGN : 0);
        memset(slot->data, b->pattern, b->size);
    }
    return true;
}

static void bench_clear(Bench *b)
{
    for (uint64_t i = 0; b->slots && i < b->depth; i++) {
        free(b->slots[i].memory);
    }
    g_free(b->slots);
    g_free(b->latencies);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_result(Bench *b, double seconds)
{
    printf("Run completed in %3.3f seconds.\n", seconds);
    if (b->quiet) {
        return;
    }
    qsort(b->latencies, b->count, sizeof *b->latencies, by_value);
    printf("%.1f MiB/s, %.0f requests/s; latency in microseconds: median %.0f, 99 %% below %.0f, most %.0f\n",
           b->count * b->size / seconds / (1 << 20), b->count / seconds, b->latencies[b->count / 2],
           b->latencies[b->count * 99 / 100], b->latencies[b->count - 1]);
}

static int bench_go(Bench *b, const ToolArgs *args)
{
    if (!bench_prepare(b)) {
        return EXIT_FAILURE;
    }
    printf("Sending %" G_GUINT64_FORMAT " %s requests, %" G_GUINT64_FORMAT " bytes each, %" G_GUINT64_FORMAT
           " in parallel (",
           b->count, b->write ? "write" : "read", b->size, b->depth);
    if (b->random) {
        printf("at random offsets)\n");
    } else {
        printf("starting at offset %" G_GUINT64_FORMAT ", step size %" G_GUINT64_FORMAT ")\n", b->offset,
               b->step);
    }
    if (b->flush_interval) {
        printf("Sending flush every %" G_GUINT64_FORMAT " requests\n", b->flush_interval);
    }
    fflush(stdout);
    b->progress = img_progress(args, b->count * b->size);
    gint64 start = g_get_monotonic_time();
    fill_slots(b);
    while (b->in_flight) {
        g_main_context_iteration(NULL, TRUE);
    }
    double seconds = MAX(g_get_monotonic_time() - start, 1) / 1e6;
    bool drawn = img_progress_end(args, b->progress);
    if (b->result < 0) {
        log_error("Failed request: %s", g_strerror(b->result == -EINVAL ? EIO : -b->result));
        return EXIT_FAILURE;
    }
    print_result(b, seconds);
    return drawn ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool take_numbers(const ToolArgs *args, Bench *b)
{
    static const char *const aio[] = {"threads", "native", "io_uring", NULL};
    const char *mode = tool_has(args, "native") ? "native" : tool_get(args, "aio");
    bool direct = false, ignored;
    image_parse_cache(tool_get(args, "cache"), &direct, &ignored, &ignored);
    if (mode && !strcmp(mode, "native") && !direct) {
        log_error("Could not open '%s': aio=native was specified, but it requires cache.direct=on, which was "
                  "not specified.",
                  tool_operand(args, 0) ? tool_operand(args, 0) : "");
        return false;
    }
    if (mode && !g_strv_contains(aio, mode)) {
        log_error("Invalid aio option: %s", mode);
        return false;
    }
    if (!tool_get_size(args, "count", "request count", 1, INT32_MAX, &b->count) ||
        !tool_get_size(args, "depth", "queue depth", 1, INT32_MAX, &b->depth) ||
        !tool_get_size(args, "offset", "offset", 0, INT64_MAX, &b->offset) ||
        !tool_get_size(args, "buffer-size", "buffer size", 1, INT32_MAX, &b->size) ||
        !tool_get_size(args, "step-size", "step size", 0, INT32_MAX, &b->step) ||
        !tool_get_size(args, "pattern", "pattern byte", 0, UINT8_MAX, &b->pattern) ||
        !tool_get_size(args, "flush-interval", "flush interval", 0, INT32_MAX, &b->flush_interval)) {
        return false;
    }
    b->step = tool_has(args, "step-size") && b->step ? b->step : b->size;
    b->write = tool_has(args, "write");
    b->no_drain = tool_has(args, "no-drain");
    b->random = tool_has(args, "random");
    b->misalign = tool_has(args, "misalign");
    b->quiet = tool_has(args, "quiet");
    b->seed = 0x9e3779b97f4a7c15;
    if (!b->write && b->flush_interval) {
        log_error("--flush-interval is only available in write tests");
        return false;
    }
    if (b->flush_interval && b->flush_interval < b->depth) {
        log_error("Flush interval can't be smaller than depth");
        return false;
    }
    return true;
}

static int bench_run(const ToolArgs *args)
{
    Bench b = {.count = 75000, .depth = 64, .size = 4096};
    if (!take_numbers(args, &b)) {
        return EXIT_FAILURE;
    }
    if (tool_count(args) != 1) {
        return tool_wrong(args, "Expecting one image file name");
    }
    g_auto(Image) image = {0};
    GError *error = NULL;
    if (!img_open(args, tool_operand(args, 0), "cache", b.write, &image)) {
        return EXIT_FAILURE;
    }
    if (b.write && !block_claim_write(image.node, &error)) {
        log_gerror(error, "Could not open '%s': ", image.name);
        return EXIT_FAILURE;
    }
    b.node = image.node;
    b.flags = b.write && image.writethrough ? BLOCK_FUA : 0;
    int status = bench_go(&b, args);
    bench_clear(&b);
    return status;
}

static const ToolOption bench_options[] = {
    IMG_FORMAT,
    IMG_IMAGE_OPTS,
    {'t', "cache", "CACHE", "cache mode (writeback)"},
    {'c', "count", "COUNT", "requests (75000)"},
    {'d', "depth", "DEPTH", "requests at the same time (64)"},
    {'o', "offset", "OFFSET", "where the first one begins (0)"},
    {'s', "buffer-size", "SIZE", "bytes in each (4k)"},
    {'S', "step-size", "SIZE", "from one to the next (the same)"},
    {0, "random", NULL, "at random offsets, multiples of the size; the same ones each time"},
    {'w', "write", NULL, "write instead of read"},
    {0, "pattern", "BYTE", "write this byte (0)"},
    {0, "flush-interval", "COUNT", "flush after so many writes"},
    {0, "no-drain", NULL, "flush without waiting for the requests under way"},
    {0, "misalign", NULL, "use memory that O_DIRECT cannot take"},
    {'i', "aio", "MODE", "threads, native or io_uring; accepted as in qemu-img"},
    {'n', "native", NULL, "accepted as in qemu-img"},
    IMG_PLOT,
    IMG_PROGRESS,
    TOOL_QUIET,
    TOOL_SHARE,
    TOOL_OBJECT,
    TOOL_HELP,
    {0},
};

const ToolCommand img_bench = {
    .name = "bench",
    .summary = "Measures how fast requests are answered",
    .usage = "[-f FMT | --image-opts] [-t CACHE] [-c COUNT] [-d DEPTH] [-o OFFSET]\n"
             "        [-s SIZE] [-S STEP | --random] [-w [--pattern BYTE] [--flush-interval COUNT\n"
             "        [--no-drain]]] [-U] [-p] [-q] [--plot FILE.png] [--object OBJDEF] FILE",
    .options = bench_options,
    .operands = "  FILE\n     the image; with -w its content is lost\n",
    .examples = "  spindle-img bench -s 1M -c 4096 -d 4 disc.iso\n"
                "  spindle-img bench -t none -d 32 --random disk.img\n"
                "  spindle-img bench -w -f raw --flush-interval 1000 -d 32 scratch.img\n",
    .run = bench_run,
};
