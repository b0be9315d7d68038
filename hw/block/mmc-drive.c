/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drive as the operator sees it: making one, putting media in and out, moving the tray.
 */
#include "block/toc.h"
#include "hw/block/mmc-int.h"
#include "hw/block/mmc-pass.h"
#include "hw/block/mmc-transfer.h"
#include "util/error.h"
#include "util/trace.h"

static void node_event(BlockNode *node, BlockEvent event, void *opaque);

MmcDrive *mmc_drive_new(const MmcDriveConfig *config)
{
    MmcDrive *drive = g_new0(MmcDrive, 1);
    drive->id = g_strdup(config->id);
    drive->vendor = g_strdup(config->vendor ? config->vendor : "SPINDLE");
    drive->product = g_strdup(config->product ? config->product : "CD/DVD Drive");
    drive->revision = g_strdup(config->revision ? config->revision : "1.0");
    drive->serial = g_strdup(config->serial ? config->serial : config->id ? config->id : "0");
    drive->source = source_new(config->read_ahead);
    drive->replies = buffer_pool_new(MMC_REPLY_ROOM, BUFFER_ALIGN, 2);
    drive->power = 1;
    tray_init(&drive->tray);
    drive->passthrough = config->passthrough;
    drive->rerror = config->rerror;
    drive->write.block = SECTOR_USER;
    drive->no_power_on = config->no_power_on;
    if (drive->no_power_on) {
        drive->tray.power_on_pending = false;
    }
    mmc_mode_init(&drive->mode);
    g_queue_init(&drive->commands);
    return drive;
}

void mmc_drive_sync_lock(MmcDrive *drive)
{
    const bool locked = tray_locked(&drive->tray);
    if (drive->node && locked != drive->host_locked) {
        block_lock_tray(drive->node, locked);
        drive->host_locked = locked;
    }
}

static void set_node(MmcDrive *drive, BlockNode *node)
{
    if (drive->node && drive->host_locked && node != drive->node) {
        block_lock_tray(drive->node, false);
        drive->host_locked = false;
    }
    if (node) {
        block_ref(node);
        block_listen(node, node_event, drive);
    }
    if (drive->node) {
        block_unlisten(drive->node, node_event, drive);
        block_unref(drive->node);
    }
    drive->node = node;
}

void mmc_drive_free(MmcDrive *drive)
{
    if (!drive) {
        return;
    }
    source_free(drive->source);
    set_node(drive, NULL);
    disc_unref(drive->disc);
    buffer_pool_free(drive->replies);
    g_clear_pointer(&drive->write.cues, g_array_unref);
    g_free(drive->id);
    g_free(drive->vendor);
    g_free(drive->product);
    g_free(drive->revision);
    g_free(drive->serial);
    g_free(drive);
}

void mmc_drive_reset(MmcDrive *drive, bool power_on)
{
    if (power_on) {
        tray_power_on(&drive->tray);
        drive->tray.power_on_pending = !drive->no_power_on;
        mmc_mode_init(&drive->mode);
        drive->speed = 0;
        drive->position = 0;
    } else {
        tray_device_reset(&drive->tray);
    }
    mmc_drive_sync_lock(drive);
    drive->sense = SENSE_GOOD;
    drive->power = 1;
    drive->power_changed = false;
    source_drop(drive->source);
}

const char *mmc_drive_serial(const MmcDrive *drive)
{
    return drive->serial;
}

const char *mmc_drive_id(const MmcDrive *drive)
{
    return drive->id;
}

BlockNode *mmc_drive_node(const MmcDrive *drive)
{
    return drive->node;
}

bool mmc_drive_tray_open(const MmcDrive *drive)
{
    return drive->tray.state == TRAY_OPEN;
}

bool mmc_drive_locked(const MmcDrive *drive)
{
    return tray_locked(&drive->tray);
}

void mmc_drive_on_tray_moved(MmcDrive *drive, MmcTrayMoved moved, void *opaque)
{
    drive->moved = moved;
    drive->moved_opaque = opaque;
}

void mmc_drive_on_failed(MmcDrive *drive, MmcFailed failed, void *opaque)
{
    drive->failed = failed;
    drive->failed_opaque = opaque;
}

