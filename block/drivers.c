/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The one table of compiled-in drivers. A new driver: its line here and in drivers.h, its file in
 * meson.build.
 */
#include "block/drivers.h"
#include "block/module.h"
#include <string.h>

/* One a line, sorted. */
/* clang-format off */
static const BlockDriver *const drivers[] = {
    &block_driver_blkdebug,
    &block_driver_cache,
    &block_driver_cue,
    &block_driver_fault,
    &block_driver_fault_serial,
    &block_driver_file,
    &block_driver_ftp,
    &block_driver_ftps,
    &block_driver_host_cdrom,
    &block_driver_host_device,
    &block_driver_http,
    &block_driver_https,
    &block_driver_iscsi,
    &block_driver_luks,
    &block_driver_mem,
    &block_driver_nbd,
    &block_driver_nfs,
    &block_driver_null_aio,
    &block_driver_null_co,
    &block_driver_raw,
    &block_driver_rbd,
    &block_driver_ssh,
    &block_driver_throttle,
    NULL,
};
/* clang-format on */

const BlockDriver *const *block_drivers(void)
{
    return drivers;
}

const BlockDriver *block_driver_find(const char *name)
{
    for (const BlockDriver *const *d = drivers; *d; d++) {
        if (!strcmp((*d)->name, name)) {
            return *d;
        }
    }
    return NULL;
}

bool block_has_driver(const char *name)
{
    /* Where such a module was not built, QEMU may have the driver. */
    static const char *const optional[] = {"iscsi", "nfs", "rbd", "ssh", NULL};
    if (g_strv_contains(optional, name)) {
        g_autofree char *file = g_strdup_printf("spindle-%s.so", name);
        return block_module_present(file);
    }
    return block_driver_find(name) != NULL;
}
