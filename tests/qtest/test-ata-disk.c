/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The hard disk's commands, on each controller.
 */
#include <string.h>
#include <unistd.h>

#include "tests/qtest/disk-rig.h"
#include "util/bytes.h"

static uint16_t word(const uint8_t *id, unsigned n)
{
    return load_le16(id + 2 * n);
}

static void test_identify(gconstpointer kind)
{
    bool sata = GPOINTER_TO_INT(kind) < IDE_MMAP;
    uint8_t id[512], sum = 0;
    Disk d;

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    disk_rig_identify(&d, id);
    g_assert_cmphex(word(id, 0), ==, 0x0040);
    g_assert_cmpuint(word(id, 1), ==, DISK_SECTORS / (16 * 63));
    g_assert_cmpuint(word(id, 3), ==, 16);
    g_assert_cmpuint(word(id, 6), ==, 63);
    g_assert_cmpuint(word(id, 5), ==, 512);
    g_assert_cmpmem(id + 20, 8, "ettsidks", 8);
    g_assert_cmpmem(id + 46, 8, "evsroi n", 8);
    g_assert_cmpuint(load_le32(id + 120), ==, DISK_SECTORS);
    g_assert_cmpuint(load_le64(id + 200), ==, DISK_SECTORS);
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
    disk_rig_free(&d);
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

    disk_rig_make(&d, "mem,size=16M", &config, ON_ERROR_REPORT);
    disk_rig_connect(&d, AHCI_MMAP);
    disk_rig_identify(&d, id);
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
    disk_rig_free(&d);
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

    disk_rig_make(&d, "mem,size=1M", &good, ON_ERROR_REPORT);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ata_disk_new(d.disk, &rows[i], &error));
        g_assert_nonnull(error);
    }
    disk_rig_connect(&d, IDE_MMAP);
    disk_rig_free(&d);
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

/* Written and read back, and in the node itself, for each command pair x length x place x controller. */
static void test_read_write(gconstpointer data)
{
    static const uint32_t counts[] = {1, 2, 8, 17, 256, 700, 2048};
    static const uint64_t places[] = {0, 1, 4095, DISK_SECTORS - 2048};
    Kind kind = GPOINTER_TO_INT(data);
    g_autofree uint8_t *check = g_malloc(2048 * 512);
    Disk d;

    disk_rig_new(&d, kind);
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
            disk_rig_ram(&d, out)[i] = (uint8_t)(i * 3 + i / 512 + n);
        }
        memset(disk_rig_ram(&d, in), 0xee, len + 512);
        disk_rig_tf(&tf, pair->write, pair->ext, lba, count);
        g_assert_cmphex(disk_rig_run(&d, &tf, pair->ext, pair->dma ? DMA_OUT : PIO_OUT, out, len, block), ==,
                        DISK_OK);
        g_assert_cmpint(block_pread(d.node, lba * 512, check, len), ==, 0);
        g_assert_cmpint(memcmp(check, disk_rig_ram(&d, out), len), ==, 0);
        disk_rig_tf(&tf, pair->read, pair->ext, lba, count);
        g_assert_cmphex(disk_rig_run(&d, &tf, pair->ext, pair->dma ? DMA_IN : PIO_IN, in, len, block), ==,
                        DISK_OK);
        g_assert_cmpint(memcmp(disk_rig_ram(&d, in), check, len), ==, 0);
        g_assert_cmphex(disk_rig_ram(&d, in)[len], ==, 0xee);
    }
    disk_rig_free(&d);
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
        {ATA_CMD_READ_VERIFY, false, DISK_SECTORS - 1, 1, true},
        {ATA_CMD_READ_VERIFY, false, DISK_SECTORS - 1, 2, false},
        {ATA_CMD_READ_VERIFY, false, DISK_SECTORS, 1, false},
        {ATA_CMD_READ_VERIFY, false, 0x0fffffff, 256, false},
        {ATA_CMD_READ_VERIFY_EXT, true, DISK_SECTORS - 0x4000, 0x4000, true},
        {ATA_CMD_READ_VERIFY_EXT, true, 0, 0x10000, false},
        {ATA_CMD_READ_VERIFY_EXT, true, UINT64_C(0xffffffffffff), 1, false},
        {ATA_CMD_READ_DMA_EXT, true, UINT64_C(0xffffffffffff), 0x10000, false},
        {ATA_CMD_WRITE_DMA, false, DISK_SECTORS, 1, false},
        {ATA_CMD_WRITE_SECTORS, false, DISK_SECTORS - 1, 2, false},
    };
    Disk d;

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        Taskfile tf;

        disk_rig_tf(&tf, rows[i].command, rows[i].ext, rows[i].lba, rows[i].count);
        g_assert_cmphex(disk_rig_run(&d, &tf, rows[i].ext, NODATA, 0, 0, 512), ==,
                        rows[i].ok ? DISK_OK : ATA_ERROR_IDNF << 8 | DISK_OK | ATA_STATUS_ERR);
    }
    disk_rig_free(&d);
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

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
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
        status = disk_rig_run(&d, &tf, false, DMA_IN, IDE_RIG_DATA, 512, 512);
        g_assert_cmphex(status & 1, ==, rows[i].lba < 0);
        if (rows[i].lba >= 0) {
            g_assert_cmpuint(load_le32(disk_rig_ram(&d, IDE_RIG_DATA)), ==, rows[i].lba);
        }
    }
    Taskfile tf = {.command = ATA_CMD_INITIALIZE_PARAMETERS, .count = 10, .device = 4}; /* 5 heads of 10 */
    g_assert_cmphex(disk_rig_run(&d, &tf, false, NODATA, 0, 0, 512), ==, DISK_OK);
    tf = (Taskfile){.command = ATA_CMD_READ_DMA, .count = 1, .device = 2, .lba = {3, 7}};
    g_assert_cmphex(disk_rig_run(&d, &tf, false, DMA_IN, IDE_RIG_DATA, 512, 512), ==, DISK_OK);
    g_assert_cmpuint(load_le32(disk_rig_ram(&d, IDE_RIG_DATA)), ==, (7 * 5 + 2) * 10 + 2);
    tf = (Taskfile){.command = ATA_CMD_INITIALIZE_PARAMETERS, .count = 0, .device = 4};
    g_assert_cmphex(disk_rig_run(&d, &tf, false, NODATA, 0, 0, 512), ==,
                    ATA_ERROR_ABRT << 8 | DISK_OK | ATA_STATUS_ERR);
    disk_rig_free(&d);
}

