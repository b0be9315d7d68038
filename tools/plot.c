/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/plot.h"

#include <errno.h>
#include <string.h>

#include "tools/draw.h"
#include "util/error.h"

#define WIDTH  1000
#define HEIGHT 500
#define LEFT   90 /* the axes' labels */
#define BOTTOM 60
#define TOP    90
#define RIGHT  30
#define SCALE  2
#define MIB    ((double)(1 << 20))

/* MiB/s in the middle of the i-th interval; i at least 1. */
static double rate_at(const ProgressSample *samples, unsigned i)
{
    double seconds = samples[i].seconds - samples[i - 1].seconds;
    return seconds > 0 ? (samples[i].bytes - samples[i - 1].bytes) / seconds / (1 << 20) : 0;
}

static void draw_rates(Drawing *drawing, const DrawPanel *panel, const ProgressSample *samples,
                       unsigned count)
{
    const double begin = samples[0].seconds, seconds = samples[count - 1].seconds - begin;
    unsigned i = 1;
    for (int x = 0; x < panel->width; x++) {
        const double at = begin + seconds * (x + 0.5) / panel->width;
        while (i < count - 1 && samples[i].seconds < at) {
            i++;
        }
        const int bar = rate_at(samples, i) / panel->y_max * panel->height + 0.5;
        draw_box(drawing, DRAW_BLUE, panel->x + x, panel->y + panel->height - bar, 1, bar);
    }
}

static void draw_summary(Drawing *drawing, const DrawPanel *panel, const ProgressSample *end)
{
    const double rate = end->bytes / MIB / panel->x_max;
    g_autofree char *title =
        g_strdup_printf("%.1f MiB in %.2f s, mean (dotted) %.1f MiB/s", end->bytes / MIB, end->seconds, rate);
    draw_text(drawing, title, LEFT, 20, SCALE, DRAW_LEFT);
    draw_level(drawing, panel, rate);
}

bool plot_write(const char *path, const ProgressSample *samples, unsigned count, GError **error)
{
    static const ProgressSample start = {0, 0};
    g_autofree ProgressSample *all = g_new(ProgressSample, count + 1);
    g_autoptr(Drawing) drawing = drawing_new(WIDTH, HEIGHT);
    DrawPanel panel = {.x = LEFT,
                       .y = TOP,
                       .width = WIDTH - LEFT - RIGHT,
                       .height = HEIGHT - TOP - BOTTOM,
                       .title = "throughput (MiB/s)",
                       .x_labels = true,
                       .scale = SCALE};
    if (!drawing) {
        return error_set_errno(error, ENOMEM, "Could not draw '%s'", path);
    }
    all[0] = start;
    if (count) {
        memcpy(all + 1, samples, count * sizeof *samples);
        for (unsigned i = 1; i <= count; i++) {
            panel.y_max = MAX(panel.y_max, rate_at(all, i));
        }
        panel.y_max = draw_axis_end(panel.y_max, panel.height);
        panel.x_max = MAX(all[count].seconds, 1e-6);
        draw_axes(drawing, &panel);
        draw_rates(drawing, &panel, all, count + 1);
        draw_summary(drawing, &panel, &all[count]);
    }
    return drawing_write(drawing, path, error);
}
