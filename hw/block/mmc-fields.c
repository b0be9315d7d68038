/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What READ CD gives of a sector: chosen fields of the main channel, C2 flags, sub-channel.
 */
#include <string.h>
#include "hw/block/mmc-transfer.h"

#define RAW_SUB_BYTES   96
#define Q_BYTES         16
#define SUBHEADER_BYTES 8

static unsigned c2_bytes(const MmcFields *fields)
{
    return fields->c2 == 0 ? 0 : fields->c2 == 1 ? 294 : 296;
}

static unsigned sub_bytes(const MmcFields *fields)
{
    return fields->sub == 0 ? 0 : fields->sub == 2 ? Q_BYTES : RAW_SUB_BYTES;
}

/* A sector without a sub-header still gives eight zeroes for it, as long as no user data is asked for
 * (SFF-8020i table 99). */
static bool has_empty_subheader(const MmcFields *fields, SectorType type)
{
    return fields->subheader && !fields->user && (type == SECTOR_TYPE_MODE1 || type == SECTOR_TYPE_MODE2);
}

/* The span of the raw sector that is chosen; false when there are holes in it. */
static bool main_span(const MmcFields *fields, SectorType type, SectorField *ret_span)
{
    SectorLayout layout = *sector_layout(type);
    if (type == SECTOR_TYPE_CDDA) { /* nothing but samples, whatever is chosen */
        const bool any = fields->sync || fields->header || fields->subheader || fields->user || fields->edc;
        *ret_span = any ? layout.user : (SectorField){0, 0};
        return true;
    }
    if (fields->edc && !fields->user) {
        return false;
    }
    if (has_empty_subheader(fields, type)) {
        layout.subheader.length = SUBHEADER_BYTES;
    }
    const struct {
        bool chosen;
        SectorField field;
    } parts[] = {
        {fields->sync, layout.sync}, {fields->header, layout.header}, {fields->subheader, layout.subheader},
        {fields->user, layout.user}, {fields->edc, layout.edc},
    };
    SectorField span = {0, 0};
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        const SectorField field = parts[i].field;
        if (!parts[i].chosen || field.length == 0) {
            continue;
        }
        if (span.length == 0) {
            span = field;
        } else if (field.offset != span.offset + span.length) {
            return false;
        } else {
            span.length += field.length;
        }
    }
    *ret_span = span;
    return true;
}

int mmc_fields_size(const MmcFields *fields, SectorType type)
{
    SectorField span;
    return main_span(fields, type, &span) ? (int)(span.length + c2_bytes(fields) + sub_bytes(fields)) : -1;
}

/* The whole sector, made up where the image has not stored it: `scratch`, or the stored bytes themselves. */
static const uint8_t *expand(const DiscTrack *track, uint32_t lba, const uint8_t *stored, bool want_edc,
                             uint8_t scratch[SECTOR_RAW], SectorType *ret_type)
{
    SectorType type = disc_track_type(track);
    if (track->stored == SECTOR_RAW) {
        *ret_type = track->mode == DISC_MODE2 ? sector_mode2_type(&stored[16]) : type;
        return stored;
    }
    sector_put_header(scratch, lba, track->mode == DISC_MODE1 ? 1 : 2);
    if (track->stored == SECTOR_MODE2) {
        memcpy(&scratch[16], stored, SECTOR_MODE2);
        *ret_type = sector_mode2_type(&scratch[16]);
        return scratch;
    }
    if (type == SECTOR_TYPE_MODE2_FORM1) { /* file 0, channel 0, data */
        static const uint8_t subheader[8] = {0, 0, 0x08, 0, 0, 0, 0x08, 0};
        memcpy(&scratch[16], subheader, sizeof subheader);
    }
    memcpy(&scratch[sector_layout(type)->user.offset], stored, SECTOR_USER);
    if (want_edc) {
        sector_put_edc(scratch, type);
    }
    *ret_type = type;
    return scratch;
}

/* P is 1 in a pause; Q is spread over bit 6, one bit a byte; R to W are empty (MMC-6 4.2.3.4). */
static void put_raw_sub(const Disc *disc, const DiscTrack *track, uint32_t lba, uint8_t *out)
{
    uint8_t q[12];
    const uint8_t p = lba < track->start ? 0x80 : 0;
    disc_make_q(disc, lba, q);
    for (unsigned i = 0; i < RAW_SUB_BYTES; i++) {
        out[i] = p | (q[i / 8] >> (7 - i % 8) & 1 ? 0x40 : 0);
    }
}

static void put_sub(const MmcFields *fields, const Disc *disc, const DiscTrack *track, uint32_t lba,
                    uint8_t *out)
{
    switch (fields->sub) {
    case 1:
        put_raw_sub(disc, track, lba, out);
        break;
    case 2: /* MMC-6 table 356: the P bit is in the last byte */
        memset(out, 0, Q_BYTES);
        disc_make_q(disc, lba, out);
        out[15] = lba < track->start ? 0x80 : 0;
        break;
    default:
        memset(out, 0, sub_bytes(fields));
        break;
    }
}

int mmc_fields_build(const MmcFields *fields, const Disc *disc, const DiscTrack *track, uint32_t lba,
                     const uint8_t *stored, uint8_t *out, MmcSense *ret_sense)
{
    uint8_t scratch[SECTOR_RAW];
    SectorType type;
    SectorField span;
    const uint8_t *raw = expand(track, lba, stored, fields->edc, scratch, &type);
    if (fields->expected != SECTOR_TYPE_ANY && fields->expected != type) {
        *ret_sense = SENSE_ILLEGAL_TRACK_MODE;
        return -1;
    }
    if (!main_span(fields, type, &span)) {
        *ret_sense = SENSE_INVALID_FIELD;
        return -1;
    }
    memcpy(out, &raw[span.offset], span.length);
    if (has_empty_subheader(fields, type)) {
        memset(&out[span.length - SUBHEADER_BYTES], 0, SUBHEADER_BYTES);
    }
    memset(&out[span.length], 0, c2_bytes(fields));
    put_sub(fields, disc, track, lba, &out[span.length + c2_bytes(fields)]);
    return (int)(span.length + c2_bytes(fields) + sub_bytes(fields));
}
