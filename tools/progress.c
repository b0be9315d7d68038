/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/progress.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/tool.h"

#define TICK_MS     100
#define LINE_TICKS  10 /* a line a second at most */
#define BAR_WIDTH   30
#define SAMPLES_MAX 2048 /* then every second one goes */

struct Progress {
    uint64_t total;
    uint64_t done; /* atomic */
    gint64 start;
    bool bar, lines;
    guint timer, usr1;
    unsigned tick, tick_step; /* a sample each tick_step ticks */
    unsigned printed;         /* per mille, in the last line */
    GArray *samples;
};

static uint64_t done_of(Progress *p)
{
    return __atomic_load_n(&p->done, __ATOMIC_RELAXED);
}

static double seconds_of(const Progress *p)
{
    return (g_get_monotonic_time() - p->start) / 1e6;
}

static double percent_of(Progress *p)
{
    return p->total ? MIN(100.0, 100.0 * done_of(p) / p->total) : 100.0;
}

static char *rate_text(Progress *p)
{
    double seconds = seconds_of(p);
    g_autofree char *rate = tool_format_size(seconds > 0 ? done_of(p) / seconds : 0);
    return g_strconcat(rate, "/s", NULL);
}

static char *left_text(Progress *p)
{
    uint64_t done = done_of(p);
    if (!done || done >= p->total) {
        return g_strdup("");
    }
    guint64 left = seconds_of(p) * (p->total - done) / done + 0.5;
    return g_strdup_printf("%" G_GUINT64_FORMAT ":%02u left", left / 60, (unsigned)(left % 60));
}

static void print_bar(Progress *p)
{
    char bar[BAR_WIDTH + 1];
    unsigned filled = percent_of(p) * BAR_WIDTH / 100;
    for (unsigned i = 0; i < BAR_WIDTH; i++) {
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    }
    bar[BAR_WIDTH] = '\0';
    g_autofree char *rate = rate_text(p), *left = left_text(p);
    printf("\r  [%s] %5.1f %%  %s  %s\033[K", bar, percent_of(p), rate, left);
    fflush(stdout);
}

/* qemu-img's form, then what it does not say. */
static void print_line(Progress *p, FILE *stream)
{
    g_autofree char *rate = rate_text(p), *left = left_text(p);
    fprintf(stream, "    (%.2f/100%%)  %s  %s\n", percent_of(p), rate, left);
    fflush(stream);
}

static void add_sample(Progress *p)
{
    ProgressSample sample = {seconds_of(p), done_of(p)};
    g_array_append_val(p->samples, sample);
    if (p->samples->len < SAMPLES_MAX) {
        return;
    }
    for (guint i = 0; i < p->samples->len / 2; i++) {
        g_array_index(p->samples, ProgressSample, i) = g_array_index(p->samples, ProgressSample, 2 * i + 1);
    }
    g_array_set_size(p->samples, p->samples->len / 2);
    p->tick_step *= 2;
}

static gboolean on_tick(gpointer opaque)
{
    Progress *p = opaque;
    p->tick++;
    if (p->tick % p->tick_step == 0) {
        add_sample(p);
    }
    if (p->bar) {
        print_bar(p);
    }
    if (p->lines && p->tick % LINE_TICKS == 0) {
        unsigned now = percent_of(p) * 10;
        if (now != p->printed) {
            p->printed = now;
            print_line(p, stdout);
        }
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_usr1(gpointer opaque)
{
    print_line(opaque, stderr);
    return G_SOURCE_CONTINUE;
}

Progress *progress_new(ProgressMode mode, uint64_t total)
{
    Progress *p = g_new0(Progress, 1);
    bool terminal = isatty(STDOUT_FILENO);
    p->total = total;
    p->start = g_get_monotonic_time();
    p->bar = mode != PROGRESS_QUIET && terminal;
    p->lines = mode == PROGRESS_LINES && !terminal;
    p->tick_step = 1;
    p->samples = g_array_new(FALSE, FALSE, sizeof(ProgressSample));
    p->timer = g_timeout_add(TICK_MS, on_tick, p);
    p->usr1 = g_unix_signal_add(SIGUSR1, on_usr1, p);
    if (p->lines) {
        print_line(p, stdout);
    }
    return p;
}

void progress_add(Progress *p, uint64_t bytes)
{
    __atomic_fetch_add(&p->done, bytes, __ATOMIC_RELAXED);
}

static void remove_source(guint *id)
{
    if (*id) {
        g_source_remove(*id);
        *id = 0;
    }
}

void progress_finish(Progress *p)
{
    if (!p->timer) {
        return;
    }
    remove_source(&p->timer);
    remove_source(&p->usr1);
    add_sample(p);
    if (p->bar) {
        print_bar(p);
        printf("\n");
    } else if (p->lines) {
        print_line(p, stdout);
    }
}

void progress_free(Progress *p)
{
    if (p) {
        remove_source(&p->timer);
        remove_source(&p->usr1);
        g_array_free(p->samples, TRUE);
        g_free(p);
    }
}

const ProgressSample *progress_samples(const Progress *p, unsigned *ret_count)
{
    *ret_count = p->samples->len;
    return (const ProgressSample *)(void *)p->samples->data;
}
