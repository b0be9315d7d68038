/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The hard disk's commands. The table is an allow-list: whatever has no row aborts (security, device
 * configuration and microcode commands among them).
 */
#include "hw/ide/ata-disk-int.h"

#include <errno.h>
#include <string.h>

#include "util/bytes.h"
#include "util/checked.h"
#include "util/error.h"

#define KEEP_FREE 4 /* chunk buffers */

void ata_disk_end(AtaDisk *disk, uint8_t error, bool interrupt)
{
    IdeCommand *command = g_steal_pointer(&disk->current.command);

    disk->ide.tf.status = ATA_STATUS_IDLE | (error ? ATA_STATUS_ERR : 0);
    disk->ide.tf.error = error;
    command->ops->complete(command, interrupt);
}

void ata_disk_abort(AtaDisk *disk)
{
    ata_disk_end(disk, ATA_ERROR_ABRT, true);
}

static void run_ok(AtaDisk *disk)
{
    ata_disk_end(disk, 0, true);
}

static void run_identify(AtaDisk *disk)
{
    Buffer *buffer = buffer_new(ATA_IDENTIFY_SIZE, BUFFER_ALIGN);

    ata_disk_identify(disk, buffer->data);
    ata_disk_reply(disk, buffer, ATA_IDENTIFY_SIZE);
}

static void run_diagnostic(AtaDisk *disk)
{
    IdeCommand *command = g_steal_pointer(&disk->current.command);

    taskfile_set_signature(&disk->ide.tf, TASKFILE_ATA);
    command->ops->complete(command, true);
}

/* Heads and sectors of the translation that commands without the LBA bit use (ATA-5 8.16). */
static void run_initialize_parameters(AtaDisk *disk)
{
    uint32_t secs = disk->ide.tf.count & 0xff;

    if (!secs) {
        ata_disk_abort(disk);
        return;
    }
    disk->cur_heads = (disk->ide.tf.device & 0xf) + 1u;
    disk->cur_secs = secs;
    ata_disk_end(disk, 0, true);
}

static void run_seek(AtaDisk *disk)
{
    uint64_t lba;
    uint32_t count;

    disk->ide.tf.count = 1;
    ata_disk_end(disk, ata_disk_address(disk, false, &lba, &count) ? 0 : ATA_ERROR_IDNF, true);
}

uint8_t ata_disk_multiple_max(const AtaDisk *disk)
{
    return (uint8_t)(ATA_BLOCK_MAX / disk->logical);
}

static void run_set_multiple(AtaDisk *disk)
{
    uint32_t count = disk->ide.tf.count & 0xff;

    if (count > ata_disk_multiple_max(disk) || (count && !is_power_of_2(count))) {
        ata_disk_abort(disk);
        return;
    }
    disk->multiple = (uint8_t)count;
    ata_disk_end(disk, 0, true);
}

/* The last cylinder, head and sector of the default translation where the host does not ask for an LBA (ATA-5
 * 8.28). */
uint64_t ata_disk_sectors(const AtaDisk *disk)
{
    return MIN(hard_disk_size(disk->disk) / disk->logical, ATA_MAX_LBA48 - 1);
}

static uint64_t max_address(const AtaDisk *disk)
{
    return MAX(ata_disk_sectors(disk), 1) - 1;
}

static void run_native_max(AtaDisk *disk)
{
    Taskfile *tf = &disk->ide.tf;
    const AtaGeometry *geometry = &disk->geometry;

    if (!(tf->device & ATA_DEVICE_LBA)) {
        tf->lba[0] = (uint8_t)geometry->secs;
        tf->lba[1] = (uint8_t)(geometry->cyls - 1);
        tf->lba[2] = (uint8_t)((geometry->cyls - 1) >> 8);
        tf->device = (uint8_t)((tf->device & 0xf0) | (geometry->heads - 1));
        ata_disk_end(disk, 0, true);
        return;
    }
    taskfile_set_lba28(&disk->ide.tf, (uint32_t)MIN(max_address(disk), ATA_MAX_LBA28 - 1));
    ata_disk_end(disk, 0, true);
}

