/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of contents that a disc image's driver, or a host drive's, gives beside its bytes. A node without
 * one is a plain image: one data track of 2048-byte sectors.
 *
 * A BlockToc is made by the driver while it opens (or in the `apply` of a medium event) and belongs to the
 * node; it is read on the loop thread.
 */
#ifndef SPINDLE_BLOCK_TOC_H
#define SPINDLE_BLOCK_TOC_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "block/block.h"

#define BLOCK_TOC_TRACKS 99

typedef enum { BLOCK_TRACK_AUDIO, BLOCK_TRACK_MODE1, BLOCK_TRACK_MODE2 } BlockTrackMode;

/* Control nibble of the Q sub-channel: what READ TOC tells. */
#define BLOCK_TRACK_PREEMPHASIS 0x1
#define BLOCK_TRACK_COPY        0x2
#define BLOCK_TRACK_DATA        0x4
#define BLOCK_TRACK_4CHANNELS   0x8

typedef struct BlockTrack {
    uint8_t session; /* from 1, never less than the track's before */
    uint8_t control;
    BlockTrackMode mode;
    uint32_t start;     /* LBA of index 1 */
    uint32_t pregap;    /* sectors of index 0 right before */
    uint32_t sectors;   /* from index 1 on */
    bool pregap_stored; /* the pregap's sectors lie right before `offset` */
    uint64_t offset;    /* byte in the node of sector `start` */
    uint16_t stored;    /* bytes of a sector: 2048 (user data), 2336 (mode 2 behind the header), 2352 */
    uint16_t stride;    /* from one sector to the next, at least `stored` */
    char isrc[13];      /* 12 characters or empty */
} BlockTrack;

typedef struct BlockToc {
    unsigned tracks; /* at least 1; they are numbered from 1 and do not overlap */
    BlockTrack track[BLOCK_TOC_TRACKS];
    uint16_t profile; /* of the medium, by its kind: 0008 CD-ROM, 0010 DVD-ROM, 0040 BD-ROM (MMC-6 5.3.1) */
    uint8_t type;     /* 00 CD-DA or CD-ROM, 10 CD-i, 20 CD-ROM XA */
    char mcn[14];     /* 13 digits or empty */
    GBytes *cd_text;  /* packs of 18 bytes, or NULL */
} BlockToc;

/* The node's, or that of what it passes through unchanged; NULL: none. Valid until the node's next medium
 * event. */
const BlockToc *block_toc(const BlockNode *node);

void block_toc_free(BlockToc *toc); /* NULL is allowed */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(BlockToc, block_toc_free)

#endif
