/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tray's state machine: every state with every event, as a table.
 */
#include <glib.h>
#include "hw/block/sense.h"
#include "hw/block/tray.h"

/* How to get there from power-on, with nothing pending. */
typedef enum { AT_EMPTY, AT_OPEN, AT_OPEN_DISC, AT_LOADING, AT_CLOSING, AT_CHANGED, AT_LOADED, AT_STATES } At;
static const char *const at_names[] = {"empty",   "open",    "open-with-disc", "loading",
                                       "closing", "changed", "loaded"};

typedef enum {
    DO_INSERT,
    DO_INSERT_QUIET,
    DO_REMOVE,
    DO_REMOVE_QUIET,
    DO_OPEN,
    DO_CLOSE,
    DO_READY,
    DO_POWER_ON,
    DO_DEVICE_RESET,
    DO_EJECT_REQUEST,
    DO_EVENTS
} Do;
static const char *const do_names[] = {"insert",       "insert-quietly", "remove", "remove-quietly",
                                       "open",         "close",          "ready?", "power-on",
                                       "device-reset", "eject-request"};

static void reach(Tray *tray, At at)
{
    MmcSense sense;
    tray_init(tray);
    tray_take_attention(tray, &sense);
    switch (at) {
    case AT_EMPTY:
        break;
    case AT_OPEN:
        tray_open(tray);
        break;
    case AT_OPEN_DISC:
        tray_open(tray);
        tray_insert(tray, true);
        break;
    case AT_LOADING:
        tray_insert(tray, true);
        break;
    case AT_CLOSING: /* the same disc again */
        tray_insert(tray, false);
        tray_open(tray);
        tray_close(tray);
        break;
    case AT_CHANGED: /* another one, put in while it was open */
        tray_open(tray);
        tray_insert(tray, true);
        tray_close(tray);
        break;
    default:
        tray_insert(tray, false);
        break;
    }
    tray->n_events = 0;
    tray->features_changed = false;
    tray->prevent = true;
}

/* What it comes to: the state, the events in order as digits, the sense of the readiness question (or 1 for
 * ready, 0 where it was not asked), the attentions pending, what the lock is. */
typedef struct Outcome {
    TrayState state;
    unsigned events;
    uint32_t ready;
    bool power_on, changed, locked, moved;
} Outcome;

#define O      TRAY_OPEN
#define E      TRAY_EMPTY
#define G      TRAY_LOADING
#define L      TRAY_LOADED
#define NEW    2
#define OUT    3
#define CHANGE 23 /* removal, then new media, as digits() writes it */

