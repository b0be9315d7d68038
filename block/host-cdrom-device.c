/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/host-cdrom-device.h"
#include "block/block-int.h"
#include "block/host-cdrom-scsi.h"
#include "util/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/cdrom.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef BLKGETDISKSEQ /* Linux 5.15 */
#define BLKGETDISKSEQ _IOR(0x12, 128, __u64)
#endif

#define SECTOR 2048

/* The name that uevents have: of the device, not of the link that it was opened by. */
static void find_names(CdromDevice *device, const char *filename)
{
    struct stat st;
    g_autofree char *text = NULL;
    g_autofree char *base = g_path_get_basename(filename);
    g_strlcpy(device->devname, base, sizeof device->devname);
    if (fstat(device->file.fd, &st) < 0 || !S_ISBLK(st.st_mode)) {
        return;
    }
    g_snprintf(device->sysfs, sizeof device->sysfs, "/sys/dev/block/%u:%u", major(st.st_rdev),
               minor(st.st_rdev));
    g_autofree char *path = g_build_filename(device->sysfs, "uevent", NULL);
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        const char *name = strstr(text, "DEVNAME=");
        if (name && (name == text || name[-1] == '\n')) {
            name += strlen("DEVNAME=");
            g_autofree char *found = g_strndup(name, strcspn(name, "\n"));
            g_strlcpy(device->devname, found, sizeof device->devname);
        }
    }
}

/* A descriptor with O_DIRECT beside the one through the page cache. */
static void add_direct(CdromDevice *device, const char *filename, uint32_t most)
{
    auto_fd fd = block_open_fd(filename, O_RDONLY | O_NONBLOCK | O_DIRECT);
    const uint32_t align = fd >= 0 ? fd_direct_align(fd) : 0;
    if (align && (!most || align <= most)) {
        device->file.tail_fd = device->file.fd;
        device->file.fd = steal_fd(&fd);
        device->file.align = align;
    }
}

CdromDevice *cdrom_device_open(const char *filename, bool direct, uint32_t align, int *ret_error)
{
    struct stat st;
    int fd = block_open_fd(filename, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode)) {
        *ret_error = fd < 0 ? fd : -ENOTBLK;
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    CdromDevice *device = g_new0(CdromDevice, 1);
    device->refs = 1;
    fd_file_init(&device->file, fd);
    device->file.is_device = true;
    device->is_cdrom = ioctl(fd, CDROM_GET_CAPABILITY, 0) >= 0;
    device->is_mmc = device->is_cdrom && cdrom_scsi_is_mmc(fd);
    device->max_bytes = cdrom_scsi_max_bytes(fd);
    device->raw_base = UINT64_MAX;
    device->write_fd = -1;
    find_names(device, filename);
    if (direct) {
        add_direct(device, filename, align);
    }
    return device;
}

CdromDevice *cdrom_device_ref(CdromDevice *device)
{
    g_atomic_int_inc(&device->refs);
    return device;
}

void cdrom_device_unref(CdromDevice *device)
{
    if (device && g_atomic_int_dec_and_test(&device->refs)) {
        fd_file_close(&device->file);
        if (device->write_fd >= 0) {
            close(device->write_fd);
        }
        g_free(device);
    }
}

typedef struct Closer {
    BlockJob job;
    CdromDevice *device;
} Closer;

static void closer_run(BlockJob *job)
{
    cdrom_device_unref(((Closer *)job)->device);
}

static void closer_done(BlockJob *job)
{
    g_free(job);
}

void cdrom_device_unref_later(CdromDevice *device)
{
    for (gint refs = device ? g_atomic_int_get(&device->refs) : 0; refs > 1;
         refs = g_atomic_int_get(&device->refs)) {
        if (g_atomic_int_compare_and_exchange(&device->refs, refs, refs - 1)) {
            return;
        }
    }
    if (device) {
        Closer *closer = g_new0(Closer, 1);
        *closer = (Closer){{.run = closer_run, .done = closer_done}, device};
        block_job_start(&closer->job);
    }
}