static void run_native_max_ext(AtaDisk *disk)
{
    taskfile_set_lba48(&disk->ide.tf, max_address(disk));
    ata_disk_end(disk, 0, true);
}

static void run_check_power(AtaDisk *disk)
{
    disk->ide.tf.count = disk->power;
    ata_disk_end(disk, 0, true);
}

/* STANDBY ends like FLUSH CACHE does (ACS 7.54): nothing may be left in the cache of a disk that is put to
 * rest. */
static void flush_done(void *opaque, int result)
{
    AtaDisk *disk = opaque;

    disk->io = NULL;
    ata_disk_end(disk, result < 0 ? ATA_ERROR_ABRT : 0, true);
}

static void run_flush(AtaDisk *disk)
{
    disk->io = hard_disk_submit(disk->disk, BLOCK_FLUSH, 0, NULL, 0, 0, false, flush_done, disk);
}

static void run_standby(AtaDisk *disk)
{
    disk->power = ATA_POWER_STANDBY;
    run_flush(disk);
}

static void run_idle(AtaDisk *disk)
{
    disk->power = ATA_POWER_IDLE;
    ata_disk_end(disk, 0, true);
}

static void run_set_features(AtaDisk *disk)
{
    bool ok = true;

    switch (disk->ide.tf.features & 0xff) {
    case ATA_FEATURE_ENABLE_WRITE_CACHE:
        hard_disk_set_write_back(disk->disk, true);
        break;
    case ATA_FEATURE_DISABLE_WRITE_CACHE: /* what is in it goes out first (ACS 7.45.6) */
        hard_disk_set_write_back(disk->disk, false);
        run_flush(disk);
        return;
    case ATA_FEATURE_SET_TRANSFER_MODE:
        ok = ata_transfer_mode_set(&disk->mode, disk->ide.tf.count & 0xff);
        break;
    case ATA_FEATURE_ENABLE_READ_AHEAD:
    case ATA_FEATURE_DISABLE_READ_AHEAD:
        disk->read_ahead = (disk->ide.tf.features & 0xff) == ATA_FEATURE_ENABLE_READ_AHEAD;
        break;
    case ATA_FEATURE_ENABLE_REVERT:
    case ATA_FEATURE_DISABLE_REVERT:
        break;
    default:
        ok = false;
        break;
    }
    ata_disk_end(disk, ok ? 0 : ATA_ERROR_ABRT, true);
}

/* DATA SET MANAGEMENT (ACS 7.6): TRIM alone, up to ATA_DSM_BLOCKS of 64 ranges. All ranges are looked at
 * before the first is discarded. */

static bool trim_range(const AtaDisk *disk, uint32_t at, uint64_t *ret_lba, uint32_t *ret_count)
{
    uint64_t range = load_le64(disk->ranges->data + at);

    *ret_lba = range & (ATA_MAX_LBA48 - 1);
    *ret_count = (uint32_t)(range >> 48);
    return !*ret_count || range_inside(*ret_lba, *ret_count, ata_disk_sectors(disk));
}

static void trim_end(AtaDisk *disk, uint8_t error)
{
    g_clear_pointer(&disk->ranges, buffer_unref);
    disk->current.state = ATA_XFER_IDLE;
    ata_disk_end(disk, error, true);
}

static void trim_done(void *opaque, int result)
{
    AtaDisk *disk = opaque;

    disk->io = NULL;
    if (result < 0) {
        trim_end(disk, ATA_ERROR_ABRT);
    } else {
        ata_disk_trim_next(disk);
    }
}

void ata_disk_trim_next(AtaDisk *disk)
{
    uint64_t lba;
    uint32_t count;

    for (uint32_t at = 0; disk->ranges_at == 0 && at < disk->ranges_len; at += 8) {
        if (!trim_range(disk, at, &lba, &count)) {
            trim_end(disk, ATA_ERROR_ABRT);
            return;
        }
    }
    while (disk->ranges_at < disk->ranges_len) {
        trim_range(disk, disk->ranges_at, &lba, &count);
        disk->ranges_at += 8;
        if (count) {
            disk->io = hard_disk_submit(disk->disk, BLOCK_DISCARD, lba * disk->logical, NULL, 0,
                                        (uint64_t)count * disk->logical, false, trim_done, disk);
            return;
        }
    }
    trim_end(disk, 0);
}