static MmcCommand *find_kept(const MmcDrive *drive)
{
    for (GList *link = drive->commands.head; link; link = link->next) {
        MmcCommand *command = link->data;
        if (command->read.kept) {
            return command;
        }
    }
    return NULL;
}

unsigned mmc_drive_kept(const MmcDrive *drive)
{
    unsigned kept = 0;

    for (GList *link = drive->commands.head; link; link = link->next) {
        kept += ((const MmcCommand *)link->data)->read.kept;
    }
    return kept;
}

/* Only those kept now: one that fails again, inside the call even, goes behind them. */
void mmc_drive_resume(MmcDrive *drive)
{
    MmcCommand *command;

    for (unsigned n = mmc_drive_kept(drive); n > 0 && (command = find_kept(drive)); n--) {
        g_queue_unlink(&drive->commands, &command->link);
        g_queue_push_tail_link(&drive->commands, &command->link);
        command->read.kept = false;
        mmc_command_continue(command);
    }
}

void mmc_drive_tell_moved(MmcDrive *drive, bool open)
{
    trace(mmc_tray, drive->id ? drive->id : "", open ? "open" : "closed");
    if (drive->moved) {
        drive->moved(drive, open, drive->moved_opaque);
    }
}

static MmcCommand *find_stale(const MmcDrive *drive)
{
    for (GList *link = drive->commands.head; link; link = link->next) {
        MmcCommand *command = link->data;
        if (command->state == MMC_BUSY && !command->running &&
            (mmc_transfer_is_stale(command) || mmc_pass_is_stale(command))) {
            return command;
        }
    }
    return NULL;
}

/* Commands that wait for data of the old disc end now, however long its source would take; those whose data
 * the transport has find out when they resume. */
void mmc_drive_medium_changed(MmcDrive *drive)
{
    MmcCommand *command;
    source_drop(drive->source);
    drive->position = 0;
    drive->media++;
    while ((command = find_stale(drive))) {
        mmc_command_continue(command);
    }
}

static void set_disc(MmcDrive *drive, Disc *disc, bool announce)
{
    disc_unref(drive->disc);
    drive->disc = disc;
    if (disc) {
        tray_insert(&drive->tray, announce);
    } else {
        tray_remove(&drive->tray, announce);
    }
    mmc_drive_sync_lock(drive);
    mmc_drive_medium_changed(drive);
}

/* Takes over the caller's reference of `disc`. */
static void insert(MmcDrive *drive, BlockNode *node, Disc *disc, bool announce)
{
    const bool was_open = mmc_drive_tray_open(drive);
    set_node(drive, node);
    set_disc(drive, disc, announce);
    if (was_open && !mmc_drive_tray_open(drive)) {
        mmc_drive_tell_moved(drive, false);
    }
}

void mmc_drive_insert_disc(MmcDrive *drive, BlockNode *node, Disc *disc, bool announce)
{
    insert(drive, node, disc_ref(disc), announce);
    drive->plain = false;
}

/* A host drive's tray is where it is, by whomever it was moved. */
static void follow_tray(MmcDrive *drive, BlockTray host)
{
    if (host == BLOCK_TRAY_OPEN && tray_open(&drive->tray)) {
        mmc_drive_tell_moved(drive, true);
    } else if ((host == BLOCK_TRAY_CLOSED || host == BLOCK_TRAY_LOADING) && tray_close(&drive->tray)) {
        mmc_drive_tell_moved(drive, false);
    }
}

bool mmc_drive_insert(MmcDrive *drive, BlockNode *node, bool announce, GError **error)
{
    Disc *disc = NULL;
    if (node && block_medium_present(node)) {
        disc = disc_new_from_node(node, error);
        if (!disc) {
            return false;
        }
    }
    insert(drive, node, disc, announce);
    drive->plain = !node || !block_toc(node);
    drive->tray_apart &= mmc_drive_tray_open(drive);
    if (node && block_tray(node) == BLOCK_TRAY_OPEN) {
        follow_tray(drive, BLOCK_TRAY_OPEN);
    }
    return true;
}

