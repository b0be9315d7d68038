/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "hw/ide/fis.h"

#include <string.h>

#include "util/bytes.h"

#define FIS_INTERRUPT 0x40 /* byte 1 */
#define FIS_TO_HOST   0x20 /* byte 1 of PIO Setup: D */
#define FIS_COMMAND   0x80 /* byte 1 of H2D: C */

/* Bytes 4-10 and 12-13 of every register FIS. */
static void fis_put_registers(uint8_t *out, const Taskfile *tf)
{
    memcpy(out + 4, tf->lba, 3);
    out[7] = tf->device;
    memcpy(out + 8, tf->lba + 3, 3);
    store_le16(out + 12, tf->count);
}

bool fis_decode_h2d(const uint8_t *fis, size_t len, Taskfile *ret_tf, bool *ret_command)
{
    if (len < FIS_H2D_SIZE || fis[0] != FIS_TYPE_H2D) {
        return false;
    }
    *ret_command = fis[1] & FIS_COMMAND;
    ret_tf->command = fis[2];
    ret_tf->features = (uint16_t)(fis[3] | fis[11] << 8);
    memcpy(ret_tf->lba, fis + 4, 3);
    memcpy(ret_tf->lba + 3, fis + 8, 3);
    ret_tf->device = fis[7];
    ret_tf->count = load_le16(fis + 12);
    ret_tf->control = fis[15];
    return true;
}

void fis_encode_d2h(uint8_t out[FIS_D2H_SIZE], const Taskfile *tf, bool interrupt)
{
    memset(out, 0, FIS_D2H_SIZE);
    out[0] = FIS_TYPE_D2H;
    out[1] = interrupt ? FIS_INTERRUPT : 0;
    out[2] = tf->status;
    out[3] = tf->error;
    fis_put_registers(out, tf);
}

void fis_encode_pio_setup(uint8_t out[FIS_PIO_SETUP_SIZE], const Taskfile *tf, bool to_host, bool interrupt,
                          uint8_t end_status, uint16_t count)
{
    memset(out, 0, FIS_PIO_SETUP_SIZE);
    out[0] = FIS_TYPE_PIO_SETUP;
    out[1] = (interrupt ? FIS_INTERRUPT : 0) | (to_host ? FIS_TO_HOST : 0);
    out[2] = tf->status;
    out[3] = tf->error;
    fis_put_registers(out, tf);
    out[15] = end_status;
    store_le16(out + 16, count);
}

void fis_encode_sdb(uint8_t out[FIS_SDB_SIZE], uint8_t status, uint8_t error, uint32_t tags, bool interrupt)
{
    memset(out, 0, FIS_SDB_SIZE);
    out[0] = FIS_TYPE_SDB;
    out[1] = interrupt ? FIS_INTERRUPT : 0;
    out[2] = status & 0x77; /* bits 3 and 7 are reserved here (SATA 3 10.5.7) */
    out[3] = error;
    store_le32(out + 4, tags);
}
