/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Addresses on a CD: logical block (LBA), minute:second:frame (MSF) and its BCD form. LBA 0 is 00:02:00
 * (MMC-6 4.2.3.3). Pure; any thread.
 */
#ifndef SPINDLE_HW_BLOCK_MSF_H
#define SPINDLE_HW_BLOCK_MSF_H

#include <stdbool.h>
#include <stdint.h>

#define CD_FRAMES    75                /* frames (sectors) in a second */
#define CD_MINUTE    (60 * CD_FRAMES)  /* sectors in a minute */
#define CD_LEAD_TIME 150               /* sectors before LBA 0 */
#define CD_MSF_END   (100 * CD_MINUTE) /* the first frame that two BCD digits cannot count */
#define CD_MAX_SECTOR                                                                                        \
    (CD_MSF_END - 1 - CD_LEAD_TIME) /* most sectors with a lead-out at 99:59:74 or before                    \
                                     */

typedef struct Msf {
    uint8_t m, s, f; /* binary */
} Msf;

/* Frames counted from 00:00:00. Minutes stop at 255 (a DVD's addresses in a CD's form). */
static inline Msf msf_from_frames(uint64_t frames)
{
    if (frames >= 256ull * CD_MINUTE) {
        return (Msf){255, 59, 74};
    }
    return (Msf){frames / CD_MINUTE, frames / CD_FRAMES % 60, frames % CD_FRAMES};
}

static inline Msf msf_from_lba(int64_t lba)
{
    return msf_from_frames(lba < -CD_LEAD_TIME ? 0 : (uint64_t)(lba + CD_LEAD_TIME));
}

static inline bool msf_is_valid(Msf msf)
{
    return msf.s < 60 && msf.f < CD_FRAMES;
}

static inline int64_t msf_to_lba(Msf msf)
{
    return (int64_t)msf.m * CD_MINUTE + msf.s * CD_FRAMES + msf.f - CD_LEAD_TIME;
}

/* v modulo 100 as two decimal digits. */
static inline uint8_t bcd_from_int(uint8_t v)
{
    return (uint8_t)(v / 10 % 10 << 4 | v % 10);
}

#endif
