/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The life of a command: gates, the handler's steps, the hand-over of data, the end.
 *
 *   NEW --start--> BUSY --offer--> DATA_TAKEN --resume----+
 *                  ^ | --want---> DATA_WANTED --data_out--+--> BUSY
 *                  | +--> COMPLETE (the transport frees it)
 *                  +---- I/O done, or more at hand
 *
 * abandon frees it in any state; reads under way are let go (see source.h) and end by themselves. Steps run
 * in one loop, so that a transport which answers inside its callbacks does not pile up stack frames.
 */
#include <string.h>
#include "hw/block/mmc-int.h"
#include "hw/block/mmc-pass.h"
#include "hw/block/mmc-transfer.h"
#include "util/error.h"
#include "util/trace.h"

MmcCommand *mmc_command_new(MmcDrive *drive, const uint8_t *cdb, const MmcTransport *transport, void *opaque)
{
    MmcCommand *command = g_new0(MmcCommand, 1);
    command->drive = drive;
    command->transport = transport;
    command->opaque = opaque;
    command->link.data = command;
    memcpy(command->cdb, cdb, MMC_CDB_SIZE);
    command->op = mmc_op_find(cdb[0]);
    command->pass.how = mmc_pass_choose(drive, cdb, &command->pass.row);
    if (command->pass.how == MMC_PASS_DENY) {
        command->op = NULL;
    }
    if (command->pass.how == MMC_PASS_DENY || command->pass.how == MMC_PASS_OWN) {
        command->pass.how = MMC_PASS_OWN;
        command->pass.row = NULL;
    }
    return command;
}

void *mmc_command_opaque(const MmcCommand *command)
{
    return command->opaque;
}

MmcDirection mmc_command_direction(const MmcCommand *command)
{
    return command->pass.row ? command->pass.row->direction
           : command->op     ? command->op->direction
                             : MMC_DATA_NONE;
}

uint64_t mmc_command_length(const MmcCommand *command)
{
    if (command->pass.row) {
        return mmc_pass_length(command);
    }
    return command->op && command->op->length ? command->op->length(command->drive, command->cdb) : 0;
}

static void command_destroy(MmcCommand *command)
{
    mmc_transfer_clear(&command->read);
    mmc_pass_clear(command);
    buffer_unref(command->reply_buffer);
    g_free(command);
}

static void command_unlink(MmcCommand *command)
{
    if (command->state != MMC_NEW && command->state != MMC_COMPLETE) {
        g_queue_unlink(&command->drive->commands, &command->link);
    }
}

void mmc_command_free(MmcCommand *command)
{
    if (command) {
        command_unlink(command);
        command_destroy(command);
    }
}

void mmc_command_abandon(MmcCommand *command)
{
    command_unlink(command);
    command->state = MMC_COMPLETE;
    command->abandoned = true;
    mmc_transfer_clear(&command->read);
    mmc_pass_clear(command);
    if (!command->running) {
        command_destroy(command);
    }
}

static unsigned command_gates(const MmcCommand *command)
{
    return command->pass.row ? command->pass.row->gates : command->op ? command->op->gates : 0;
}

static MmcStep gates_step(MmcCommand *command)
{
    MmcDrive *drive = command->drive;
    const unsigned gates = command_gates(command);
    MmcSense sense;
    if (!(gates & MMC_KEEP_SENSE)) {
        drive->sense = SENSE_GOOD;
    }
    if (drive->node && (command->cdb[0] == 0x00 || command->cdb[0] == 0x4a)) {
        block_check_tray(drive->node); /* TEST UNIT READY, GET EVENT STATUS NOTIFICATION */
    }
    if (!(gates & MMC_PASS_ATTENTION) && tray_take_attention(&drive->tray, &sense)) {
        return mmc_fail(command, sense);
    }
    if (!command->op && !command->pass.row) {
        return mmc_fail(command, SENSE_INVALID_OPCODE);
    }
    if (gates & MMC_NEED_MEDIUM && !mmc_pass_is_drives(command) && !tray_check_ready(&drive->tray, &sense)) {
        return mmc_fail(command, sense);
    }
    command->step = command->pass.row ? mmc_pass_begin : command->op->handler;
    return MMC_STEP_AGAIN;
}

