/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Properties of ide-hd and ide-cd as the device models take them. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_DRIVE_CONFIG_H
#define SPINDLE_SYSTEM_DRIVE_CONFIG_H

#include "block/block.h"
#include "hw/block/on-error.h"
#include "hw/ide/ata-disk.h"
#include "system/drive-props.h"

/* What a policy comes to, `auto` being `automatic`. */
OnError drive_on_error(DriveOnError policy, OnError automatic);

/* Strings stay the properties'. */
IdeIdentity drive_identity(const DriveProps *props);
AtaDiskConfig drive_ata_config(const DriveProps *props);

/* Whether `node` can be burnt to, where that is asked for; warns when it is no drive. NULL: an empty drive.
 */
bool drive_check_passthrough(const DriveProps *props, BlockNode *node, GError **error);

#endif
