/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "util/workpool.h"

#include <pthread.h>
#include <unistd.h>

#include <semaphore.h>

/* A job that a worker holds until the test lets it go. */
typedef struct Job {
    Work work;
    bool hold;
    sem_t started, go;
    int runs, dones;    /* loop thread reads `runs` only after `done` */
    GThread *loop;      /* set by the loop thread */
    unsigned *finished; /* counts `done` calls */
    WorkPool *pool;     /* to submit again from `done` */
    unsigned resubmits;
    GMainContext *nested; /* iterated from `done` */
} Job;

static void job_run(Work *work)
{
    Job *job = (Job *)work;
    g_assert_true(g_thread_self() != job->loop);
    job->runs++;
    sem_post(&job->started);
    if (job->hold) {
        while (sem_wait(&job->go)) {
        }
    }
}

static void job_done(Work *work)
{
    Job *job = (Job *)work;
    g_assert_true(g_thread_self() == job->loop);
    job->dones++;
    ++*job->finished;
    if (job->resubmits) {
        job->resubmits--;
        work_pool_submit(job->pool, work);
    }
    if (job->nested) {
        GMainContext *context = g_steal_pointer(&job->nested);
        unsigned before = *job->finished;
        while (*job->finished == before) {
            g_main_context_iteration(context, TRUE);
        }
    }
}

static void job_init(Job *job, WorkPool *pool, unsigned *finished)
{
    *job = (Job){.work = {.run = job_run, .done = job_done},
                 .loop = g_thread_self(),
                 .finished = finished,
                 .pool = pool};
    sem_init(&job->started, 0, 0);
    sem_init(&job->go, 0, 0);
}

static void run_until(GMainContext *context, const unsigned *count, unsigned target)
{
    while (*count < target) {
        g_main_context_iteration(context, TRUE);
    }
}

static void test_all_done_once(void)
{
    enum { JOBS = 500 };
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 4);
    g_autofree Job *jobs = g_new0(Job, JOBS);
    unsigned finished = 0;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i], pool, &finished);
        (i % 7 ? work_pool_submit : work_pool_submit_urgent)(pool, &jobs[i].work);
        g_assert_cmpuint(finished, ==, 0); /* never inside submit */
    }
    run_until(context, &finished, JOBS);
    g_assert_false(g_main_context_iteration(context, FALSE) && finished != JOBS);
    for (int i = 0; i < JOBS; i++) {
        g_assert_cmpint(jobs[i].runs, ==, 1);
        g_assert_cmpint(jobs[i].dones, ==, 1);
    }
    work_pool_free(pool);
}

/* Completions that are there together are delivered in one turn of the loop. */
static void test_one_wakeup_for_many(void)
{
    enum { JOBS = 20 };
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 2);
    g_autofree Job *jobs = g_new0(Job, JOBS);
    unsigned finished = 0;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i], pool, &finished);
        work_pool_submit(pool, &jobs[i].work);
    }
    for (int i = 0; i < JOBS; i++) {
        while (sem_wait(&jobs[i].started)) {
        }
    }
    g_usleep(20000); /* the last one's way into the list */
    unsigned turns = 0;
    while (finished < JOBS) {
        g_main_context_iteration(context, TRUE);
        turns++;
    }
    g_assert_cmpuint(turns, <=, 3);
    work_pool_free(pool);
}

static void test_urgent_passes_hung_work(void)
{
    for (unsigned threads = 0; threads <= 4; threads++) {
        enum { HUNG = 6 };
        g_autoptr(GMainContext) context = g_main_context_new();
        WorkPool *pool = work_pool_new(context, threads); /* raised to 2 */
        Job hung[HUNG], urgent;
        unsigned finished = 0, urgent_finished = 0;
        for (int i = 0; i < HUNG; i++) {
            job_init(&hung[i], pool, &finished);
            hung[i].hold = true;
            work_pool_submit(pool, &hung[i].work);
        }
        job_init(&urgent, pool, &urgent_finished);
        work_pool_submit_urgent(pool, &urgent.work);
        run_until(context, &urgent_finished, 1);
        g_assert_cmpuint(finished, ==, 0);
        for (int i = 0; i < HUNG; i++) {
            sem_post(&hung[i].go);
        }
        run_until(context, &finished, HUNG);
        work_pool_free(pool);
    }
}

