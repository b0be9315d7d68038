/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * spindle-img trace-plot: where a guest read over time, how long it waited, and the throughput, as a picture
 * of the trace event block_read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/draw.h"
#include "tools/img.h"
#include "util/error.h"
#include "util/log.h"

#define WIDTH       1280
#define HEIGHT      860
#define LEFT        110
#define RIGHT       30
#define KIND_WIDTH  190 /* of the legend */
#define PLACES_TOP  140
#define PLACES_HIGH 438
#define RATES_TOP   638
#define RATES_HIGH  150
#define SCALE       2
#define BIN         4 /* pixels of one bar of the throughput */
#define MARK        4 /* pixels of a read, at least */
#define READS_MAX   (32u * 1024 * 1024)
#define US          1e6
#define MIB         ((double)(1 << 20))
#define GIB_FROM    8192.0 /* MiB */

typedef enum { READ_AHEAD, READ_NOW, READ_SHORT, READ_LONG, READ_TOO_LONG, READ_FAILED, READ_KINDS } ReadKind;

static const struct {
    const char *title;
    uint32_t color;
} kinds[READ_KINDS] = {
    [READ_AHEAD] = {"read ahead", 0xb0b0b0},     [READ_NOW] = {"at once", 0x2a9d4a},
    [READ_SHORT] = {"under 10 ms", 0x2266bb},    [READ_LONG] = {"10 to 100 ms", 0xe08a00},
    [READ_TOO_LONG] = {"over 100 ms", 0xd02020}, [READ_FAILED] = {"failed", 0xc000c0},
};

typedef struct Read {
    int64_t start, took; /* us */
    uint64_t offset, bytes;
    ReadKind kind;
} Read;

/* The reads of one node. */
typedef struct Reads {
    char *node;
    GArray *list; /* of Read */
    uint64_t bytes;
} Reads;

typedef struct Picture {
    const Reads *reads;
    int64_t begin, end; /* us */
    uint64_t top;       /* bytes */
    unsigned counts[READ_KINDS];
    int64_t waited; /* us, in all */
    Drawing *drawing;
} Picture;

static void reads_free(void *opaque)
{
    Reads *reads = opaque;
    g_array_unref(reads->list);
    g_free(reads->node);
    g_free(reads);
}

static ReadKind kind_of(const char *how, int64_t took, int result)
{
    return result < 0              ? READ_FAILED
           : !strcmp(how, "ahead") ? READ_AHEAD
           : !strcmp(how, "now")   ? READ_NOW
           : took < 10000          ? READ_SHORT
           : took < 100000         ? READ_LONG
                                   : READ_TOO_LONG;
}

/* True: a line of the event; others are none of ours. */
static bool parse_line(const char *line, char node[64], Read *ret)
{
    char how[8];
    int result;
    const char *at = strstr(line, "block_read node ");
    if (!at || sscanf(at,
                      "block_read node %63s %7s at %" G_GINT64_FORMAT " took %" G_GINT64_FORMAT
                      " offset %" G_GUINT64_FORMAT " bytes %" G_GUINT64_FORMAT " result %d",
                      node, how, &ret->start, &ret->took, &ret->offset, &ret->bytes, &result) != 7) {
        return false;
    }
    ret->kind = kind_of(how, ret->took, result);
    return ret->start >= 0 && ret->took >= 0 && ret->bytes <= G_MAXINT64 &&
           ret->offset <= G_MAXINT64 - ret->bytes && ret->took <= G_MAXINT64 - ret->start;
}

static void add_read(GHashTable *nodes, const char *node, const Read *read)
{
    Reads *reads = g_hash_table_lookup(nodes, node);
    if (!reads) {
        reads = g_new0(Reads, 1);
        reads->node = g_strdup(node);
        reads->list = g_array_new(FALSE, FALSE, sizeof(Read));
        g_hash_table_insert(nodes, reads->node, reads);
    }
    g_array_append_vals(reads->list, read, 1);
    reads->bytes += read->bytes;
}

