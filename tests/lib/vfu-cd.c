/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/lib/vfu-cd.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "block/block.h"
#include "hw/block/mmc.h"
#include "hw/ide/ata-disk.h"
#include "hw/ide/atapi.h"
#include "util/bytes.h"

#define LIST     0x1000
#define FIS      0x2000
#define TABLES   0x100000
#define TABLE    0x10000
#define PIECE    65536
#define WAIT_US  (10 * G_USEC_PER_SEC)
#define ABAR     5
#define PX_START 0x00000011 /* ST, FRE */

uint8_t vfu_cd_byte(uint64_t at)
{
    return at * 7 + at / 2048 * 13 + at / 1048573;
}

static void disc_make(VfuCd *cd, uint64_t bytes)
{
    g_autofree uint8_t *data = g_malloc(PIECE);
    cd->disc = g_build_filename(cd->folder, "disc.iso", NULL);
    int fd = g_open(cd->disc, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    g_assert_cmpint(fd, >=, 0);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t n = MIN(PIECE, bytes - at);
        for (uint64_t i = 0; i < n; i++) {
            data[i] = vfu_cd_byte(at + i);
        }
        g_assert_cmpint(write(fd, data, n), ==, n);
        at += n;
    }
    close(fd);
}

static void disc_insert(VfuCd *cd)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) options = block_options_from_filename(cd->disc, &error);
    g_assert_no_error(error);
    BlockNode *node = block_open(options, &error);
    g_assert_no_error(error);
    mmc_drive_insert(cd->drive, node, false, &error);
    g_assert_no_error(error);
    block_unref(node);
}

static void client_start(VfuCd *cd, VfuClientRam kind)
{
    static const uint8_t test_unit_ready[16];
    VfuClient *client = cd->client = vfu_client_start(cd->path);

    vfu_client_add_ram(client, 0, VFU_CD_RAM, kind);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x10 + 4 * ABAR, 4, VFU_CD_ABAR);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x84, 4, VFU_CD_MSI);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x88, 4, 0);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x8c, 2, 0x4041);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x82, 2, 0x81);
    vfu_client_write(client, VFU_REGION_CONFIG, 0x04, 2, 0x0406);
    vfu_client_enable_irq(client, VFU_IRQ_MSI);
    vfu_cd_write(cd, VFU_CD_GHC, 0x80000002);
    vfu_cd_port_up(cd);
    for (unsigned i = 0; i < 3 && !cd->disk; i++) {
        vfu_cd_command(cd, test_unit_ready, 0);
    }
}

void vfu_cd_port_up(VfuCd *cd)
{
    vfu_cd_write(cd, VFU_CD_PX_CLB, LIST);
    vfu_cd_write(cd, VFU_CD_PX_CLB + 4, 0);
    vfu_cd_write(cd, VFU_CD_PX_FB, FIS);
    vfu_cd_write(cd, VFU_CD_PX_FB + 4, 0);
    vfu_cd_write(cd, VFU_CD_PX_SERR, 0xffffffff);
    vfu_cd_write(cd, VFU_CD_PX_IS, 0xffffffff);
    vfu_cd_write(cd, VFU_CD_PX_IE, 0xfdc000ff);
    vfu_cd_write(cd, VFU_CD_PX_CMD, vfu_cd_read(cd, VFU_CD_PX_CMD) | PX_START);
}

static VfuCd *cd_new(void)
{
    g_autoptr(GError) error = NULL;
    VfuCd *cd = g_new0(VfuCd, 1);

    cd->folder = g_dir_make_tmp("vfu-cd-XXXXXX", &error);
    g_assert_no_error(error);
    cd->path = g_build_filename(cd->folder, "sock", NULL);
    return cd;
}

/* The controller with cd->device at its first port, its server and a client. */
static void connect_all(VfuCd *cd, VfuDmaMode mode, VfuClientRam kind)
{
    g_autoptr(GError) error = NULL;

    cd->ahci = ahci_new(6);
    g_assert_true(ahci_attach(cd->ahci, 0, cd->device));
    cd->server = vfu_server_new(ahci_pci(cd->ahci), cd->path, mode, &error);
    g_assert_no_error(error);
    client_start(cd, kind);
}

