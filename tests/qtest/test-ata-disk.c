/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The hard disk behind the AHCI controller (memory-mapped and message DMA) and behind the parallel channel.
 */
#include <string.h>

#include "hw/ide/ata-disk.h"
#include "hw/ide/ata-regs.h"
#include "tests/qtest/ahci-rig.h"
#include "tests/qtest/ide-rig.h"
#include "util/bytes.h"

#define DISK_SIZE (16u << 20)
#define SECTORS   (DISK_SIZE / 512)
#define OK        (ATA_STATUS_DRDY | ATA_STATUS_DSC)

typedef struct Disk {
    BlockNode *node;
    HardDisk *disk;
    IdeDevice *device;
    AhciRig *ahci; /* one of these two */
    IdeRig *ide;
    unsigned failed;
    HardDiskOnError last_action;
} Disk;

static void on_failed(HardDisk *disk, BlockOp op, int error, HardDiskOnError action, void *opaque)
{
    Disk *d = opaque;

    d->failed++;
    d->last_action = action;
}

static void disk_make(Disk *d, const char *options, const AtaDiskConfig *ata, HardDiskOnError policy)
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

typedef enum { AHCI_MMAP, AHCI_MESSAGE, IDE_MMAP, IDE_MESSAGE, KINDS } Kind;

static const char *const kind_names[KINDS] = {"ahci-mmap", "ahci-message", "ide-mmap", "ide-message"};

static void disk_connect(Disk *d, Kind kind)
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

static void disk_new(Disk *d, Kind kind)
{
    AtaDiskConfig config = {.identity = {.serial = "testdisk", .firmware = "version"}};

    disk_make(d, "mem,size=16M", &config, HARD_DISK_REPORT);
    disk_connect(d, kind);
}

static void disk_free(Disk *d)
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

static uint8_t *ram(Disk *d, uint64_t addr)
{
    return (d->ahci ? d->ahci->host->ram : d->ide->host->ram) + addr;
}

typedef enum { NODATA, PIO_IN, PIO_OUT, DMA_IN, DMA_OUT } Way;

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
static void ide_registers(Disk *d, const Taskfile *tf, bool ext)
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

    ide_registers(d, tf, ext);
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
                store_le16(ram(d, addr + at), ide_in_data(d->ide));
            } else {
                ide_out_data(d->ide, load_le16(ram(d, addr + at)));
            }
        }
    }
    ide_wait_ready(d, 0);
    bm_out(d->ide, 0, 0);
    return (uint16_t)(ide_in(d->ide, TASKFILE_FEATURES) << 8 | ide_in(d->ide, TASKFILE_COMMAND));
}

static uint16_t ahci_run(Disk *d, const Taskfile *tf, uint64_t addr, uint32_t len, unsigned slot)
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
static uint16_t run(Disk *d, const Taskfile *tf, bool ext, Way way, uint64_t addr, uint32_t len,
                    uint32_t block)
{
    return d->ahci ? ahci_run(d, tf, addr, len, 3) : ide_run(d, tf, ext, way, addr, len, block);
}

static uint16_t run_simple(Disk *d, uint8_t command, uint8_t features, uint8_t count)
{
    Taskfile tf = {.command = command, .features = features, .count = count, .device = ATA_DEVICE_LBA};

    return run(d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512);
}

static void identify(Disk *d, uint8_t *id)
{
    Taskfile tf = {.command = ATA_CMD_IDENTIFY};

    g_assert_cmphex(run(d, &tf, false, PIO_IN, IDE_RIG_DATA, 512, 512), ==, OK);
    memcpy(id, ram(d, IDE_RIG_DATA), 512);
}

static uint16_t word(const uint8_t *id, unsigned n)
{
    return load_le16(id + 2 * n);
}

static void test_identify(gconstpointer kind)
{
    bool sata = GPOINTER_TO_INT(kind) < IDE_MMAP;
    uint8_t id[512], sum = 0;
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    identify(&d, id);
    g_assert_cmphex(word(id, 0), ==, 0x0040);
    g_assert_cmpuint(word(id, 1), ==, SECTORS / (16 * 63));
    g_assert_cmpuint(word(id, 3), ==, 16);
    g_assert_cmpuint(word(id, 6), ==, 63);
    g_assert_cmpuint(word(id, 5), ==, 512);
    g_assert_cmpmem(id + 20, 8, "ettsidks", 8);
    g_assert_cmpmem(id + 46, 8, "evsroi n", 8);
    g_assert_cmpuint(load_le32(id + 120), ==, SECTORS);
    g_assert_cmpuint(load_le64(id + 200), ==, SECTORS);
    g_assert_cmphex(word(id, 47), ==, 0x8010);
    g_assert_cmphex(word(id, 59), ==, 0x0110);
    g_assert_cmphex(word(id, 85) & 0x20, ==, 0x20); /* write cache on */
    g_assert_cmphex(word(id, 83), ==, 0x7400);
    g_assert_cmphex(word(id, 75), ==, sata ? 31 : 0);
    g_assert_cmphex(word(id, 76), ==, sata ? 0x0106 : 0);
    g_assert_cmphex(word(id, 106), ==, 0x4000);
    g_assert_cmphex(word(id, 169), ==, 1);
    for (unsigned i = 0; i < 512; i++) {
        sum += id[i];
    }
    g_assert_cmphex(sum, ==, 0);
    disk_free(&d);
}

