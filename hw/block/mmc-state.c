/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Saving and loading of the drive: tray, attentions, events, sense, mode pages; and of a command in the
 * middle of its work, which is made anew from its CDB and set to where it was.
 */
#include "hw/block/mmc-int.h"
#include "hw/block/mmc-transfer.h"

/* What the guest saw of the medium. */
typedef struct MediumImage {
    bool present;
    uint16_t profile;
    uint32_t sectors, tracks;
} MediumImage;

typedef struct DriveImage {
    Tray tray;
    bool tray_apart;
    MediumImage medium;
    MmcSense sense;
    MmcModePages mode;
    uint32_t position, speed;
    uint8_t power;
    bool power_changed;
    MmcWrite write;
} DriveImage;

#define CUES_MAX 1024

static MediumImage medium_of(const MmcDrive *drive)
{
    const Disc *disc = drive->disc;

    return disc ? (MediumImage){true, disc->profile, disc->sectors, disc->n_tracks} : (MediumImage){0};
}

static void drive_capture(void *object, void *data)
{
    const MmcDrive *drive = object;
    DriveImage *image = data;

    image->tray = drive->tray;
    image->tray_apart = drive->tray_apart;
    image->medium = medium_of(drive);
    image->sense = drive->sense;
    image->mode = drive->mode;
    image->position = drive->position;
    image->speed = drive->speed;
    image->power = drive->power;
    image->power_changed = drive->power_changed;
    image->write = drive->write;
    if (drive->write.cues) {
        g_array_ref(drive->write.cues);
    }
}

/* What a drive of the host was told of the blocks to come. */
static void visit_write(StateIo *io, MmcWrite *write)
{
    uint32_t cues = write->cues ? write->cues->len : 0;

    STATE_NUMBER(io, write->block, 1, MMC_WRITE_BLOCK_MAX);
    state_bool(io, &write->by_cues);
    STATE_NUMBER(io, cues, 0, CUES_MAX);
    if (state_loading(io) && cues) {
        write->cues = g_array_sized_new(false, true, sizeof(MmcCue), cues);
        g_array_set_size(write->cues, cues);
    }
    for (uint32_t i = 0; i < cues; i++) {
        MmcCue *cue = &g_array_index(write->cues, MmcCue, i);
        uint32_t start = (uint32_t)cue->start;

        state_u32(io, &start);
        cue->start = (int32_t)start;
        STATE_NUMBER(io, cue->bytes, 0, MMC_WRITE_BLOCK_MAX);
    }
}

static void visit_sense(StateIo *io, MmcSense *sense)
{
    STATE_NUMBER(io, sense->key, 0, 15);
    state_u8(io, &sense->asc);
    state_u8(io, &sense->ascq);
    state_bool(io, &sense->info_valid);
    state_u32(io, &sense->info);
}

/* The sense of a drive of the host, as it gave it. */
static void visit_raw_sense(StateIo *io, MmcSense *sense)
{
    state_bool(io, &sense->raw);
    state_bytes(io, sense->bytes, sizeof sense->bytes);
    if (sense->raw && (sense->bytes[7] > MMC_SENSE_SIZE - 8 || (sense->bytes[2] & 0x0f) != sense->key)) {
        state_fail(io, "its sense data does not fit its sense key, or is longer than there are bytes");
    }
}

/* What tray.h says of each state must hold. */
static void check_tray(StateIo *io, const Tray *tray)
{
    bool in = tray->state == TRAY_LOADING || tray->state == TRAY_LOADED;

    if ((in && !tray->medium) || (tray->state == TRAY_EMPTY && tray->medium)) {
        state_fail(io, "the tray is in state %d %s a medium", (int)tray->state,
                   tray->medium ? "with" : "without");
    } else if (tray->medium_pending && tray->state != TRAY_LOADED) {
        state_fail(io, "a changed medium is to be told of, and none is loaded");
    } else if (tray->state == TRAY_LOADING && !tray->loading.key) {
        state_fail(io, "a medium is loading and the drive is ready");
    }
}

