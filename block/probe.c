/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/probe.h"
#include <stdbool.h>
#include <string.h>
#include <glib.h>

static const struct {
    const char *name;
    unsigned offset;
    const char *magic;
    unsigned size;
} formats[] = {
    {"qcow2", 0, "QFI\xfb", 4},
    {"vmdk", 0, "KDMV", 4},
    {"vmdk", 0, "COWD", 4},
    {"vdi", 0x40, "\x7f\x10\xda\xbe", 4},
    {"vpc", 0, "conectix", 8},
    {"vhdx", 0, "vhdxfile", 8},
    {"qed", 0, "QED\0", 4},
    {"parallels", 0, "WithoutFreeSpace", 16},
    {"parallels", 0, "WithouFreSpacExt", 16},
    {"luks", 0, "LUKS\xba\xbe", 6},
    {"cloop", 0, "#!/bin/sh\n#V2.0 Format\n", 24},
    {"bochs", 0, "Bochs Virtual HD Image", 22},
};

/* The text form of vmdk: comments and blank lines, then its version. */
static bool is_vmdk_descriptor(const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end) {
        size_t left = end - text;
        const char *line_end = memchr(text, '\n', left);
        size_t len = line_end ? (size_t)(line_end - text) : left;
        bool blank = strspn(text, " ") >= len || (len == 1 && *text == '\r');
        if (*text != '#' && !blank) {
            return len >= 9 && !memcmp(text, "version=", 8) && text[8] >= '1' && text[8] <= '3';
        }
        text += len + 1;
    }
    return false;
}

const char *block_probe_format(const uint8_t *head, size_t size)
{
    char text[BLOCK_PROBE_SIZE + 1] = {0};

    size = MIN(size, BLOCK_PROBE_SIZE);
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (formats[i].offset + formats[i].size <= size &&
            !memcmp(head + formats[i].offset, formats[i].magic, formats[i].size)) {
            return formats[i].name;
        }
    }
    memcpy(text, head, size);
    return is_vmdk_descriptor(text, size) ? "vmdk" : "raw";
}