static void test_cancel(void)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 2);
    Job held, queued, idle;
    unsigned finished = 0;
    job_init(&held, pool, &finished);
    job_init(&queued, pool, &finished);
    job_init(&idle, pool, &finished);
    held.hold = true;
    work_pool_submit(pool, &held.work);
    while (sem_wait(&held.started)) {
    }
    work_pool_submit(pool, &queued.work); /* the one other thread is for urgent work */
    g_assert_true(work_pool_cancel(pool, &queued.work));
    g_assert_false(work_pool_cancel(pool, &queued.work));
    g_assert_false(work_pool_cancel(pool, &held.work));
    g_assert_false(work_pool_cancel(pool, &idle.work));
    sem_post(&held.go);
    run_until(context, &finished, 1);
    g_assert_cmpint(queued.runs + queued.dones, ==, 0);
    work_pool_submit(pool, &queued.work); /* may come again */
    run_until(context, &finished, 2);
    g_assert_cmpint(queued.runs, ==, 1);
    g_assert_cmpint(queued.dones, ==, 1);
    work_pool_free(pool);
}

static void test_resubmit_from_done(void)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 3);
    Job job;
    unsigned finished = 0;
    job_init(&job, pool, &finished);
    job.resubmits = 100;
    work_pool_submit(pool, &job.work);
    run_until(context, &finished, 101);
    g_assert_cmpint(job.runs, ==, 101);
    work_pool_free(pool);
}

static void test_nested_iteration(void)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 2);
    Job one, two;
    unsigned finished = 0;
    job_init(&one, pool, &finished);
    job_init(&two, pool, &finished);
    one.nested = context;
    work_pool_submit(pool, &one.work);
    work_pool_submit(pool, &two.work);
    while (sem_wait(&two.started)) {
    }
    g_usleep(20000); /* so that both may stand in one list */
    run_until(context, &finished, 2);
    g_assert_cmpint(one.dones, ==, 1);
    g_assert_cmpint(two.dones, ==, 1);
    work_pool_free(pool);
}

static void test_free_finishes_all(void)
{
    enum { JOBS = 50 };
    g_autoptr(GMainContext) context = g_main_context_new();
    WorkPool *pool = work_pool_new(context, 4);
    g_autofree Job *jobs = g_new0(Job, JOBS);
    unsigned finished = 0;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i], pool, &finished);
        jobs[i].resubmits = i % 3;
        work_pool_submit(pool, &jobs[i].work);
    }
    work_pool_free(pool); /* without one turn of the loop */
    for (int i = 0; i < JOBS; i++) {
        g_assert_cmpint(jobs[i].dones, ==, 1 + i % 3);
    }
    work_pool_free(work_pool_new(context, 8)); /* never used */
    work_pool_free(NULL);
}

static unsigned count_threads(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    unsigned count = 0;
    while (dir && g_dir_read_name(dir)) {
        count++;
    }
    return count;
}

/* Threads start when needed, end when idle, and come back. */
static void test_threads_come_and_go(void)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    unsigned before = count_threads();
    WorkPool *pool = work_pool_new(context, 4);
    g_assert_cmpuint(count_threads(), ==, before);
    Job jobs[3];
    for (int round = 0; round < 2; round++) {
        unsigned finished = 0;
        for (int i = 0; i < 3; i++) {
            job_init(&jobs[i], pool, &finished);
            jobs[i].hold = true;
            work_pool_submit(pool, &jobs[i].work);
        }
        for (int i = 0; i < 3; i++) {
            while (sem_wait(&jobs[i].started)) {
            }
        }
        g_assert_cmpuint(count_threads(), ==, before + 3);
        for (int i = 0; i < 3; i++) {
            sem_post(&jobs[i].go);
        }
        run_until(context, &finished, 3);
        gint64 until = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;
        while (count_threads() > before && g_get_monotonic_time() < until) {
            g_usleep(50000);
        }
        g_assert_cmpuint(count_threads(), ==, before);
    }
    work_pool_free(pool);
}

static void test_default(void)
{
    WorkPool *pool = work_pool_default();
    g_assert_true(pool == work_pool_default());
    Job job;
    unsigned finished = 0;
    job_init(&job, pool, &finished);
    work_pool_submit(pool, &job.work);
    run_until(NULL, &finished, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workpool/all-done-once", test_all_done_once);
    g_test_add_func("/workpool/one-wakeup-for-many", test_one_wakeup_for_many);
    g_test_add_func("/workpool/urgent-passes-hung-work", test_urgent_passes_hung_work);
    g_test_add_func("/workpool/cancel", test_cancel);
    g_test_add_func("/workpool/resubmit-from-done", test_resubmit_from_done);
    g_test_add_func("/workpool/nested-iteration", test_nested_iteration);
    g_test_add_func("/workpool/free-finishes-all", test_free_finishes_all);
    g_test_add_func("/workpool/threads-come-and-go", test_threads_come_and_go);
    g_test_add_func("/workpool/default", test_default);
    return g_test_run();
}
