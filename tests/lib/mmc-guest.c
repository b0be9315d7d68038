/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include "hw/block/sense.h"
#include "tests/lib/mmc-guest.h"

BlockNode *mmc_guest_open(const char *node_options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) options = options_parse(node_options, "driver", &error);
    g_assert_no_error(error);
    BlockNode *node = block_open(options, &error);
    g_assert_no_error(error);
    return node;
}

static void on_moved(MmcDrive *drive, bool open, void *opaque)
{
    MmcGuest *guest = opaque;
    guest->moves++;
    guest->moved_open = open;
}

static void on_failed(MmcDrive *drive, int error, OnError action, void *opaque)
{
    MmcGuest *guest = opaque;
    g_assert_cmpint(error, <, 0);
    guest->failures[action]++;
}

static void setup(MmcGuest *guest, const char *node_options, const MmcDriveConfig *config)
{
    g_autoptr(GError) error = NULL;
    memset(guest, 0, sizeof *guest);
    guest->data = g_byte_array_new();
    guest->memory = g_malloc(BUFFER_MAX);
    guest->piece = 4096;
    guest->drive = mmc_drive_new(config);
    mmc_drive_on_tray_moved(guest->drive, on_moved, guest);
    mmc_drive_on_failed(guest->drive, on_failed, guest);
    if (node_options) {
        guest->node = mmc_guest_open(node_options);
        g_assert_true(mmc_drive_insert(guest->drive, guest->node, false, &error));
        g_assert_no_error(error);
    }
}

void mmc_guest_setup_raw(MmcGuest *guest, const char *node_options, bool read_ahead)
{
    const MmcDriveConfig config = {.id = "cd0", .serial = "QM00001", .read_ahead = read_ahead};
    setup(guest, node_options, &config);
}

void mmc_guest_setup(MmcGuest *guest, const char *node_options)
{
    mmc_guest_setup_pass(guest, node_options, MMC_PASSTHROUGH_OFF);
}

static void setup_ready(MmcGuest *guest, const char *node_options, const MmcDriveConfig *config)
{
    setup(guest, node_options, config);
    g_assert_cmphex(mmc_guest_run(guest, CDB(0x00)), ==, 0x062900);
    g_assert_cmphex(mmc_guest_request_sense(guest), ==, 0x062900);
}

void mmc_guest_setup_pass(MmcGuest *guest, const char *node_options, MmcPassthrough passthrough)
{
    const MmcDriveConfig config = {.id = "cd0", .serial = "QM00001", .passthrough = passthrough};
    setup_ready(guest, node_options, &config);
}

void mmc_guest_setup_rerror(MmcGuest *guest, const char *node_options, OnError rerror)
{
    const MmcDriveConfig config = {.id = "cd0", .serial = "QM00001", .rerror = rerror};
    setup_ready(guest, node_options, &config);
}

void mmc_guest_teardown(MmcGuest *guest)
{
    if (guest->command) {
        mmc_guest_abandon(guest);
    }
    mmc_drive_free(guest->drive);
    block_unref(guest->node);
    g_byte_array_unref(guest->data);
    g_free(guest->memory);
}

static gboolean resume_later(gpointer opaque)
{
    MmcGuest *guest = opaque;
    if (guest->command) {
        mmc_command_resume(guest->command);
    }
    return G_SOURCE_REMOVE;
}

/* What the drive wants next; a guest that has less gives what it has. */
static void give(MmcGuest *guest)
{
    const size_t at = guest->given, len = MIN(guest->wanted, guest->out_len - at);
    guest->given += len;
    mmc_command_data_out(guest->command, guest->out + at, len);
}

static gboolean give_later(gpointer opaque)
{
    MmcGuest *guest = opaque;
    if (guest->command) {
        give(guest);
    }
    return G_SOURCE_REMOVE;
}

