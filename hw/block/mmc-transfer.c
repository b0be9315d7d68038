/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One step of the transfer: take what was given off the count, have a chunk read, convert it if the guest
 * wants more or less than what is stored, offer it. A failed chunk is read again by halves until the sector
 * is found: what lies before it is given, then comes the error.
 */
#include <string.h>
#include "hw/block/mmc-transfer.h"

static bool is_plain_user(const MmcFields *fields)
{
    return fields->user && !fields->sync && !fields->header && !fields->subheader && !fields->edc &&
           !fields->c2 && !fields->sub;
}

/* Sectors lie in the node as the guest wants them: no conversion, no copy. */
static bool gives_stored(const MmcRead *read, const DiscTrack *track)
{
    const SectorType type = disc_track_type(track);
    return track->stride == SECTOR_USER && is_plain_user(&read->fields) &&
           (read->fields.expected == SECTOR_TYPE_ANY || read->fields.expected == type);
}

bool mmc_transfer_is_stale(const MmcCommand *command)
{
    const MmcDrive *drive = command->drive;
    const MmcRead *read = &command->read;
    return read->disc && (read->disc != drive->disc || drive->tray.state != TRAY_LOADED);
}

void mmc_transfer_clear(MmcRead *read)
{
    g_clear_pointer(&read->present, source_read_free);
    g_clear_pointer(&read->next, source_read_free);
    g_clear_pointer(&read->made, buffer_unref);
    g_clear_pointer(&read->disc, disc_unref);
}

static void chunk_ready(SourceRead *chunk, void *opaque)
{
    mmc_command_continue(opaque);
}

/* A read of up to `left` sectors of one track from `lba`. NULL: *ret_sense. */
static SourceRead *start_chunk(MmcCommand *command, uint64_t lba, uint64_t left, MmcSense *ret_sense)
{
    const MmcRead *read = &command->read;
    const DiscTrack *track = disc_find_track(read->disc, (uint32_t)lba);
    if (!track) { /* between sessions */
        *ret_sense = SENSE_ILLEGAL_TRACK_MODE;
        return NULL;
    }
    const uint32_t room = gives_stored(read, track) ? track->stride : MAX(track->stride, MMC_SECTOR_OUT_MAX);
    const bool silent = lba < track->start && !track->pregap_stored;
    const uint64_t track_end = silent ? track->start : (uint64_t)track->start + track->sectors;
    uint64_t sectors = MIN(left, MIN(track_end - lba, BUFFER_MAX / room));
    if (lba < read->suspect_end) {
        sectors = MIN(sectors, read->chunk_sectors);
    }
    if (silent) {
        return source_zeroes(command->drive->source, sectors * track->stride);
    }
    const uint64_t offset = track->offset + (lba - track->start) * track->stride; /* modulo 2^64: a pregap */
    return source_read(command->drive->source, track->node, offset, sectors * track->stride, track->stride,
                       (MIN(left, track_end - lba) - sectors) * track->stride, chunk_ready, command);
}

/* Drops the offered chunk and goes on to the one behind it. */
static void advance(MmcRead *read)
{
    read->lba += read->shown;
    read->left -= read->shown;
    read->shown = 0;
    read->skip = 0;
    g_clear_pointer(&read->made, buffer_unref);
    source_read_free(read->present);
    read->present = g_steal_pointer(&read->next);
    if (read->lba >= read->suspect_end) {
        read->chunk_sectors = 0;
        read->suspect_end = 0;
    }
}

static void drop_chunks(MmcRead *read)
{
    g_clear_pointer(&read->present, source_read_free);
    g_clear_pointer(&read->next, source_read_free);
}

/* The sector at read->lba, or what follows from it, cannot be read, and there is no more to be found out. */
static MmcStep settle_error(MmcCommand *command, int result)
{
    MmcDrive *drive = command->drive;
    MmcRead *read = &command->read;
    const OnError action = on_error_action(drive->rerror, result);
    const unsigned per_sector = mmc_blocks_per_sector(drive->mode.block_length);
    if (action == ON_ERROR_STOP) {
        read->kept = true;
        drop_chunks(read);
    }
    if (drive->failed) {
        drive->failed(drive, result, action, drive->failed_opaque);
    }
    if (action == ON_ERROR_STOP) {
        return read->kept ? MMC_STEP_WAIT : MMC_STEP_AGAIN;
    }
    if (action == ON_ERROR_IGNORE) {
        const size_t bytes = read->present->bytes;
        drop_chunks(read);
        read->present = source_zeroes(drive->source, bytes);
        return MMC_STEP_AGAIN;
    }
    return mmc_fail(command, sense_from_errno(result, (uint32_t)(read->lba * per_sector)));
}

/* `sectors` from read->lba on could not be read. Which of them it is does not matter where the machine stops:
 * all will be read again. */
static MmcStep search_error(MmcCommand *command, uint64_t sectors)
{
    MmcRead *read = &command->read;
    const int result = read->present->result;
    if (!sense_errno_is_medium(result) || sectors <= 1 || command->drive->rerror == ON_ERROR_STOP) {
        return settle_error(command, result);
    }
    read->suspect_end = MAX(read->suspect_end, read->lba + sectors);
    read->chunk_sectors = sectors / 2;
    drop_chunks(read);
    return MMC_STEP_AGAIN;
}

