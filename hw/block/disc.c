/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include "block/toc.h"
#include "hw/block/disc.h"
#include "hw/block/msf.h"
#include "util/bytes.h"
#include "util/error.h"

Disc *disc_new_cd(void)
{
    Disc *disc = g_new0(Disc, 1);
    disc->refs = 1;
    disc->profile = PROFILE_CD_ROM;
    return disc;
}

static uint16_t profile_for(uint64_t sectors)
{
    if (sectors <= CD_MAX_SECTOR) {
        return PROFILE_CD_ROM;
    }
    return sectors <= DVD_MAX_SECTORS ? PROFILE_DVD : PROFILE_BD;
}

Disc *disc_new_from_image(BlockNode *node, GError **error)
{
    const BlockInfo *info = block_info(node);
    const uint64_t sectors = info->size / SECTOR_USER + (info->size % SECTOR_USER != 0);
    if (sectors == 0) {
        error_set(error, "'%s' is empty: a disc needs at least one byte", info->filename);
        return NULL;
    }
    if (sectors > UINT32_MAX) {
        error_set(error, "'%s' is too large for a disc: at most 8 TiB", info->filename);
        return NULL;
    }
    g_autoptr(Disc) disc = disc_new_cd();
    disc->profile = profile_for(sectors);
    const DiscTrack track = {
        .control = DISC_CONTROL_DATA,
        .mode = DISC_MODE1,
        .sectors = (uint32_t)sectors,
        .node = node,
        .stored = SECTOR_USER,
        .stride = SECTOR_USER,
    };
    if (!disc_add_track(disc, &track, error) || !disc_end_session(disc, (uint32_t)sectors, error)) {
        return NULL;
    }
    return g_steal_pointer(&disc);
}

static DiscMode mode_of(BlockTrackMode mode)
{
    switch (mode) {
    case BLOCK_TRACK_AUDIO:
        return DISC_AUDIO;
    case BLOCK_TRACK_MODE1:
        return DISC_MODE1;
    default:
        return DISC_MODE2;
    }
}

static bool add_toc_track(Disc *disc, BlockNode *node, const BlockTrack *from, GError **error)
{
    DiscTrack track = {
        .control = from->control,
        .mode = mode_of(from->mode),
        .start = from->start,
        .pregap = from->pregap,
        .sectors = from->sectors,
        .node = node,
        .offset = from->offset,
        .stored = from->stored,
        .stride = from->stride,
        .pregap_stored = from->pregap_stored,
    };
    memcpy(track.isrc, from->isrc, sizeof track.isrc);
    return disc_add_track(disc, &track, error) != NULL;
}

static Disc *disc_new_from_toc(BlockNode *node, const BlockToc *toc, GError **error)
{
    g_autoptr(Disc) disc = disc_new_cd();
    for (unsigned i = 0; i < toc->tracks; i++) {
        const BlockTrack *track = &toc->track[i];
        if (!add_toc_track(disc, node, track, error)) {
            return NULL;
        }
        if ((i + 1 == toc->tracks || track[1].session > track->session) &&
            !disc_end_session(disc, track->start + track->sectors, error)) {
            return NULL;
        }
    }
    disc->profile = toc->profile ? toc->profile : PROFILE_CD_ROM;
    disc->type = toc->type;
    disc->cd_text = toc->cd_text ? g_bytes_ref(toc->cd_text) : NULL;
    memcpy(disc->mcn, toc->mcn, sizeof disc->mcn);
    return g_steal_pointer(&disc);
}

Disc *disc_new_from_node(BlockNode *node, GError **error)
{
    const BlockToc *toc = block_toc(node);
    return toc ? disc_new_from_toc(node, toc, error) : disc_new_from_image(node, error);
}

const DiscTrack *disc_add_track(Disc *disc, const DiscTrack *track, GError **error)
{
    if (disc->n_tracks == DISC_MAX_TRACKS) {
        error_set(error, "A disc has at most %d tracks", DISC_MAX_TRACKS);
        return NULL;
    }
    const unsigned number = disc->n_tracks + 1;
    uint64_t end = 0;
    if (disc->n_tracks > 0) {
        const DiscTrack *before = &disc->tracks[disc->n_tracks - 1];
        end = (uint64_t)before->start + before->sectors;
    }
    if (disc->n_sessions > 0 && disc->sessions[disc->n_sessions - 1].lead_out > end) {
        end = disc->sessions[disc->n_sessions - 1].lead_out;
    }
    if (track->sectors == 0 || track->pregap > track->start || track->start - track->pregap < end ||
        (uint64_t)track->start + track->sectors > UINT32_MAX) {
        error_set(error, "Track %u is empty or overlaps the one before", number);
        return NULL;
    }
    DiscTrack *added = &disc->tracks[disc->n_tracks++];
    *added = *track;
    added->number = (uint8_t)number;
    added->session = (uint8_t)(disc->n_sessions + 1);
    added->node = block_ref(track->node);
    return added;
}

