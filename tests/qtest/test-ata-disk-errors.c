/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The hard disk when things go wrong: failing media, short memory lists, resets, random guests.
 */
#include <string.h>

#include "tests/qtest/disk-rig.h"
#include "util/bytes.h"

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
    disk_rig_make(&d, options, &config, ON_ERROR_REPORT);
    disk_rig_connect(&d, GPOINTER_TO_INT(kind));
    disk_rig_queued_tf(&tf, false, 2047, 2, 5); /* out of range: refused before it is queued */
    g_assert_cmphex(disk_rig_run_ahci(&d, &tf, RIG_DATA, 1024, 5), ==,
                    ATA_ERROR_IDNF << 8 | DISK_OK | ATA_STATUS_ERR);
    disk_rig_queued_tf(&tf, false, 1020, 8, 9); /* fails when it is read */
    rig_slot(d.ahci, 0, 9, &tf, NULL, (RigPrd[]){{RIG_DATA, 4096}, {0}});
    rig_port_write(d.ahci, 0, AHCI_PX_SACT, 1u << 9);
    rig_issue(d.ahci, 0, 1u << 9);
    block_settle(10000);
    rig_settle(d.ahci);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS), ==, AHCI_PX_IS_SDBS | AHCI_PX_IS_TFES);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_SACT), ==, 1u << 9);
    g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, ATA_ERROR_UNC << 8 | DISK_OK | ATA_STATUS_ERR);
    rig_recover(d.ahci, 0);
    g_assert_cmphex(disk_rig_run(&d, &log, true, PIO_IN, RIG_DATA, 512, 512), ==, DISK_OK);
    g_assert_cmphex(disk_rig_ram(&d, RIG_DATA)[0], ==, 9);
    g_assert_cmphex(disk_rig_ram(&d, RIG_DATA)[3], ==, ATA_ERROR_UNC);
    g_assert_cmpuint(load_le16(disk_rig_ram(&d, RIG_DATA) + 4), ==, 1020);
    g_assert_cmphex(disk_rig_run(&d, &log, true, PIO_IN, RIG_DATA, 512, 512), ==, DISK_OK);
    g_assert_cmphex(disk_rig_ram(&d, RIG_DATA)[0], ==, 0x80); /* told once */
    disk_rig_queued_tf(&tf, false, 0, 8, 9);
    g_assert_cmphex(disk_rig_run_ahci(&d, &tf, RIG_DATA, 4096, 9), ==, DISK_OK);
    disk_rig_free(&d);
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

    disk_rig_new(&d, GPOINTER_TO_INT(kind));
    for (unsigned n = 0; n < G_N_ELEMENTS(commands) * G_N_ELEMENTS(rooms); n++) {
        uint8_t command = commands[n % G_N_ELEMENTS(commands)], before[4096], after[4096];
        uint32_t room = rooms[n / G_N_ELEMENTS(commands)];
        RigPrd prds[] = {{RIG_DATA, room}, {0}};
        Taskfile tf;

        if (command == ATA_CMD_READ_FPDMA || command == ATA_CMD_WRITE_FPDMA) {
            disk_rig_queued_tf(&tf, command == ATA_CMD_WRITE_FPDMA, 64, 8, 0);
        } else {
            disk_rig_tf(&tf, command, true, 64, 8);
        }
        g_assert_cmpint(block_pread(d.node, 64 * 512, before, sizeof before), ==, 0);
        memset(disk_rig_ram(&d, RIG_DATA), 0xee, 8192);
        rig_slot(d.ahci, 0, 0, &tf, NULL, prds);
        rig_port_write(d.ahci, 0, AHCI_PX_SACT, 1);
        rig_issue(d.ahci, 0, 1);
        rig_settle(d.ahci);
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_IS) & AHCI_PX_IS_TFES, ==, AHCI_PX_IS_TFES);
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, 0x0451);
        g_assert_cmphex(disk_rig_ram(&d, RIG_DATA)[room], ==, 0xee);
        g_assert_cmpint(block_pread(d.node, 64 * 512, after, sizeof after), ==, 0);
        g_assert_cmpmem(before, sizeof before, after, sizeof after);
        rig_recover(d.ahci, 0);
    }
    disk_rig_free(&d);
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

        disk_rig_new(&d, kind);
        g_assert_cmpint(block_pwrite(d.node, 0, marker, 512, 0), ==, 0);
        memset(disk_rig_ram(&d, 0x800000), 0x77, 1 << 20);
        disk_rig_tf(&tf, write ? ATA_CMD_WRITE_DMA_EXT : ATA_CMD_READ_DMA_EXT, true, 2048, 2048);
        if (d.ahci) {
            rig_slot(d.ahci, 0, 0, &tf, NULL, (RigPrd[]){{0x800000, 1 << 20}, {0}});
            rig_issue(d.ahci, 0, 1);
        } else {
            IdePrd prds[17] = {{0}};

            for (unsigned i = 0; i < 16; i++) {
                prds[i] = (IdePrd){0x800000 + i * 65536, 65536};
            }
            bm_table(d.ide, prds);
            disk_rig_registers(&d, &tf, true);
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
        disk_rig_tf(&tf, ATA_CMD_READ_DMA_EXT, true, 0, 1);
        g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_IN, IDE_RIG_DATA, 512, 512), ==, DISK_OK);
        g_assert_cmpmem(disk_rig_ram(&d, IDE_RIG_DATA), 512, marker, 512);
        g_assert_cmpint(block_pread(d.node, 2048 * 512, sector, 512), ==, 0);
        g_assert_true(sector[0] == 0 || (write && sector[0] == 0x77));
        disk_rig_free(&d);
    }
}