static void test_properties(void)
{
    AtaDiskConfig config = {.identity = {.model = "M", .wwn = UINT64_C(0x5000c500aabbccdd)},
                            .cyls = 100,
                            .heads = 4,
                            .secs = 32,
                            .logical_block_size = 4096,
                            .physical_block_size = 8192,
                            .rotation_rate = 7200};
    uint8_t id[512];
    Disk d;

    disk_make(&d, "mem,size=16M", &config, HARD_DISK_REPORT);
    disk_connect(&d, AHCI_MMAP);
    identify(&d, id);
    g_assert_cmpuint(word(id, 1), ==, 100);
    g_assert_cmpuint(word(id, 3), ==, 4);
    g_assert_cmpuint(word(id, 6), ==, 32);
    g_assert_cmphex(word(id, 106), ==, 0x7001);
    g_assert_cmpuint(load_le32(id + 234), ==, 2048);
    g_assert_cmpuint(load_le64(id + 200), ==, DISK_SIZE / 4096);
    g_assert_cmphex(word(id, 47), ==, 0x8002);
    g_assert_cmphex(word(id, 84) & 0x100, ==, 0x100);
    g_assert_cmphex(word(id, 110), ==, 0xaabb);
    g_assert_cmpuint(word(id, 217), ==, 7200);
    disk_free(&d);
}

static void test_bad_properties(void)
{
    static const AtaDiskConfig rows[] = {
        {.cyls = 5},
        {.cyls = 70000, .heads = 16, .secs = 63},
        {.cyls = 10, .heads = 17, .secs = 63},
        {.cyls = 10, .heads = 16, .secs = 256},
        {.logical_block_size = 513},
        {.logical_block_size = 8192},
        {.logical_block_size = 4096, .physical_block_size = 512},
        {.physical_block_size = 3000},
    };
    AtaDiskConfig good = {0};
    Disk d;

    disk_make(&d, "mem,size=1M", &good, HARD_DISK_REPORT);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ata_disk_new(d.disk, &rows[i], &error));
        g_assert_nonnull(error);
    }
    disk_connect(&d, IDE_MMAP);
    disk_free(&d);
}

typedef struct Pair {
    const char *name;
    uint8_t write, read;
    bool ext, dma, multiple;
} Pair;

static const Pair pairs[] = {
    {"pio", ATA_CMD_WRITE_SECTORS, ATA_CMD_READ_SECTORS, false, false, false},
    {"pio-ext", ATA_CMD_WRITE_SECTORS_EXT, ATA_CMD_READ_SECTORS_EXT, true, false, false},
    {"multiple", ATA_CMD_WRITE_MULTIPLE, ATA_CMD_READ_MULTIPLE, false, false, true},
    {"multiple-ext", ATA_CMD_WRITE_MULTIPLE_EXT, ATA_CMD_READ_MULTIPLE_EXT, true, false, true},
    {"dma", ATA_CMD_WRITE_DMA, ATA_CMD_READ_DMA, false, true, false},
    {"dma-ext", ATA_CMD_WRITE_DMA_EXT, ATA_CMD_READ_DMA_EXT, true, true, false},
    {"fua", ATA_CMD_WRITE_DMA_FUA_EXT, ATA_CMD_READ_DMA_EXT, true, true, false},
};

static void make_tf(Taskfile *tf, uint8_t command, bool ext, uint64_t lba, uint32_t count)
{
    *tf = (Taskfile){.command = command, .device = ATA_DEVICE_LBA, .count = (uint16_t)count};
    if (ext) {
        taskfile_set_lba48(tf, lba);
    } else {
        taskfile_set_lba28(tf, (uint32_t)lba);
        tf->count &= 0xff;
    }
}

/* Written and read back, and in the node itself, for each command pair x length x place x controller. */
static void test_read_write(gconstpointer data)
{
    static const uint32_t counts[] = {1, 2, 8, 17, 256, 700, 2048};
    static const uint64_t places[] = {0, 1, 4095, SECTORS - 2048};
    Kind kind = GPOINTER_TO_INT(data);
    g_autofree uint8_t *check = g_malloc(2048 * 512);
    Disk d;

    disk_new(&d, kind);
    for (unsigned n = 0; n < G_N_ELEMENTS(pairs) * G_N_ELEMENTS(counts) * G_N_ELEMENTS(places); n++) {
        const Pair *pair = &pairs[n % G_N_ELEMENTS(pairs)];
        uint32_t count = counts[n / G_N_ELEMENTS(pairs) % G_N_ELEMENTS(counts)], len = count * 512;
        uint64_t lba = places[n / G_N_ELEMENTS(pairs) / G_N_ELEMENTS(counts)];
        uint32_t block = pair->multiple ? 8192 : 512;
        uint64_t out = 0x800000, in = 0xa00000;
        Taskfile tf;

        if (count > 256 && !pair->ext) {
            continue;
        }
        for (uint32_t i = 0; i < len; i++) {
            ram(&d, out)[i] = (uint8_t)(i * 3 + i / 512 + n);
        }
        memset(ram(&d, in), 0xee, len + 512);
        make_tf(&tf, pair->write, pair->ext, lba, count);
        g_assert_cmphex(run(&d, &tf, pair->ext, pair->dma ? DMA_OUT : PIO_OUT, out, len, block), ==, OK);
        g_assert_cmpint(block_pread(d.node, lba * 512, check, len), ==, 0);
        g_assert_cmpint(memcmp(check, ram(&d, out), len), ==, 0);
        make_tf(&tf, pair->read, pair->ext, lba, count);
        g_assert_cmphex(run(&d, &tf, pair->ext, pair->dma ? DMA_IN : PIO_IN, in, len, block), ==, OK);
        g_assert_cmpint(memcmp(ram(&d, in), check, len), ==, 0);
        g_assert_cmphex(ram(&d, in)[len], ==, 0xee);
    }
    disk_free(&d);
}