VfuCd *vfu_cd_new(VfuDmaMode mode, VfuClientRam kind, uint64_t bytes)
{
    VfuCd *cd = cd_new();
    MmcDriveConfig config = {.id = "cd0", .serial = "CD0001"};
    IdeIdentity identity = {0};

    cd->drive = mmc_drive_new(&config);
    if (bytes) {
        disc_make(cd, bytes);
        disc_insert(cd);
    }
    cd->device = atapi_new(cd->drive, &identity);
    connect_all(cd, mode, kind);
    return cd;
}

VfuCd *vfu_cd_new_disk(VfuDmaMode mode, VfuClientRam kind, const char *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Options) parsed = options_parse(options, "driver", &error);
    VfuCd *cd = cd_new();
    HardDiskConfig config = {.id = "hd0", .write_back = true};
    AtaDiskConfig ata = {0};

    g_assert_no_error(error);
    config.node = cd->node = block_open(parsed, &error);
    g_assert_no_error(error);
    cd->disk = hard_disk_new(&config, &error);
    g_assert_no_error(error);
    cd->device = ata_disk_new(cd->disk, &ata, &error);
    g_assert_no_error(error);
    connect_all(cd, mode, kind);
    return cd;
}

VfuCd *vfu_cd_attach(const char *path)
{
    VfuCd *cd = g_new0(VfuCd, 1);

    cd->path = g_strdup(path);
    client_start(cd, VFU_CLIENT_RAM_SEALED);
    return cd;
}

void vfu_cd_reconnect(VfuCd *cd, VfuClientRam kind)
{
    vfu_client_free(cd->client);
    client_start(cd, kind);
}

void vfu_cd_free(VfuCd *cd)
{
    if (!cd) {
        return;
    }
    vfu_client_free(cd->client);
    if (!cd->server) { /* another process's */
        g_free(cd->path);
        g_free(cd);
        return;
    }
    vfu_server_free(cd->server);
    ahci_free(cd->ahci);
    ide_device_free(cd->device);
    while (g_main_context_iteration(NULL, FALSE)) {
    }
    mmc_drive_free(cd->drive);
    hard_disk_free(cd->disk);
    block_unref(cd->node);
    if (cd->disc) {
        g_unlink(cd->disc);
    }
    g_assert_cmpint(g_rmdir(cd->folder), ==, 0);
    g_free(cd->disc);
    g_free(cd->path);
    g_free(cd->folder);
    g_free(cd);
}

void vfu_cd_check(VfuCd *cd, uint64_t addr, uint64_t from, uint64_t bytes)
{
    const uint8_t *p = vfu_client_ram(cd->client, addr);

    for (uint64_t i = 0; i < bytes; i++) {
        if (p[i] != vfu_cd_byte(from + i)) {
            g_error("byte %" PRIu64 " of the disc: %02x, not %02x", from + i, p[i], vfu_cd_byte(from + i));
        }
    }
}

uint32_t vfu_cd_read(VfuCd *cd, uint32_t offset)
{
    return vfu_client_read(cd->client, ABAR, offset, 4);
}

void vfu_cd_write(VfuCd *cd, uint32_t offset, uint32_t value)
{
    vfu_client_post(cd->client, ABAR, offset, 4, value);
}

void vfu_cd_issue(VfuCd *cd, unsigned slot, const uint8_t *fis, const uint8_t *packet, const VfuCdPrd *prds)
{
    uint64_t table_addr = TABLES + slot * TABLE;
    uint8_t *header = vfu_client_ram(cd->client, LIST + 32 * slot),
            *table = vfu_client_ram(cd->client, table_addr);
    uint32_t n = 0;

    memset(table, 0, 0x80);
    memcpy(table, fis, 20);
    if (packet) {
        memcpy(table + 0x40, packet, 16);
    }
    for (uint8_t *prd = table + 0x80; prds && prds[n].bytes; n++, prd += 16) {
        store_le64(prd, prds[n].addr);
        store_le32(prd + 8, 0);
        store_le32(prd + 12, prds[n].bytes - 1);
    }
    store_le32(header, n << 16 | (packet ? 1u << 5 : 0) | 5);
    store_le32(header + 4, 0);
    store_le64(header + 8, table_addr);
    vfu_cd_write(cd, VFU_CD_PX_CI, 1u << slot);
}

