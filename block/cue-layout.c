/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a CUE sheet and the sizes of its files to the tracks' places: on the disc, and in the node whose bytes
 * are the files' data one behind the other.
 *
 * The first sector of the first file is LBA 0. A later session begins behind the lead-out of the one before
 * (6750 sectors of the first, 2250 of the others) and its own lead-in (4500), with a pause of 150 if the
 * sheet does not give one (MMC-6 4.2.3.6).
 */
#include "block/cue-sheet.h"
#include "util/error.h"
#include <string.h>

#define FIRST_LEAD_OUT 6750
#define LATER_LEAD_OUT 2250
#define LEAD_IN        4500
#define PAUSE          150

typedef struct Layout {
    const CueSheet *sheet;
    const uint64_t *sizes;
    const char *name;
    uint64_t base; /* byte in the node of the present file's data */
    /* the last index seen in that file: sectors before it, where it lies in the file, what they measure */
    unsigned file;
    uint32_t frames;
    uint64_t offset;
    uint16_t stride;
    uint64_t lba; /* where the next track goes on */
} Layout;

static bool track_error(const Layout *l, unsigned i, GError **error, const char *message)
{
    return error_set(error, "%s:%u: Track %u %s", l->name, l->sheet->tracks[i].line, i + 1, message);
}

/* Moves on to an index: its byte in its file. Sectors on the way are as long as the track's that they belong
 * to. False: it goes backwards, or lies beyond the file. */
static bool move_to(Layout *l, const CueIndex *index, uint16_t stride, uint64_t *ret_offset)
{
    while (l->file < index->file) {
        l->base += l->sizes[l->file++];
        l->frames = 0;
        l->offset = 0;
        l->stride = stride;
    }
    if (index->file != l->file || index->frames < l->frames) {
        return false;
    }
    l->offset += (uint64_t)(index->frames - l->frames) * l->stride;
    l->frames = index->frames;
    l->stride = stride;
    *ret_offset = l->offset;
    return l->offset <= l->sizes[l->file];
}

/* Sectors from the track's INDEX 01 to where the next one begins in the same file, or to the file's end. */
static uint64_t count_sectors(const Layout *l, unsigned i, uint64_t offset)
{
    const CueTrack *track = &l->sheet->tracks[i], *next = track + 1;
    if (i + 1 < l->sheet->n_tracks) {
        const CueIndex *end = next->index0.given ? &next->index0 : &next->index1;
        if (end->file == track->index1.file) {
            return end->frames > track->index1.frames ? end->frames - track->index1.frames : 0;
        }
    }
    return (l->sizes[track->index1.file] - offset) / track->stride;
}

/* The pause that is in a file: from INDEX 00, or of the first track from the start of its file. */
static bool stored_pause(Layout *l, unsigned i, uint64_t *ret_pause)
{
    const CueTrack *track = &l->sheet->tracks[i];
    const CueIndex *index0 = &track->index0, *index1 = &track->index1;
    uint64_t offset;
    *ret_pause = 0;
    if (!index0->given) {
        *ret_pause = i == 0 ? index1->frames : 0;
        return true;
    }
    if (!move_to(l, index0, track->stride, &offset) ||
        (index0->file == index1->file && index1->frames < index0->frames)) {
        return false;
    }
    if (index0->file == index1->file) {
        *ret_pause = index1->frames - index0->frames;
        return true;
    }
    const uint64_t rest = l->sizes[index0->file] - offset; /* the last sectors of the file before */
    *ret_pause = rest / track->stride;
    return index1->file == index0->file + 1 && index1->frames == 0 && rest % track->stride == 0;
}

static void start_session(Layout *l, unsigned i)
{
    const CueTrack *track = &l->sheet->tracks[i];
    if (i > 0 && track->session > track[-1].session) {
        l->lba += (track->session == 2 ? FIRST_LEAD_OUT : LATER_LEAD_OUT) + LEAD_IN;
    }
}

static bool place_track(Layout *l, unsigned i, BlockTrack *place, GError **error)
{
    const CueTrack *track = &l->sheet->tracks[i];
    uint64_t pause, offset;
    start_session(l, i);
    const bool opens_session = i > 0 && track->session > track[-1].session;
    if (i == 0) {
        l->stride = track->stride;
    }
    if (!stored_pause(l, i, &pause) || !move_to(l, &track->index1, track->stride, &offset)) {
        return track_error(l, i, error, "begins before the one before it, or beyond the end of its file");
    }
    const uint64_t sectors = count_sectors(l, i, offset);
    const uint64_t silent = track->pregap ? track->pregap : opens_session && !pause ? PAUSE : 0;
    const uint64_t start = l->lba + silent + pause;
    if (sectors == 0 || start + sectors + track->postgap > INT32_MAX) {
        return track_error(l, i, error, sectors ? "lies too far out" : "has no sector in its file");
    }
    if (sectors * track->stride > l->sizes[l->file] - offset) {
        return track_error(l, i, error, "is longer than its file");
    }
    *place = (BlockTrack){
        .session = (uint8_t)track->session,
        .control = track->control,
        .mode = track->mode,
        .start = (uint32_t)start,
        .pregap = (uint32_t)(pause ? pause : silent),
        .sectors = (uint32_t)sectors,
        .pregap_stored = pause > 0,
        .offset = l->base + offset,
        .stored = track->stored,
        .stride = track->stride,
    };
    memcpy(place->isrc, track->isrc, sizeof place->isrc);
    l->lba = start + sectors + track->postgap;
    return true;
}

BlockToc *cue_sheet_layout(const CueSheet *sheet, const uint64_t *sizes, const char *name, GError **error)
{
    g_autoptr(BlockToc) toc = g_new0(BlockToc, 1);
    Layout layout = {.sheet = sheet, .sizes = sizes, .name = name};
    for (unsigned i = 0; i < sheet->n_tracks; i++) {
        const CueTrack *track = &sheet->tracks[i];
        if (!place_track(&layout, i, &toc->track[i], error)) {
            return NULL;
        }
        if (track->mode == BLOCK_TRACK_MODE2 && toc->type == 0) {
            toc->type = track->cdi ? 0x10 : 0x20;
        }
    }
    toc->tracks = sheet->n_tracks;
    memcpy(toc->mcn, sheet->catalog, sizeof toc->mcn);
    return g_steal_pointer(&toc);
}