static void test_ranges(gconstpointer kind)
{
    static const struct {
        uint8_t command;
        bool ext;
        uint64_t lba;
        uint32_t count;
        bool ok;
    } rows[] = {
        {ATA_CMD_READ_VERIFY, false, 0, 256, true},
        {ATA_CMD_READ_VERIFY, false, SECTORS - 1, 1, true},
        {ATA_CMD_READ_VERIFY, false, SECTORS - 1, 2, false},
        {ATA_CMD_READ_VERIFY, false, SECTORS, 1, false},
        {ATA_CMD_READ_VERIFY, false, 0x0fffffff, 256, false},
        {ATA_CMD_READ_VERIFY_EXT, true, SECTORS - 0x4000, 0x4000, true},
        {ATA_CMD_READ_VERIFY_EXT, true, 0, 0x10000, false},
        {ATA_CMD_READ_VERIFY_EXT, true, UINT64_C(0xffffffffffff), 1, false},
        {ATA_CMD_READ_DMA_EXT, true, UINT64_C(0xffffffffffff), 0x10000, false},
        {ATA_CMD_WRITE_DMA, false, SECTORS, 1, false},
        {ATA_CMD_WRITE_SECTORS, false, SECTORS - 1, 2, false},
    };
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Taskfile tf;

        make_tf(&tf, rows[i].command, rows[i].ext, rows[i].lba, rows[i].count);
        g_assert_cmphex(run(&d, &tf, rows[i].ext, NODATA, 0, 0, 512), ==,
                        rows[i].ok ? OK : ATA_ERROR_IDNF << 8 | OK | ATA_STATUS_ERR);
    }
    disk_free(&d);
}

/* Cylinder, head, sector; INITIALIZE DEVICE PARAMETERS changes what they mean. */
static void test_chs(gconstpointer kind)
{
    static const struct {
        uint16_t cylinder;
        uint8_t head, sector;
        int64_t lba; /* -1: no such address */
    } rows[] = {{0, 0, 1, 0},      {0, 0, 63, 62}, {0, 1, 1, 63},  {1, 0, 1, 1008},
                {3, 15, 63, 4031}, {0, 0, 0, -1},  {0, 0, 64, -1}, {60000, 0, 1, -1}};
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    for (uint32_t i = 0; i < 5000; i++) {
        uint8_t sector[512] = {0};

        store_le32(sector, i);
        g_assert_cmpint(block_pwrite(d.node, (uint64_t)i * 512, sector, 512, 0), ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Taskfile tf = {.command = ATA_CMD_READ_DMA, .count = 1, .device = rows[i].head};
        uint16_t status;

        tf.lba[0] = rows[i].sector;
        tf.lba[1] = rows[i].cylinder & 0xff;
        tf.lba[2] = rows[i].cylinder >> 8;
        status = run(&d, &tf, false, DMA_IN, IDE_RIG_DATA, 512, 512);
        g_assert_cmphex(status & 1, ==, rows[i].lba < 0);
        if (rows[i].lba >= 0) {
            g_assert_cmpuint(load_le32(ram(&d, IDE_RIG_DATA)), ==, rows[i].lba);
        }
    }
    Taskfile tf = {.command = ATA_CMD_INITIALIZE_PARAMETERS, .count = 10, .device = 4}; /* 5 heads of 10 */
    g_assert_cmphex(run(&d, &tf, false, NODATA, 0, 0, 512), ==, OK);
    tf = (Taskfile){.command = ATA_CMD_READ_DMA, .count = 1, .device = 2, .lba = {3, 7}};
    g_assert_cmphex(run(&d, &tf, false, DMA_IN, IDE_RIG_DATA, 512, 512), ==, OK);
    g_assert_cmpuint(load_le32(ram(&d, IDE_RIG_DATA)), ==, (7 * 5 + 2) * 10 + 2);
    tf = (Taskfile){.command = ATA_CMD_INITIALIZE_PARAMETERS, .count = 0, .device = 4};
    g_assert_cmphex(run(&d, &tf, false, NODATA, 0, 0, 512), ==, ATA_ERROR_ABRT << 8 | OK | ATA_STATUS_ERR);
    disk_free(&d);
}

static void test_large_disk(gconstpointer kind)
{
    AtaDiskConfig config = {0};
    uint64_t sectors = UINT64_C(3) << 31; /* 3 TiB */
    Taskfile tf;
    uint8_t id[512];
    Disk d;

    disk_make(&d, "null-co,size=3T,read-zeroes=on", &config, HARD_DISK_REPORT);
    disk_connect(&d, GPOINTER_TO_INT(kind));
    identify(&d, id);
    g_assert_cmpuint(load_le32(id + 120), ==, 0x0fffffff);
    g_assert_cmpuint(load_le64(id + 200), ==, sectors);
    make_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors - 16, 16);
    g_assert_cmphex(run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 8192, 512), ==, OK);
    make_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors - 15, 16);
    g_assert_cmphex(run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 8192, 512) & 1, ==, 1);
    g_assert_cmphex(run_simple(&d, ATA_CMD_READ_NATIVE_MAX_EXT, 0, 0), ==, OK);
    g_assert_cmpuint(taskfile_lba48(&d.device->tf), ==, sectors - 1);
    g_assert_cmphex(run_simple(&d, ATA_CMD_READ_NATIVE_MAX, 0, 0), ==, OK);
    g_assert_cmpuint(taskfile_lba28(&d.device->tf), ==, 0x0ffffffe);
    disk_free(&d);
}