static void visit_tray(StateIo *io, Tray *tray)
{
    unsigned told = 0;

    STATE_NUMBER(io, tray->state, TRAY_OPEN, TRAY_LOADED);
    state_bool(io, &tray->medium);
    state_bool(io, &tray->prevent);
    state_bool(io, &tray->persistent);
    state_bool(io, &tray->power_on_pending);
    state_bool(io, &tray->medium_pending);
    state_bool(io, &tray->features_changed);
    visit_sense(io, &tray->loading);
    STATE_NUMBER(io, tray->n_events, 0, TRAY_EVENTS);
    for (unsigned i = 0; i < tray->n_events; i++) {
        STATE_NUMBER(io, tray->events[i], TRAY_EVENT_EJECT_REQUEST, TRAY_EVENT_REMOVAL);
        if (told & 1u << tray->events[i]) {
            state_fail(io, "media event %d is there twice", (int)tray->events[i]);
        }
        told |= 1u << tray->events[i];
    }
    check_tray(io, tray);
}

static void drive_visit(void *object, void *data, StateIo *io)
{
    DriveImage *image = data;

    visit_tray(io, &image->tray);
    state_bool(io, &image->tray_apart);
    state_bool(io, &image->medium.present);
    state_u16(io, &image->medium.profile);
    state_u32(io, &image->medium.sectors);
    STATE_NUMBER(io, image->medium.tracks, 0, DISC_MAX_TRACKS);
    if (image->medium.present != image->tray.medium) {
        state_fail(io, "its tray and its medium do not agree");
    }
    visit_sense(io, &image->sense);
    state_bytes(io, image->mode.current, sizeof image->mode.current);
    state_u32(io, &image->mode.block_length);
    if (state_loading(io) && !state_failed(io) && !mmc_mode_valid(&image->mode)) {
        state_fail(io, "a mode page holds what it cannot");
    }
    state_u32(io, &image->position);
    state_u32(io, &image->speed);
    STATE_NUMBER(io, image->power, 1, 3);
    state_bool(io, &image->power_changed);
    visit_write(io, &image->write);
    if (state_version(io) >= 2) {
        visit_raw_sense(io, &image->sense);
    }
}

static bool same_medium(const MediumImage *a, const MediumImage *b)
{
    return a->present == b->present && a->profile == b->profile && a->sectors == b->sectors &&
           a->tracks == b->tracks;
}

/* The medium is what lies in the drive here. */
static void drive_commit(void *object, void *data)
{
    MmcDrive *drive = object;
    DriveImage *image = data;
    const MediumImage here = medium_of(drive);

    drive->tray = image->tray;
    drive->tray.spinning = drive->node && block_tray(drive->node) == BLOCK_TRAY_LOADING; /* as here */
    drive->tray_apart = image->tray_apart;
    drive->sense = image->sense;
    drive->mode = image->mode;
    drive->speed = image->speed;
    drive->power = image->power;
    drive->power_changed = image->power_changed;
    g_clear_pointer(&drive->write.cues, g_array_unref);
    drive->write = image->write;
    image->write.cues = NULL;
    if (!same_medium(&image->medium, &here)) {
        if (here.present) {
            tray_insert(&drive->tray, true);
        } else {
            tray_remove(&drive->tray, true);
        }
    }
    mmc_drive_sync_lock(drive);
    mmc_drive_medium_changed(drive);
    drive->position = drive->disc && image->position < drive->disc->sectors ? image->position : 0;
}

static void drive_clear(void *data)
{
    g_clear_pointer(&((DriveImage *)data)->write.cues, g_array_unref);
}

const StateOps mmc_drive_state = {
    .name = "mmc-drive",
    .version = 2,
    .size = sizeof(DriveImage),
    .capture = drive_capture,
    .visit = drive_visit,
    .commit = drive_commit,
    .clear = drive_clear,
};

bool mmc_drive_settled(const MmcDrive *drive)
{
    for (GList *link = drive->commands.head; link; link = link->next) {
        if (((const MmcCommand *)link->data)->pass.row) {
            return false;
        }
    }
    return true;
}

void mmc_command_capture(const MmcCommand *command, MmcCommandImage *image)
{
    const MmcRead *read = &command->read;

    *image = (MmcCommandImage){.phase = command->state == MMC_DATA_TAKEN    ? MMC_PHASE_TAKEN
                                        : command->state == MMC_DATA_WANTED ? MMC_PHASE_WANTED
                                                                            : MMC_PHASE_READING};
    memcpy(image->cdb, command->cdb, MMC_CDB_SIZE);
    image->transfer = read->disc != NULL;
    image->lba = read->lba;
    image->left = read->left;
    image->shown = read->shown;
    image->after = read->after;
    image->want = image->phase == MMC_PHASE_WANTED ? command->want : 0;
}

