/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "block/crew.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#define CREW_IDLE_SECONDS 5

struct Crew {
    pthread_mutex_t mutex; /* guards all, and the private part of every job */
    pthread_cond_t work;   /* a job was queued, or the end has come */
    pthread_cond_t gone;   /* a thread ended */
    GQueue jobs;           /* with pieces left and helpers allowed */
    unsigned max, threads, idle;
    gboolean stopping;
};

Crew *crew_new(unsigned max_threads)
{
    Crew *crew = g_new0(Crew, 1);
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&crew->work, &attr);
    pthread_condattr_destroy(&attr);
    pthread_cond_init(&crew->gone, NULL);
    g_queue_init(&crew->jobs);
    crew->max = max_threads;
    return crew;
}

void crew_free(Crew *crew)
{
    if (!crew) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    crew->stopping = TRUE;
    pthread_cond_broadcast(&crew->work);
    while (crew->threads) {
        pthread_cond_wait(&crew->gone, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
    pthread_cond_destroy(&crew->work);
    pthread_cond_destroy(&crew->gone);
    pthread_mutex_destroy(&crew->mutex);
    g_free(crew);
}

static void job_unqueue(Crew *crew, CrewJob *job)
{
    if (job->link.data) {
        g_queue_unlink(&crew->jobs, &job->link);
        job->link.data = NULL;
    }
}

/* Runs pieces until none is left to take. The mutex is held on entry and on return. */
static void job_work(Crew *crew, CrewJob *job)
{
    while (job->next < job->count) {
        unsigned piece = job->next++;
        if (job->next == job->count) {
            job_unqueue(crew, job);
        }
        pthread_mutex_unlock(&crew->mutex);
        job->run(job, piece);
        pthread_mutex_lock(&crew->mutex);
        job->unfinished--;
    }
}

/* The next job that wants one more helper, or NULL when it is time to go. */
static CrewJob *crew_wait(Crew *crew)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CREW_IDLE_SECONDS;
    while (!crew->jobs.head) {
        if (crew->stopping) {
            return NULL;
        }
        crew->idle++;
        bool late = pthread_cond_timedwait(&crew->work, &crew->mutex, &until) == ETIMEDOUT;
        crew->idle--;
        if (late && !crew->jobs.head) {
            return NULL;
        }
    }
    CrewJob *job = crew->jobs.head->data;
    if (--job->helpers == 0) {
        job_unqueue(crew, job);
    }
    return job;
}

static gpointer crew_thread(gpointer opaque)
{
    Crew *crew = opaque;
    CrewJob *job;
    pthread_mutex_lock(&crew->mutex);
    while ((job = crew_wait(crew))) {
        job_work(crew, job);
        if (!job->unfinished) {
            pthread_cond_signal(&job->done);
        }
    }
    crew->threads--;
    pthread_cond_signal(&crew->gone);
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* Without threads to be had, the starter does all by itself. */
static void crew_hire(Crew *crew)
{
    GThread *thread = g_thread_try_new("cipher", crew_thread, crew, NULL);
    if (thread) {
        crew->threads++;
        g_thread_unref(thread);
    }
}

void crew_start(Crew *crew, CrewJob *job, unsigned helpers)
{
    job->next = 0;
    job->unfinished = job->count;
    job->helpers = MIN(helpers, job->count);
    job->link = (GList){0};
    pthread_cond_init(&job->done, NULL);
    if (!job->helpers || !crew->max) {
        return;
    }
    pthread_mutex_lock(&crew->mutex);
    job->link.data = job;
    g_queue_push_tail_link(&crew->jobs, &job->link);
    unsigned wanted = job->helpers;
    for (unsigned i = 0; i < MIN(wanted, crew->idle); i++) {
        pthread_cond_signal(&crew->work);
    }
    for (unsigned i = crew->idle; i < wanted && crew->threads < crew->max; i++) {
        crew_hire(crew);
    }
    pthread_mutex_unlock(&crew->mutex);
}

void crew_finish(Crew *crew, CrewJob *job)
{
    pthread_mutex_lock(&crew->mutex);
    job_work(crew, job);
    job_unqueue(crew, job);
    while (job->unfinished) {
        pthread_cond_wait(&job->done, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
    pthread_cond_destroy(&job->done);
}
