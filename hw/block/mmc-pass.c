/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The way of a command to the drive of the host and back: one packet, or several where it asks for more than
 * the host passes at once and the table says how to cut it.
 *
 *   begin ─► next part ─► (data from the guest) ─► sent ─► answered ─► (data for the guest) ─┐
 *              ▲                                               │ not GOOD: the drive's sense │
 *              └───────────────────────────────────────────────┴────────── parts left ───────┘
 *
 * The packet is an object of its own: a command that is abandoned, or whose medium is gone, leaves it behind.
 */
#include "hw/block/mmc-pass.h"
#include <errno.h>
#include <string.h>
#include "hw/block/mmc-transfer.h"
#include "hw/block/msf.h"
#include "util/bytes.h"

/* SAM-5 5.3.1. */
#define STATUS_GOOD            0x00
#define STATUS_CHECK_CONDITION 0x02
#define STATUS_BUSY            0x08

struct MmcPassRequest {
    BlockPacket packet;
    Buffer *buffer;      /* its data, NULL: none */
    MmcCommand *command; /* NULL: nobody waits */
    bool answered;
};

static MmcStep part_next(MmcCommand *command);

static void request_free(MmcPassRequest *request)
{
    if (request) {
        buffer_unref(request->buffer);
        g_free(request);
    }
}

/* The loop, when the drive has answered or never will. */
static void packet_done(BlockPacket *packet)
{
    MmcPassRequest *request = packet->opaque;
    if (!request->command) {
        request_free(request);
        return;
    }
    request->answered = true;
    mmc_command_continue(request->command);
}

void mmc_pass_clear(MmcCommand *command)
{
    MmcPassRequest *request = g_steal_pointer(&command->pass.request);
    if (request && command->pass.waits && !request->answered) {
        request->command = NULL; /* packet_done() frees it */
        block_packet_abandon(&request->packet);
    } else {
        request_free(request);
    }
    command->pass.waits = false;
}

bool mmc_pass_is_drives(const MmcCommand *command)
{
    const MmcDrive *drive = command->drive;
    return command->pass.how != MMC_PASS_OWN && drive->passthrough == MMC_PASSTHROUGH_BURN &&
           drive->tray.state == TRAY_EMPTY;
}

bool mmc_pass_is_stale(const MmcCommand *command)
{
    const MmcPass *pass = &command->pass;
    return pass->waits && pass->row->gates & MMC_NEED_MEDIUM && pass->media != command->drive->media;
}

uint64_t mmc_pass_length(const MmcCommand *command)
{
    const MmcPassRow *row = command->pass.row;
    const uint8_t *at = &command->cdb[row->at];
    if (row->length) {
        return row->length(command->drive, command->cdb);
    }
    switch (row->width) {
    case 1:
        return at[0];
    case 2:
        return load_be16(at);
    case 3:
        return load_be24(at);
    case 4:
        return load_be32(at);
    default:
        return 0;
    }
}

static void set_length(const MmcPassRow *row, uint8_t *cdb, uint32_t bytes)
{
    uint8_t *at = &cdb[row->at];
    switch (row->width) {
    case 1:
        at[0] = (uint8_t)bytes;
        break;
    case 2:
        store_be16(at, (uint16_t)bytes);
        break;
    case 3:
        store_be24(at, bytes);
        break;
    case 4:
        store_be32(at, bytes);
        break;
    default:
        break;
    }
}

static void store_msf(uint8_t *to, int64_t lba)
{
    const Msf msf = msf_from_lba(lba);
    to[0] = msf.m;
    to[1] = msf.s;
    to[2] = msf.f;
}

/* `blocks` blocks, so many behind the start. */
static void set_range(MmcPassSplit split, uint8_t *cdb, uint32_t behind, uint32_t blocks)
{
    if (split == MMC_SPLIT_MSF) {
        const int64_t lba = msf_to_lba((Msf){cdb[3], cdb[4], cdb[5]}) + behind;
        store_msf(&cdb[3], lba);
        store_msf(&cdb[6], lba + blocks);
        return;
    }
    store_be32(&cdb[2], load_be32(&cdb[2]) + behind);
    if (split == MMC_SPLIT_10) {
        store_be16(&cdb[7], (uint16_t)blocks);
    } else if (split == MMC_SPLIT_12) {
        store_be32(&cdb[6], blocks);
    } else {
        store_be24(&cdb[6], blocks);
    }
}

