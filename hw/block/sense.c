/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "hw/block/sense.h"
#include "util/bytes.h"

bool sense_errno_is_medium(int errnum)
{
    switch (-errnum) {
    case ETIMEDOUT:
    case ENOMEDIUM:
    case ENODEV:
    case ENXIO:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ESTALE:
    case EACCES:
    case EPERM:
    case ENOMEM:
    case EREMOTEIO:
    case ECANCELED:
        return false;
    default:
        return true;
    }
}

MmcSense sense_from_errno(int errnum, uint32_t lba)
{
    if (sense_errno_is_medium(errnum)) {
        MmcSense sense = SENSE_READ_ERROR;
        sense.info_valid = true;
        sense.info = lba;
        return sense;
    }
    switch (-errnum) {
    case ETIMEDOUT: /* a source that is away for a while: guests try again for as long as they like */
        return SENSE_BECOMING_READY;
    case ENOMEDIUM:
        return SENSE_NO_MEDIUM;
    case ENOMEM:
    case EREMOTEIO: /* what the kernel makes of a drive's hardware error */
        return SENSE_INTERNAL_FAILURE;
    case ECANCELED:
        return SENSE_ABORTED;
    default:
        return SENSE_COMM_FAILURE;
    }
}

void mmc_sense_encode(const MmcSense *sense, uint8_t out[MMC_SENSE_SIZE])
{
    if (sense->raw) {
        memcpy(out, sense->bytes, MMC_SENSE_SIZE);
        return;
    }
    memset(out, 0, MMC_SENSE_SIZE);
    out[0] = 0x70; /* current, fixed format */
    if (sense->info_valid) {
        out[0] |= 0x80;
        store_be32(&out[3], sense->info);
    }
    out[2] = sense->key;
    out[7] = MMC_SENSE_SIZE - 8;
    out[12] = sense->asc;
    out[13] = sense->ascq;
}