static void on_data_in(MmcCommand *command, Buffer *buffer, size_t offset, size_t len)
{
    MmcGuest *guest = mmc_command_opaque(command);
    g_assert_true(command == guest->command);
    g_assert_cmpint(mmc_command_direction(command), ==, MMC_DATA_IN);
    g_assert_cmpuint(len, >, 0);
    if (buffer) {
        g_assert_cmpuint(offset + len, <=, buffer->size);
        g_byte_array_append(guest->data, buffer->data + offset, (guint)len);
    } else {
        g_assert_true(guest->mapped);
        g_byte_array_append(guest->data, guest->memory, (guint)len);
        guest->direct++;
    }
    g_assert_cmpuint(guest->data->len, <=, mmc_command_length(command));
    guest->chunks++;
    if (guest->later) {
        g_idle_add(resume_later, guest);
    } else if (!guest->hold) {
        mmc_command_resume(command);
    }
}

static void on_data_out(MmcCommand *command, size_t len)
{
    MmcGuest *guest = mmc_command_opaque(command);
    g_assert_cmpint(mmc_command_direction(command), ==, MMC_DATA_OUT);
    g_assert_cmpuint(len, >, 0);
    g_assert_cmpuint(len, <=, mmc_command_length(command));
    guest->wanted = len;
    if (guest->later) {
        g_idle_add(give_later, guest);
    } else {
        give(guest);
    }
}

static void on_complete(MmcCommand *command, const MmcSense *sense)
{
    MmcGuest *guest = mmc_command_opaque(command);
    g_assert_true(command == guest->command);
    guest->sense = *sense;
    guest->ends++;
    guest->command = NULL;
    mmc_command_free(command);
}

static bool on_map_in(MmcCommand *command, size_t len, struct iovec *iov, int *niov)
{
    MmcGuest *guest = mmc_command_opaque(command);
    const size_t pieces = guest->mapped ? (len + guest->piece - 1) / guest->piece : 0;
    g_assert_cmpuint(len, <=, BUFFER_MAX);
    if (!guest->mapped || pieces > (size_t)*niov) {
        return false;
    }
    memset(guest->memory, 0xee, BUFFER_MAX);
    for (size_t i = 0; i < pieces; i++) {
        iov[i] = (struct iovec){guest->memory + i * guest->piece, MIN(guest->piece, len - i * guest->piece)};
    }
    *niov = (int)pieces;
    return true;
}

static const MmcTransport transport = {on_data_in, on_data_out, on_complete, on_map_in};

void mmc_guest_start(MmcGuest *guest, const uint8_t *cdb, size_t len)
{
    uint8_t padded[MMC_CDB_SIZE] = {0};
    g_assert_null(guest->command);
    g_assert_cmpuint(len, <=, sizeof padded);
    memcpy(padded, cdb, len);
    g_byte_array_set_size(guest->data, 0);
    guest->chunks = guest->ends = guest->direct = 0;
    guest->sense = SENSE(0xff, 0xff, 0xff);
    guest->wanted = guest->given = 0;
    guest->command = mmc_command_new(guest->drive, padded, &transport, guest);
    mmc_command_start(guest->command);
}

void mmc_guest_wait(MmcGuest *guest)
{
    mmc_guest_until(guest->ends > 0);
    g_assert_cmpuint(guest->ends, ==, 1);
}

uint32_t mmc_guest_run(MmcGuest *guest, const uint8_t *cdb, size_t len)
{
    mmc_guest_start(guest, cdb, len);
    mmc_guest_wait(guest);
    return (uint32_t)guest->sense.key << 16 | guest->sense.asc << 8 | guest->sense.ascq;
}

uint32_t mmc_guest_send(MmcGuest *guest, const uint8_t *cdb, size_t len, const void *data, size_t data_len)
{
    guest->out = data;
    guest->out_len = data_len;
    const uint32_t sense = mmc_guest_run(guest, cdb, len);
    guest->out = NULL;
    guest->out_len = 0;
    return sense;
}

void mmc_guest_resume(MmcGuest *guest)
{
    if (guest->command) {
        mmc_command_resume(guest->command);
    }
}

void mmc_guest_abandon(MmcGuest *guest)
{
    MmcCommand *command = guest->command;
    guest->command = NULL;
    mmc_command_abandon(command);
}

uint32_t mmc_guest_request_sense(MmcGuest *guest)
{
    assert_good(guest, 0x03, 0, 0, 0, 18);
    g_assert_cmpuint(guest->data->len, ==, 18);
    return (uint32_t)(guest->data->data[2] & 0x0f) << 16 | guest->data->data[12] << 8 | guest->data->data[13];
}