static uint32_t count_blocks(MmcPassSplit split, const uint8_t *cdb)
{
    switch (split) {
    case MMC_SPLIT_10:
        return load_be16(&cdb[7]);
    case MMC_SPLIT_12:
        return load_be32(&cdb[6]);
    case MMC_SPLIT_CD:
        return load_be24(&cdb[6]);
    default: {
        const int64_t from = msf_to_lba((Msf){cdb[3], cdb[4], cdb[5]});
        const int64_t to = msf_to_lba((Msf){cdb[6], cdb[7], cdb[8]});
        return to > from ? (uint32_t)(to - from) : 0;
    }
    }
}

static uint8_t cdb_bytes(uint8_t opcode)
{
    static const uint8_t by_group[8] = {6, 10, 10, 16, 16, 12, 12, 16}; /* SPC-4 4.2.5.1 */
    return by_group[opcode >> 5];
}

/* What the drive said, as it is; descriptors are told in the fixed format, which is all that ATAPI knows. */
static MmcSense sense_of(const BlockPacket *packet)
{
    const uint8_t *data = packet->sense;
    MmcSense sense = SENSE_ABORTED;
    if (packet->sense_bytes >= 4 && data[0] & 0x02) {
        return SENSE(data[1] & 0x0f, data[2], data[3]);
    }
    if (packet->sense_bytes >= 14) {
        sense = SENSE(data[2] & 0x0f, data[12], data[13]);
        sense.info_valid = data[0] & 0x80;
        sense.info = load_be32(&data[3]);
        sense.raw = true;
        memcpy(sense.bytes, data, MIN(packet->sense_bytes, MMC_SENSE_SIZE));
        sense.bytes[7] = MIN(data[7], MMC_SENSE_SIZE - 8);
    }
    return sense;
}

/* The command never reached the drive, or its answer never came. */
static MmcSense sense_of_errno(int errnum)
{
    switch (-errnum) {
    case ENODEV:
    case ENXIO:
    case ENOMEDIUM:
        return SENSE_NO_MEDIUM;
    case ETIMEDOUT:
        return SENSE_COMM_TIMEOUT;
    case EPERM: /* the kernel has a table of its own for users without privileges */
    case ENOTTY:
    case EINVAL:
        return SENSE_INVALID_OPCODE;
    case EACCES:
    case EROFS:
        return SENSE_WRITE_PROTECTED;
    default:
        return SENSE_PASS_FAILED;
    }
}

/* Key 0: GOOD. */
static MmcSense answer_of(const BlockPacket *packet)
{
    if (packet->result < 0) {
        return sense_of_errno(packet->result);
    }
    switch (packet->status) {
    case STATUS_GOOD:
        return SENSE_GOOD;
    case STATUS_CHECK_CONDITION:
        return sense_of(packet);
    case STATUS_BUSY:
        return SENSE_BECOMING_READY;
    default:
        return SENSE_ABORTED;
    }
}

/* Not for this drive, or not by this host. */
static bool is_refusal(const BlockPacket *packet, const MmcSense *sense)
{
    return sense->key == SENSE_KEY_ILLEGAL_REQUEST ||
           (packet->result < 0 && packet->result != -ENODEV && packet->result != -ENXIO);
}

uint8_t *mmc_pass_data(const MmcCommand *command)
{
    return command->pass.request->buffer->data;
}

static MmcStep part_taken(MmcCommand *command)
{
    mmc_pass_clear(command);
    return part_next(command);
}

static MmcStep part_good(MmcCommand *command)
{
    MmcPass *pass = &command->pass;
    const MmcPassRequest *request = pass->request;
    const size_t received = request->packet.received;
    if (pass->row->direction == MMC_DATA_OUT && pass->row->taken) {
        pass->row->taken(command->drive, request->packet.data, request->packet.bytes);
    }
    if (pass->cut && received == request->packet.bytes) {
        return mmc_fail(command, SENSE_INVALID_FIELD); /* there may be more than the host passes at once */
    }
    pass->waits = false;
    if (received == 0) {
        return part_taken(command);
    }
    command->buffer = request->buffer;
    command->at = 0;
    command->len = received;
    command->step = part_taken;
    return MMC_STEP_OFFER;
}

static MmcStep part_answered(MmcCommand *command)
{
    MmcPass *pass = &command->pass;
    const BlockPacket *packet = &pass->request->packet;
    if (mmc_pass_is_stale(command)) {
        return mmc_fail(command, mmc_transfer_stale_sense(command->drive));
    }
    if (!pass->request->answered) {
        return MMC_STEP_WAIT;
    }
    const MmcSense sense = answer_of(packet);
    if (sense.key == 0) {
        return part_good(command);
    }
    if (pass->how == MMC_PASS_FIRST && command->op && is_refusal(packet, &sense)) {
        mmc_pass_clear(command);
        command->step = command->op->handler;
        return MMC_STEP_AGAIN;
    }
    if (sense.key == SENSE_KEY_RECOVERED &&
        packet->received > 0) { /* the data is good, and so are the others */
        pass->after = sense;
        return part_good(command);
    }
    return mmc_fail(command, sense);
}

