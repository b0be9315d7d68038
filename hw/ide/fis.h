/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Frame information structures of SATA (SATA 3 10.5), to and from a Taskfile. Pure. Any thread.
 */
#ifndef SPINDLE_HW_IDE_FIS_H
#define SPINDLE_HW_IDE_FIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hw/ide/taskfile.h"

#define FIS_TYPE_H2D       0x27
#define FIS_TYPE_D2H       0x34
#define FIS_TYPE_PIO_SETUP 0x5f
#define FIS_TYPE_SDB       0xa1

#define FIS_H2D_SIZE       20
#define FIS_D2H_SIZE       20
#define FIS_PIO_SETUP_SIZE 20
#define FIS_SDB_SIZE       8

/* Decodes a host-to-device register FIS into the written registers of `ret_tf` (status and error stay).
 * *ret_command is the C bit: a command, else a write of the control register. False if it is none. */
bool fis_decode_h2d(const uint8_t *fis, size_t len, Taskfile *ret_tf, bool *ret_command);

/* `interrupt` is the I bit. */
void fis_encode_d2h(uint8_t out[FIS_D2H_SIZE], const Taskfile *tf, bool interrupt);

/* Before a DRQ block of `count` bytes: tf->status has DRQ, `end_status` is what follows it. */
void fis_encode_pio_setup(uint8_t out[FIS_PIO_SETUP_SIZE], const Taskfile *tf, bool to_host, bool interrupt,
                          uint8_t end_status, uint16_t count);

/* The queued commands of `tags` have ended. */
void fis_encode_sdb(uint8_t out[FIS_SDB_SIZE], uint8_t status, uint8_t error, uint32_t tags, bool interrupt);

#endif