void disc_replace_node(Disc *disc, BlockNode *from, BlockNode *to)
{
    for (unsigned i = 0; i < disc->n_tracks; i++) {
        DiscTrack *track = &disc->tracks[i];
        if (track->node == from) {
            track->node = block_ref(to);
            block_unref(from);
        }
    }
}

bool disc_end_session(Disc *disc, uint32_t lead_out, GError **error)
{
    const unsigned first = disc->n_sessions ? disc->sessions[disc->n_sessions - 1].last + 1u : 1;
    if (first > disc->n_tracks) {
        return error_set(error, "Session %u has no track", disc->n_sessions + 1);
    }
    const DiscTrack *last = &disc->tracks[disc->n_tracks - 1];
    if (lead_out < (uint64_t)last->start + last->sectors) {
        return error_set(error, "The lead-out of session %u lies inside a track", disc->n_sessions + 1);
    }
    disc->sessions[disc->n_sessions++] = (DiscSession){(uint8_t)first, (uint8_t)disc->n_tracks, lead_out};
    disc->sectors = lead_out;
    return true;
}

Disc *disc_ref(Disc *disc)
{
    disc->refs++;
    return disc;
}

void disc_unref(Disc *disc)
{
    if (!disc || --disc->refs > 0) {
        return;
    }
    for (unsigned i = 0; i < disc->n_tracks; i++) {
        block_unref(disc->tracks[i].node);
    }
    g_clear_pointer(&disc->cd_text, g_bytes_unref);
    g_free(disc);
}

const DiscTrack *disc_find_track(const Disc *disc, uint32_t lba)
{
    for (unsigned i = 0; i < disc->n_tracks; i++) {
        const DiscTrack *track = &disc->tracks[i];
        if (lba < track->start - track->pregap) {
            return NULL;
        }
        if (lba - (track->start - track->pregap) < (uint64_t)track->pregap + track->sectors) {
            return track;
        }
    }
    return NULL;
}

const DiscTrack *disc_track(const Disc *disc, unsigned number)
{
    return number >= 1 && number <= disc->n_tracks ? &disc->tracks[number - 1] : NULL;
}

SectorType disc_track_type(const DiscTrack *track)
{
    switch (track->mode) {
    case DISC_AUDIO:
        return SECTOR_TYPE_CDDA;
    case DISC_MODE1:
        return SECTOR_TYPE_MODE1;
    default:
        return track->stored == SECTOR_USER ? SECTOR_TYPE_MODE2_FORM1 : SECTOR_TYPE_MODE2;
    }
}

bool disc_is_cd(const Disc *disc)
{
    return disc->profile == PROFILE_CD_ROM;
}

void disc_make_q(const Disc *disc, uint32_t lba, uint8_t q[12])
{
    const DiscTrack *track = disc_find_track(disc, lba);
    memset(q, 0, 12);
    if (track) {
        const bool pregap = lba < track->start;
        const Msf rel = msf_from_frames(pregap ? track->start - lba : lba - track->start);
        q[0] = (uint8_t)(track->control << 4 | 1); /* ADR 1: position */
        q[1] = bcd_from_int(track->number);
        q[2] = pregap ? 0 : 1;
        q[3] = bcd_from_int(rel.m);
        q[4] = bcd_from_int(rel.s);
        q[5] = bcd_from_int(rel.f);
    } else { /* between sessions: as the lead-out */
        q[0] = DISC_CONTROL_DATA << 4 | 1;
        q[1] = DISC_LEAD_OUT;
        q[2] = 1;
    }
    const Msf abs = msf_from_lba(lba);
    q[7] = bcd_from_int(abs.m);
    q[8] = bcd_from_int(abs.s);
    q[9] = bcd_from_int(abs.f);
    store_be16(&q[10], sector_q_crc(q));
}
