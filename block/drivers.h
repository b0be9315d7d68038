/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The drivers' tables, one a file. Only drivers.c includes this.
 */
#ifndef SPINDLE_BLOCK_DRIVERS_H
#define SPINDLE_BLOCK_DRIVERS_H

#include "block/block-int.h"

extern const BlockDriver block_driver_blkdebug;
extern const BlockDriver block_driver_cache;
extern const BlockDriver block_driver_cue;
extern const BlockDriver block_driver_fault;
extern const BlockDriver block_driver_fault_serial;
extern const BlockDriver block_driver_file;
extern const BlockDriver block_driver_ftp;
extern const BlockDriver block_driver_ftps;
extern const BlockDriver block_driver_host_cdrom;
extern const BlockDriver block_driver_host_device;
extern const BlockDriver block_driver_http;
extern const BlockDriver block_driver_https;
extern const BlockDriver block_driver_iscsi;
extern const BlockDriver block_driver_luks;
extern const BlockDriver block_driver_mem;
extern const BlockDriver block_driver_nbd;
extern const BlockDriver block_driver_nfs;
extern const BlockDriver block_driver_null_aio;
extern const BlockDriver block_driver_null_co;
extern const BlockDriver block_driver_raw;
extern const BlockDriver block_driver_rbd;
extern const BlockDriver block_driver_ssh;
extern const BlockDriver block_driver_throttle;

#endif