static void test_large_disk(gconstpointer kind)
{
    AtaDiskConfig config = {0};
    uint64_t sectors = UINT64_C(3) << 31; /* 3 TiB */
    Taskfile tf;
    uint8_t id[512];
    Disk d;

    disk_rig_make(&d, "null-co,size=3T,read-zeroes=on", &config, ON_ERROR_REPORT);
    disk_rig_connect(&d, GPOINTER_TO_INT(kind));
    disk_rig_identify(&d, id);
    g_assert_cmpuint(load_le32(id + 120), ==, 0x0fffffff);
    g_assert_cmpuint(load_le64(id + 200), ==, sectors);
    disk_rig_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors - 16, 16);
    g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 8192, 512), ==, DISK_OK);
    disk_rig_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors - 15, 16);
    g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 8192, 512) & 1, ==, 1);
    g_assert_cmphex(disk_rig_simple(&d, ATA_CMD_READ_NATIVE_MAX_EXT, 0, 0), ==, DISK_OK);
    g_assert_cmpuint(taskfile_lba48(&d.device->tf), ==, sectors - 1);
    g_assert_cmphex(disk_rig_simple(&d, ATA_CMD_READ_NATIVE_MAX, 0, 0), ==, DISK_OK);
    g_assert_cmpuint(taskfile_lba28(&d.device->tf), ==, 0x0ffffffe);
    if (d.ide) { /* the top nibble shows in the device register */
        g_assert_cmphex(ide_in(d.ide, TASKFILE_DEVICE), ==, 0xef);
    }
    disk_rig_free(&d);
}

/* block_resize: a guest that looks again sees the new size, and may go as far as that. */
static void test_resize(gconstpointer kind)
{
    static const uint32_t sizes[] = {2 * DISK_SECTORS, DISK_SECTORS / 2, 1, 0, DISK_SECTORS};
    const AtaDiskConfig config = {0};
    uint8_t id[512];
    Taskfile tf;
    Disk d;

    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("spindle-disk-XXXXXX", &path, NULL);
    g_assert_cmpint(ftruncate(fd, DISK_SIZE), ==, 0);
    close(fd);
    g_autofree char *options = g_strdup_printf("file,filename=%s", path);
    disk_rig_make(&d, options, &config, ON_ERROR_REPORT);
    disk_rig_connect(&d, GPOINTER_TO_INT(kind));
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const uint32_t sectors = sizes[i];
        g_assert_cmpint(block_resize(d.node, sectors * UINT64_C(512), NULL), ==, 0);
        disk_rig_identify(&d, id);
        g_assert_cmpuint(load_le32(id + 120), ==, sectors);
        g_assert_cmpuint(load_le64(id + 200), ==, sectors);
        g_assert_cmphex(disk_rig_simple(&d, ATA_CMD_READ_NATIVE_MAX_EXT, 0, 0), ==, DISK_OK);
        g_assert_cmpuint(taskfile_lba48(&d.device->tf), ==, MAX(sectors, 1) - 1);
        if (sectors) {
            disk_rig_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors - 1, 1);
            g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 512, 512), ==, DISK_OK);
        }
        disk_rig_tf(&tf, ATA_CMD_READ_DMA_EXT, true, sectors, 1);
        g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 512, 512) & 1, ==, 1);
    }
    disk_rig_free(&d);
    g_assert_cmpint(unlink(path), ==, 0);
}

