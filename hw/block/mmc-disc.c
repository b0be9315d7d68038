/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is on the disc: TOC, disc and track information, disc structures.
 */
#include "hw/block/mmc-int.h"
#include "hw/block/toc.h"
#include "util/bytes.h"

/* The format is in byte 2; in SFF-8020i's time it was in the top bits of byte 9, where some still put it. */
MmcStep mmc_read_toc(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const Disc *disc = command->drive->disc;
    const unsigned format = cdb[2] & 0x0f ? cdb[2] & 0x0f : cdb[9] >> 6;
    Reply reply;
    mmc_reply_begin(command, &reply, disc->cd_text ? TOC_REPLY_MAX : MMC_REPLY_ROOM);
    if (!toc_encode(&reply, disc, format, cdb[1] & 0x02, cdb[6])) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    return mmc_reply_end(command, &reply, load_be16(&cdb[7]));
}

/* MMC-6 6.22: a complete disc that cannot be written. */
MmcStep mmc_read_disc_information(MmcCommand *command)
{
    const Disc *disc = command->drive->disc;
    const DiscSession *session = &disc->sessions[disc->n_sessions - 1];
    Reply reply;
    if (command->cdb[1] & 0x07) { /* track or POW resources */
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be16(&reply, 32);
    reply_u8(&reply, 0x0e); /* last session and disc complete */
    reply_u8(&reply, disc->tracks[0].number);
    reply_u8(&reply, (uint8_t)disc->n_sessions);
    reply_u8(&reply, session->first);
    reply_u8(&reply, session->last);
    reply_u8(&reply, 0x20); /* unrestricted use */
    reply_u8(&reply, disc->type);
    reply_zeros(&reply, 3);         /* high bytes of the numbers */
    reply_be32(&reply, 0);          /* disc identification: not valid */
    reply_be32(&reply, 0xffffffff); /* no next lead-in */
    reply_be32(&reply, 0xffffffff); /* no next lead-out */
    reply_zeros(&reply, 10);        /* bar code, application code, OPC tables: none */
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[7]));
}

/* The track that READ TRACK INFORMATION asks for (MMC-6 6.27.2), or NULL. */
static const DiscTrack *addressed_track(const Disc *disc, unsigned kind, uint32_t address)
{
    switch (kind) {
    case 0:
        return address < disc->sectors ? disc_find_track(disc, address) : NULL;
    case 1:
        return disc_track(disc, address);
    default:
        return address >= 1 && address <= disc->n_sessions
                   ? disc_track(disc, disc->sessions[address - 1].first)
                   : NULL;
    }
}

MmcStep mmc_read_track_information(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const unsigned kind = cdb[1] & 0x03;
    const uint32_t address = load_be32(&cdb[2]);
    Reply reply;
    if (kind == 3) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    const DiscTrack *track = addressed_track(command->drive->disc, kind, address);
    if (!track) {
        return mmc_fail(command, kind == 0 ? SENSE_LBA_RANGE : SENSE_INVALID_FIELD);
    }
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be16(&reply, 34);
    reply_u8(&reply, track->number);
    reply_u8(&reply, track->session);
    reply_u8(&reply, 0);
    reply_u8(&reply, track->control); /* track mode */
    reply_u8(&reply, track->mode == DISC_AUDIO ? 0x0f : track->mode == DISC_MODE1 ? 1 : 2);
    reply_u8(&reply, 0); /* no next writable address */
    reply_be32(&reply, track->start);
    reply_zeros(&reply, 12); /* next writable, free blocks, packet size */
    reply_be32(&reply, track->sectors);
    reply_be32(&reply, 0); /* last recorded address: not valid */
    reply_be32(&reply, 0); /* high bytes of the numbers, reserved */
    return mmc_reply_end(command, &reply, load_be16(&cdb[7]));
}

/* Physical format information of a DVD-ROM (MMC-6 6.23.3.2.1): one layer, or two on the opposite track path,
 * the second in the inverted addresses of the first. */
static void put_dvd_layer(const Disc *disc, Reply *reply)
{
    const uint32_t first = 0x30000;
    const bool dual = disc->sectors > DVD_LAYER_SECTORS;
    const uint32_t layer0 = dual ? (disc->sectors + 31) / 32 * 16 : disc->sectors;
    const uint32_t layer0_last = first + layer0 - 1;
    const uint32_t last = dual ? (~layer0_last & 0xffffff) + (disc->sectors - layer0) - 1 : layer0_last;
    reply_u8(reply, 0x01);                                        /* DVD-ROM, part version 1 */
    reply_u8(reply, 0x0f);                                        /* 120 mm, rate not specified */
    reply_u8(reply, (uint8_t)((dual ? 1 << 5 | 1 << 4 : 0) | 1)); /* layers, path, embossed */
    reply_u8(reply, 0);                                           /* densities */
    reply_be32(reply, first);
    reply_be32(reply, last);
    reply_be32(reply, dual ? layer0_last : 0);
    reply_zeros(reply, 2048 - 16); /* no BCA; the rest is the media maker's */
}

