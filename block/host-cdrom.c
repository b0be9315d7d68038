/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `driver=host_cdrom`: the host's own CD/DVD drive, read-only, with or without a disc. Reads are one system
 * call each on a descriptor that the watch keeps fresh; nothing is asked of the drive on their way.
 *
 * Options beside QEMU's: `tray` (on: the host's tray and lock follow the guest's; off: they are left alone)
 * and `check-interval` (seconds between looks at the medium where the kernel cannot tell of changes).
 */
#include "block/block-int.h"
#include "block/fd-open.h"
#include "block/host-cdrom-scsi.h"
#include "block/host-cdrom-watch.h"
#include "util/error.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CHECK_SECONDS     3
#define CHECK_SECONDS_MAX 3600

typedef struct HostCdrom {
    CdromWatch *watch;
} HostCdrom;

static CdromWatch *node_watch(const BlockNode *node)
{
    return ((const HostCdrom *)node->state)->watch;
}

static bool parse_options(BlockNode *node, Options *options, CdromWatchConfig *config, GError **error)
{
    uint64_t check_s;
    static const char *const aio_names[] = {"threads", "native", "io_uring", NULL};
    static const char *const locking_names[] = {"off", "on", "auto", NULL};
    int ignored; /* how QEMU waits for a file, and locks it: no matter here */
    if (!options_get_bool(options, "tray", true, &config->moves_tray, error) ||
        !options_get_uint(options, "check-interval", 1, CHECK_SECONDS_MAX, CHECK_SECONDS, &check_s, error) ||
        !options_get_enum(options, "aio", aio_names, 0, &ignored, error) ||
        !options_get_enum(options, "locking", locking_names, 0, &ignored, error)) {
        return false;
    }
    config->check_s = (unsigned)check_s;
    config->direct = block_node_cache_direct(node);
    return true;
}

static bool host_cdrom_open(BlockNode *node, Options *options, GError **error)
{
    HostCdrom *s = node->state;
    CdromWatchConfig config = {0};
    int ret;
    if (!fd_open_filename(node, options, error) || !parse_options(node, options, &config, error)) {
        return false;
    }
    config.device = cdrom_device_open(node->filename, config.direct, 0, &ret);
    if (!config.device && ret == -ENOTBLK) {
        return error_set(error, "'host_cdrom' driver requires '%s' to be a CD-ROM drive or a block device",
                         node->filename);
    }
    if (!config.device) {
        return error_set_errno(error, ret, "Could not open '%s'", node->filename);
    }
    cdrom_device_ask(config.device, &config.state, &node->toc);
    node->info.size = config.state.size;
    node->info.align = config.device->file.align;
    node->info.slow = node->info.removable = node->info.read_only = true;
    block_node_set_medium(node, config.state.status == CDROM_LOADED);
    s->watch = cdrom_watch_new(node, &config);
    return true;
}

static void host_cdrom_close(BlockNode *node)
{
    cdrom_watch_stop(node_watch(node));
}

/* What a failed read means may be asked: nobody waits for speed any more. */
static int read_failed(BlockNode *node, const CdromDevice *device, int ret)
{
    cdrom_watch_doubt(node_watch(node));
    switch (cdrom_device_status(device)) {
    case CDROM_GONE:
        return -ENODEV;
    case CDROM_EMPTY:
    case CDROM_OPEN:
        return -ENOMEDIUM;
    default:
        return ret;
    }
}

static int host_cdrom_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                             int niov)
{
    CdromDevice *device = cdrom_watch_device(node_watch(node));
    if (!device) {
        return -ENODEV;
    }
    const uint64_t raw = device->raw_base;
    int ret = offset >= raw          ? cdrom_scsi_preadv_raw(device, offset, bytes, iov, niov)
              : offset + bytes > raw ? -EINVAL /* no track lies across */
                                     : fd_file_preadv(&device->file, offset, bytes, iov, niov);
    if (ret < 0) {
        ret = read_failed(node, device, ret);
    }
    cdrom_device_unref(device);
    return ret;
}

static int host_cdrom_read_now(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                               int niov)
{
    CdromDevice *device = cdrom_watch_device(node_watch(node));
    const bool raw = device && offset + bytes > device->raw_base;
    const int ret = device && !raw ? fd_file_read_now(&device->file, offset, bytes, iov, niov) : -EAGAIN;
    cdrom_device_unref(device);
    return ret;
}

static BlockTray host_cdrom_tray(const BlockNode *node)
{
    return cdrom_watch_tray(node_watch(node));
}

static void host_cdrom_move_tray(BlockNode *node, bool open)
{
    cdrom_watch_move_tray(node_watch(node), open);
}

static void host_cdrom_lock_tray(BlockNode *node, bool locked)
{
    cdrom_watch_lock(node_watch(node), locked);
}

static void host_cdrom_check_tray(BlockNode *node)
{
    cdrom_watch_check(node_watch(node));
}

static const BlockTrayOps host_cdrom_tray_ops = {
    .state = host_cdrom_tray,
    .move = host_cdrom_move_tray,
    .lock = host_cdrom_lock_tray,
    .check = host_cdrom_check_tray,
};

static uint32_t host_cdrom_packet_max(const BlockNode *node)
{
    return cdrom_watch_packet_max(node_watch(node));
}

static void host_cdrom_packet_submit(BlockNode *node, BlockPacket *packet)
{
    cdrom_watch_packet(node_watch(node), packet);
}

/* By the path's permissions: opening it may take as long as the drive likes. */
static bool host_cdrom_packet_check_write(const BlockNode *node, GError **error)
{
    return faccessat(AT_FDCWD, node->filename, R_OK | W_OK, AT_EACCESS) == 0 ||
           error_set_errno(error, errno, "Could not open '%s' for writing", node->filename);
}

static const BlockPacketOps host_cdrom_packet_ops = {
    .max = host_cdrom_packet_max,
    .submit = host_cdrom_packet_submit,
    .check_write = host_cdrom_packet_check_write,
};

static const char *const host_cdrom_protocols[] = {"host_cdrom", NULL};

const BlockDriver block_driver_host_cdrom = {
    .name = "host_cdrom",
    .parallel = true, /* one thing at a time, but the next request should lie in the kernel by then */
    .state_size = sizeof(HostCdrom),
    .protocols = host_cdrom_protocols,
    .open = host_cdrom_open,
    .close = host_cdrom_close,
    .preadv = host_cdrom_preadv,
    .read_now = host_cdrom_read_now,
    .tray = &host_cdrom_tray_ops,
    .packet = &host_cdrom_packet_ops,
};
