/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What lies in the drive: a description of a medium, made once when it is inserted and unchanged from then on
 * but for disc_replace_node(). Profile,
 * sessions and tracks, the capacity, and where the bytes of each track are in which block node.
 *
 * A Disc is reference counted and holds a reference on each node that it names. Loop thread only.
 */
#ifndef SPINDLE_HW_BLOCK_DISC_H
#define SPINDLE_HW_BLOCK_DISC_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "block/block.h"
#include "hw/block/sector.h"

/* Profile numbers (MMC-6 5.3.1). */
#define PROFILE_NONE   0x0000
#define PROFILE_CD_ROM 0x0008
#define PROFILE_DVD    0x0010
#define PROFILE_BD     0x0040

#define DISC_MAX_TRACKS 99
#define DISC_LEAD_OUT   0xaa /* its number in READ TOC */

/* Control nibble of the Q sub-channel (MMC-6 4.2.3.4). */
#define DISC_CONTROL_COPY 0x2
#define DISC_CONTROL_DATA 0x4

/* Sectors of one layer and of a whole DVD-ROM (DVD-5, DVD-9) and of a BD layer. */
#define DVD_LAYER_SECTORS 2298496u
#define DVD_MAX_SECTORS   4171712u
#define BD_LAYER_SECTORS  12219392u
#define BD_MAX_LAYERS     4u

typedef enum {
    DISC_AUDIO,
    DISC_MODE1,
    DISC_MODE2, /* formless, or form 1 and form 2 sectors told apart by their sub-headers */
} DiscMode;

typedef struct DiscTrack {
    uint8_t number, session; /* from 1 */
    uint8_t control;
    DiscMode mode;
    uint32_t start;   /* LBA of index 1 */
    uint32_t pregap;  /* sectors of index 0 right before it that belong to this track */
    uint32_t sectors; /* from start to the track's end */
    BlockNode *node;  /* reference held by the disc */
    uint64_t offset;  /* byte in the node of sector `start` (the pregap lies before it if it is stored) */
    uint32_t stored;  /* bytes that a sector takes there: 2048, 2336 or 2352 */
    uint32_t stride;  /* distance of sectors there, at least `stored` (interleaved sub-channel is skipped) */
    bool pregap_stored; /* false: index 0 reads as silence or zeroes */
    char isrc[13];      /* 12 characters or empty */
} DiscTrack;

typedef struct DiscSession {
    uint8_t first, last; /* track numbers */
    uint32_t lead_out;   /* LBA */
} DiscSession;

typedef struct Disc Disc;
struct Disc {
    gint refs;
    uint16_t profile;
    uint8_t type;     /* READ DISC INFORMATION's: 00 CD-ROM or audio, 10 CD-i, 20 XA */
    uint32_t sectors; /* capacity: the last lead-out */
    unsigned n_sessions, n_tracks;
    DiscSession sessions[DISC_MAX_TRACKS];
    DiscTrack tracks[DISC_MAX_TRACKS];
    char mcn[14];    /* 13 digits or empty */
    GBytes *cd_text; /* packs of 18 bytes, or NULL */
};

/* One data track in one session: a plain image of 2048-byte sectors, the last one zero-padded if short. NULL
 * and an error for an empty image, or one that 32-bit addresses cannot reach. */
Disc *disc_new_from_image(BlockNode *node, GError **error);

/* What the node holds: by its table of contents (block/toc.h), or as a plain image. */
Disc *disc_new_from_node(BlockNode *node, GError **error);

/* An empty disc of the CD profile, to be filled by an image format's reader with disc_add_track() and
 * disc_end_session(), before anybody sees it. */
Disc *disc_new_cd(void);

/* Appends a copy of `track` (number, session and the node's reference are set here). NULL and an error when
 * tracks overlap or there are too many. */
const DiscTrack *disc_add_track(Disc *disc, const DiscTrack *track, GError **error);

/* The same bytes are in another node from now on. */
void disc_replace_node(Disc *disc, BlockNode *from, BlockNode *to);

/* Ends the session that holds the tracks added since the last one. */
bool disc_end_session(Disc *disc, uint32_t lead_out, GError **error);

Disc *disc_ref(Disc *disc);
void disc_unref(Disc *disc); /* NULL is allowed */

/* The track that `lba` belongs to, its pregap included; NULL in a gap or beyond the end. */
const DiscTrack *disc_find_track(const Disc *disc, uint32_t lba);

/* Track by number or NULL. */
const DiscTrack *disc_track(const Disc *disc, unsigned number);

/* The sector's type as far as the track tells (mode 2 tracks stored whole need the sub-header). */
SectorType disc_track_type(const DiscTrack *track);

bool disc_is_cd(const Disc *disc);

/* Q sub-channel of mode 1 (position) for `lba`, CRC included (MMC-6 4.2.3.4.2). */
void disc_make_q(const Disc *disc, uint32_t lba, uint8_t q[12]);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Disc, disc_unref)

#endif
