/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * CD sectors of 2352 bytes as they lie on the disc (ECMA-130 14 and 15; MMC-6 4.2.3.8): sync, header in BCD,
 * sub-header, user data, EDC and ECC; and the Q sub-channel's CRC. Pure; any thread.
 */
#ifndef SPINDLE_HW_BLOCK_SECTOR_H
#define SPINDLE_HW_BLOCK_SECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTOR_RAW   2352 /* bytes of a whole sector */
#define SECTOR_USER  2048 /* user data of mode 1 and mode 2 form 1 */
#define SECTOR_FORM2 2324 /* user data of mode 2 form 2, without its EDC */
#define SECTOR_MODE2 2336 /* all of a mode 2 sector behind its header */

/* READ CD's expected sector types (MMC-6 6.19.2.2). */
typedef enum {
    SECTOR_TYPE_ANY = 0,
    SECTOR_TYPE_CDDA = 1,
    SECTOR_TYPE_MODE1 = 2,
    SECTOR_TYPE_MODE2 = 3, /* formless */
    SECTOR_TYPE_MODE2_FORM1 = 4,
    SECTOR_TYPE_MODE2_FORM2 = 5,
} SectorType;

/* Where a field lies in the raw sector; length 0: the type has none. */
typedef struct SectorField {
    uint16_t offset, length;
} SectorField;

typedef struct SectorLayout {
    SectorField sync, header, subheader, user, edc;
} SectorLayout;

const SectorLayout *sector_layout(SectorType type);

/* The type of a mode 2 sector by its sub-header (raw[16…23]): the form bit of the submode counts where both
 * copies agree, else the sector has no form. */
SectorType sector_mode2_type(const uint8_t *subheader);

/* Sync pattern and header (MSF of `lba` in BCD, mode) into raw[0, 16). */
void sector_put_header(uint8_t raw[SECTOR_RAW], int64_t lba, uint8_t mode);

/* EDC, and ECC where the type has it, over what is already in `raw`. No effect for CD-DA and formless. */
void sector_put_edc(uint8_t raw[SECTOR_RAW], SectorType type);

/* CRC-32 of ECMA-130 14.3 (polynomial 8001801Bh, bits reversed), starting from 0. */
uint32_t sector_edc(const uint8_t *data, size_t len);

/* CRC of a Q sub-channel frame's first ten bytes, as stored in the last two, big-endian (ECMA-130 22.3.6). */
uint16_t sector_q_crc(const uint8_t q[10]);

#endif