static void run_data_set_management(AtaDisk *disk)
{
    uint32_t blocks = ata_disk_count16(disk);

    if (!(disk->ide.tf.features & 1) || !blocks || blocks > ATA_DSM_BLOCKS) {
        ata_disk_abort(disk);
        return;
    }
    ata_disk_start_trim(disk, blocks);
}

typedef struct AtaDiskRow {
    uint8_t code;
    void (*run)(AtaDisk *disk); /* NULL: a read or write */
    AtaIoKind io;
    bool queued;
} AtaDiskRow;

static const AtaDiskRow rows[] = {
    {ATA_CMD_READ_SECTORS, NULL, {0}},
    {ATA_CMD_READ_SECTORS_NORETRY, NULL, {0}},
    {ATA_CMD_READ_SECTORS_EXT, NULL, {.ext = true}},
    {ATA_CMD_READ_MULTIPLE, NULL, {.multiple = true}},
    {ATA_CMD_READ_MULTIPLE_EXT, NULL, {.multiple = true, .ext = true}},
    {ATA_CMD_READ_DMA, NULL, {.dma = true}},
    {ATA_CMD_READ_DMA_NORETRY, NULL, {.dma = true}},
    {ATA_CMD_READ_DMA_EXT, NULL, {.dma = true, .ext = true}},
    {ATA_CMD_READ_VERIFY, NULL, {.verify = true}},
    {ATA_CMD_READ_VERIFY_NORETRY, NULL, {.verify = true}},
    {ATA_CMD_READ_VERIFY_EXT, NULL, {.verify = true, .ext = true}},
    {ATA_CMD_WRITE_SECTORS, NULL, {.write = true}},
    {ATA_CMD_WRITE_SECTORS_NORETRY, NULL, {.write = true}},
    {ATA_CMD_WRITE_VERIFY, NULL, {.write = true}},
    {ATA_CMD_WRITE_SECTORS_EXT, NULL, {.write = true, .ext = true}},
    {ATA_CMD_WRITE_MULTIPLE, NULL, {.write = true, .multiple = true}},
    {ATA_CMD_WRITE_MULTIPLE_EXT, NULL, {.write = true, .multiple = true, .ext = true}},
    {ATA_CMD_WRITE_MULTIPLE_FUA_EXT, NULL, {.write = true, .multiple = true, .ext = true, .fua = true}},
    {ATA_CMD_WRITE_DMA, NULL, {.write = true, .dma = true}},
    {ATA_CMD_WRITE_DMA_NORETRY, NULL, {.write = true, .dma = true}},
    {ATA_CMD_WRITE_DMA_EXT, NULL, {.write = true, .dma = true, .ext = true}},
    {ATA_CMD_WRITE_DMA_FUA_EXT, NULL, {.write = true, .dma = true, .ext = true, .fua = true}},
    {ATA_CMD_READ_FPDMA, NULL, {0}, true},
    {ATA_CMD_WRITE_FPDMA, NULL, {.write = true}, true},
    {ATA_CMD_DATA_SET_MANAGEMENT, run_data_set_management},
    {ATA_CMD_READ_NATIVE_MAX, run_native_max},
    {ATA_CMD_READ_NATIVE_MAX_EXT, run_native_max_ext},
    {ATA_CMD_READ_LOG_EXT, ata_disk_read_log},
    {ATA_CMD_RECALIBRATE, run_ok},
    {ATA_CMD_SEEK, run_seek},
    {ATA_CMD_DIAGNOSTIC, run_diagnostic},
    {ATA_CMD_INITIALIZE_PARAMETERS, run_initialize_parameters},
    {ATA_CMD_SMART, ata_disk_smart},
    {ATA_CMD_SET_MULTIPLE, run_set_multiple},
    {ATA_CMD_STANDBY_IMMEDIATE, run_standby},
    {ATA_CMD_OLD_STANDBY_IMMEDIATE, run_standby},
    {ATA_CMD_IDLE_IMMEDIATE, run_idle},
    {ATA_CMD_OLD_IDLE_IMMEDIATE, run_idle},
    {ATA_CMD_STANDBY, run_standby},
    {ATA_CMD_OLD_STANDBY, run_standby},
    {ATA_CMD_IDLE, run_idle},
    {ATA_CMD_OLD_IDLE, run_idle},
    {ATA_CMD_CHECK_POWER_MODE, run_check_power},
    {ATA_CMD_OLD_CHECK_POWER_MODE, run_check_power},
    {ATA_CMD_SLEEP, run_standby}, /* as the packet device: a standby that ends by itself */
    {ATA_CMD_OLD_SLEEP, run_standby},
    {ATA_CMD_FLUSH_CACHE, run_flush},
    {ATA_CMD_FLUSH_CACHE_EXT, run_flush},
    {ATA_CMD_IDENTIFY, run_identify},
    {ATA_CMD_SET_FEATURES, run_set_features},
};