static void test_nondata(gconstpointer kind)
{
    static const struct {
        uint8_t command, features, count;
        uint16_t result;
        int count_after;
    } rows[] = {
        {ATA_CMD_FLUSH_CACHE, 0, 0, OK, -1},
        {ATA_CMD_FLUSH_CACHE_EXT, 0, 0, OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, OK, 0xff},
        {ATA_CMD_STANDBY_IMMEDIATE, 0, 0, OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, OK, 0},
        {ATA_CMD_IDLE_IMMEDIATE, 0, 0, OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, OK, 0x80},
        {ATA_CMD_SET_MULTIPLE, 0, 8, OK, -1},
        {ATA_CMD_SET_MULTIPLE, 0, 3, 0x0451, -1},
        {ATA_CMD_SET_MULTIPLE, 0, 32, 0x0451, -1},
        {ATA_CMD_SET_FEATURES, 0x82, 0, OK, -1},
        {ATA_CMD_SET_FEATURES, 0x02, 0, OK, -1},
        {ATA_CMD_SET_FEATURES, 0x03, 0x45, OK, -1},
        {ATA_CMD_SET_FEATURES, 0x03, 0x47, 0x0451, -1},
        {ATA_CMD_SET_FEATURES, 0x5d, 0, 0x0451, -1},
        {ATA_CMD_RECALIBRATE, 0, 0, OK, -1},
        {ATA_CMD_DIAGNOSTIC, 0, 0, 0x0150, 1},
        {ATA_CMD_NOP, 0, 0, 0x0451, -1},
        {ATA_CMD_PACKET, 0, 0, 0x0451, -1},
        {ATA_CMD_IDENTIFY_PACKET, 0, 0, 0x0451, -1},
        {ATA_CMD_DEVICE_RESET, 0, 0, 0x0451, -1},
        {0xf1, 0, 0, 0x0451, -1}, /* SECURITY SET PASSWORD */
        {0xf4, 0, 0, 0x0451, -1}, /* SECURITY ERASE UNIT */
        {0xf5, 0, 0, 0x0451, -1}, /* SECURITY FREEZE LOCK */
        {0x92, 0, 0, 0x0451, -1}, /* DOWNLOAD MICROCODE */
        {0xb1, 0xc0, 0, 0x0451, -1},
    };
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%02x", rows[i].command);
        g_assert_cmphex(run_simple(&d, rows[i].command, rows[i].features, rows[i].count), ==, rows[i].result);
        if (rows[i].count_after >= 0) {
            g_assert_cmphex(d.device->tf.count & 0xff, ==, rows[i].count_after);
        }
    }
    disk_free(&d);
}

static void test_write_cache(gconstpointer kind)
{
    uint8_t id[512];
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    g_assert_cmphex(run_simple(&d, ATA_CMD_SET_FEATURES, ATA_FEATURE_DISABLE_WRITE_CACHE, 0), ==, OK);
    g_assert_false(hard_disk_write_back(d.disk));
    identify(&d, id);
    g_assert_cmphex(word(id, 85) & 0x20, ==, 0);
    ide_device_reset(d.device, IDE_RESET_SOFT);
    g_assert_false(hard_disk_write_back(d.disk));
    ide_device_reset(d.device, IDE_RESET_HARD);
    g_assert_true(hard_disk_write_back(d.disk));
    disk_free(&d);
}

static void put_range(uint8_t *p, uint64_t lba, uint16_t count)
{
    store_le64(p, lba | (uint64_t)count << 48);
}

static void test_trim(gconstpointer kind)
{
    Taskfile tf = {
        .command = ATA_CMD_DATA_SET_MANAGEMENT, .features = 1, .count = 1, .device = ATA_DEVICE_LBA};
    uint8_t ones[1024], back[1024];
    uint8_t *ranges;
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    memset(ones, 0xff, sizeof ones);
    ranges = ram(&d, IDE_RIG_DATA);
    memset(ranges, 0, 4096);
    put_range(ranges, 0, 2);
    put_range(ranges + 8, 6, 8);
    g_assert_cmpint(block_pwrite(d.node, 0, ones, sizeof ones, 0), ==, 0);
    g_assert_cmphex(run(&d, &tf, false, DMA_OUT, IDE_RIG_DATA, 512, 512), ==, OK);
    g_assert_cmpint(block_pwrite(d.node, 0, ones, sizeof ones, 0), ==, 0);
    put_range(ranges + 16, SECTORS - 1, 2); /* one bad range: nothing is discarded */
    g_assert_cmphex(run(&d, &tf, false, DMA_OUT, IDE_RIG_DATA, 512, 512), ==, 0x0451);
    g_assert_cmpint(block_pread(d.node, 0, back, sizeof back), ==, 0);
    g_assert_cmpmem(back, sizeof back, ones, sizeof ones);
    tf.count = 9;
    g_assert_cmphex(run(&d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512), ==, 0x0451);
    tf.count = 1;
    tf.features = 0;
    g_assert_cmphex(run(&d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512), ==, 0x0451);
    disk_free(&d);
}

static uint16_t smart(Disk *d, uint8_t what, uint8_t count, uint8_t low, uint16_t key, Way way)
{
    Taskfile tf = {.command = ATA_CMD_SMART, .features = what, .count = count, .lba = {low}};

    taskfile_set_byte_count(&tf, key);
    return run(d, &tf, false, way, IDE_RIG_DATA, way == NODATA ? 0 : 512, 512);
}