/* Disc information of a BD-ROM (MMC-6 6.23.3.3.1): one unit a layer. */
static void put_bd_information(const Disc *disc, Reply *reply)
{
    const unsigned layers = MIN(1 + (disc->sectors - 1) / BD_LAYER_SECTORS, BD_MAX_LAYERS);
    for (unsigned i = 0; i < layers; i++) {
        const size_t start = reply->used;
        reply_bytes(reply, "DI\1", 3);
        reply_u8(reply, 1);                                          /* format */
        reply_u8(reply, (uint8_t)layers);                            /* units in each block */
        reply_u8(reply, 0);                                          /* legacy */
        reply_u8(reply, (uint8_t)i);                                 /* sequence number */
        reply_u8(reply, (uint8_t)(i + 1 < layers ? 64 : 64 | 0x80)); /* bytes used; the last one ends */
        reply_bytes(reply, "BDO", 3);
        reply_u8(reply, 0x01);                       /* class 0, version 1 */
        reply_u8(reply, (uint8_t)(layers << 4 | 1)); /* layers; embossed */
        reply_zeros(reply, 112 - (reply->used - start));
    }
}

typedef struct Structure {
    uint8_t medium; /* CDB byte 1: 0 DVD, 1 BD */
    uint8_t format;
    uint16_t bytes; /* of the structure, without the header */
} Structure;

static const Structure structures[] = {
    {0, 0x00, 2048}, /* physical format */
    {0, 0x01, 4},    /* copyright: none */
    {0, 0x04, 2048}, /* manufacturing information */
    {1, 0x00, 4096}, /* disc information */
};

#define STRUCTURE_LIST 0xff

/* Which there are, for the kind of medium that is asked about (MMC-6 6.23.3.1.11). */
static MmcStep structure_list(MmcCommand *command, uint8_t medium)
{
    Reply reply;
    mmc_reply_begin(command, &reply, MMC_REPLY_ROOM);
    reply_be32(&reply, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(structures); i++) {
        if (structures[i].medium == medium) {
            reply_u8(&reply, structures[i].format);
            reply_u8(&reply, 0x40); /* may be read, not sent */
            reply_be16(&reply, (uint16_t)(structures[i].bytes + 4));
        }
    }
    reply_u8(&reply, STRUCTURE_LIST);
    reply_u8(&reply, 0x40);
    reply_be16(&reply, (uint16_t)(reply.used + 2));
    reply_set_be16(&reply, 0, (uint16_t)(reply.used - 2));
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[8]));
}

static const Structure *find_structure(uint8_t medium, uint8_t format)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(structures); i++) {
        if (structures[i].medium == medium && structures[i].format == format) {
            return &structures[i];
        }
    }
    return NULL;
}

static MmcStep put_structure(MmcCommand *command, const Structure *structure)
{
    const Disc *disc = command->drive->disc;
    Reply reply;
    mmc_reply_begin(command, &reply, 4 + 4096);
    reply_be16(&reply, (uint16_t)(structure->bytes + 2));
    reply_be16(&reply, 0);
    if (structure->medium == 1) {
        put_bd_information(disc, &reply);
    } else if (structure->format == 0x00) {
        put_dvd_layer(disc, &reply);
    }
    reply_zeros(&reply, 4u + structure->bytes - reply.used);
    return mmc_reply_end(command, &reply, load_be16(&command->cdb[8]));
}

MmcStep mmc_read_disc_structure(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    const MmcDrive *drive = command->drive;
    const uint8_t medium = cdb[1] & 0x0f;
    MmcSense sense;
    if (medium > 1) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    if (cdb[7] == STRUCTURE_LIST) { /* needs no medium */
        return structure_list(command, medium);
    }
    if (!tray_check_ready(&command->drive->tray, &sense)) {
        return mmc_fail(command, sense);
    }
    if (mmc_drive_profile(drive) != (medium ? PROFILE_BD : PROFILE_DVD)) {
        return mmc_fail(command, SENSE_INCOMPATIBLE_FORMAT);
    }
    const Structure *structure = find_structure(medium, cdb[7]);
    const unsigned layers = drive->disc->sectors > (medium ? BD_LAYER_SECTORS : DVD_LAYER_SECTORS) ? 2 : 1;
    if (!structure || (cdb[6] >= layers && structure->format == 0x00)) {
        return mmc_fail(command, SENSE_INVALID_FIELD);
    }
    return put_structure(command, structure);
}
