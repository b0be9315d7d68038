/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "system/drive-config.h"
#include "block/packet.h"
#include "util/log.h"

OnError drive_on_error(DriveOnError policy, OnError automatic)
{
    static const OnError map[] = {
        [DRIVE_ON_ERROR_REPORT] = ON_ERROR_REPORT,
        [DRIVE_ON_ERROR_IGNORE] = ON_ERROR_IGNORE,
        [DRIVE_ON_ERROR_ENOSPC] = ON_ERROR_ENOSPC,
        [DRIVE_ON_ERROR_STOP] = ON_ERROR_STOP,
    };

    return policy == DRIVE_ON_ERROR_AUTO ? automatic : map[policy];
}

IdeIdentity drive_identity(const DriveProps *props)
{
    return (IdeIdentity){
        .serial = props->serial, .model = props->product, .firmware = props->ver, .wwn = props->wwn};
}

static AtaTranslation translation_for(DriveTranslation translation)
{
    static const AtaTranslation map[] = {
        [DRIVE_TRANSLATION_AUTO] = ATA_TRANSLATION_AUTO,   [DRIVE_TRANSLATION_NONE] = ATA_TRANSLATION_NONE,
        [DRIVE_TRANSLATION_LBA] = ATA_TRANSLATION_LBA,     [DRIVE_TRANSLATION_LARGE] = ATA_TRANSLATION_LARGE,
        [DRIVE_TRANSLATION_RECHS] = ATA_TRANSLATION_RECHS,
    };

    return map[translation];
}

AtaDiskConfig drive_ata_config(const DriveProps *props)
{
    return (AtaDiskConfig){
        .identity = drive_identity(props),
        .cyls = props->cyls,
        .heads = props->heads,
        .secs = props->secs,
        .translation = translation_for(props->translation),
        .logical_block_size = props->logical_block_size,
        .physical_block_size = props->physical_block_size,
        .rotation_rate = props->rotation_rate,
    };
}

bool drive_check_passthrough(const DriveProps *props, BlockNode *node, GError **error)
{
    if (!node || props->passthrough != MMC_PASSTHROUGH_BURN) {
        return true;
    }
    if (!block_packet_check_write(node, error)) {
        g_prefix_error(error, "passthrough=burn: ");
        return false;
    }
    if (block_packet_max(node) == 0) {
        log_warn("passthrough=burn has no effect: '%s' is no CD/DVD drive of the host", block_name(node));
    }
    return true;
}