static MmcStep part_send(MmcCommand *command)
{
    MmcPass *pass = &command->pass;
    MmcPassRequest *request = pass->request;
    if (request->buffer && pass->row->direction == MMC_DATA_OUT) {
        const MmcSense sense = command->got < request->packet.bytes ? SENSE_PARAM_LIST_LENGTH
                               : pass->row->check ? pass->row->check(request->buffer->data, command->got)
                                                  : SENSE_GOOD;
        if (sense.key) {
            return mmc_fail(command, sense);
        }
    }
    if (block_packet_max(command->drive->node) == 0) { /* unplugged */
        return mmc_fail(command, SENSE_NO_MEDIUM);
    }
    request->command = command;
    pass->waits = true;
    command->step = part_answered;
    block_packet_submit(command->drive->node, &request->packet);
    return MMC_STEP_WAIT;
}

/* The next blocks, or all of the command. */
static void make_request(MmcCommand *command, uint32_t blocks, size_t bytes)
{
    MmcPass *pass = &command->pass;
    const MmcPassRow *row = pass->row;
    MmcPassRequest *request = g_new0(MmcPassRequest, 1);
    BlockPacket *packet = &request->packet;
    memcpy(packet->cdb, command->cdb, MMC_CDB_SIZE);
    packet->cdb_bytes = cdb_bytes(command->cdb[0]);
    if (row->split != MMC_SPLIT_NEVER && pass->blocks > 0) {
        set_range(row->split, packet->cdb, pass->sent, blocks);
    } else if (pass->cut) {
        set_length(row, packet->cdb, (uint32_t)bytes);
    }
    if (bytes > 0) {
        request->buffer = source_buffer(command->drive->source);
        packet->data = request->buffer->data;
        packet->bytes = bytes;
        packet->direction = row->direction == MMC_DATA_OUT ? BLOCK_PACKET_OUT : BLOCK_PACKET_IN;
    }
    packet->timeout_ms = (row->seconds ? row->seconds : MMC_PASS_SECONDS) * 1000;
    packet->write = command->drive->passthrough == MMC_PASSTHROUGH_BURN;
    packet->done = packet_done;
    packet->opaque = request;
    pass->request = request;
}

static MmcStep part_next(MmcCommand *command)
{
    MmcPass *pass = &command->pass;
    const bool split = pass->row->split != MMC_SPLIT_NEVER && pass->blocks > 0;
    const uint32_t blocks = split ? MIN(pass->blocks - pass->sent, pass->most) : 0;
    const size_t bytes = split ? (size_t)blocks * pass->block_bytes : pass->bytes;
    if (pass->begun && (!split || blocks == 0)) {
        return mmc_fail(command, pass->after);
    }
    pass->begun = true;
    make_request(command, blocks, bytes);
    pass->sent += blocks;
    return bytes > 0 && pass->row->direction == MMC_DATA_OUT ? mmc_want(command, bytes, part_send)
                                                             : part_send(command);
}

MmcStep mmc_pass_begin(MmcCommand *command)
{
    MmcPass *pass = &command->pass;
    const MmcPassRow *row = pass->row;
    const uint64_t total = mmc_pass_length(command);
    const uint32_t max = MIN(block_packet_max(command->drive->node), BUFFER_MAX);
    pass->media = command->drive->media;
    pass->blocks = row->split != MMC_SPLIT_NEVER ? count_blocks(row->split, command->cdb) : 0;
    command->drive->power = 1;
    if (pass->blocks > 0) {
        pass->block_bytes = (uint32_t)(total / pass->blocks);
        pass->most = pass->block_bytes ? max / pass->block_bytes : UINT16_MAX;
        /* no length that is known of, or a host that passes not even one */
        if (pass->most == 0 || (pass->block_bytes == 0 && row->direction == MMC_DATA_OUT)) {
            return mmc_fail(command, SENSE_INVALID_FIELD);
        }
    } else if (total > max) {
        pass->cut = row->direction == MMC_DATA_IN && row->width > 0;
        if (!pass->cut) {
            return mmc_fail(command, SENSE_INVALID_FIELD);
        }
    }
    pass->bytes = (uint32_t)MIN(total, max);
    return part_next(command);
}