void vfu_cd_packet(VfuCd *cd, unsigned slot, const uint8_t *packet, uint8_t features, uint16_t limit,
                   const VfuCdPrd *prds)
{
    uint8_t fis[20] = {0x27, 0x80, 0xa0, features, 0, limit & 0xff, limit >> 8, 0xa0};
    vfu_cd_issue(cd, slot, fis, packet, prds);
}

uint32_t vfu_cd_wait(VfuCd *cd, unsigned slot)
{
    gint64 end = g_get_monotonic_time() + WAIT_US;
    uint32_t is;

    while (vfu_cd_read(cd, VFU_CD_PX_CI) & 1u << slot) {
        if (vfu_cd_read(cd, VFU_CD_PX_IS) & 0x7d800010) {
            break; /* the port stands still */
        }
        if (g_get_monotonic_time() > end) {
            g_error("the command does not end: PxCI %x, PxIS %x, PxTFD %x, PxCMD %x",
                    vfu_cd_read(cd, VFU_CD_PX_CI), vfu_cd_read(cd, VFU_CD_PX_IS),
                    vfu_cd_read(cd, VFU_CD_PX_TFD), vfu_cd_read(cd, VFU_CD_PX_CMD));
        }
    }
    is = vfu_cd_read(cd, VFU_CD_PX_IS);
    vfu_cd_write(cd, VFU_CD_PX_IS, is);
    vfu_cd_write(cd, VFU_CD_IS, 1);
    return vfu_cd_read(cd, VFU_CD_PX_TFD);
}

void vfu_cd_recover(VfuCd *cd)
{
    vfu_cd_write(cd, VFU_CD_PX_CMD, vfu_cd_read(cd, VFU_CD_PX_CMD) & ~1u);
    while (vfu_cd_read(cd, VFU_CD_PX_CMD) & 1u << 15) {
    }
    vfu_cd_port_up(cd);
}

uint32_t vfu_cd_command(VfuCd *cd, const uint8_t *packet, uint32_t bytes)
{
    VfuCdPrd prds[17] = {{0}};
    uint64_t addr = VFU_CD_DATA;

    for (unsigned i = 0; bytes; i++) {
        uint32_t part = MIN(bytes, 0x400000);
        prds[i] = (VfuCdPrd){addr, part};
        addr += part;
        bytes -= part;
    }
    vfu_cd_packet(cd, 0, packet, 1, 0, prds);
    uint32_t tfd = vfu_cd_wait(cd, 0);
    if (tfd & 1) {
        vfu_cd_recover(cd);
    }
    return tfd;
}

uint32_t vfu_cd_read10(VfuCd *cd, uint32_t lba, uint16_t count)
{
    uint8_t packet[16] = {0x28};

    store_be32(packet + 2, lba);
    store_be16(packet + 7, count);
    return vfu_cd_command(cd, packet, (uint32_t)count * 2048);
}

uint32_t vfu_cd_sense(VfuCd *cd)
{
    static const uint8_t packet[16] = {0x03, 0, 0, 0, 18};

    g_assert_cmphex(vfu_cd_command(cd, packet, 18), ==, 0x50);
    const uint8_t *sense = vfu_client_ram(cd->client, VFU_CD_DATA);
    return (uint32_t)(sense[2] & 0xf) << 16 | (uint32_t)sense[12] << 8 | sense[13];
}

uint32_t vfu_cd_prdbc(VfuCd *cd, unsigned slot)
{
    return load_le32(vfu_client_ram(cd->client, LIST + 32 * slot + 4));
}
