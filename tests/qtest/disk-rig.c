/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/qtest/disk-rig.h"

#include <string.h>

#include "util/bytes.h"

static const char *const kind_names[KINDS] = {"ahci-mmap", "ahci-message", "ide-mmap", "ide-message"};

static void on_failed(HardDisk *disk, BlockOp op, int error, OnError action, void *opaque)
{
    Disk *d = opaque;

    d->failed++;
    d->last_action = action;
}

void disk_rig_make(Disk *d, const char *options, const AtaDiskConfig *ata, OnError policy)
{
    g_autoptr(Options) parsed = options_parse(options, "driver", NULL);
    g_autoptr(GError) error = NULL;
    HardDiskConfig config = {.id = "hd0", .rerror = policy, .werror = policy, .write_back = true};

    *d = (Disk){.node = block_open(parsed, &error)};
    g_assert_no_error(error);
    config.node = d->node;
    d->disk = hard_disk_new(&config, &error);
    g_assert_no_error(error);
    hard_disk_on_failed(d->disk, on_failed, d);
    d->device = ata_disk_new(d->disk, ata, &error);
    g_assert_no_error(error);
}

static bool ahci_step(AhciRig *rig)
{
    bool busy = rig->ahci->port[0].state == AHCI_PORT_BUSY && fake_host_idle(rig->host);
    HardDisk *disk = rig->opaque;

    return g_main_context_iteration(NULL, busy && !hard_disk_kept(disk));
}

static bool ide_step(IdeRig *rig)
{
    return g_main_context_iteration(NULL, false);
}

void disk_rig_connect(Disk *d, Kind kind)
{
    if (kind == AHCI_MMAP || kind == AHCI_MESSAGE) {
        d->ahci = ahci_rig_new_device(kind == AHCI_MESSAGE, d->device);
        d->ahci->opaque = d->disk;
        d->ahci->step = ahci_step;
        d->ahci->host->map_ok = kind == AHCI_MMAP;
        rig_port_up(d->ahci, 0);
    } else {
        d->ide = ide_rig_new(kind == IDE_MESSAGE);
        d->ide->step = ide_step;
        d->ide->host->map_ok = kind == IDE_MMAP;
        g_assert_true(pci_ide_attach(d->ide->ide, 0, 0, d->device));
    }
}

void disk_rig_new(Disk *d, Kind kind)
{
    AtaDiskConfig config = {.identity = {.serial = "testdisk", .firmware = "version"}};

    disk_rig_make(d, "mem,size=16M", &config, ON_ERROR_REPORT);
    disk_rig_connect(d, kind);
}

void disk_rig_free(Disk *d)
{
    if (d->ahci) {
        ahci_rig_free(d->ahci); /* frees the device too */
    } else {
        ide_rig_free(d->ide);
        ide_device_free(d->device);
    }
    hard_disk_free(d->disk);
    block_unref(d->node);
    while (g_main_context_iteration(NULL, false)) {
    }
}

uint8_t *disk_rig_ram(Disk *d, uint64_t addr)
{
    return (d->ahci ? d->ahci->host->ram : d->ide->host->ram) + addr;
}

static void ide_wait_ready(Disk *d, uint8_t want)
{
    gint64 end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

    while ((ide_alt(d->ide) & (ATA_STATUS_BSY | want)) != want) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        ide_settle(d->ide);
        if (!(ide_alt(d->ide) & ATA_STATUS_BSY) && ide_alt(d->ide) & ATA_STATUS_ERR) {
            return;
        }
    }
}

/* The registers of a 48-bit or 28-bit command through the ports. */
void disk_rig_registers(Disk *d, const Taskfile *tf, bool ext)
{
    ide_out(d->ide, TASKFILE_DEVICE, tf->device);
    if (ext) {
        ide_out(d->ide, TASKFILE_FEATURES, tf->features >> 8);
        ide_out(d->ide, TASKFILE_COUNT, tf->count >> 8);
        for (unsigned i = 0; i < 3; i++) {
            ide_out(d->ide, TASKFILE_LBA_LOW + i, tf->lba[3 + i]);
        }
    }
    ide_out(d->ide, TASKFILE_FEATURES, tf->features & 0xff);
    ide_out(d->ide, TASKFILE_COUNT, tf->count & 0xff);
    for (unsigned i = 0; i < 3; i++) {
        ide_out(d->ide, TASKFILE_LBA_LOW + i, tf->lba[i]);
    }
}

