/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A crew runs every piece of every job once, with and without helpers; a range lock keeps writers apart and
 * in order.
 */
#include "block/crew.h"
#include "block/range-lock.h"

#define PIECES   37
#define STARTERS 5
#define JOBS     300

typedef struct CountJob {
    CrewJob job;
    gint runs[PIECES];
} CountJob;

static void count_run(CrewJob *job, unsigned piece)
{
    g_atomic_int_inc(&((CountJob *)job)->runs[piece]);
}

static void run_job(Crew *crew, unsigned count, unsigned helpers)
{
    CountJob job = {.job = {.run = count_run, .count = count}};
    crew_start(crew, &job.job, helpers);
    crew_finish(crew, &job.job);
    for (unsigned i = 0; i < PIECES; i++) {
        g_assert_cmpint(job.runs[i], ==, i < count);
    }
}

static gpointer starter(gpointer crew)
{
    for (unsigned i = 0; i < JOBS; i++) {
        run_job(crew, i % (PIECES + 1), i % 5);
    }
    return NULL;
}

static void test_crew(gconstpointer threads)
{
    Crew *crew = crew_new(GPOINTER_TO_UINT(threads));
    GThread *starters[STARTERS];
    for (int i = 0; i < STARTERS; i++) {
        starters[i] = g_thread_new("starter", starter, crew);
    }
    for (int i = 0; i < STARTERS; i++) {
        g_thread_join(starters[i]);
    }
    crew_free(crew);
}

/* Two jobs of one starter under way at once, as the data path has them. */
static void test_crew_two(void)
{
    Crew *crew = crew_new(2);
    for (unsigned i = 0; i < JOBS; i++) {
        CountJob a = {.job = {.run = count_run, .count = PIECES}},
                 b = {.job = {.run = count_run, .count = 3}};
        crew_start(crew, &a.job, 2);
        crew_start(crew, &b.job, 2);
        crew_finish(crew, &a.job);
        crew_finish(crew, &b.job);
        g_assert_cmpint(a.runs[PIECES - 1], ==, 1);
        g_assert_cmpint(b.runs[2], ==, 1);
        g_assert_cmpint(b.runs[3], ==, 0);
    }
    crew_free(crew);
}

typedef struct Guarded {
    RangeLock lock;
    gint readers[16], writers[16]; /* of each unit, now */
} Guarded;

static gpointer range_user(gpointer opaque)
{
    Guarded *g = opaque;
    g_autoptr(GRand) rand = g_rand_new();
    for (int i = 0; i < 2000; i++) {
        unsigned start = g_rand_int_range(rand, 0, 16), end = g_rand_int_range(rand, start, 16) + 1;
        bool exclusive = g_rand_int_range(rand, 0, 3) == 0;
        RangeHold hold;
        if (g_rand_boolean(rand)) {
            range_lock_take(&g->lock, &hold, start, end, exclusive);
        } else if (!range_lock_try(&g->lock, &hold, start, end, exclusive)) {
            continue;
        }
        for (unsigned unit = start; unit < end; unit++) {
            g_atomic_int_inc(exclusive ? &g->writers[unit] : &g->readers[unit]);
            g_assert_cmpint(g_atomic_int_get(&g->writers[unit]), ==, exclusive);
            g_assert_true(!exclusive || g_atomic_int_get(&g->readers[unit]) == 0);
        }
        for (unsigned unit = start; unit < end; unit++) {
            g_atomic_int_add(exclusive ? &g->writers[unit] : &g->readers[unit], -1);
        }
        range_lock_release(&g->lock, &hold);
    }
    return NULL;
}

static void test_range_exclusion(void)
{
    Guarded g = {0};
    GThread *threads[6];
    range_lock_init(&g.lock);
    for (int i = 0; i < 6; i++) {
        threads[i] = g_thread_new("user", range_user, &g);
    }
    for (int i = 0; i < 6; i++) {
        g_thread_join(threads[i]);
    }
    range_lock_clear(&g.lock);
}

static void test_range_try(void)
{
    RangeLock lock;
    RangeHold a, b;
    static const struct {
        uint64_t start, end;
        bool held_exclusive, exclusive, free;
    } cases[] = {
        {0, 10, true, true, true},   {10, 20, true, true, false},  {19, 30, true, false, false},
        {20, 30, true, true, true},  {10, 20, false, true, false}, {10, 20, false, false, true},
        {0, 11, false, true, false},
    };
    range_lock_init(&lock);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        range_lock_take(&lock, &a, 10, 20, cases[i].held_exclusive);
        bool taken = range_lock_try(&lock, &b, cases[i].start, cases[i].end, cases[i].exclusive);
        g_assert_cmpint(taken, ==, cases[i].free);
        if (taken) {
            range_lock_release(&lock, &b);
        }
        range_lock_release(&lock, &a);
    }
    g_assert_null(lock.first);
    range_lock_clear(&lock);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/crew/no-helpers", GUINT_TO_POINTER(0), test_crew);
    g_test_add_data_func("/crew/one-helper", GUINT_TO_POINTER(1), test_crew);
    g_test_add_data_func("/crew/four-helpers", GUINT_TO_POINTER(4), test_crew);
    g_test_add_func("/crew/two-jobs", test_crew_two);
    g_test_add_func("/range-lock/exclusion", test_range_exclusion);
    g_test_add_func("/range-lock/try", test_range_try);
    return g_test_run();
}