static const Outcome table[AT_STATES][DO_EVENTS] =
    {
        [AT_EMPTY] =
            {
                [DO_INSERT] = {G, NEW, 0, 0, 0, 1, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {E, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, 0, 0, 0, 0, 1, 1},
                [DO_CLOSE] = {E, 0, 0, 0, 0, 1, 0},
                [DO_READY] = {E, 0, 0x023a01, 0, 0, 1, 0},
                [DO_POWER_ON] = {E, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {E, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {E, 1, 0, 0, 0, 1, 0},
            },
        [AT_OPEN] =
            {
                [DO_INSERT] = {O, 0, 0, 0, 0, 1, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {O, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, 0, 0, 0, 0, 1, 0},
                [DO_CLOSE] = {E, 0, 0, 0, 0, 1, 1},
                [DO_READY] = {O, 0, 0x023a02, 0, 0, 1, 0},
                [DO_POWER_ON] = {O, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {O, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {O, 1, 0, 0, 0, 1, 0},
            },
        [AT_OPEN_DISC] =
            {
                [DO_INSERT] = {O, 0, 0, 0, 0, 1, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {O, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, 0, 0, 0, 0, 1, 0},
                [DO_CLOSE] = {G, NEW, 0, 0, 0, 1, 1},
                [DO_READY] = {O, 0, 0x023a02, 0, 0, 1, 0},
                [DO_POWER_ON] = {O, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {O, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {O, 1, 0, 0, 0, 1, 0},
            },
        [AT_LOADING] =
            {
                [DO_INSERT] = {G, CHANGE, 0, 0, 0, 0, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {E, OUT, 0, 0, 0, 0, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, OUT, 0, 0, 0, 1, 1},
                [DO_CLOSE] = {G, 0, 0, 0, 0, 1, 0},
                [DO_READY] = {L, 0, 0x023a01, 0, 1, 1, 0},
                [DO_POWER_ON] = {L, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {G, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {G, 1, 0, 0, 0, 1, 0},
            },
        [AT_CLOSING] =
            {
                [DO_INSERT] = {G, CHANGE, 0, 0, 0, 0, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {E, OUT, 0, 0, 0, 0, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, OUT, 0, 0, 0, 1, 1},
                [DO_CLOSE] = {G, 0, 0, 0, 0, 1, 0},
                [DO_READY] = {L, 0, 0x020401, 0, 1, 1, 0},
                [DO_POWER_ON] = {L, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {G, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {G, 1, 0, 0, 0, 1, 0},
            },
        [AT_CHANGED] =
            {
                [DO_INSERT] = {G, CHANGE, 0, 0, 0, 0, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {E, OUT, 0, 0, 0, 0, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, OUT, 0, 0, 0, 1, 1},
                [DO_CLOSE] = {G, 0, 0, 0, 0, 1, 0},
                [DO_READY] = {L, 0, 0x023a01, 0, 1, 1, 0},
                [DO_POWER_ON] = {L, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {G, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {G, 1, 0, 0, 0, 1, 0},
            },
        [AT_LOADED] =
            {
                [DO_INSERT] = {G, CHANGE, 0, 0, 0, 0, 0},
                [DO_INSERT_QUIET] = {L, 0, 0, 0, 0, 1, 0},
                [DO_REMOVE] = {E, OUT, 0, 0, 0, 0, 0},
                [DO_REMOVE_QUIET] = {E, 0, 0, 0, 0, 1, 0},
                [DO_OPEN] = {O, OUT, 0, 0, 0, 1, 1},
                [DO_CLOSE] = {L, 0, 0, 0, 0, 1, 0},
                [DO_READY] = {L, 0, 1, 0, 0, 1, 0},
                [DO_POWER_ON] = {L, 0, 0, 1, 0, 0, 0},
                [DO_DEVICE_RESET] = {L, 0, 0, 0, 0, 0, 0},
                [DO_EJECT_REQUEST] = {L, 1, 0, 0, 0, 1, 0},
            },
};

/* The events, oldest in the last digit. */
static unsigned digits(const Tray *tray)
{
    unsigned number = 0;
    for (unsigned i = tray->n_events; i > 0; i--) {
        number = number * 10 + tray->events[i - 1];
    }
    return number;
}

static Outcome apply(Tray *tray, Do what)
{
    Outcome outcome = {0};
    MmcSense sense;
    switch (what) {
    case DO_INSERT:
        tray_insert(tray, true);
        break;
    case DO_INSERT_QUIET:
        tray_insert(tray, false);
        break;
    case DO_REMOVE:
        tray_remove(tray, true);
        break;
    case DO_REMOVE_QUIET:
        tray_remove(tray, false);
        break;
    case DO_OPEN:
        outcome.moved = tray_open(tray);
        break;
    case DO_CLOSE:
        outcome.moved = tray_close(tray);
        break;
    case DO_READY:
        outcome.ready = 1;
        if (!tray_check_ready(tray, &sense)) {
            outcome.ready = (uint32_t)sense.key << 16 | sense.asc << 8 | sense.ascq;
        }
        break;
    case DO_POWER_ON:
        tray_power_on(tray);
        break;
    case DO_DEVICE_RESET:
        tray_device_reset(tray);
        break;
    default:
        tray_eject_request(tray);
        break;
    }
    outcome.state = tray->state;
    outcome.events = digits(tray);
    outcome.power_on = tray->power_on_pending;
    outcome.changed = tray->medium_pending;
    outcome.locked = tray_locked(tray);
    return outcome;
}

static void check_invariants(const Tray *tray)
{
    g_assert_true(tray->medium || (tray->state != TRAY_LOADING && tray->state != TRAY_LOADED));
    g_assert_false(tray->medium && tray->state == TRAY_EMPTY);
    g_assert_true(!tray->medium_pending || tray->state == TRAY_LOADED);
    g_assert_cmpuint(tray->n_events, <=, TRAY_EVENTS);
}

static void test_cell(gconstpointer data)
{
    const unsigned cell = GPOINTER_TO_UINT(data);
    const Outcome *expect = &table[cell / DO_EVENTS][cell % DO_EVENTS];
    Tray tray;
    reach(&tray, cell / DO_EVENTS);
    check_invariants(&tray);
    const Outcome outcome = apply(&tray, cell % DO_EVENTS);
    check_invariants(&tray);
    g_assert_cmpint(outcome.state, ==, expect->state);
    g_assert_cmpuint(outcome.events, ==, expect->events);
    g_assert_cmphex(outcome.ready, ==, expect->ready);
    g_assert_cmpint(outcome.power_on, ==, expect->power_on);
    g_assert_cmpint(outcome.changed, ==, expect->changed);
    g_assert_cmpint(outcome.locked, ==, expect->locked);
    g_assert_cmpint(outcome.moved, ==, expect->moved);
}

/* Wherever the machine goes, what always holds does, and asking leads to an answer in at most three steps. */
static void test_random_walk(void)
{
    Tray tray;
    tray_init(&tray);
    for (unsigned i = 0; i < 100000; i++) {
        const int what = g_test_rand_int_range(0, DO_EVENTS + 2);
        MmcSense sense;
        if (what < DO_EVENTS) {
            apply(&tray, (Do)what);
        } else if (what == DO_EVENTS) {
            tray_take_event(&tray);
        } else {
            tray_take_attention(&tray, &sense);
        }
        check_invariants(&tray);
        if (i % 50 == 0 && (tray.state == TRAY_LOADED || tray.state == TRAY_LOADING)) {
            unsigned refused = 0;
            while (tray_take_attention(&tray, &sense) || !tray_check_ready(&tray, &sense)) {
                g_assert_cmpuint(++refused, <=, 3);
            }
        }
    }
}

static void test_attention_order(void)
{
    Tray tray;
    MmcSense sense;
    reach(&tray, AT_LOADING);
    tray_check_ready(&tray, &sense);
    tray.power_on_pending = true;
    g_assert_true(tray_take_attention(&tray, &sense));
    g_assert_cmphex(sense.asc, ==, 0x29);
    g_assert_true(tray_take_attention(&tray, &sense));
    g_assert_cmphex(sense.asc, ==, 0x28);
    g_assert_false(tray_take_attention(&tray, &sense));
}

/* However often the operator changes discs, the guest hears of it once. */
static void test_events_do_not_pile_up(void)
{
    Tray tray;
    reach(&tray, AT_LOADED);
    for (unsigned i = 0; i < 10; i++) {
        tray_insert(&tray, true);
        tray_eject_request(&tray);
    }
    g_assert_cmpuint(tray.n_events, ==, 3);
    g_assert_cmpint(tray_take_event(&tray), ==, TRAY_EVENT_REMOVAL);
    g_assert_cmpint(tray_take_event(&tray), ==, TRAY_EVENT_NEW_MEDIA);
    g_assert_cmpint(tray_take_event(&tray), ==, TRAY_EVENT_EJECT_REQUEST);
    g_assert_cmpint(tray_take_event(&tray), ==, TRAY_EVENT_NONE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned cell = 0; cell < AT_STATES * DO_EVENTS; cell++) {
        g_autofree char *name =
            g_strdup_printf("/mmc/tray/%s/%s", at_names[cell / DO_EVENTS], do_names[cell % DO_EVENTS]);
        g_test_add_data_func(name, GUINT_TO_POINTER(cell), test_cell);
    }
    g_test_add_func("/mmc/tray/attention-order", test_attention_order);
    g_test_add_func("/mmc/tray/events-do-not-pile-up", test_events_do_not_pile_up);
    g_test_add_func("/mmc/tray/random-walk", test_random_walk);
    return g_test_run();
}