static uint16_t ide_run(Disk *d, const Taskfile *tf, bool ext, Way way, uint64_t addr, uint32_t len,
                        uint32_t block)
{
    IdePrd prds[64] = {{0}};
    uint32_t left = len;

    disk_rig_registers(d, tf, ext);
    for (unsigned i = 0; left; i++) {
        prds[i] = (IdePrd){(uint32_t)addr + i * 65536, MIN(left, 65536)};
        left -= prds[i].bytes;
        if (way != DMA_IN && way != DMA_OUT) {
            break;
        }
    }
    bm_table(d->ide, prds);
    ide_out(d->ide, TASKFILE_COMMAND, tf->command);
    if (way == DMA_IN || way == DMA_OUT) {
        bm_out(d->ide, 0, way == DMA_IN ? 9 : 1);
    }
    for (uint32_t at = 0; at < len && (way == PIO_IN || way == PIO_OUT);) {
        uint32_t end = MIN(at + block, len);

        ide_wait_ready(d, ATA_STATUS_DRQ);
        if (ide_in(d->ide, TASKFILE_COMMAND) & ATA_STATUS_ERR) {
            break;
        }
        for (; at < end; at += 2) {
            if (way == PIO_IN) {
                store_le16(disk_rig_ram(d, addr + at), ide_in_data(d->ide));
            } else {
                ide_out_data(d->ide, load_le16(disk_rig_ram(d, addr + at)));
            }
        }
    }
    ide_wait_ready(d, 0);
    bm_out(d->ide, 0, 0);
    return (uint16_t)(ide_in(d->ide, TASKFILE_FEATURES) << 8 | ide_in(d->ide, TASKFILE_COMMAND));
}

uint16_t disk_rig_run_ahci(Disk *d, const Taskfile *tf, uint64_t addr, uint32_t len, unsigned slot)
{
    RigPrd prds[] = {{addr, MIN(len, 1024)}, {addr + 1024, len > 1024 ? len - 1024 : 0}, {0}};
    uint32_t tfd;

    rig_slot(d->ahci, 0, slot, tf, NULL, prds);
    if (tf->command == ATA_CMD_READ_FPDMA || tf->command == ATA_CMD_WRITE_FPDMA) {
        rig_port_write(d->ahci, 0, AHCI_PX_SACT, 1u << slot);
    }
    rig_issue(d->ahci, 0, 1u << slot);
    rig_settle(d->ahci);
    tfd = rig_port_read(d->ahci, 0, AHCI_PX_TFD);
    if (tfd & ATA_STATUS_ERR) {
        rig_recover(d->ahci, 0);
    } else {
        g_assert_cmphex(rig_port_read(d->ahci, 0, AHCI_PX_CI), ==, 0);
        g_assert_cmphex(rig_port_read(d->ahci, 0, AHCI_PX_SACT), ==, 0);
        rig_port_write(d->ahci, 0, AHCI_PX_IS, ~0u);
    }
    return (uint16_t)tfd;
}

/* Error and status registers at the end. `block` is the DRQ block in bytes. */
uint16_t disk_rig_run(Disk *d, const Taskfile *tf, bool ext, Way way, uint64_t addr, uint32_t len,
                      uint32_t block)
{
    return d->ahci ? disk_rig_run_ahci(d, tf, addr, len, 3) : ide_run(d, tf, ext, way, addr, len, block);
}

uint16_t disk_rig_simple(Disk *d, uint8_t command, uint8_t features, uint8_t count)
{
    Taskfile tf = {.command = command, .features = features, .count = count, .device = ATA_DEVICE_LBA};

    return disk_rig_run(d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512);
}

void disk_rig_identify(Disk *d, uint8_t *id)
{
    Taskfile tf = {.command = ATA_CMD_IDENTIFY};

    g_assert_cmphex(disk_rig_run(d, &tf, false, PIO_IN, IDE_RIG_DATA, 512, 512), ==, DISK_OK);
    memcpy(id, disk_rig_ram(d, IDE_RIG_DATA), 512);
}

void disk_rig_tf(Taskfile *tf, uint8_t command, bool ext, uint64_t lba, uint32_t count)
{
    *tf = (Taskfile){.command = command, .device = ATA_DEVICE_LBA, .count = (uint16_t)count};
    if (ext) {
        taskfile_set_lba48(tf, lba);
    } else {
        taskfile_set_lba28(tf, (uint32_t)lba);
        tf->count &= 0xff;
    }
}

void disk_rig_queued_tf(Taskfile *tf, bool write, uint64_t lba, uint32_t count, unsigned tag)
{
    *tf = (Taskfile){.command = write ? ATA_CMD_WRITE_FPDMA : ATA_CMD_READ_FPDMA,
                     .features = (uint16_t)count,
                     .count = (uint16_t)(tag << 3),
                     .device = ATA_DEVICE_LBA};
    taskfile_set_lba48(tf, lba);
}

void disk_rig_add(const char *name, GTestDataFunc func, Kind first, Kind last)
{
    for (Kind kind = first; kind <= last; kind++) {
        g_autofree char *path = g_strdup_printf("/ata-disk/%s/%s", name, kind_names[kind]);

        g_test_add_data_func(path, GINT_TO_POINTER(kind), func);
    }
}
