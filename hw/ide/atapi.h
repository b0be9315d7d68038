/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The packet device: an IdeDevice that hands the commands of PACKET to an MmcDrive. Loop thread only.
 */
#ifndef SPINDLE_HW_IDE_ATAPI_H
#define SPINDLE_HW_IDE_ATAPI_H

#include "hw/block/mmc.h"
#include "hw/ide/ide-device.h"

/* `drive` stays the caller's and must outlive the device; `identity` is copied, its serial defaults to the
 * drive's. Never NULL. */
IdeDevice *atapi_new(MmcDrive *drive, const IdeIdentity *identity);

#endif
