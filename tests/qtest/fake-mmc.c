/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/fake-mmc.h"

#include <string.h>

#include "util/bytes.h"

struct MmcDrive {
    FakeMmc fake;
};

struct MmcCommand {
    MmcDrive *drive;
    const MmcTransport *transport;
    void *opaque;
    uint8_t op;
    uint8_t key;
    uint32_t start;
    uint32_t len, done;
    size_t asked; /* bytes of a data_out that is due */
    bool started, ended, waiting;
    bool bad;
};

uint8_t fake_mmc_pattern(uint32_t start, uint64_t i)
{
    uint64_t at = start + i;

    return (uint8_t)(at * 7 + at / 251 * 13 + at / 65521);
}

MmcDrive *fake_mmc_new(FakeMmc **ret_fake)
{
    MmcDrive *drive = g_new0(MmcDrive, 1);

    drive->fake.chunk = 65536;
    *ret_fake = &drive->fake;
    return drive;
}

void fake_mmc_free(MmcDrive *drive)
{
    g_assert_cmpuint(drive->fake.live, ==, 0);
    g_free(drive);
}

static void command_next(MmcCommand *command);

/* Now, or when the test steps. */
static void command_due(MmcCommand *command)
{
    FakeMmc *fake = &command->drive->fake;

    if (fake->delayed) {
        g_assert_null(fake->waiting);
        fake->waiting = command;
    } else {
        command_next(command);
    }
}

bool fake_mmc_step(FakeMmc *fake)
{
    MmcCommand *command = g_steal_pointer(&fake->waiting);

    if (command) {
        command_next(command);
    }
    return command;
}

static void command_end(MmcCommand *command, uint8_t key)
{
    MmcSense sense = {.key = key};

    command->ended = true;
    command->transport->complete(command, &sense);
}

static bool command_map(MmcCommand *command, size_t len)
{
    struct iovec iov[64];
    int niov = G_N_ELEMENTS(iov);
    uint32_t at = command->start + command->done;
    uint64_t i = 0;

    if (!command->drive->fake.use_map || !command->transport->map_in(command, len, iov, &niov)) {
        return false;
    }
    for (int n = 0; n < niov; n++) {
        for (size_t k = 0; k < iov[n].iov_len; k++) {
            ((uint8_t *)iov[n].iov_base)[k] = fake_mmc_pattern(at, i++);
        }
    }
    g_assert_cmpuint(i, ==, len);
    command->drive->fake.mapped++;
    return true;
}

static void command_in(MmcCommand *command)
{
    size_t len = MIN(command->len - command->done, command->drive->fake.chunk);
    uint32_t at = command->start + command->done;

    if (command_map(command, len)) {
        command->done += len;
        command->transport->data_in(command, NULL, 0, len);
        return;
    }
    /* An odd offset in the buffer, to see that it is honoured. */
    g_autoptr(Buffer) buffer = buffer_new(len + 24, BUFFER_ALIGN);
    for (size_t i = 0; i < len; i++) {
        buffer->data[24 + i] = fake_mmc_pattern(at, i);
    }
    command->done += len;
    command->transport->data_in(command, buffer, 24, len);
}

static void command_next(MmcCommand *command)
{
    bool more = command->done < command->len;

    g_assert_false(command->ended);
    switch (command->op) {
    case FAKE_CDB_SENSE:
        command_end(command, command->key);
        break;
    case FAKE_CDB_IN:
    case FAKE_CDB_IN_THEN_SENSE:
        if (more) {
            command_in(command);
        } else {
            command_end(command, command->op == FAKE_CDB_IN ? 0 : 3);
        }
        break;
    case FAKE_CDB_OUT:
        if (more) {
            command->asked = MIN(command->len - command->done, command->drive->fake.chunk);
            command->transport->data_out(command, command->asked);
        } else {
            command_end(command, command->bad ? 5 : 0);
        }
        break;
    default:
        command_end(command, 0);
        break;
    }
}

MmcCommand *mmc_command_new(MmcDrive *drive, const uint8_t *cdb, const MmcTransport *transport, void *opaque)
{
    MmcCommand *command = g_new0(MmcCommand, 1);

    command->drive = drive;
    command->transport = transport;
    command->opaque = opaque;
    command->op = cdb[0];
    command->key = cdb[1] & 0xf;
    command->start = load_be32(cdb + 2);
    command->len = cdb[0] == FAKE_CDB_GOOD || cdb[0] == FAKE_CDB_SENSE ? 0 : load_be32(cdb + 6);
    memcpy(drive->fake.cdb, cdb, MMC_CDB_SIZE);
    drive->fake.live++;
    return command;
}

void *mmc_command_opaque(const MmcCommand *command)
{
    return command->opaque;
}

MmcDirection mmc_command_direction(const MmcCommand *command)
{
    return !command->len ? MMC_DATA_NONE : command->op == FAKE_CDB_OUT ? MMC_DATA_OUT : MMC_DATA_IN;
}

uint64_t mmc_command_length(const MmcCommand *command)
{
    return command->len;
}

void mmc_command_start(MmcCommand *command)
{
    g_assert_false(command->started);
    command->started = true;
    command->drive->fake.started++;
    command_due(command);
}

void mmc_command_resume(MmcCommand *command)
{
    g_assert_true(command->started && !command->ended && !command->asked);
    command_due(command);
}

void mmc_command_data_out(MmcCommand *command, const uint8_t *data, size_t len)
{
    g_assert_true(command->started && !command->ended);
    g_assert_cmpuint(len, ==, command->asked);
    for (size_t i = 0; i < len; i++) {
        command->bad |= data[i] != fake_mmc_pattern(command->start + command->done, i);
    }
    command->done += len;
    command->asked = 0;
    command_due(command);
}

void mmc_command_abandon(MmcCommand *command)
{
    FakeMmc *fake = &command->drive->fake;

    g_assert_false(command->ended);
    if (fake->waiting == command) {
        fake->waiting = NULL;
    }
    fake->abandoned++;
    fake->live--;
    memset(command, 0xa5, sizeof *command);
    g_free(command);
}

void mmc_command_free(MmcCommand *command)
{
    g_assert_true(command->ended);
    command->drive->fake.live--;
    memset(command, 0xa5, sizeof *command);
    g_free(command);
}

void mmc_drive_reset(MmcDrive *drive, bool power_on)
{
    g_assert_cmpuint(drive->fake.live, ==, 0);
    drive->fake.resets++;
    drive->fake.hard_resets += power_on;
}

const char *mmc_drive_serial(const MmcDrive *drive)
{
    return "FAKE0001";
}

const char *mmc_drive_id(const MmcDrive *drive)
{
    return "cd0";
}

/* Saved states are the real drive's (test-state). */

static void no_capture(void *object, void *image)
{
}

static void no_visit(void *object, void *image, StateIo *io)
{
}

const StateOps mmc_drive_state = {
    .name = "fake", .version = 1, .size = 1, .capture = no_capture, .visit = no_visit, .commit = no_capture};

void mmc_command_capture(const MmcCommand *command, MmcCommandImage *image)
{
}

void mmc_command_visit(MmcCommandImage *image, StateIo *io)
{
    state_fail(io, "fake");
}

MmcCommand *mmc_command_restore(MmcDrive *drive, const MmcCommandImage *image, const MmcTransport *transport,
                                void *opaque)
{
    return mmc_command_new(drive, image->cdb, transport, opaque);
}

void mmc_command_go_on(MmcCommand *command)
{
}