static const char *drive_name(const MmcDrive *drive)
{
    return drive->id ? drive->id : "";
}

static const char *op_name(const MmcCommand *command)
{
    return command->pass.row ? command->pass.row->name : command->op ? command->op->name : "unknown";
}

static void complete(MmcCommand *command)
{
    MmcDrive *drive = command->drive;
    trace(mmc_command_end, drive_name(drive), op_name(command), command->sense.key, command->sense.asc,
          command->sense.ascq);
    command_unlink(command);
    command->state = MMC_COMPLETE;
    mmc_transfer_clear(&command->read);
    mmc_pass_clear(command);
    if (command->sense.key) {
        drive->sense = command->sense;
    }
    command->running = false;
    const MmcSense sense = command->sense;
    command->transport->complete(command, &sense);
}

/* Hands data over, or asks for it; true when the transport has answered already. */
static bool hand_over(MmcCommand *command, MmcStep step)
{
    if (step == MMC_STEP_OFFER) {
        command->state = MMC_DATA_TAKEN;
        command->transport->data_in(command, command->buffer, command->at, command->len);
    } else {
        command->state = MMC_DATA_WANTED;
        command->transport->data_out(command, command->want);
    }
    return command->state == MMC_BUSY;
}

void mmc_command_continue(MmcCommand *command)
{
    if (command->running || command->state != MMC_BUSY) {
        return; /* the loop below comes to it, or the transport has the word */
    }
    command->running = true;
    for (;;) {
        const MmcStep step = command->step(command);
        if (step == MMC_STEP_AGAIN) {
            continue;
        }
        if (step == MMC_STEP_DONE) {
            complete(command);
            return;
        }
        if (step == MMC_STEP_WAIT || !hand_over(command, step)) {
            break;
        }
    }
    command->running = false;
    if (command->abandoned) {
        command_destroy(command);
    }
}

void mmc_command_start(MmcCommand *command)
{
    const uint8_t *cdb = command->cdb;
    trace(mmc_command_start, drive_name(command->drive), op_name(command), cdb[0], cdb[1], cdb[2], cdb[3],
          cdb[4], cdb[5], cdb[6], cdb[7], cdb[8], cdb[9], cdb[10], cdb[11]);
    g_queue_push_tail_link(&command->drive->commands, &command->link);
    command->state = MMC_BUSY;
    command->step = gates_step;
    mmc_command_continue(command);
}

void mmc_command_resume(MmcCommand *command)
{
    if (command->state == MMC_DATA_TAKEN) {
        command->state = MMC_BUSY;
        mmc_command_continue(command);
    }
}

void mmc_command_data_out(MmcCommand *command, const uint8_t *data, size_t len)
{
    if (command->state == MMC_DATA_WANTED) {
        command->got = MIN(len, command->want);
        uint8_t *to = command->pass.request ? mmc_pass_data(command) : command->param;
        memcpy(to, data, command->got);
        command->state = MMC_BUSY;
        mmc_command_continue(command);
    }
}

void mmc_reply_begin(MmcCommand *command, Reply *reply, size_t room)
{
    MmcDrive *drive = command->drive;
    buffer_unref(command->reply_buffer);
    command->reply_buffer =
        room <= MMC_REPLY_ROOM ? buffer_pool_get(drive->replies) : buffer_new(room, BUFFER_ALIGN);
    reply_init(reply, command->reply_buffer->data, room);
}

MmcStep mmc_reply_end(MmcCommand *command, const Reply *reply, uint64_t allocation)
{
    command->buffer = command->reply_buffer;
    command->at = 0;
    command->len = reply_length(reply, MIN(allocation, SIZE_MAX));
    command->step = mmc_good;
    return command->len > 0 ? MMC_STEP_OFFER : MMC_STEP_AGAIN;
}

MmcStep mmc_want(MmcCommand *command, size_t len, MmcHandler then)
{
    command->want = len;
    command->step = then;
    return MMC_STEP_WANT;
}
