/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What pictures are made of: rectangles, text, axes, in a picture of pixman's that becomes a PNG. Places are
 * pixels from the upper left corner, colours 0xRRGGBB. What lies outside is cut off. Any thread, one at a
 * time for each picture.
 */
#ifndef SPINDLE_TOOLS_DRAW_H
#define SPINDLE_TOOLS_DRAW_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Drawing Drawing;

#define DRAW_WHITE 0xffffffu
#define DRAW_BLACK 0x202020u
#define DRAW_GREY  0xd8d8d8u
#define DRAW_BLUE  0x2266bbu

/* A white one; NULL when there is no memory. */
Drawing *drawing_new(unsigned width, unsigned height);
void drawing_free(Drawing *drawing);

void draw_box(Drawing *drawing, uint32_t color, int x, int y, int width, int height);

/* ASCII, others as boxes; `scale` pixels a dot of the 5x7 font. DRAW_LEFT: x is the left end, … */
typedef enum { DRAW_LEFT, DRAW_MIDDLE, DRAW_RIGHT } DrawAlign;
void draw_text(Drawing *drawing, const char *text, int x, int y, unsigned scale, DrawAlign align);
int draw_text_width(const char *text, unsigned scale);
int draw_text_height(unsigned scale);

/* A panel with axes from 0 on, lines and labels at round numbers, and over it what it shows and in which
 * unit. */
typedef struct DrawPanel {
    int x, y, width, height;
    double x_max, y_max;
    const char *title;
    bool x_labels; /* seconds below it */
    unsigned scale;
} DrawPanel;
void draw_axes(Drawing *drawing, const DrawPanel *panel);
/* A dotted line at y, over what is drawn already. */
void draw_level(Drawing *drawing, const DrawPanel *panel, double y);

/* The end of a y axis of so many pixels for values up to v: the first line that is not below it. */
double draw_axis_end(double v, int height);

/* Fails with "Could not open 'x.png': …". */
bool drawing_write(const Drawing *drawing, const char *path, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Drawing, drawing_free)

#endif