/* CVE-2014-2894 is the 21-fold EXECUTE OFFLINE IMMEDIATE. */
static void test_smart(gconstpointer kind)
{
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0xc24f, NODATA), ==, OK);
    g_assert_cmphex(taskfile_byte_count(&d.device->tf), ==, 0xc24f);
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0x1234, NODATA), ==, 0x0451);
    for (unsigned what = 0xd0; what < 0xd2; what++) {
        uint8_t sum = 0;

        g_assert_cmphex(smart(&d, (uint8_t)what, 1, 0, 0xc24f, PIO_IN), ==, OK);
        for (unsigned i = 0; i < 512; i++) {
            sum += ram(&d, IDE_RIG_DATA)[i];
        }
        g_assert_cmphex(sum, ==, 0);
    }
    for (unsigned i = 0; i < 21; i++) {
        g_assert_cmphex(smart(&d, 0xd4, 0, 1, 0xc24f, NODATA), ==, OK);
    }
    for (unsigned log = 0; log < 256; log++) {
        bool known = log == 0 || log == 1 || log == 6;

        if (known) {
            g_assert_cmphex(smart(&d, 0xd5, 1, (uint8_t)log, 0xc24f, PIO_IN), ==, OK);
        } else {
            g_assert_cmphex(smart(&d, 0xd5, 1, (uint8_t)log, 0xc24f, NODATA), ==, 0x0451);
        }
    }
    g_assert_cmphex(smart(&d, 0xd9, 0, 0, 0xc24f, NODATA), ==, OK);
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0xc24f, NODATA), ==, 0x0451);
    g_assert_cmphex(smart(&d, 0xd8, 0, 0, 0xc24f, NODATA), ==, OK);
    disk_free(&d);
}

static void make_queued(Taskfile *tf, bool write, uint64_t lba, uint32_t count, unsigned tag)
{
    *tf = (Taskfile){.command = write ? ATA_CMD_WRITE_FPDMA : ATA_CMD_READ_FPDMA,
                     .features = (uint16_t)count,
                     .count = (uint16_t)(tag << 3),
                     .device = ATA_DEVICE_LBA};
    taskfile_set_lba48(tf, lba);
}

static void queue_all(Disk *d, bool write, uint64_t at)
{
    for (unsigned slot = 0; slot < 32; slot++) {
        RigPrd prds[] = {{at + slot * 8192, 4096}, {at + slot * 8192 + 4096, 4096}, {0}};
        Taskfile tf;

        make_queued(&tf, write, slot * 100, 16, slot);
        rig_slot(d->ahci, 0, slot, &tf, NULL, prds);
    }
    rig_port_write(d->ahci, 0, AHCI_PX_SACT, ~0u);
    rig_issue(d->ahci, 0, ~0u);
}

/* 32 writes and 32 reads at a time. */
static void test_ncq(gconstpointer kind)
{
    uint8_t back[8192];
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    for (uint32_t i = 0; i < 32 * 8192; i++) {
        ram(&d, 0x800000)[i] = (uint8_t)(i * 7 + i / 8192);
    }
    queue_all(&d, true, 0x800000);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS), ==, AHCI_PX_IS_SDBS);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 0);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_CI), ==, 0);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, OK);
    rig_port_write(d.ahci, 0, AHCI_PX_IS, ~0u);
    for (unsigned slot = 0; slot < 32; slot++) {
        g_assert_cmpint(block_pread(d.node, slot * 51200, back, sizeof back), ==, 0);
        g_assert_cmpmem(back, sizeof back, ram(&d, 0x800000 + slot * 8192), sizeof back);
    }
    queue_all(&d, false, 0xa00000);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 0);
    g_assert_cmpint(memcmp(ram(&d, 0xa00000), ram(&d, 0x800000), 32 * 8192), ==, 0);
    g_assert_cmphex(ram(&d, rig_fis(0) + 0x58)[0], ==, 0xa1);
    disk_free(&d);
}

/* A bad queued command: PxSACT keeps the bit, the log names the tag, everything works after recovery. */
static void test_ncq_errors(gconstpointer kind)
{
    AtaDiskConfig config = {0};
    g_autofree char *path = NULL;
    g_autofree char *options = NULL;
    Taskfile tf, log = {.command = ATA_CMD_READ_LOG_EXT, .count = 1, .lba = {0x10}};
    int fd = g_file_open_tmp("spindle-disk-XXXXXX", &path, NULL);
    Disk d;

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, 1 << 20), ==, 0);
    close(fd);
    options =
        g_strdup_printf("fault,bad-offset=524288,bad-bytes=512,file.driver=file,file.filename=%s", path);
    disk_make(&d, options, &config, HARD_DISK_REPORT);
    disk_connect(&d, GPOINTER_TO_INT(kind));
    make_queued(&tf, false, 2047, 2, 5); /* out of range: refused before it is queued */
    g_assert_cmphex(ahci_run(&d, &tf, RIG_DATA, 1024, 5), ==, ATA_ERROR_IDNF << 8 | OK | ATA_STATUS_ERR);
    make_queued(&tf, false, 1020, 8, 9); /* fails when it is read */
    rig_slot(d.ahci, 0, 9, &tf, NULL, (RigPrd[]){{RIG_DATA, 4096}, {0}});
    rig_port_write(d.ahci, 0, AHCI_PX_SACT, 1u << 9);
    rig_issue(d.ahci, 0, 1u << 9);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS), ==, AHCI_PX_IS_SDBS | AHCI_PX_IS_TFES);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 1u << 9);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, ATA_ERROR_UNC << 8 | OK | ATA_STATUS_ERR);
    rig_recover(d.ahci, 0);
    g_assert_cmphex(run(&d, &log, true, PIO_IN, RIG_DATA, 512, 512), ==, OK);
    g_assert_cmphex(ram(&d, RIG_DATA)[0], ==, 9);
    g_assert_cmphex(ram(&d, RIG_DATA)[3], ==, ATA_ERROR_UNC);
    g_assert_cmpuint(load_le16(ram(&d, RIG_DATA) + 4), ==, 1020);
    g_assert_cmphex(run(&d, &log, true, PIO_IN, RIG_DATA, 512, 512), ==, OK);
    g_assert_cmphex(ram(&d, RIG_DATA)[0], ==, 0x80); /* told once */
    make_queued(&tf, false, 0, 8, 9);
    g_assert_cmphex(ahci_run(&d, &tf, RIG_DATA, 4096, 9), ==, OK);
    disk_free(&d);
    unlink(path);
}

