/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * READ TOC/PMA/ATIP replies from a Disc (MMC-6 6.25.3). Pure; loop thread (a Disc is).
 */
#ifndef SPINDLE_HW_BLOCK_TOC_H
#define SPINDLE_HW_BLOCK_TOC_H

#include "hw/block/disc.h"
#include "util/reply.h"

#define TOC_FORMAT_TOC      0
#define TOC_FORMAT_SESSIONS 1
#define TOC_FORMAT_FULL     2
#define TOC_FORMAT_CD_TEXT  5
#define TOC_REPLY_MAX       (64 * 1024) /* bytes of the longest reply: CD-TEXT of eight blocks */

/* Builds the whole reply. `number`: the track (format 0) or session (format 2) to start from. False: 05/24,
 * the reply is undefined. */
bool toc_encode(Reply *reply, const Disc *disc, unsigned format, bool msf, uint8_t number);

#endif