static void test_nondata(gconstpointer kind)
{
    static const struct {
        uint8_t command, features, count;
        uint16_t result;
        int count_after;
    } rows[] = {
        {ATA_CMD_FLUSH_CACHE, 0, 0, DISK_OK, -1},
        {ATA_CMD_FLUSH_CACHE_EXT, 0, 0, DISK_OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, DISK_OK, 0xff},
        {ATA_CMD_STANDBY_IMMEDIATE, 0, 0, DISK_OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, DISK_OK, 0},
        {ATA_CMD_IDLE_IMMEDIATE, 0, 0, DISK_OK, -1},
        {ATA_CMD_CHECK_POWER_MODE, 0, 0, DISK_OK, 0x80},
        {ATA_CMD_SET_MULTIPLE, 0, 8, DISK_OK, -1},
        {ATA_CMD_SET_MULTIPLE, 0, 3, 0x0451, -1},
        {ATA_CMD_SET_MULTIPLE, 0, 32, 0x0451, -1},
        {ATA_CMD_SET_FEATURES, 0x82, 0, DISK_OK, -1},
        {ATA_CMD_SET_FEATURES, 0x02, 0, DISK_OK, -1},
        {ATA_CMD_SET_FEATURES, 0x03, 0x45, DISK_OK, -1},
        {ATA_CMD_SET_FEATURES, 0x03, 0x47, 0x0451, -1},
        {ATA_CMD_SET_FEATURES, 0x5d, 0, 0x0451, -1},
        {ATA_CMD_RECALIBRATE, 0, 0, DISK_OK, -1},
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

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%02x", rows[i].command);
        g_assert_cmphex(disk_rig_simple(&d, rows[i].command, rows[i].features, rows[i].count), ==,
                        rows[i].result);
        if (rows[i].count_after >= 0) {
            g_assert_cmphex(d.device->tf.count & 0xff, ==, rows[i].count_after);
        }
    }
    disk_rig_free(&d);
}

static void test_write_cache(gconstpointer kind)
{
    uint8_t id[512];
    Disk d;

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    g_assert_cmphex(disk_rig_simple(&d, ATA_CMD_SET_FEATURES, ATA_FEATURE_DISABLE_WRITE_CACHE, 0), ==,
                    DISK_OK);
    g_assert_false(hard_disk_write_back(d.disk));
    disk_rig_identify(&d, id);
    g_assert_cmphex(word(id, 85) & 0x20, ==, 0);
    ide_device_reset(d.device, IDE_RESET_SOFT);
    g_assert_false(hard_disk_write_back(d.disk));
    ide_device_reset(d.device, IDE_RESET_HARD);
    g_assert_true(hard_disk_write_back(d.disk));
    disk_rig_free(&d);
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

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    memset(ones, 0xff, sizeof ones);
    ranges = disk_rig_ram(&d, IDE_RIG_DATA);
    memset(ranges, 0, 4096);
    put_range(ranges, 0, 2);
    put_range(ranges + 8, 6, 8);
    g_assert_cmpint(block_pwrite(d.node, 0, ones, sizeof ones, 0), ==, 0);
    g_assert_cmphex(disk_rig_run(&d, &tf, false, DMA_OUT, IDE_RIG_DATA, 512, 512), ==, DISK_OK);
    g_assert_cmpint(block_pwrite(d.node, 0, ones, sizeof ones, 0), ==, 0);
    put_range(ranges + 16, DISK_SECTORS - 1, 2); /* one bad range: nothing is discarded */
    g_assert_cmphex(disk_rig_run(&d, &tf, false, DMA_OUT, IDE_RIG_DATA, 512, 512), ==, 0x0451);
    g_assert_cmpint(block_pread(d.node, 0, back, sizeof back), ==, 0);
    g_assert_cmpmem(back, sizeof back, ones, sizeof ones);
    tf.count = 9;
    g_assert_cmphex(disk_rig_run(&d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512), ==, 0x0451);
    tf.count = 1;
    tf.features = 0;
    g_assert_cmphex(disk_rig_run(&d, &tf, false, NODATA, IDE_RIG_DATA, 0, 512), ==, 0x0451);
    disk_rig_free(&d);
}

