/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What people are told of a server that stalls, fails and comes back: a line for each change of state with
 * its name, since when, and what was fetched and served until now. Lines of a server that comes and goes are
 * limited to one trouble in OUTAGE_TELL_US.
 *
 * Embedded in its owner and under the owner's lock. Zeroed memory is one that answers.
 */
#ifndef SPINDLE_BLOCK_OUTAGE_H
#define SPINDLE_BLOCK_OUTAGE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "block/block.h"

#define OUTAGE_TELL_US  (10 * (int64_t)G_USEC_PER_SEC)
#define OUTAGE_STALL_US (2 * (int64_t)G_USEC_PER_SEC) /* without a byte: people are told */

typedef struct Outage {
    int64_t since;   /* us: something failed then, and nothing has come since; 0: no */
    int64_t trouble; /* us: the same, or it stalled */
    BlockRemoteState told;
    bool final_told;
    int64_t last_told; /* us: when a trouble was last told */
} Outage;

/* A reader has waited for `quiet_us`, and nothing came. */
void outage_note_stall(Outage *outage, const char *name, const BlockRemoteStats *stats, int64_t quiet_us);

/* A try failed; `again`: not for the first time, so that people are to hear of it. `last`: there will be no
 * other, which they always hear of, but once. */
void outage_note_failure(Outage *outage, const char *name, const BlockRemoteStats *stats, const char *why,
                         bool again, bool last);

/* Something came. True: it had not answered before. */
bool outage_note_answer(Outage *outage, const char *name, const BlockRemoteStats *stats);

#endif
