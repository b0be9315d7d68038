/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The disc in a drive of the host, by MMC commands: its table of contents, and sectors as they are. Workers.
 */
#include "block/host-cdrom-scsi.h"
#include "block/host-cdrom-toc.h"
#include "util/bytes.h"
#include "util/iov.h"
#include <errno.h>
#include <string.h>

#define RAW      2352
#define SECTOR   2048
#define TOC_ROOM 4096

enum { CD = 0x08, DVD = 0x10, BD = 0x40, HD_DVD = 0x50 }; /* profiles */

/* A command with a reply of up to TOC_ROOM bytes; how many came, 0: none. */
static size_t ask(const CdromDevice *device, const uint8_t *cdb, uint8_t cdb_bytes, uint8_t *reply,
                  size_t room)
{
    size_t received;
    return cdrom_scsi_command(device->file.fd, cdb, cdb_bytes, reply, room, &received) == 0 ? received : 0;
}

/* The kind of the medium, as the profile of its read-only sort (MMC-6 5.3.1). */
static uint16_t ask_profile(const CdromDevice *device)
{
    const uint8_t cdb[10] = {0x46, 0x02, 0, 0, 0, 0, 0, 0, 8}; /* GET CONFIGURATION, only the header */
    uint8_t reply[8];
    if (ask(device, cdb, sizeof cdb, reply, sizeof reply) < sizeof reply) {
        return CD; /* older than DVDs, perhaps */
    }
    const uint16_t profile = load_be16(&reply[6]);
    return profile >= BD && profile < HD_DVD ? BD : profile >= DVD ? DVD : CD;
}

/* A DVD or BD is one track, whatever its size, which is all that a node without a table tells. */
static BlockToc *make_plain_toc(const CdromDevice *device, uint16_t profile)
{
    const uint64_t sectors = device->data_bytes / SECTOR;
    if (sectors == 0 || sectors > UINT32_MAX) {
        return NULL;
    }
    BlockToc *toc = g_new0(BlockToc, 1);
    toc->profile = profile;
    toc->tracks = 1;
    toc->track[0] = (BlockTrack){.session = 1,
                                 .control = BLOCK_TRACK_DATA,
                                 .mode = BLOCK_TRACK_MODE1,
                                 .sectors = (uint32_t)sectors,
                                 .stored = SECTOR,
                                 .stride = SECTOR};
    return toc;
}

static size_t read_toc(const CdromDevice *device, uint8_t format, uint8_t *reply, uint16_t room)
{
    uint8_t cdb[10] = {0x43, 0x02, format, 0, 0, 0, format == 2};
    store_be16(&cdb[7], room);
    return ask(device, cdb, sizeof cdb, reply, room);
}

static size_t read_sub_channel(const CdromDevice *device, uint8_t format, uint8_t track, uint8_t *reply)
{
    const uint8_t cdb[10] = {0x42, 0x02, 0x40, format, 0, 0, track, 0, 24};
    return ask(device, cdb, sizeof cdb, reply, 24);
}

/* READ TRACK INFORMATION (MMC-6 6.27): the data mode of a data track. */
static void ask_mode(const CdromDevice *device, BlockTrack *track, unsigned number)
{
    const uint8_t cdb[10] = {0x52, 0x01, 0, 0, 0, (uint8_t)number, 0, 0, 8};
    uint8_t reply[8];
    if (track->mode != BLOCK_TRACK_AUDIO && ask(device, cdb, sizeof cdb, reply, sizeof reply) >= 7) {
        const unsigned mode = reply[6] & 0x0f;
        track->mode = mode == 1 ? BLOCK_TRACK_MODE1 : mode == 2 ? BLOCK_TRACK_MODE2 : track->mode;
    }
}

static void ask_texts(const CdromDevice *device, BlockToc *toc, uint8_t *reply)
{
    cdrom_toc_set_mcn(toc, reply, read_sub_channel(device, 2, 0, reply));
    for (unsigned i = 0; i < toc->tracks; i++) {
        if (toc->track[i].mode == BLOCK_TRACK_AUDIO) {
            cdrom_toc_set_isrc(&toc->track[i], reply, read_sub_channel(device, 3, (uint8_t)(i + 1), reply));
        }
    }
    cdrom_toc_set_cd_text(toc, reply, read_toc(device, 5, reply, TOC_ROOM));
}

BlockToc *cdrom_scsi_read_toc(CdromDevice *device, uint64_t *size)
{
    uint8_t reply[TOC_ROOM];
    uint32_t end = 0;
    if (!device->is_mmc) {
        return NULL;
    }
    const uint16_t profile = ask_profile(device);
    if (profile != CD) {
        return make_plain_toc(device, profile);
    }
    g_autoptr(BlockToc) toc = cdrom_toc_parse(reply, read_toc(device, 2, reply, TOC_ROOM), &end);
    if (!toc) {
        return NULL;
    }
    for (unsigned i = 0; i < toc->tracks; i++) {
        ask_mode(device, &toc->track[i], i + 1);
    }
    if (cdrom_toc_is_plain(toc)) {
        return NULL;
    }
    ask_texts(device, toc, reply);
    device->raw_base = (MAX(device->data_bytes, (uint64_t)end * SECTOR) + SECTOR - 1) / SECTOR * SECTOR;
    cdrom_toc_place(toc, device->raw_base);
    *size = device->raw_base + (uint64_t)end * RAW;
    return g_steal_pointer(&toc);
}

/* READ CD (MMC-6 6.19): all of each sector. */
static int read_sectors(const CdromDevice *device, uint32_t lba, uint32_t sectors, uint8_t *to)
{
    uint8_t cdb[12] = {0xbe, 0, [9] = 0xf8};
    size_t received;
    store_be32(&cdb[2], lba);
    store_be24(&cdb[6], sectors);
    int ret = cdrom_scsi_command(device->file.fd, cdb, sizeof cdb, to, (size_t)sectors * RAW, &received);
    return ret == 0 && received < (size_t)sectors * RAW ? -EIO : ret;
}

int cdrom_scsi_preadv_raw(const CdromDevice *device, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                          int niov)
{
    const uint32_t most = MAX(device->max_bytes / RAW, 1);
    g_autofree uint8_t *buf = g_try_malloc((size_t)most * RAW);
    int ret = buf ? 0 : -ENOMEM;
    for (uint64_t done = 0; done < bytes && ret == 0;) {
        const uint64_t at = offset - device->raw_base + done, skip = at % RAW;
        const uint64_t left = (skip + bytes - done + RAW - 1) / RAW;
        const uint32_t sectors = (uint32_t)MIN(left, most);
        const size_t part = MIN(sectors * UINT64_C(2352) - skip, bytes - done);
        ret = read_sectors(device, (uint32_t)(at / RAW), sectors, buf);
        if (ret == 0) {
            iov_from_buf(iov, niov, done, buf + skip, part);
        }
        done += part;
    }
    return ret;
}