/* By the open descriptor: its name may mean another device by now. */
int cdrom_device_write_fd(CdromDevice *device)
{
    if (device->write_fd < 0) {
        char path[64];
        g_snprintf(path, sizeof path, "/proc/self/fd/%d", device->file.fd);
        const int fd = block_open_fd(path, O_RDWR | O_NONBLOCK);
        if (fd < 0) {
            return fd;
        }
        device->write_fd = fd;
    }
    return device->write_fd;
}

bool cdrom_device_probe(const char *filename)
{
    struct stat st;
    if (stat(filename, &st) < 0 || !S_ISBLK(st.st_mode)) {
        return false;
    }
    auto_fd fd = block_open_fd(filename, O_RDONLY | O_NONBLOCK);
    return fd >= 0 && ioctl(fd, CDROM_GET_CAPABILITY, 0) >= 0;
}

bool cdrom_device_exists(void)
{
    g_autoptr(GDir) dir = g_dir_open("/sys/block", 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_prefix(name, "sr")) {
            return true;
        }
    }
    return false;
}

CdromStatus cdrom_device_status(const CdromDevice *device)
{
    uint64_t size = 0;
    if (device->is_cdrom) {
        switch (ioctl(device->file.fd, CDROM_DRIVE_STATUS, CDSL_CURRENT)) {
        case CDS_NO_DISC:
            return CDROM_EMPTY;
        case CDS_TRAY_OPEN:
            return CDROM_OPEN;
        case CDS_DRIVE_NOT_READY:
            return CDROM_SPINNING;
        case CDS_DISC_OK:
            return CDROM_LOADED;
        default: /* it does not know: the size tells */
            break;
        }
    }
    if (ioctl(device->file.fd, BLKGETSIZE64, &size) < 0) {
        return errno == ENODEV || errno == ENXIO ? CDROM_GONE : CDROM_EMPTY;
    }
    return size ? CDROM_LOADED : CDROM_EMPTY;
}

void cdrom_device_ask(CdromDevice *device, CdromState *ret, BlockToc **ret_toc)
{
    const int fd = device->file.fd;
    *ret_toc = NULL;
    *ret = (CdromState){.status = cdrom_device_status(device), .has_tray = device->is_cdrom};
    if (ret->status == CDROM_LOADED) {
        if (ioctl(fd, BLKGETSIZE64, &device->data_bytes) < 0) {
            device->data_bytes = 0;
        }
        ret->size = device->data_bytes;
        *ret_toc = cdrom_scsi_read_toc(device, &ret->size);
    }
    /* Behind the others: what they found out counts. */
    if (ioctl(fd, BLKGETDISKSEQ, &ret->sequence) < 0) {
        ret->sequence = 0;
        ret->changed = device->is_cdrom && ioctl(fd, CDROM_MEDIA_CHANGED, CDSL_CURRENT) == 1;
    }
}

int cdrom_device_move_tray(const CdromDevice *device, bool open)
{
    int ret = ioctl(device->file.fd, open ? CDROMEJECT : CDROMCLOSETRAY, 0) < 0 ? -errno : 0;
    /* EBUSY: the kernel does not want to, for somebody else has it open. The guest is to have its way: START
     * STOP UNIT with LoEj (MMC-6 6.42). */
    if (ret == -EBUSY && device->is_mmc) {
        const uint8_t cdb[6] = {0x1b, 0, 0, 0, open ? 0x02 : 0x03};
        ret = cdrom_scsi_command(device->file.fd, cdb, sizeof cdb, NULL, 0, NULL);
    }
    return ret;
}

/* By PREVENT ALLOW MEDIUM REMOVAL (MMC-6 6.16) and not by CDROM_LOCKDOOR, which tells the kernel to keep the
 * door locked when everybody has closed the device. */
int cdrom_device_lock(const CdromDevice *device, bool locked)
{
    if (device->is_mmc) {
        const uint8_t cdb[6] = {0x1e, 0, 0, 0, locked};
        int ret = cdrom_scsi_command(device->file.fd, cdb, sizeof cdb, NULL, 0, NULL);
        if (ret != -EPERM && ret != -EACCES && ret != -ENOTTY) {
            return ret;
        }
    }
    return device->is_cdrom && ioctl(device->file.fd, CDROM_LOCKDOOR, locked) < 0 ? -errno : 0;
}
