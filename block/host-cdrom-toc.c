/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-toc.h"
#include <string.h>

#define ENTRY      11
#define LEAD_IN    150 /* sectors from 00:00:00 to LBA 0 */
#define POINT_TYPE 0xa0
#define POINT_END  0xa2
#define PACK       18

/* What the entries say, before it is put in order. */
typedef struct RawToc {
    struct {
        uint8_t session, control;
        int64_t start; /* -1: no such track */
    } track[BLOCK_TOC_TRACKS + 1];
    int64_t end[BLOCK_TOC_TRACKS + 1]; /* of each session; -1: none */
    uint8_t type;
} RawToc;

static int64_t lba_of(const uint8_t *msf)
{
    return (msf[0] * 60 + msf[1]) * 75 + msf[2] - LEAD_IN;
}

/* Bytes 0 of an entry on: session, ADR and control, TNO, POINT, MSF, 0, PMSF (MMC-6 table 481). */
static void take_entry(RawToc *raw, const uint8_t *entry)
{
    const uint8_t session = entry[0], point = entry[3];
    if (entry[1] >> 4 != 1 || session < 1 || session > BLOCK_TOC_TRACKS) {
        return;
    }
    if (point >= 1 && point <= BLOCK_TOC_TRACKS) {
        raw->track[point].session = session;
        raw->track[point].control = entry[1] & 0x0f;
        raw->track[point].start = lba_of(&entry[8]);
    } else if (point == POINT_TYPE && session == 1) {
        raw->type = entry[9];
    } else if (point == POINT_END) {
        raw->end[session] = lba_of(&entry[8]);
    }
}

static BlockTrackMode mode_of(const RawToc *raw, uint8_t control)
{
    if (!(control & BLOCK_TRACK_DATA)) {
        return BLOCK_TRACK_AUDIO;
    }
    return raw->type == 0x10 || raw->type == 0x20 ? BLOCK_TRACK_MODE2 : BLOCK_TRACK_MODE1;
}

/* The track behind it in its session begins, or the session ends. */
static int64_t end_of_track(const RawToc *raw, unsigned number)
{
    const unsigned session = raw->track[number].session;
    if (number < BLOCK_TOC_TRACKS && raw->track[number + 1].start >= 0 &&
        raw->track[number + 1].session == session) {
        return raw->track[number + 1].start;
    }
    return raw->end[session];
}

BlockToc *cdrom_toc_parse(const uint8_t *reply, size_t bytes, uint32_t *ret_end)
{
    RawToc raw;
    int64_t end = 0;
    memset(&raw, 0, sizeof raw);
    for (unsigned i = 0; i <= BLOCK_TOC_TRACKS; i++) {
        raw.track[i].start = raw.end[i] = -1;
    }
    const size_t said = bytes >= 4 ? (size_t)(reply[0] << 8 | reply[1]) + 2 : 0;
    for (size_t at = 4; at + ENTRY <= MIN(said, bytes); at += ENTRY) {
        take_entry(&raw, reply + at);
    }
    g_autoptr(BlockToc) toc = g_new0(BlockToc, 1);
    toc->type = raw.type;
    for (unsigned number = 1; number <= BLOCK_TOC_TRACKS; number++) {
        const int64_t start = raw.track[number].start;
        const int64_t track_end = start >= 0 ? end_of_track(&raw, number) : -1;
        if (start < 0) {
            continue;
        }
        if (start < end || track_end <= start || track_end > INT32_MAX ||
            (toc->tracks > 0 && raw.track[number].session < toc->track[toc->tracks - 1].session)) {
            return NULL;
        }
        toc->track[toc->tracks++] = (BlockTrack){
            .session = raw.track[number].session,
            .control = raw.track[number].control,
            .mode = mode_of(&raw, raw.track[number].control),
            .start = (uint32_t)start,
            .sectors = (uint32_t)(track_end - start),
        };
        end = track_end;
    }
    if (toc->tracks == 0) {
        return NULL;
    }
    *ret_end = (uint32_t)end;
    return g_steal_pointer(&toc);
}

bool cdrom_toc_is_plain(const BlockToc *toc)
{
    return toc->tracks == 1 && toc->track[0].mode == BLOCK_TRACK_MODE1 && toc->track[0].start == 0;
}

void cdrom_toc_place(BlockToc *toc, uint64_t raw_base)
{
    for (unsigned i = 0; i < toc->tracks; i++) {
        BlockTrack *track = &toc->track[i];
        const bool whole = track->mode != BLOCK_TRACK_MODE1;
        track->stored = track->stride = whole ? 2352 : 2048;
        track->offset = (whole ? raw_base : 0) + (uint64_t)track->start * track->stride;
    }
}

/* READ SUB-CHANNEL (MMC-6 6.33.3): MCVal or TCVal, then the characters. */
static void copy_number(char *to, size_t length, const uint8_t *reply, size_t bytes)
{
    if (bytes < 9 + length || !(reply[8] & 0x80)) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (!g_ascii_isalnum(reply[9 + i])) {
            return;
        }
    }
    memcpy(to, reply + 9, length);
    to[length] = 0;
}

void cdrom_toc_set_mcn(BlockToc *toc, const uint8_t *reply, size_t bytes)
{
    copy_number(toc->mcn, sizeof toc->mcn - 1, reply, bytes);
}

void cdrom_toc_set_isrc(BlockTrack *track, const uint8_t *reply, size_t bytes)
{
    copy_number(track->isrc, sizeof track->isrc - 1, reply, bytes);
}

void cdrom_toc_set_cd_text(BlockToc *toc, const uint8_t *reply, size_t bytes)
{
    const size_t said = bytes >= 4 ? (size_t)(reply[0] << 8 | reply[1]) + 2 : 0;
    const size_t packs = MIN(said, bytes) >= 4 ? (MIN(said, bytes) - 4) / PACK : 0;
    g_clear_pointer(&toc->cd_text, g_bytes_unref);
    if (packs > 0) {
        toc->cd_text = g_bytes_new(reply + 4, packs * PACK);
    }
}