/* 3bcbe4aa80: more sectors than the PRDT holds. Then nothing may reach the disk, nor run over in memory. */
static void test_short_prdt(gconstpointer kind)
{
    static const uint8_t commands[] = {ATA_CMD_READ_FPDMA,       ATA_CMD_WRITE_FPDMA,
                                       ATA_CMD_READ_DMA_EXT,     ATA_CMD_WRITE_DMA_EXT,
                                       ATA_CMD_READ_SECTORS_EXT, ATA_CMD_WRITE_SECTORS_EXT};
    static const uint32_t rooms[] = {0, 2, 512, 4094};
    Disk d;

    disk_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned n = 0; n < G_N_ELEMENTS(commands) * G_N_ELEMENTS(rooms); n++) {
        uint8_t command = commands[n % G_N_ELEMENTS(commands)], before[4096], after[4096];
        uint32_t room = rooms[n / G_N_ELEMENTS(commands)];
        RigPrd prds[] = {{RIG_DATA, room}, {0}};
        Taskfile tf;

        if (command == ATA_CMD_READ_FPDMA || command == ATA_CMD_WRITE_FPDMA) {
            make_queued(&tf, command == ATA_CMD_WRITE_FPDMA, 64, 8, 0);
        } else {
            make_tf(&tf, command, true, 64, 8);
        }
        g_assert_cmpint(block_pread(d.node, 64 * 512, before, sizeof before), ==, 0);
        memset(ram(&d, RIG_DATA), 0xee, 8192);
        rig_slot(d.ahci, 0, 0, &tf, NULL, prds);
        rig_port_write(d.ahci, 0, AHCI_PX_SACT, 1);
        rig_issue(d.ahci, 0, 1);
        rig_settle(d.ahci);
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS) & AHCI_PX_IS_TFES, ==, AHCI_PX_IS_TFES);
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, 0x0451);
        g_assert_cmphex(ram(&d, RIG_DATA)[room], ==, 0xee);
        g_assert_cmpint(block_pread(d.node, 64 * 512, after, sizeof after), ==, 0);
        g_assert_cmpmem(before, sizeof before, after, sizeof after);
        rig_recover(d.ahci, 0);
    }
    disk_free(&d);
}

/* CVE-2023-5088: a reset while a transfer runs; the write goes where it was meant to or nowhere, never to
 * sector 0. */
static void test_reset_in_flight(gconstpointer data)
{
    Kind kind = GPOINTER_TO_INT(data);
    uint8_t marker[512], sector[512];

    memset(marker, 0x4d, sizeof marker);
    for (unsigned n = 0; n < 40; n++) {
        bool write = n & 1;
        Taskfile tf;
        Disk d;

        disk_new(&d, kind);
        g_assert_cmpint(block_pwrite(d.node, 0, marker, 512, 0), ==, 0);
        memset(ram(&d, 0x800000), 0x77, 1 << 20);
        make_tf(&tf, write ? ATA_CMD_WRITE_DMA_EXT : ATA_CMD_READ_DMA_EXT, true, 2048, 2048);
        if (d.ahci) {
            rig_slot(d.ahci, 0, 0, &tf, NULL, (RigPrd[]){{0x800000, 1 << 20}, {0}});
            rig_issue(d.ahci, 0, 1);
        } else {
            IdePrd prds[17] = {{0}};

            for (unsigned i = 0; i < 16; i++) {
                prds[i] = (IdePrd){0x800000 + i * 65536, 65536};
            }
            bm_table(d.ide, prds);
            ide_registers(&d, &tf, true);
            ide_out(d.ide, TASKFILE_COMMAND, tf.command);
            bm_out(d.ide, 0, write ? 1 : 9);
        }
        for (unsigned i = 0; i < n / 2; i++) {
            FakeHost *host = d.ahci ? d.ahci->host : d.ide->host;

            if (!fake_host_answer(host, 0) && !fake_host_step(host)) {
                g_main_context_iteration(NULL, false);
            }
        }
        if (d.ahci) {
            rig_port_write(d.ahci, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE);
            rig_port_write(d.ahci, 0, AHCI_PX_SCTL, 1);
            rig_settle(d.ahci);
            rig_port_write(d.ahci, 0, AHCI_PX_SCTL, 0);
            rig_settle(d.ahci);
            rig_port_up(d.ahci, 0);
        } else {
            ide_control(d.ide, ATA_CONTROL_SRST);
            ide_settle(d.ide);
            ide_control(d.ide, 0);
            ide_in(d.ide, TASKFILE_COMMAND);
        }
        while (g_main_context_iteration(NULL, false)) {
        }
        make_tf(&tf, ATA_CMD_READ_DMA_EXT, true, 0, 1);
        g_assert_cmphex(run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 512, 512), ==, OK);
        g_assert_cmpmem(ram(&d, IDE_RIG_DATA), 512, marker, 512);
        g_assert_cmpint(block_pread(d.node, 2048 * 512, sector, 512), ==, 0);
        g_assert_true(sector[0] == 0 || (write && sector[0] == 0x77));
        disk_free(&d);
    }
}