static uint16_t smart(Disk *d, uint8_t what, uint8_t count, uint8_t low, uint16_t key, Way way)
{
    Taskfile tf = {.command = ATA_CMD_SMART, .features = what, .count = count, .lba = {low}};

    taskfile_set_byte_count(&tf, key);
    return disk_rig_run(d, &tf, false, way, IDE_RIG_DATA, way == NODATA ? 0 : 512, 512);
}

/* CVE-2014-2894 is the 21-fold EXECUTE OFFLINE IMMEDIATE. */
static void test_smart(gconstpointer kind)
{
    Disk d;

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0xc24f, NODATA), ==, DISK_OK);
    g_assert_cmphex(taskfile_byte_count(&d.device->tf), ==, 0xc24f);
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0x1234, NODATA), ==, 0x0451);
    for (unsigned what = 0xd0; what < 0xd2; what++) {
        uint8_t sum = 0;

        g_assert_cmphex(smart(&d, (uint8_t)what, 1, 0, 0xc24f, PIO_IN), ==, DISK_OK);
        for (unsigned i = 0; i < 512; i++) {
            sum += disk_rig_ram(&d, IDE_RIG_DATA)[i];
        }
        g_assert_cmphex(sum, ==, 0);
    }
    for (unsigned i = 0; i < 21; i++) {
        g_assert_cmphex(smart(&d, 0xd4, 0, 1, 0xc24f, NODATA), ==, DISK_OK);
    }
    for (unsigned log = 0; log < 256; log++) {
        bool known = log == 0 || log == 1 || log == 6;

        if (known) {
            g_assert_cmphex(smart(&d, 0xd5, 1, (uint8_t)log, 0xc24f, PIO_IN), ==, DISK_OK);
        } else {
            g_assert_cmphex(smart(&d, 0xd5, 1, (uint8_t)log, 0xc24f, NODATA), ==, 0x0451);
        }
    }
    g_assert_cmphex(smart(&d, 0xd9, 0, 0, 0xc24f, NODATA), ==, DISK_OK);
    g_assert_cmphex(smart(&d, 0xda, 0, 0, 0xc24f, NODATA), ==, 0x0451);
    g_assert_cmphex(smart(&d, 0xd8, 0, 0, 0xc24f, NODATA), ==, DISK_OK);
    disk_rig_free(&d);
}

static void queue_all(Disk *d, bool write, uint64_t at)
{
    for (unsigned slot = 0; slot < 32; slot++) {
        RigPrd prds[] = {{at + slot * 8192, 4096}, {at + slot * 8192 + 4096, 4096}, {0}};
        Taskfile tf;

        disk_rig_queued_tf(&tf, write, slot * 100, 16, slot);
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

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    for (uint32_t i = 0; i < 32 * 8192; i++) {
        disk_rig_ram(&d, 0x800000)[i] = (uint8_t)(i * 7 + i / 8192);
    }
    queue_all(&d, true, 0x800000);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS), ==, AHCI_PX_IS_SDBS);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 0);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_CI), ==, 0);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, DISK_OK);
    rig_port_write(d.ahci, 0, AHCI_PX_IS, ~0u);
    for (unsigned slot = 0; slot < 32; slot++) {
        g_assert_cmpint(block_pread(d.node, slot * 51200, back, sizeof back), ==, 0);
        g_assert_cmpmem(back, sizeof back, disk_rig_ram(&d, 0x800000 + slot * 8192), sizeof back);
    }
    queue_all(&d, false, 0xa00000);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 0);
    g_assert_cmpint(memcmp(disk_rig_ram(&d, 0xa00000), disk_rig_ram(&d, 0x800000), 32 * 8192), ==, 0);
    g_assert_cmphex(disk_rig_ram(&d, rig_fis(0) + 0x58)[0], ==, 0xa1);
    disk_rig_free(&d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    disk_rig_add("identify", test_identify, 0, KINDS - 1);
    g_test_add_func("/ata-disk/properties", test_properties);
    g_test_add_func("/ata-disk/bad-properties", test_bad_properties);
    disk_rig_add("read-write", test_read_write, 0, KINDS - 1);
    disk_rig_add("ranges", test_ranges, 0, KINDS - 1);
    disk_rig_add("chs", test_chs, 0, KINDS - 1);
    disk_rig_add("large-disk", test_large_disk, 0, KINDS - 1);
    disk_rig_add("resize", test_resize, AHCI_MMAP, IDE_MMAP);
    disk_rig_add("nondata", test_nondata, 0, KINDS - 1);
    disk_rig_add("write-cache", test_write_cache, 0, KINDS - 1);
    disk_rig_add("trim", test_trim, 0, KINDS - 1);
    disk_rig_add("CVE-2014-2894-smart", test_smart, 0, KINDS - 1);
    disk_rig_add("ncq", test_ncq, AHCI_MMAP, AHCI_MESSAGE);
    return g_test_run();
}