/* All nodes of the trace, or NULL and an error. */
static GHashTable *load(const char *path, GError **error)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, reads_free);
    FILE *file = fopen(path, "re");
    char line[1024], node[64];
    unsigned count = 0;
    Read read;
    if (!file) {
        error_set_errno(error, errno, "Could not open '%s'", path);
        return NULL;
    }
    while (count < READS_MAX && fgets(line, sizeof line, file)) {
        if (parse_line(line, node, &read)) {
            add_read(nodes, node, &read);
            count++;
        }
    }
    const int broken = ferror(file) ? errno : 0;
    fclose(file);
    if (broken) {
        error_set_errno(error, broken, "Could not read '%s'", path);
        return NULL;
    }
    if (!count) {
        error_set(error,
                  "'%s' holds no reads: record them with the trace event 'block_read' (--trace "
                  "enable=block_read,file=%s)",
                  path, path);
        return NULL;
    }
    if (count == READS_MAX) {
        log_warn("Only the first %u reads are drawn", count);
    }
    return g_steal_pointer(&nodes);
}

/* The node that was asked for, or that was read the most. */
static const Reads *choose(GHashTable *nodes, const char *name, GError **error)
{
    GHashTableIter iter;
    void *value;
    const Reads *best = name ? g_hash_table_lookup(nodes, name) : NULL;
    g_autoptr(GString) names = g_string_new(NULL);
    g_hash_table_iter_init(&iter, nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Reads *reads = value;
        g_string_append_printf(names, "%s%s", names->len ? ", " : "", reads->node);
        if (!name && (!best || reads->list->len > best->list->len)) {
            best = reads;
        }
    }
    if (!best) {
        error_set(error, "No reads of node '%s'; there are: %s", name, names->str);
    } else if (!name && g_hash_table_size(nodes) > 1) {
        log_info("drawing node '%s' (--node chooses; there are: %s)", best->node, names->str);
    }
    return best;
}

static void measure(Picture *p)
{
    p->begin = G_MAXINT64;
    for (guint i = 0; i < p->reads->list->len; i++) {
        const Read *r = &g_array_index(p->reads->list, Read, i);
        p->begin = MIN(p->begin, r->start);
        p->end = MAX(p->end, r->start + r->took);
        p->top = MAX(p->top, r->offset + r->bytes);
        p->counts[r->kind]++;
        p->waited += r->kind == READ_AHEAD ? 0 : r->took;
    }
    p->end = MAX(p->end, p->begin + 1);
}

static void draw_title(const Picture *p)
{
    const double seconds = (p->end - p->begin) / US, mib = p->reads->bytes / MIB;
    g_autofree char *title = g_strdup_printf("%s: %u reads, %.1f MiB in %.2f s (%.2f MiB/s)", p->reads->node,
                                             p->reads->list->len, mib, seconds, mib / seconds);
    draw_text(p->drawing, title, LEFT, 16, SCALE, DRAW_LEFT);
    int x = LEFT;
    for (int kind = 0; kind < READ_KINDS; kind++) {
        if (p->counts[kind]) {
            g_autofree char *count = g_strdup_printf("%u", p->counts[kind]);
            draw_box(p->drawing, kinds[kind].color, x, 48, 14, 14);
            draw_text(p->drawing, kinds[kind].title, x + 20, 48, SCALE, DRAW_LEFT);
            draw_text(p->drawing, count, x + 20, 72, SCALE, DRAW_LEFT);
            x += KIND_WIDTH;
        }
    }
}

/* Each read where and as long as it was; the slower ones over the others. */
static void draw_places(const Picture *p)
{
    const double seconds = (p->end - p->begin) / US;
    const bool gib = p->top / MIB >= GIB_FROM;
    g_autofree char *title =
        g_strdup_printf("place in the image (%s); colour: how long the guest waited (%.2f s in all)",
                        gib ? "GiB" : "MiB", p->waited / US);
    const DrawPanel panel = {.x = LEFT,
                             .y = PLACES_TOP,
                             .width = WIDTH - LEFT - RIGHT,
                             .height = PLACES_HIGH,
                             .x_max = seconds,
                             .y_max = p->top / MIB / (gib ? 1024 : 1),
                             .title = title,
                             .scale = SCALE};
    draw_axes(p->drawing, &panel);
    for (int kind = 0; kind < READ_KINDS; kind++) {
        for (guint i = 0; i < p->reads->list->len; i++) {
            const Read *r = &g_array_index(p->reads->list, Read, i);
            if ((int)r->kind != kind) {
                continue;
            }
            const int left = MIN((r->start - p->begin) / US / seconds * panel.width, panel.width - MARK);
            const int wide = r->took / US / seconds * panel.width;
            const int low = r->offset / (double)p->top * panel.height;
            const int high = r->bytes / (double)p->top * panel.height;
            draw_box(p->drawing, kinds[kind].color, LEFT + 1 + left,
                     PLACES_TOP + PLACES_HIGH - low - MAX(high, MARK), MAX(wide, MARK), MAX(high, MARK));
        }
    }
}