/* werror/rerror: report, ignore, stop and retry. */
static void test_error_policy(gconstpointer data)
{
    static const struct {
        HardDiskOnError policy, action;
        const char *error;
        uint16_t result; /* of the write; 0: kept until resumed */
    } rows[] = {
        {HARD_DISK_REPORT, HARD_DISK_REPORT, "EIO", 0x0451},
        {HARD_DISK_IGNORE, HARD_DISK_IGNORE, "EIO", OK},
        {HARD_DISK_STOP, HARD_DISK_STOP, "EIO", 0},
        {HARD_DISK_ENOSPC, HARD_DISK_REPORT, "EIO", 0x0451},
        {HARD_DISK_ENOSPC, HARD_DISK_STOP, "ENOSPC", 0},
    };
    Kind kind = GPOINTER_TO_INT(data);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        AtaDiskConfig config = {0};
        g_autofree char *path = NULL;
        int fd = g_file_open_tmp("spindle-disk-XXXXXX", &path, NULL);
        g_autofree char *options = g_strdup_printf(
            "fault,fail-write=1,errno=%s,file.driver=file,file.filename=%s", rows[i].error, path);
        RigPrd prds[] = {{0x800000, 4096}, {0}};
        uint8_t back[4096];
        Taskfile tf;
        Disk d;

        g_assert_cmpint(ftruncate(fd, 1 << 20), ==, 0);
        close(fd);
        disk_make(&d, options, &config, rows[i].policy);
        disk_connect(&d, kind);
        memset(ram(&d, 0x800000), 0x77, 4096);
        make_tf(&tf, ATA_CMD_WRITE_DMA_EXT, true, 8, 8);
        rig_slot(d.ahci, 0, 0, &tf, NULL, prds);
        rig_issue(d.ahci, 0, 1);
        rig_settle(d.ahci);
        g_assert_cmpuint(d.failed, ==, 1);
        g_assert_cmpint(d.last_action, ==, rows[i].action);
        if (!rows[i].result) {
            g_assert_cmpuint(hard_disk_kept(d.disk), ==, 1);
            g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_CI), ==, 1);
            g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD) & ATA_STATUS_BSY, ==, ATA_STATUS_BSY);
            hard_disk_resume(d.disk);
            rig_settle(d.ahci);
            g_assert_cmpuint(hard_disk_kept(d.disk), ==, 0);
            g_assert_cmpint(block_pread(d.node, 4096, back, sizeof back), ==, 0);
            g_assert_cmpmem(back, sizeof back, ram(&d, 0x800000), 4096);
        }
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, rows[i].result ? rows[i].result : OK);
        disk_free(&d);
        unlink(path);
    }
}