/* Only these wait for anything. */
static bool fits_phase(const MmcCommandImage *image)
{
    const MmcOp *op = mmc_op_find(image->cdb[0]);
    MmcHandler handler = op ? op->handler : NULL;

    if (image->transfer) {
        return handler == mmc_read_blocks || handler == mmc_read_cd || handler == mmc_read_cd_msf ||
               handler == mmc_verify;
    }
    return image->phase == MMC_PHASE_WANTED ? handler == mmc_mode_select || handler == mmc_set_streaming
                                            : op && op->direction == MMC_DATA_IN;
}

void mmc_command_visit(MmcCommandImage *image, StateIo *io)
{
    state_bytes(io, image->cdb, MMC_CDB_SIZE);
    STATE_NUMBER(io, image->phase, MMC_PHASE_READING, MMC_PHASE_WANTED);
    state_bool(io, &image->transfer);
    STATE_NUMBER(io, image->lba, 0, UINT32_MAX);
    STATE_NUMBER(io, image->left, 0, UINT32_MAX);
    STATE_NUMBER(io, image->shown, 0, image->left);
    visit_sense(io, &image->after);
    STATE_NUMBER(io, image->want, 0, MMC_PARAM_MAX);
    if (state_loading(io) && !fits_phase(image)) {
        state_fail(io, "a command with the opcode 0x%02x cannot be in phase %d", image->cdb[0],
                   (int)image->phase);
    } else if ((image->phase == MMC_PHASE_WANTED) != (image->want > 0)) {
        state_fail(io, "a command wants %u bytes in phase %d", (unsigned)image->want, (int)image->phase);
    } else if (image->transfer ? image->phase == MMC_PHASE_WANTED : image->phase == MMC_PHASE_READING) {
        state_fail(io, "a command %s sectors in phase %d", image->transfer ? "reads" : "does not read",
                   (int)image->phase);
    }
}

static MmcStep end_step(MmcCommand *command)
{
    return MMC_STEP_DONE;
}

/* The handler runs up to its first step, which checks the CDB against the medium. True if it then stands
 * where the image says. */
static bool restart(MmcCommand *command, const MmcCommandImage *image)
{
    MmcRead *read = &command->read;

    if (command->op->gates & MMC_NEED_MEDIUM && !tray_check_ready(&command->drive->tray, &command->sense)) {
        return false;
    }
    MmcStep step = command->op->handler(command);
    if (step == MMC_STEP_WANT && command->want == image->want) {
        return true;
    }
    if (step != MMC_STEP_AGAIN || !read->disc || image->lba < read->lba ||
        image->lba + image->left != read->lba + read->left) {
        command->sense = step == MMC_STEP_DONE && command->sense.key ? command->sense : SENSE_ABORTED;
        return false;
    }
    read->skip = image->lba > read->lba ? 0 : read->skip;
    read->lba = image->lba;
    read->left = image->left;
    read->shown = image->shown;
    read->after = image->after;
    return true;
}

MmcCommand *mmc_command_restore(MmcDrive *drive, const MmcCommandImage *image, const MmcTransport *transport,
                                void *opaque)
{
    MmcCommand *command = mmc_command_new(drive, image->cdb, transport, opaque);

    command->op = mmc_op_find(image->cdb[0]);
    command->pass = (MmcPass){.how = MMC_PASS_OWN}; /* those that go to the host's drive are not saved */

    if (!image->transfer && image->phase == MMC_PHASE_TAKEN) {
        command->step = mmc_good; /* a reply, which the transport has whole */
    } else if (!restart(command, image)) {
        mmc_transfer_clear(&command->read);
        command->want = image->want;
        command->step = end_step;
    }
    command->state = image->phase == MMC_PHASE_TAKEN    ? MMC_DATA_TAKEN
                     : image->phase == MMC_PHASE_WANTED ? MMC_DATA_WANTED
                                                        : MMC_BUSY;
    g_queue_push_tail_link(&drive->commands, &command->link);
    return command;
}

void mmc_command_go_on(MmcCommand *command)
{
    mmc_command_continue(command);
}
