/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/block/msf.h"
#include "hw/block/toc.h"

static void put_address(Reply *reply, uint32_t lba, bool msf)
{
    if (!msf) {
        reply_be32(reply, lba);
        return;
    }
    const Msf at = msf_from_lba(lba);
    reply_u8(reply, 0);
    reply_u8(reply, at.m);
    reply_u8(reply, at.s);
    reply_u8(reply, at.f);
}

static void put_descriptor(Reply *reply, uint8_t control, uint8_t number, uint32_t lba, bool msf)
{
    reply_u8(reply, 0);
    reply_u8(reply, (uint8_t)(1 << 4 | control)); /* ADR 1 */
    reply_u8(reply, number);
    reply_u8(reply, 0);
    put_address(reply, lba, msf);
}

static void end_length(Reply *reply)
{
    reply_set_be16(reply, 0, (uint16_t)(reply->used - 2));
}

/* Format 0: tracks from `number` on, and the lead-out, which is of the last track's kind. */
static bool encode_tracks(Reply *reply, const Disc *disc, bool msf, uint8_t number)
{
    if (number > disc->n_tracks && number != DISC_LEAD_OUT) {
        return false;
    }
    reply_be16(reply, 0);
    reply_u8(reply, disc->tracks[0].number);
    reply_u8(reply, (uint8_t)disc->n_tracks);
    for (unsigned i = 0; i < disc->n_tracks; i++) {
        const DiscTrack *track = &disc->tracks[i];
        if (track->number >= number) {
            put_descriptor(reply, track->control, track->number, track->start, msf);
        }
    }
    put_descriptor(reply, disc->tracks[disc->n_tracks - 1].control, DISC_LEAD_OUT, disc->sectors, msf);
    end_length(reply);
    return true;
}

/* Format 1: the first track of the last complete session. */
static void encode_sessions(Reply *reply, const Disc *disc, bool msf)
{
    const DiscTrack *track = disc_track(disc, disc->sessions[disc->n_sessions - 1].first);
    reply_be16(reply, 0);
    reply_u8(reply, 1);
    reply_u8(reply, (uint8_t)disc->n_sessions);
    put_descriptor(reply, track->control, track->number, track->start, msf);
    end_length(reply);
}

/* One Q entry of a lead-in: POINT and its MSF value, all binary (MMC-6 6.25.3.4). */
static void put_point(Reply *reply, unsigned session, uint8_t adr_control, uint8_t point, Msf value)
{
    reply_u8(reply, (uint8_t)session);
    reply_u8(reply, adr_control);
    reply_u8(reply, 0); /* TNO of the lead-in */
    reply_u8(reply, point);
    reply_be32(reply, 0); /* running time in the lead-in, and zero */
    reply_u8(reply, value.m);
    reply_u8(reply, value.s);
    reply_u8(reply, value.f);
}

/* The B0 and C0 pointers that lead from session `index` to the next one (MMC-6 table 493). */
static void put_next_session(Reply *reply, const Disc *disc, unsigned index)
{
    if (index + 1 >= disc->n_sessions) {
        return;
    }
    const DiscTrack *next = disc_track(disc, disc->sessions[index + 1].first);
    const Msf at = msf_from_lba((int64_t)next->start - next->pregap - (next->pregap ? 0 : CD_LEAD_TIME));
    const uint8_t adr_control = (uint8_t)(5 << 4 | next->control);
    reply_u8(reply, (uint8_t)(index + 1));
    reply_u8(reply, adr_control);
    reply_u8(reply, 0);
    reply_u8(reply, 0xb0);
    reply_u8(reply, at.m); /* start of the next session's program area */
    reply_u8(reply, at.s);
    reply_u8(reply, at.f);
    reply_u8(reply, 2);  /* pointers of this mode: B0 and C0 */
    reply_u8(reply, 79); /* latest lead-out of an 80-minute disc */
    reply_u8(reply, 59);
    reply_u8(reply, 74);
    if (index == 0) {
        put_point(reply, index + 1, adr_control, 0xc0, (Msf){95, 0, 0}); /* start of the first lead-in */
    }
}

static bool encode_full(Reply *reply, const Disc *disc, uint8_t number)
{
    if (number > disc->n_sessions) {
        return false;
    }
    reply_be16(reply, 0);
    reply_u8(reply, 1);
    reply_u8(reply, (uint8_t)disc->n_sessions);
    for (unsigned i = number ? number - 1u : 0; i < disc->n_sessions; i++) {
        const DiscSession *session = &disc->sessions[i];
        const uint8_t first = (uint8_t)(1 << 4 | disc_track(disc, session->first)->control);
        const uint8_t last = (uint8_t)(1 << 4 | disc_track(disc, session->last)->control);
        put_point(reply, i + 1, first, 0xa0, (Msf){session->first, disc->type, 0});
        put_point(reply, i + 1, last, 0xa1, (Msf){session->last, 0, 0});
        put_point(reply, i + 1, last, 0xa2, msf_from_lba(session->lead_out));
        for (unsigned t = session->first; t <= session->last; t++) {
            const DiscTrack *track = disc_track(disc, t);
            put_point(reply, i + 1, (uint8_t)(1 << 4 | track->control), track->number,
                      msf_from_lba(track->start));
        }
        put_next_session(reply, disc, i);
    }
    end_length(reply);
    return true;
}

/* Format 5: the packs, or a header alone where the lead-in has none. */
static void encode_cd_text(Reply *reply, const Disc *disc)
{
    reply_be32(reply, 0);
    if (disc->cd_text) {
        gsize size = 0;
        const void *packs = g_bytes_get_data(disc->cd_text, &size);
        reply_bytes(reply, packs, size);
    }
    end_length(reply);
}

bool toc_encode(Reply *reply, const Disc *disc, unsigned format, bool msf, uint8_t number)
{
    /* what a DVD or BD has not (lead-in Q, CD-TEXT) cannot be made up for it (MMC-6 6.25.3.1) */
    if (format > TOC_FORMAT_SESSIONS && !disc_is_cd(disc)) {
        return false;
    }
    switch (format) {
    case TOC_FORMAT_TOC:
        return encode_tracks(reply, disc, msf, number);
    case TOC_FORMAT_SESSIONS:
        encode_sessions(reply, disc, msf);
        return true;
    case TOC_FORMAT_FULL:
        return encode_full(reply, disc, number);
    case TOC_FORMAT_CD_TEXT:
        encode_cd_text(reply, disc);
        return true;
    default: /* PMA and ATIP are a recordable disc's */
        return false;
    }
}