/* A reset drops a request that is kept; a second resume finds nothing. */
static void test_reset_while_kept(void)
{
    AtaDiskConfig config = {0};
    g_autofree char *path = NULL;
    g_autofree char *options = NULL;
    int fd = g_file_open_tmp("spindle-disk-XXXXXX", &path, NULL);
    Taskfile tf;
    Disk d;

    g_assert_cmpint(ftruncate(fd, 1 << 20), ==, 0);
    close(fd);
    options = g_strdup_printf("fault,fail-flush=1,file.driver=file,file.filename=%s", path);
    disk_make(&d, options, &config, HARD_DISK_STOP);
    disk_connect(&d, AHCI_MMAP);
    make_tf(&tf, ATA_CMD_WRITE_DMA_EXT, true, 8, 8);
    g_assert_cmphex(run(&d, &tf, true, DMA_OUT, IDE_RIG_DATA, 4096, 512), ==, OK);
    rig_ata(d.ahci, 0, 0, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    rig_settle(d.ahci);
    g_assert_cmpuint(hard_disk_kept(d.disk), ==, 1);
    d.ahci->pci->ops->reset(d.ahci->pci);
    g_assert_cmpuint(hard_disk_kept(d.disk), ==, 0);
    hard_disk_resume(d.disk);
    disk_free(&d);
    unlink(path);
}

static void test_read_only(void)
{
    g_autofree char *path = NULL;
    g_autoptr(Options) options = options_new();
    g_autoptr(GError) error = NULL;
    int fd = g_file_open_tmp("spindle-disk-XXXXXX", &path, NULL);
    HardDiskConfig config = {0};

    g_assert_cmpint(ftruncate(fd, 4096), ==, 0);
    close(fd);
    options_set(options, "driver", "file");
    options_set(options, "filename", path);
    options_set(options, "read-only", "on");
    config.node = block_open(options, &error);
    g_assert_no_error(error);
    g_assert_null(hard_disk_new(&config, &error));
    g_assert_cmpstr(error->message, ==, "Block node is read-only");
    block_unref(config.node);
    unlink(path);
}

/* A random guest of the disk. */
static void test_stress(gconstpointer data)
{
    Kind kind = GPOINTER_TO_INT(data);
    Disk d;
    FakeHost *host;

    disk_new(&d, kind);
    host = d.ahci ? d.ahci->host : d.ide->host;
    for (unsigned i = 0; i < 30000; i++) {
        uint32_t r = (uint32_t)g_test_rand_int(), value = (uint32_t)g_test_rand_int();
        static const uint8_t likely[] = {0x20, 0x24, 0x25, 0x29, 0x30, 0x34, 0x35, 0x39, 0x40,
                                         0x60, 0x61, 0x06, 0xc4, 0xc5, 0xc8, 0xca, 0xe7, 0xec,
                                         0xef, 0xb0, 0x2f, 0x91, 0xc6, 0x60, 0x61};
        uint8_t command = r & 0x700 ? likely[value % sizeof likely] : (uint8_t)value;

        if (d.ahci && r % 8 < 3) {
            unsigned slot = value >> 8 & 31;
            RigPrd prds[] = {{0x800000 + (value & 0xfffff), 2 + (r >> 12)}, {r, 4096}, {0}};
            Taskfile tf = {
                .command = command, .device = (uint8_t)(r >> 16), .features = (uint16_t)(value >> 24)};

            tf.count = (uint16_t)(r & 0x800 ? slot << 3 : r >> 20);
            taskfile_set_lba48(&tf, r & 0x1000 ? value % SECTORS : (uint64_t)value << 16);
            rig_slot(d.ahci, 0, slot, &tf, NULL, prds);
            rig_port_write(d.ahci, 0, AHCI_PX_SACT, 1u << slot);
            rig_issue(d.ahci, 0, 1u << slot);
        } else if (d.ahci && r % 32 == 7) {
            rig_port_write(d.ahci, 0, AHCI_PX_CMD, r & 0x10000 ? 0 : AHCI_PX_CMD_FRE);
            rig_port_write(d.ahci, 0, AHCI_PX_SCTL, r >> 17 & 1);
            rig_port_write(d.ahci, 0, AHCI_PX_SCTL, 0);
            rig_port_write(d.ahci, 0, AHCI_PX_CMD, AHCI_PX_CMD_FRE | AHCI_PX_CMD_ST);
        } else if (d.ide && r % 8 < 2) {
            ide_out(d.ide, 1 + (r >> 8) % 6, (uint8_t)value);
            ide_out(d.ide, TASKFILE_DEVICE, ATA_DEVICE_LBA);
        } else if (d.ide && r % 8 == 2) {
            ide_out(d.ide, TASKFILE_COMMAND, command);
        } else if (d.ide && r % 8 == 3) {
            bm_out(d.ide, (r >> 8) % 8, (uint8_t)value);
        } else if (d.ide && r % 64 == 4) {
            ide_control(d.ide, r & 0x10000 ? ATA_CONTROL_SRST : 0);
        } else if (d.ide && r % 8 == 5) {
            for (unsigned k = 0; k < 300; k++) {
                ide_in_data(d.ide);
                ide_out_data(d.ide, (uint16_t)k);
            }
        } else {
            fake_host_answer(host, 0);
            fake_host_step(host);
            g_main_context_iteration(NULL, false);
        }
    }
    if (d.ahci) {
        d.ahci->pci->ops->reset(d.ahci->pci);
        fake_host_drain(host);
        pci_config_write(d.ahci->pci, 4, 2, 6);
        rig_port_up(d.ahci, 0);
    } else {
        d.ide->pci->ops->reset(d.ide->pci);
        fake_host_drain(host);
        pci_config_write(d.ide->pci, 4, 2, 5);
    }
    g_assert_cmphex(run_simple(&d, ATA_CMD_FLUSH_CACHE, 0, 0), ==, OK);
    disk_free(&d);
}

static void add(const char *name, GTestDataFunc func, unsigned first, unsigned last)
{
    for (unsigned kind = first; kind <= last; kind++) {
        g_autofree char *path = g_strdup_printf("/ata-disk/%s/%s", name, kind_names[kind]);

        g_test_add_data_func(path, GINT_TO_POINTER(kind), func);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("identify", test_identify, 0, KINDS - 1);
    g_test_add_func("/ata-disk/properties", test_properties);
    g_test_add_func("/ata-disk/bad-properties", test_bad_properties);
    g_test_add_func("/ata-disk/read-only", test_read_only);
    add("read-write", test_read_write, 0, KINDS - 1);
    add("ranges", test_ranges, 0, KINDS - 1);
    add("chs", test_chs, 0, KINDS - 1);
    add("large-disk", test_large_disk, 0, KINDS - 1);
    add("nondata", test_nondata, 0, KINDS - 1);
    add("write-cache", test_write_cache, 0, KINDS - 1);
    add("trim", test_trim, 0, KINDS - 1);
    add("CVE-2014-2894-smart", test_smart, 0, KINDS - 1);
    add("ncq", test_ncq, AHCI_MMAP, AHCI_MESSAGE);
    add("ncq-errors", test_ncq_errors, AHCI_MMAP, AHCI_MESSAGE);
    add("GL2777-short-prdt", test_short_prdt, AHCI_MMAP, AHCI_MESSAGE);
    add("CVE-2023-5088-reset-in-flight", test_reset_in_flight, 0, KINDS - 1);
    add("error-policy", test_error_policy, AHCI_MMAP, AHCI_MESSAGE);
    g_test_add_func("/ata-disk/reset-while-kept", test_reset_while_kept);
    add("stress", test_stress, 0, KINDS - 1);
    return g_test_run();
}
