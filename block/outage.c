/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/outage.h"

#include "util/log.h"

#define MIB ((double)(1 << 20))

/* "; fetched 12.0 MiB (3.2 MiB/s), served 10.1 MiB, 96 % of the reads from the cache", as far as known. */
static char *figures(const BlockRemoteStats *s)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "; fetched %.1f MiB", s->fetched / MIB);
    if (s->rate) {
        g_string_append_printf(text, " (%.1f MiB/s)", s->rate / MIB);
    }
    g_string_append_printf(text, ", served %.1f MiB", s->served / MIB);
    if (s->hits) {
        g_string_append_printf(text, ", %.0f %% of the reads from the cache",
                               100.0 * s->hits / (s->hits + s->misses));
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Whether people hear of this state now: as a change of a trouble that was told, or as a new one. */
static bool is_news(Outage *outage, BlockRemoteState state)
{
    const int64_t now = g_get_monotonic_time();
    const bool known = outage->told != BLOCK_REMOTE_CONNECTED;
    if (outage->told == state || (!known && outage->last_told && now - outage->last_told < OUTAGE_TELL_US)) {
        return false;
    }
    outage->told = state;
    outage->last_told = now;
    return true;
}

void outage_note_stall(Outage *outage, const char *name, const BlockRemoteStats *stats, int64_t quiet_us)
{
    if (!outage->trouble) {
        outage->trouble = g_get_monotonic_time() - quiet_us;
    }
    if (!outage->since && is_news(outage, BLOCK_REMOTE_STALLED)) {
        g_autofree char *text = figures(stats);
        log_warn("%s: stalled: nothing came for %.1f s%s", name, quiet_us / (double)G_USEC_PER_SEC, text);
    }
}

void outage_note_failure(Outage *outage, const char *name, const BlockRemoteStats *stats, const char *why,
                         bool again, bool last)
{
    if (!outage->since) {
        outage->since = g_get_monotonic_time();
    }
    if (!outage->trouble) {
        outage->trouble = outage->since;
    }
    g_autofree char *text = figures(stats);
    if (last && !outage->final_told) {
        outage->final_told = true;
        outage->told = BLOCK_REMOTE_RETRYING;
        log_warn("%s: giving up: %s%s", name, why, text);
    } else if (!last && again && is_news(outage, BLOCK_REMOTE_RETRYING)) {
        log_warn("%s: retrying: %s%s", name, why, text);
    }
}

bool outage_note_answer(Outage *outage, const char *name, const BlockRemoteStats *stats)
{
    if (!outage->trouble) {
        return false;
    }
    if (outage->told != BLOCK_REMOTE_CONNECTED) {
        g_autofree char *text = figures(stats);
        log_info("%s: connected again after %.1f s%s", name,
                 (g_get_monotonic_time() - outage->trouble) / (double)G_USEC_PER_SEC, text);
    }
    *outage = (Outage){.last_told = outage->last_told};
    return true;
}