/* Bytes by the time of their end. */
static void draw_rates(const Picture *p)
{
    enum { BINS = (WIDTH - LEFT - RIGHT) / BIN };
    double rates[BINS] = {0}, top = 0;
    const double seconds = (p->end - p->begin) / US, each = seconds / BINS;
    for (guint i = 0; i < p->reads->list->len; i++) {
        const Read *r = &g_array_index(p->reads->list, Read, i);
        const int bin = (r->start + r->took - p->begin) / US / seconds * BINS;
        rates[CLAMP(bin, 0, BINS - 1)] += r->kind == READ_FAILED ? 0 : r->bytes / MIB / each;
    }
    for (int i = 0; i < BINS; i++) {
        top = MAX(top, rates[i]);
    }
    g_autofree char *title = g_strdup_printf("throughput (MiB/s), a bar for each %.3g s", each);
    const DrawPanel panel = {.x = LEFT,
                             .y = RATES_TOP,
                             .width = WIDTH - LEFT - RIGHT,
                             .height = RATES_HIGH,
                             .x_max = seconds,
                             .y_max = draw_axis_end(top, RATES_HIGH),
                             .title = title,
                             .x_labels = true,
                             .scale = SCALE};
    draw_axes(p->drawing, &panel);
    for (int i = 0; i < BINS; i++) {
        const int bar = rates[i] / panel.y_max * RATES_HIGH + 0.5;
        draw_box(p->drawing, DRAW_BLUE, LEFT + 1 + i * BIN, RATES_TOP + RATES_HIGH - bar, BIN - 1, bar);
    }
}

static bool draw(const char *trace, const char *node, const char *output, GError **error)
{
    g_autoptr(GHashTable) nodes = load(trace, error);
    const Reads *reads = nodes ? choose(nodes, node, error) : NULL;
    if (!reads) {
        return false;
    }
    g_autoptr(Drawing) drawing = drawing_new(WIDTH, HEIGHT);
    if (!drawing) {
        return error_set_errno(error, ENOMEM, "Could not draw '%s'", output);
    }
    Picture picture = {.reads = reads, .drawing = drawing};
    measure(&picture);
    draw_title(&picture);
    draw_places(&picture);
    draw_rates(&picture);
    return drawing_write(drawing, output, error);
}

static int trace_plot_run(const ToolArgs *args)
{
    GError *error = NULL;
    const char *output = tool_get(args, "output-file");
    if (tool_count(args) != 1 || !output) {
        return tool_wrong(args, "Expecting one trace file, and -o PICTURE");
    }
    if (!draw(tool_operand(args, 0), tool_get(args, "node"), output, &error)) {
        log_gerror(error, NULL);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static const ToolOption trace_plot_options[] = {
    {'o', "output-file", "FILE.png", "the picture"},
    {'n', "node", "NAME", "the block node to draw (the one with the most reads)"},
    TOOL_HELP,
    {0},
};

const ToolCommand img_trace_plot = {
    .name = "trace-plot",
    .summary = "draw where a guest read, how long it waited and the throughput",
    .usage = "-o FILE.png [-n NODE] TRACE",
    .options = trace_plot_options,
    .operands = "  TRACE\n     file with the trace event block_read",
    .examples = "  spindled --trace enable=block_read,file=reads.trace ...\n"
                "  spindle-img trace-plot -o reads.png reads.trace",
    .run = trace_plot_run,
};