static const AtaDiskRow *find_row(uint8_t code)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

static AtaDisk *disk_of(IdeDevice *device)
{
    return (AtaDisk *)(void *)device;
}

/* While queued commands run, any other command aborts, and the host's recovery ends them all (SATA 3 13.6.2).
 */
static void disk_start(IdeDevice *device, IdeCommand *command)
{
    AtaDisk *disk = disk_of(device);
    const AtaDiskRow *row = find_row(device->tf.command);

    disk->current.command = command;
    command->priv = &disk->current;
    if (!row || (!row->queued && ata_disk_any_queued(disk))) {
        ata_disk_abort(disk);
    } else if (row->queued) {
        disk->power = ATA_POWER_ACTIVE;
        ata_disk_start_queued(disk, command, row->io.write);
    } else if (row->run) {
        row->run(disk);
    } else {
        disk->power = ATA_POWER_ACTIVE;
        ata_disk_start_io(disk, &row->io);
    }
}

static void disk_data_done(IdeDevice *device, IdeCommand *command, int result)
{
    AtaXfer *xfer = command->priv;

    if (xfer->command == command) {
        ata_xfer_data_done(xfer, result);
    }
}

static void disk_abandon(IdeDevice *device, IdeCommand *command)
{
    AtaDisk *disk = disk_of(device);
    AtaXfer *xfer = command->priv;

    if (xfer->command != command) {
        return;
    }
    if (xfer == &disk->current) {
        if (disk->io) {
            hard_disk_abandon(g_steal_pointer(&disk->io));
        }
        g_clear_pointer(&disk->ranges, buffer_unref);
        disk->parked = false;
        device->tf.status = ATA_STATUS_IDLE;
    }
    ata_xfer_abandon(xfer);
}

/* A software reset keeps what SET FEATURES and SET MULTIPLE chose, as if the host had asked for it
 * (ACS 7.45.16; a host that wants the defaults has the hard reset). */
static void disk_reset(IdeDevice *device, IdeReset reset)
{
    AtaDisk *disk = disk_of(device);

    if (reset != IDE_RESET_SOFT) {
        disk->mode = (AtaTransferMode)ATA_TRANSFER_MODE_DEFAULT;
        disk->multiple = ata_disk_multiple_max(disk);
        disk->read_ahead = true;
        disk->smart = true;
        disk->cur_heads = disk->geometry.heads;
        disk->cur_secs = disk->geometry.secs;
        hard_disk_reset(disk->disk);
    }
    disk->log_tag = LOG_NO_TAG;
    disk->power = ATA_POWER_ACTIVE;
    taskfile_set_signature(&device->tf, TASKFILE_ATA);
}

static void disk_free(IdeDevice *device)
{
    AtaDisk *disk = disk_of(device);

    buffer_pool_free(disk->pool);
    g_free(disk->serial);
    g_free(disk->model);
    g_free(disk->firmware);
    g_free(disk);
}

