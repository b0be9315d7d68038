/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/crowd.h"

#include <pthread.h>
#include <signal.h>

#define STACK_SIZE (256 * 1024)

typedef struct Crowd {
    void (*work)(void *opaque);
    void *opaque;
    int running; /* atomic */
} Crowd;

static void *crowd_member(void *opaque)
{
    Crowd *crowd = opaque;
    crowd->work(crowd->opaque);
    if (__atomic_sub_fetch(&crowd->running, 1, __ATOMIC_ACQ_REL) == 0) {
        g_main_context_wakeup(NULL);
    }
    return NULL;
}

void crowd_run(unsigned threads, void (*work)(void *opaque), void *opaque)
{
    g_autofree pthread_t *ids = g_new0(pthread_t, threads);
    Crowd crowd = {work, opaque, 1}; /* ours, so that none sees 0 before all are started */
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    unsigned started = 0;
    for (; started < threads; started++) {
        __atomic_add_fetch(&crowd.running, 1, __ATOMIC_ACQ_REL);
        if (pthread_create(&ids[started], &attr, crowd_member, &crowd)) {
            __atomic_sub_fetch(&crowd.running, 1, __ATOMIC_ACQ_REL);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!started) { /* no thread to be had: slower, but the same */
        work(opaque);
    }
    if (__atomic_sub_fetch(&crowd.running, 1, __ATOMIC_ACQ_REL) > 0) {
        while (__atomic_load_n(&crowd.running, __ATOMIC_ACQUIRE) > 0) {
            g_main_context_iteration(NULL, TRUE);
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
    }
}