/* Converts the chunk's sectors until one of them cannot be given: that ends the command behind the others. */
static MmcStep convert(MmcCommand *command, const DiscTrack *track, uint64_t sectors)
{
    MmcRead *read = &command->read;
    const SourceRead *present = read->present;
    const uint8_t *stored = present->buffer->data + present->at;
    size_t len = 0;
    read->made = source_buffer(command->drive->source);
    for (read->shown = 0; read->shown < sectors; read->shown++) {
        MmcSense sense;
        const int given =
            mmc_fields_build(&read->fields, read->disc, track, (uint32_t)(read->lba + read->shown), stored,
                             read->made->data + len, &sense);
        if (given < 0 || (read->block_size && (unsigned)given != read->block_size)) {
            read->after = given < 0 ? sense : SENSE_ILLEGAL_TRACK_MODE;
            break;
        }
        len += (unsigned)given;
        stored += track->stride;
    }
    if (read->after.key) {
        g_clear_pointer(&read->next, source_read_free);
        if (read->shown == 0) {
            return mmc_fail(command, read->after);
        }
    }
    command->buffer = read->made;
    command->at = 0;
    command->len = len;
    return len > 0 ? MMC_STEP_OFFER : MMC_STEP_AGAIN;
}

static MmcStep offer_stored(MmcCommand *command, uint64_t sectors)
{
    MmcRead *read = &command->read;
    read->shown = sectors;
    command->buffer = read->present->buffer;
    command->at = read->present->at + read->skip;
    command->len = sectors * SECTOR_USER - read->skip - (sectors == read->left ? read->tail : 0);
    return MMC_STEP_OFFER;
}

/* Straight from the page cache to where the transport wants it, with no buffer between; false: not this way.
 * What a bad sector or a slow source needs is left to the chunks. */
static bool give_directly(MmcCommand *command)
{
    MmcRead *read = &command->read;
    const DiscTrack *track = disc_find_track(read->disc, (uint32_t)read->lba);
    struct iovec iov[SOURCE_IOV_MAX];
    int niov = SOURCE_IOV_MAX;
    if (!command->transport->map_in || !track || !gives_stored(read, track) || read->audio || read->discard ||
        read->skip || read->tail || read->lba < track->start || read->lba < read->suspect_end) {
        return false;
    }
    const uint64_t left = MIN(read->left, (uint64_t)track->start + track->sectors - read->lba);
    const size_t bytes = MIN(left * SECTOR_USER, BUFFER_MAX);
    if (!command->transport->map_in(command, bytes, iov, &niov) ||
        source_read_into(command->drive->source, track->node,
                         track->offset + (read->lba - track->start) * SECTOR_USER, bytes, SECTOR_USER, iov,
                         niov) < 0) {
        return false;
    }
    read->shown = bytes / SECTOR_USER;
    command->buffer = NULL;
    command->at = 0;
    command->len = bytes;
    return true;
}

MmcSense mmc_transfer_stale_sense(MmcDrive *drive)
{
    MmcSense sense;
    return tray_check_ready(&drive->tray, &sense) ? SENSE_MEDIUM_CHANGED : sense;
}

/* What to do with the chunk that is there: have the next one read, and give this one. */
static MmcStep take_chunk(MmcCommand *command)
{
    MmcRead *read = &command->read;
    const DiscTrack *track = disc_find_track(read->disc, (uint32_t)read->lba);
    const uint64_t sectors = read->present->bytes / track->stride;
    MmcSense sense;
    if (read->present->result < 0) {
        return search_error(command, sectors);
    }
    if ((track->mode == DISC_AUDIO) != read->audio) { /* no read goes over from one kind to the other */
        return mmc_fail(command, SENSE_ILLEGAL_TRACK_MODE);
    }
    if (sectors < read->left && read->lba >= read->suspect_end && !read->next) {
        read->next = start_chunk(command, read->lba + sectors, read->left - sectors, &sense);
    }
    if (read->discard) {
        read->shown = sectors;
        return MMC_STEP_AGAIN;
    }
    return gives_stored(read, track) ? offer_stored(command, sectors) : convert(command, track, sectors);
}

static MmcStep transfer_step(MmcCommand *command)
{
    MmcRead *read = &command->read;
    MmcSense sense;
    if (mmc_transfer_is_stale(command)) {
        return mmc_fail(command, mmc_transfer_stale_sense(command->drive));
    }
    if (read->shown > 0) {
        advance(read);
    }
    if (read->after.key || read->left == 0) {
        command->drive->position = (uint32_t)(read->lba - 1);
        return mmc_fail(command, read->after);
    }
    if (!read->present && give_directly(command)) {
        return MMC_STEP_OFFER;
    }
    if (!read->present) {
        read->present = start_chunk(command, read->lba, read->left, &sense);
        if (!read->present) {
            return mmc_fail(command, sense);
        }
    }
    return read->present->ready ? take_chunk(command) : MMC_STEP_WAIT;
}

MmcStep mmc_transfer_begin(MmcCommand *command, uint64_t lba, uint64_t sectors)
{
    MmcRead *read = &command->read;
    read->disc = disc_ref(command->drive->disc);
    read->lba = lba;
    read->left = sectors;
    const DiscTrack *track = disc_find_track(read->disc, (uint32_t)lba);
    read->audio = track && track->mode == DISC_AUDIO;
    command->drive->power = 1;
    command->step = transfer_step;
    return MMC_STEP_AGAIN;
}