static const IdeDeviceOps disk_ops = {
    .start = disk_start,
    .data_done = disk_data_done,
    .abandon = disk_abandon,
    .reset = disk_reset,
    .free = disk_free,
    .state = &ata_disk_state,
    .image_wait = ata_disk_image_wait,
    .adopt = ata_disk_adopt,
    .go_on = ata_disk_go_on,
};

/* Only flushes wait without a transfer. */
void ata_disk_go_on(IdeDevice *device)
{
    AtaDisk *disk = disk_of(device);

    if (!disk->parked) {
        return;
    }
    disk->parked = false;
    if (disk->current.state == ATA_XFER_IDLE) {
        run_flush(disk);
    } else if (disk->ranges) {
        ata_disk_trim_next(disk);
    } else {
        ata_xfer_go_on(&disk->current);
    }
}

static bool check_config(const AtaDiskConfig *config, uint32_t logical, uint32_t physical, GError **error)
{
    if ((config->cyls || config->heads || config->secs) && !(config->cyls && config->heads && config->secs)) {
        return error_set(error, "cyls, heads and secs must be given together");
    }
    if (config->cyls > 65535) {
        return error_set(error, "cyls must be between 1 and 65535");
    }
    if (config->heads > 16) {
        return error_set(error, "heads must be between 1 and 16");
    }
    if (config->secs > 255) {
        return error_set(error, "secs must be between 1 and 255");
    }
    if (!is_power_of_2(logical) || logical < 512 || logical > 4096) {
        return error_set(error, "logical_block_size must be a power of two between 512 and 4096");
    }
    if (!is_power_of_2(physical) || physical < logical || physical > logical << 15) {
        return error_set(error,
                         "physical_block_size must be a power of two, not less than logical_block_size");
    }
    return true;
}

static void set_geometry(AtaDisk *disk, const AtaDiskConfig *config)
{
    uint8_t mbr[512];

    if (config->cyls) {
        disk->geometry = (AtaGeometry){config->cyls, config->heads, config->secs,
                                       ata_geometry_translation(config->cyls, config->heads, config->secs)};
    } else {
        bool read = block_pread(hard_disk_node(disk->disk), 0, mbr, sizeof mbr) == 0;

        ata_geometry_guess(read ? mbr : NULL, hard_disk_size(disk->disk) / 512, &disk->geometry);
    }
    if (config->translation != ATA_TRANSLATION_AUTO) {
        disk->geometry.translation = config->translation;
    }
}

IdeDevice *ata_disk_new(HardDisk *hard_disk, const AtaDiskConfig *config, GError **error)
{
    const IdeIdentity *identity = &config->identity;
    uint32_t logical = config->logical_block_size ? config->logical_block_size : 512;
    uint32_t physical = config->physical_block_size ? config->physical_block_size : logical;
    AtaDisk *disk;

    if (!check_config(config, logical, physical, error)) {
        return NULL;
    }
    if (hard_disk_size(hard_disk) < logical) {
        error_set(error, "The disk is smaller than its logical_block_size of %u", logical);
        return NULL;
    }
    disk = g_new0(AtaDisk, 1);
    disk->ide.ops = &disk_ops;
    disk->ide.signature = TASKFILE_ATA;
    disk->disk = hard_disk;
    disk->logical = logical;
    disk->physical = physical;
    disk->rotation_rate = config->rotation_rate;
    disk->serial = g_strdup(identity->serial ? identity->serial : "SP00001");
    disk->model = g_strdup(identity->model ? identity->model : "SPINDLE HARDDISK");
    disk->firmware = g_strdup(identity->firmware ? identity->firmware : "1.0");
    disk->wwn = identity->wwn;
    disk->pool = buffer_pool_new(ATA_CHUNK, block_info(hard_disk_node(hard_disk))->align, KEEP_FREE);
    set_geometry(disk, config);
    disk->current.disk = disk;
    disk_reset(&disk->ide, IDE_RESET_POWER_ON);
    return &disk->ide;
}

const AtaGeometry *ata_disk_geometry(const IdeDevice *device)
{
    return &((const AtaDisk *)(const void *)device)->geometry;
}