void mmc_drive_replace_node(MmcDrive *drive, BlockNode *node)
{
    BlockNode *before = drive->node;

    if (drive->disc) {
        disc_replace_node(drive->disc, before, node);
    }
    source_drop(drive->source);
    set_node(drive, node);
    mmc_drive_sync_lock(drive);
}

/* A host drive's disc came or went, or an image grew: for the guest that is a change of the medium. */
static void node_event(BlockNode *node, BlockEvent event, void *opaque)
{
    MmcDrive *drive = opaque;
    if (event == BLOCK_EVENT_EJECT_REQUEST) {
        tray_eject_request(&drive->tray);
        return;
    }
    if (event == BLOCK_EVENT_TRAY) {
        follow_tray(drive, drive->tray_apart ? BLOCK_TRAY_NONE : block_tray(node));
        return;
    }
    if (event == BLOCK_EVENT_RESIZE && !drive->plain) {
        return; /* what a disc image's tracks are does not change with its file */
    }
    Disc *disc = NULL;
    if (event != BLOCK_EVENT_GONE && block_medium_present(node)) {
        disc = disc_new_from_node(node, NULL); /* a node of no bytes is no medium */
    }
    const BlockTray host =
        event == BLOCK_EVENT_MEDIUM && !drive->tray_apart ? block_tray(node) : BLOCK_TRAY_NONE;
    drive->tray.spinning = host == BLOCK_TRAY_LOADING;
    if (host == BLOCK_TRAY_OPEN) { /* the disc leaves with the tray */
        follow_tray(drive, host);
    }
    if (disc || drive->disc) {
        const bool was_empty = !drive->disc;
        set_disc(drive, disc, true);
        if (was_empty && host != BLOCK_TRAY_NONE) {
            tray_load_slowly(&drive->tray);
        }
    } else if (event == BLOCK_EVENT_GONE) { /* blank discs are none to us */
        mmc_drive_medium_changed(drive);
    }
    if (host != BLOCK_TRAY_OPEN) { /* … and comes with it */
        follow_tray(drive, host);
    }
    drive->plain = !block_toc(node);
}

void mmc_drive_eject_request(MmcDrive *drive)
{
    tray_eject_request(&drive->tray);
}

void mmc_drive_eject(MmcDrive *drive)
{
    if (tray_open(&drive->tray)) {
        mmc_drive_medium_changed(drive);
        mmc_drive_tell_moved(drive, true);
    }
}

bool mmc_drive_open_tray(MmcDrive *drive, bool force, GError **error)
{
    if (tray_locked(&drive->tray) && !force && !mmc_drive_tray_open(drive)) {
        tray_eject_request(&drive->tray);
        return error_set(
            error, "Device '%s' is locked and force was not specified, wait for tray to open and try again",
            drive->id ? drive->id : "");
    }
    tray_unlock(&drive->tray);
    mmc_drive_sync_lock(drive);
    drive->tray_apart = true;
    mmc_drive_eject(drive);
    return true;
}

void mmc_drive_close_tray(MmcDrive *drive)
{
    if (drive->node && drive->tray.state == TRAY_OPEN && !drive->tray_apart &&
        block_tray(drive->node) != BLOCK_TRAY_NONE) {
        block_move_tray(drive->node, false); /* an event will say that it is closed, and with what in it */
        return;
    }
    drive->tray_apart = false;
    if (tray_close(&drive->tray)) {
        mmc_drive_tell_moved(drive, false);
    }
}

static bool in_reach(const MmcDrive *drive)
{
    return drive->disc && drive->tray.state != TRAY_OPEN;
}

uint16_t mmc_drive_profile(const MmcDrive *drive)
{
    return in_reach(drive) ? drive->disc->profile : PROFILE_NONE;
}

uint32_t mmc_drive_max_speed(const MmcDrive *drive)
{
    switch (mmc_drive_profile(drive)) {
    case PROFILE_DVD:
        return 22160; /* 16 x 1385 */
    case PROFILE_BD:
        return 53940; /* 12 x 4495 */
    default:
        return 9173; /* 52 x 176.4 */
    }
}

uint32_t mmc_drive_speed(const MmcDrive *drive)
{
    const uint32_t most = mmc_drive_max_speed(drive);
    return drive->speed && drive->speed < most ? drive->speed : most;
}
