/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ATA commands that a packet device accepts (ACS 4.3, "PACKET feature set"; the command lists of ATA6
 * table 10). It is an allow-list: whatever has no row aborts.
 */
#include "hw/ide/atapi-int.h"

typedef struct AtaTableRow {
    uint8_t code, alias;
    const char *name;
    void (*run)(AtapiDevice *atapi);
} AtaTableRow;

static void run_ok(AtapiDevice *atapi)
{
    atapi_end(atapi, 0, true);
}

static void run_abort(AtapiDevice *atapi)
{
    atapi_end(atapi, ATA_ERROR_ABRT, true);
}

/* Commands by which hosts tell disks from packet devices: abort, and show the signature (ACS 7.16, 7.24). */
static void run_abort_signature(AtapiDevice *atapi)
{
    taskfile_set_signature(&atapi->ide.tf, TASKFILE_PACKET);
    atapi_end(atapi, ATA_ERROR_ABRT, true);
}

/* Ends with the signature and status 00 (ACS 7.8, 7.12): no DRDY, and the error register is the diagnostic
 * code. */
static void end_with_signature(AtapiDevice *atapi, bool interrupt)
{
    IdeCommand *command = g_steal_pointer(&atapi->command);

    taskfile_set_signature(&atapi->ide.tf, TASKFILE_PACKET);
    atapi->state = ATAPI_IDLE;
    command->ops->complete(command, interrupt);
}

static void run_diagnostic(AtapiDevice *atapi)
{
    end_with_signature(atapi, true);
}

/* No interrupt on a parallel channel: ATA6 9.11. */
static void run_device_reset(AtapiDevice *atapi)
{
    mmc_drive_reset(atapi->drive, false);
    end_with_signature(atapi, false);
}

static void run_identify_packet(AtapiDevice *atapi)
{
    IdeIdentity identity = {
        .serial = atapi->serial, .model = atapi->model, .firmware = atapi->firmware, .wwn = atapi->wwn};
    Buffer *buffer = buffer_new(ATA_IDENTIFY_SIZE, BUFFER_ALIGN);

    ata_identify_packet(buffer->data, &identity, &atapi->mode, atapi->ide.serial_link, atapi->ide.slave);
    atapi_reply(atapi, buffer, ATA_IDENTIFY_SIZE);
}

static void run_set_features(AtapiDevice *atapi)
{
    bool ok = false;

    switch (atapi->ide.tf.features & 0xff) {
    case ATA_FEATURE_SET_TRANSFER_MODE:
        ok = ata_transfer_mode_set(&atapi->mode, atapi->ide.tf.count & 0xff);
        break;
    case ATA_FEATURE_ENABLE_READ_AHEAD: /* the drive reads ahead as it sees fit */
    case ATA_FEATURE_DISABLE_READ_AHEAD:
    case ATA_FEATURE_ENABLE_REVERT:
    case ATA_FEATURE_DISABLE_REVERT:
        ok = true;
        break;
    default:
        break;
    }
    atapi_end(atapi, ok ? 0 : ATA_ERROR_ABRT, true);
}

static void run_check_power(AtapiDevice *atapi)
{
    atapi->ide.tf.count = atapi->power;
    atapi_end(atapi, 0, true);
}

static void run_standby(AtapiDevice *atapi)
{
    atapi->power = ATA_POWER_STANDBY;
    atapi_end(atapi, 0, true);
}

static void run_idle(AtapiDevice *atapi)
{
    atapi->power = ATA_POWER_IDLE;
    atapi_end(atapi, 0, true);
}

/* SLEEP is a standby that ends by itself: a drive that is deaf until a reset would only cost a time-out. */
static const AtaTableRow rows[] = {
    {ATA_CMD_NOP, ATA_CMD_NOP, "NOP", run_abort}, /* always aborts: ACS 7.23 */
    {ATA_CMD_DEVICE_RESET, ATA_CMD_DEVICE_RESET, "DEVICE RESET", run_device_reset},
    {ATA_CMD_READ_SECTORS, ATA_CMD_READ_SECTORS_NORETRY, "READ SECTORS", run_abort_signature},
    {ATA_CMD_DIAGNOSTIC, ATA_CMD_DIAGNOSTIC, "EXECUTE DEVICE DIAGNOSTIC", run_diagnostic},
    {ATA_CMD_IDENTIFY_PACKET, ATA_CMD_IDENTIFY_PACKET, "IDENTIFY PACKET DEVICE", run_identify_packet},
    {ATA_CMD_IDENTIFY, ATA_CMD_IDENTIFY, "IDENTIFY DEVICE", run_abort_signature},
    {ATA_CMD_STANDBY_IMMEDIATE, ATA_CMD_OLD_STANDBY_IMMEDIATE, "STANDBY IMMEDIATE", run_standby},
    {ATA_CMD_IDLE_IMMEDIATE, ATA_CMD_OLD_IDLE_IMMEDIATE, "IDLE IMMEDIATE", run_idle},
    {ATA_CMD_STANDBY, ATA_CMD_OLD_STANDBY, "STANDBY", run_standby},
    {ATA_CMD_IDLE, ATA_CMD_OLD_IDLE, "IDLE", run_idle},
    {ATA_CMD_CHECK_POWER_MODE, ATA_CMD_OLD_CHECK_POWER_MODE, "CHECK POWER MODE", run_check_power},
    {ATA_CMD_SLEEP, ATA_CMD_OLD_SLEEP, "SLEEP", run_standby},
    {ATA_CMD_FLUSH_CACHE, ATA_CMD_FLUSH_CACHE, "FLUSH CACHE", run_ok},
    {ATA_CMD_SET_FEATURES, ATA_CMD_SET_FEATURES, "SET FEATURES", run_set_features},
};

void ata_table_run(AtapiDevice *atapi)
{
    uint8_t code = atapi->ide.tf.command;

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].code == code || rows[i].alias == code) {
            rows[i].run(atapi);
            return;
        }
    }
    run_abort(atapi);
}
