/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A crew: a few threads that help with computation. A job has pieces 0 … count - 1 that may run in any order,
 * on any thread, side by side. The one that starts a job finishes it too, taking pieces itself until none is
 * left, so that a job goes on without helpers (there may be none) and nobody waits for a thread to wake up.
 * Between start and finish the starter may do its I/O: that is how reading and deciphering overlap. Any
 * thread.
 */
#ifndef SPINDLE_BLOCK_CREW_H
#define SPINDLE_BLOCK_CREW_H

#include <glib.h>
#include <pthread.h>

typedef struct Crew Crew;
typedef struct CrewJob CrewJob;

struct CrewJob {
    void (*run)(CrewJob *job, unsigned piece);
    unsigned count;
    /* private */
    unsigned next, unfinished, helpers;
    pthread_cond_t done;
    GList link;
};

/* At most max_threads helpers; they start when first needed and end after some idle seconds. */
Crew *crew_new(unsigned max_threads);

/* No job may be under way. Waits for the threads. NULL is allowed. */
void crew_free(Crew *crew);

/* Offers the job to at most `helpers` threads. The job is the caller's and stays alive until crew_finish().
 */
void crew_start(Crew *crew, CrewJob *job, unsigned helpers);

/* Does what is left of the job and returns when every piece has run. */
void crew_finish(Crew *crew, CrewJob *job);

#endif