/* werror/rerror: report, ignore, stop and retry. */
static void test_error_policy(gconstpointer data)
{
    static const struct {
        OnError policy, action;
        const char *error;
        uint16_t result; /* of the write; 0: kept until resumed */
    } rows[] = {
        {ON_ERROR_REPORT, ON_ERROR_REPORT, "EIO", 0x0451}, {ON_ERROR_IGNORE, ON_ERROR_IGNORE, "EIO", DISK_OK},
        {ON_ERROR_STOP, ON_ERROR_STOP, "EIO", 0},          {ON_ERROR_ENOSPC, ON_ERROR_REPORT, "EIO", 0x0451},
        {ON_ERROR_ENOSPC, ON_ERROR_STOP, "ENOSPC", 0},
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
        disk_rig_make(&d, options, &config, rows[i].policy);
        disk_rig_connect(&d, kind);
        memset(disk_rig_ram(&d, 0x800000), 0x77, 4096);
        disk_rig_tf(&tf, ATA_CMD_WRITE_DMA_EXT, true, 8, 8);
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
            g_assert_cmpmem(back, sizeof back, disk_rig_ram(&d, 0x800000), 4096);
        }
        g_assert_cmphex(rig_port_read(d.ahci, 0, AHCI_PX_TFD), ==, rows[i].result ? rows[i].result : DISK_OK);
        disk_rig_free(&d);
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
    disk_rig_make(&d, options, &config, ON_ERROR_STOP);
    disk_rig_connect(&d, AHCI_MMAP);
    disk_rig_tf(&tf, ATA_CMD_WRITE_DMA_EXT, true, 8, 8);
    g_assert_cmphex(disk_rig_run(&d, &tf, true, DMA_OUT, IDE_RIG_DATA, 4096, 512), ==, DISK_OK);
    rig_ata(d.ahci, 0, 0, ATA_CMD_FLUSH_CACHE, 0, 0, NULL);
    rig_settle(d.ahci);
    g_assert_cmpuint(hard_disk_kept(d.disk), ==, 1);
    d.ahci->pci->ops->reset(d.ahci->pci);
    g_assert_cmpuint(hard_disk_kept(d.disk), ==, 0);
    hard_disk_resume(d.disk);
    disk_rig_free(&d);
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

    disk_rig_new(&d, kind);
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
            taskfile_set_lba48(&tf, r & 0x1000 ? value % DISK_SECTORS : (uint64_t)value << 16);
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
    g_assert_cmphex(disk_rig_simple(&d, ATA_CMD_FLUSH_CACHE, 0, 0), ==, DISK_OK);
    disk_rig_free(&d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ata-disk/read-only", test_read_only);
    disk_rig_add("ncq-errors", test_ncq_errors, AHCI_MMAP, AHCI_MESSAGE);
    disk_rig_add("GL2777-short-prdt", test_short_prdt, AHCI_MMAP, AHCI_MESSAGE);
    disk_rig_add("CVE-2023-5088-reset-in-flight", test_reset_in_flight, 0, KINDS - 1);
    disk_rig_add("error-policy", test_error_policy, AHCI_MMAP, AHCI_MESSAGE);
    g_test_add_func("/ata-disk/reset-while-kept", test_reset_while_kept);
    disk_rig_add("stress", test_stress, 0, KINDS - 1);
    return g_test_run();
}
