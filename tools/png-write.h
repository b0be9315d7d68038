/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writes a picture as PNG (ISO/IEC 15948). Any thread.
 */
#ifndef SPINDLE_TOOLS_PNG_WRITE_H
#define SPINDLE_TOOLS_PNG_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `pixels` are width * height words 0x00RRGGBB. False with errno set. */
bool png_write(FILE *file, const uint32_t *pixels, unsigned width, unsigned height);

#endif
