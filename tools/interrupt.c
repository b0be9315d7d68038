/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/interrupt.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "util/log.h"

#define PATIENCE_MS 2000

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

typedef struct Watch {
    Interrupt *interrupt;
    int signal;
    guint id;
} Watch;

struct Interrupt {
    char *half_made;
    int signal; /* that came; 0: none */
    guint patience;
    Watch watches[G_N_ELEMENTS(signals)];
};

void interrupt_discard(Interrupt *interrupt)
{
    if (interrupt->half_made) {
        unlink(interrupt->half_made);
        g_clear_pointer(&interrupt->half_made, g_free);
    }
}

static void die_by(int number)
{
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
    _exit(128 + number);
}

static gboolean out_of_patience(gpointer opaque)
{
    die_by(((Interrupt *)opaque)->signal);
    return G_SOURCE_REMOVE;
}

static gboolean on_signal(gpointer opaque)
{
    Watch *watch = opaque;
    Interrupt *interrupt = watch->interrupt;
    if (interrupt->signal) {
        die_by(watch->signal);
    }
    if (interrupt->half_made) {
        log_error("interrupted; '%s' is removed", interrupt->half_made);
    }
    interrupt_discard(interrupt);
    __atomic_store_n(&interrupt->signal, watch->signal, __ATOMIC_RELAXED);
    interrupt->patience = g_timeout_add(PATIENCE_MS, out_of_patience, interrupt);
    return G_SOURCE_CONTINUE;
}

Interrupt *interrupt_new(const char *half_made)
{
    Interrupt *interrupt = g_new0(Interrupt, 1);
    interrupt->half_made = g_strdup(half_made);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        Watch *watch = &interrupt->watches[i];
        *watch = (Watch){interrupt, signals[i], 0};
        watch->id = g_unix_signal_add(signals[i], on_signal, watch);
    }
    return interrupt;
}

const int *interrupt_flag(const Interrupt *interrupt)
{
    return &interrupt->signal;
}

void interrupt_free(Interrupt *interrupt)
{
    if (!interrupt) {
        return;
    }
    if (interrupt->signal) {
        die_by(interrupt->signal);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++) {
        g_source_remove(interrupt->watches[i].id);
    }
    g_free(interrupt->half_made);
    g_free(interrupt);
}
