/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A compact disc's table of contents from a drive's replies (MMC-6 6.26, READ TOC/PMA/ATIP). Pure; any
 * thread.
 */
#ifndef SPINDLE_BLOCK_HOST_CDROM_TOC_H
#define SPINDLE_BLOCK_HOST_CDROM_TOC_H

#include "block/toc.h"
#include <stddef.h>

/* From the reply of format 2, the full TOC: sessions, tracks and their lengths, the disc's type. Data tracks
 * are taken to be of mode 2 on CD-ROM XA and CD-i discs, else of mode 1. *ret_end: the last lead-out. NULL
 * when the reply makes no sense. */
BlockToc *cdrom_toc_parse(const uint8_t *reply, size_t bytes, uint32_t *ret_end);

/* One track of mode 1 data: nothing that a plain image does not have. */
bool cdrom_toc_is_plain(const BlockToc *toc);

/* Where the sectors are: user data of mode 1 tracks at 2048 bytes times LBA, all others whole at `raw_base`
 * plus 2352 bytes times LBA. */
void cdrom_toc_place(BlockToc *toc, uint64_t raw_base);

/* The number and the packs in the replies, if they are there. */
void cdrom_toc_set_mcn(BlockToc *toc, const uint8_t *reply, size_t bytes);
void cdrom_toc_set_isrc(BlockTrack *track, const uint8_t *reply, size_t bytes);
void cdrom_toc_set_cd_text(BlockToc *toc, const uint8_t *reply, size_t bytes);

#endif
