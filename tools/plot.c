/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/plot.h"

#include <errno.h>
#include <pixman.h>
#include <stdio.h>
#include <string.h>

#include "tools/png-write.h"
#include "util/error.h"

#define WIDTH        800
#define HEIGHT       400
#define LEFT         70 /* the axes' labels */
#define BOTTOM       30
#define TOP          30
#define RIGHT        20
#define GLYPH_WIDTH  5
#define GLYPH_HEIGHT 7
#define TICKS        5

/* 5x7 dots a character, a row a byte, the leftmost dot in bit 4. */
static const struct {
    char character;
    uint8_t rows[GLYPH_HEIGHT];
} glyphs[] = {
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}}, {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f}}, {'3', {0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}}, {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}}, {'7', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'8', {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}}, {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}}, {'/', {0x01, 0x01, 0x02, 0x04, 0x08, 0x10, 0x10}},
    {'M', {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}}, {'B', {0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e}},
    {'i', {0x04, 0x00, 0x0c, 0x04, 0x04, 0x04, 0x0e}}, {'s', {0x00, 0x00, 0x0f, 0x10, 0x0e, 0x01, 0x1e}},
};

static const pixman_color_t white = {0xffff, 0xffff, 0xffff, 0xffff};
static const pixman_color_t black = {0x2020, 0x2020, 0x2020, 0xffff};
static const pixman_color_t grey = {0xdddd, 0xdddd, 0xdddd, 0xffff};
static const pixman_color_t blue = {0x2222, 0x6666, 0xbbbb, 0xffff};

static void fill(pixman_image_t *image, const pixman_color_t *color, int x, int y, int width, int height)
{
    pixman_rectangle16_t box = {x, y, width, height};
    pixman_image_fill_rectangles(PIXMAN_OP_SRC, image, color, 1, &box);
}

static void draw_glyph(pixman_image_t *image, const uint8_t *rows, int x, int y)
{
    for (int row = 0; row < GLYPH_HEIGHT; row++) {
        for (int column = 0; column < GLYPH_WIDTH; column++) {
            if (rows[row] >> (GLYPH_WIDTH - 1 - column) & 1) {
                fill(image, &black, x + column, y + row, 1, 1);
            }
        }
    }
}

/* With its right end at x. */
static void draw_text(pixman_image_t *image, const char *text, int x, int y)
{
    x -= strlen(text) * (GLYPH_WIDTH + 1);
    for (; *text; text++, x += GLYPH_WIDTH + 1) {
        for (size_t i = 0; i < G_N_ELEMENTS(glyphs); i++) {
            if (glyphs[i].character == *text) {
                draw_glyph(image, glyphs[i].rows, x, y);
            }
        }
    }
}

/* MiB/s in the middle of the i-th interval; i at least 1. */
static double rate_at(const ProgressSample *samples, unsigned i)
{
    double seconds = samples[i].seconds - samples[i - 1].seconds;
    return seconds > 0 ? (samples[i].bytes - samples[i - 1].bytes) / seconds / (1 << 20) : 0;
}

/* The least of 1, 2, 5, 10, 20, … that is not below v. */
static double round_up(double v)
{
    double unit = 1;
    while (unit * 10 < v) {
        unit *= 10;
    }
    return v <= unit ? unit : v <= 2 * unit ? 2 * unit : v <= 5 * unit ? 5 * unit : 10 * unit;
}

static void draw_axes(pixman_image_t *image, double top_rate, double seconds)
{
    int width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    for (int i = 0; i <= TICKS; i++) {
        int y = HEIGHT - BOTTOM - height * i / TICKS, x = LEFT + width * i / TICKS;
        g_autofree char *rate = g_strdup_printf("%.4g", top_rate * i / TICKS);
        g_autofree char *time = g_strdup_printf("%.3g", seconds * i / TICKS);
        fill(image, &grey, LEFT, y, width, 1);
        draw_text(image, rate, LEFT - 6, y - GLYPH_HEIGHT / 2);
        draw_text(image, time, x + 6, HEIGHT - BOTTOM + 8);
    }
    draw_text(image, "MiB/s", LEFT - 6, TOP - 20);
    draw_text(image, "s", WIDTH - 4, HEIGHT - BOTTOM + 8);
    fill(image, &black, LEFT, TOP, 1, height);
    fill(image, &black, LEFT, HEIGHT - BOTTOM, width, 1);
}

static void draw_rates(pixman_image_t *image, const ProgressSample *samples, unsigned count, double top_rate)
{
    int width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    double begin = samples[0].seconds, seconds = samples[count - 1].seconds - begin;
    unsigned i = 1;
    for (int x = 0; x < width; x++) {
        double at = begin + seconds * (x + 0.5) / width;
        while (i < count - 1 && samples[i].seconds < at) {
            i++;
        }
        int bar = rate_at(samples, i) / top_rate * height + 0.5;
        fill(image, &blue, LEFT + x, HEIGHT - BOTTOM - bar, 1, bar);
    }
}

static bool write_image(const char *path, pixman_image_t *image, GError **error)
{
    FILE *file = fopen(path, "wbe");
    if (!file) {
        return error_set_errno(error, errno, "Could not open '%s'", path);
    }
    bool ok = png_write(file, pixman_image_get_data(image), WIDTH, HEIGHT);
    int cause = errno;
    if (fclose(file)) {
        cause = errno;
        ok = false;
    }
    return ok || error_set_errno(error, cause, "Could not write '%s'", path);
}

bool plot_write(const char *path, const ProgressSample *samples, unsigned count, GError **error)
{
    static const ProgressSample start = {0, 0};
    g_autofree ProgressSample *all = g_new(ProgressSample, count + 1);
    all[0] = start;
    memcpy(all + 1, samples, count * sizeof *samples);
    double top_rate = 0;
    for (unsigned i = 1; i <= count; i++) {
        top_rate = MAX(top_rate, rate_at(all, i));
    }
    top_rate = round_up(top_rate);
    pixman_image_t *image = pixman_image_create_bits(PIXMAN_x8r8g8b8, WIDTH, HEIGHT, NULL, 0);
    if (!image) {
        return error_set_errno(error, ENOMEM, "Could not draw '%s'", path);
    }
    fill(image, &white, 0, 0, WIDTH, HEIGHT);
    if (count) {
        draw_axes(image, top_rate, all[count].seconds);
        draw_rates(image, all, count + 1, top_rate);
    }
    bool ok = write_image(path, image, error);
    pixman_image_unref(image);
    return ok;
}
