/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive whose error policy is to stop keeps the failed request. There is nothing here that could stop
 * the machine, so the request is tried again every second until it succeeds, the guest gives it up, or
 * whoever can stop the machine has done so and says so: then until it runs again.
 */
#include "system/drive.h"
#include "hw/block/hard-disk.h"
#include "hw/block/mmc.h"
#include "hw/ide/atapi.h"
#include "system/drive-config.h"
#include "util/error.h"
#include "util/log.h"

#define RETRY_SECONDS 1

struct Drive {
    char *id;
    DriveModel model;
    MmcDrive *mmc; /* one of these two */
    HardDisk *disk;
    IdeDevice *device;
    Backend *backend; /* the machine's, NULL: not yet */
    guint retry;      /* source id, 0: nothing is kept, or the machine is stopped */
    bool stopped;
};

static const char *drive_label(const Drive *drive)
{
    BlockNode *node = drive->disk ? hard_disk_node(drive->disk) : mmc_drive_node(drive->mmc);

    return drive->id ? drive->id : node ? block_name(node) : "";
}

static bool keeps_requests(const Drive *drive)
{
    return drive->disk ? hard_disk_kept(drive->disk) > 0 : mmc_drive_kept(drive->mmc) > 0;
}

static gboolean on_retry(gpointer data)
{
    Drive *drive = data;

    if (!keeps_requests(drive)) {
        drive->retry = 0;
        drive->backend->io_status = BACKEND_IO_OK;
        return G_SOURCE_REMOVE;
    }
    if (drive->disk) {
        hard_disk_resume(drive->disk);
    } else {
        mmc_drive_resume(drive->mmc);
    }
    return G_SOURCE_CONTINUE;
}

static void request_failed(Drive *drive, BlockOp op, int error, OnError action)
{
    backend_io_error(drive->backend, op, error, action);
    if (action == ON_ERROR_STOP && !drive->retry && !drive->stopped) {
        log_warn("'%s': %s failed: %s; it is tried again every second", drive_label(drive),
                 op == BLOCK_READ ? "a read" : "a write", g_strerror(-error));
        drive->retry = g_timeout_add_seconds(RETRY_SECONDS, on_retry, drive);
    }
}

static void on_disk_failed(HardDisk *disk, BlockOp op, int error, OnError action, void *opaque)
{
    request_failed(opaque, op, error, action);
}

static void on_disc_failed(MmcDrive *mmc, int error, OnError action, void *opaque)
{
    request_failed(opaque, BLOCK_READ, error, action);
}

void drive_set_stopped(Drive *drive, bool stopped)
{
    drive->stopped = stopped;
    if (stopped) {
        g_clear_handle_id(&drive->retry, g_source_remove);
    } else {
        backend_resume(drive->backend);
    }
}

static bool make_cd(Drive *drive, const DriveProps *props, BlockNode *node, GError **error)
{
    MmcDriveConfig config = {.id = props->id,
                             .revision = props->ver,
                             .serial = props->serial,
                             .read_ahead = true,
                             .passthrough = props->passthrough,
                             .rerror = drive_on_error(props->rerror, ON_ERROR_REPORT)};
    IdeIdentity identity = drive_identity(props);

    if (!drive_check_passthrough(props, node, error)) {
        return false;
    }
    drive->mmc = mmc_drive_new(&config);
    drive->device = atapi_new(drive->mmc, &identity);
    return !node || mmc_drive_insert(drive->mmc, node, false, error);
}

static bool make_hd(Drive *drive, const DriveProps *props, BlockNode *node, GError **error)
{
    HardDiskConfig config = {
        .id = props->id,
        .node = node,
        .rerror = drive_on_error(props->rerror, ON_ERROR_REPORT),
        .werror = drive_on_error(props->werror, ON_ERROR_ENOSPC),
        .released = drive->stopped,
        .write_back = props->write_back,
    };
    AtaDiskConfig ata = drive_ata_config(props);

    if (!node) {
        return error_set(error, "No drive specified");
    }
    drive->disk = hard_disk_new(&config, error);
    if (!drive->disk) {
        return false;
    }
    drive->device = ata_disk_new(drive->disk, &ata, error);
    return drive->device != NULL;
}

Drive *drive_new(const DriveProps *props, BlockNode *node, bool released, GError **error)
{
    Drive *drive = g_new0(Drive, 1);

    drive->id = g_strdup(props->id);
    drive->model = props->model;
    drive->stopped = released;
    if (!(props->model == DRIVE_HD ? make_hd : make_cd)(drive, props, node, error)) {
        drive_free(drive);
        return NULL;
    }
    return drive;
}

static void on_tray_moved(MmcDrive *mmc, bool open, void *opaque)
{
    backend_tray_moved(((Drive *)opaque)->backend, open);
}

void drive_set_backend(Drive *drive, Backend *backend)
{
    drive->backend = backend;
    backend->mmc = drive->mmc;
    backend->disk = drive->disk;
    if (drive->mmc) {
        mmc_drive_on_tray_moved(drive->mmc, on_tray_moved, drive);
        mmc_drive_on_failed(drive->mmc, on_disc_failed, drive);
    } else {
        hard_disk_on_failed(drive->disk, on_disk_failed, drive);
    }
}

void drive_free(Drive *drive)
{
    if (drive) {
        if (drive->backend) {
            drive->backend->mmc = NULL;
            drive->backend->disk = NULL;
        }
        g_clear_handle_id(&drive->retry, g_source_remove);
        ide_device_free(drive->device);
        mmc_drive_free(drive->mmc);
        hard_disk_free(drive->disk);
        g_free(drive->id);
        g_free(drive);
    }
}

HardDisk *drive_disk(const Drive *drive)
{
    return drive->disk;
}

MmcDrive *drive_mmc(const Drive *drive)
{
    return drive->mmc;
}

const char *drive_id(const Drive *drive)
{
    return drive->id;
}

DriveModel drive_model(const Drive *drive)
{
    return drive->model;
}

IdeDevice *drive_device(const Drive *drive)
{
    return drive->device;
}
