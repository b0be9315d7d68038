/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include "hw/block/sense.h"
#include "hw/block/tray.h"

void tray_init(Tray *tray)
{
    *tray = (Tray){.state = TRAY_EMPTY, .power_on_pending = true};
}

void tray_unlock(Tray *tray)
{
    tray->prevent = tray->persistent = false;
}

/* The newest of a kind is enough: a guest that has not asked for a while learns what is true now. */
static void add_event(Tray *tray, TrayEvent event)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < tray->n_events; i++) {
        if (tray->events[i] != event) {
            tray->events[kept++] = tray->events[i];
        }
    }
    tray->events[kept++] = event;
    tray->n_events = kept;
}

void tray_power_on(Tray *tray)
{
    tray_unlock(tray);
    tray->power_on_pending = true;
    tray->medium_pending = false;
    tray->features_changed = false;
    tray->n_events = 0;
    if (tray->state == TRAY_LOADING) {
        tray->state = TRAY_LOADED;
    }
}

void tray_device_reset(Tray *tray)
{
    tray_unlock(tray);
}

static void start_loading(Tray *tray, MmcSense shown)
{
    tray->state = TRAY_LOADING;
    tray->loading = shown;
    tray->medium_pending = false;
    tray->features_changed = true;
    add_event(tray, TRAY_EVENT_NEW_MEDIA);
}

static void lose_medium(Tray *tray)
{
    if (tray->state == TRAY_LOADING || tray->state == TRAY_LOADED) {
        add_event(tray, TRAY_EVENT_REMOVAL);
        tray->features_changed = true;
    }
    tray->medium_pending = false;
}

void tray_insert(Tray *tray, bool announce)
{
    tray->medium = true;
    if (!announce) {
        tray->state = TRAY_LOADED;
        tray->medium_pending = false;
        tray->n_events = 0;
        return;
    }
    if (tray->state == TRAY_OPEN) {
        tray->loading = SENSE_NO_MEDIUM; /* another disc than the guest's: as any change */
        return;
    }
    if (tray->state != TRAY_EMPTY) { /* the old disc was taken out under the guest's hands */
        lose_medium(tray);
        tray_unlock(tray);
    }
    start_loading(tray, SENSE_NO_MEDIUM);
}

void tray_load_slowly(Tray *tray)
{
    tray->loading = SENSE_BECOMING_READY;
}

void tray_remove(Tray *tray, bool announce)
{
    tray->medium = false;
    if (!announce) {
        tray->state = TRAY_EMPTY;
        tray->medium_pending = false;
        tray->n_events = 0;
        return;
    }
    if (tray->state == TRAY_LOADING || tray->state == TRAY_LOADED) {
        lose_medium(tray);
        tray_unlock(tray);
        tray->state = TRAY_EMPTY;
    }
}

bool tray_open(Tray *tray)
{
    if (tray->state == TRAY_OPEN) {
        return false;
    }
    lose_medium(tray);
    tray->state = TRAY_OPEN;
    tray->loading = SENSE_BECOMING_READY;
    return true;
}

bool tray_close(Tray *tray)
{
    if (tray->state != TRAY_OPEN) {
        return false;
    }
    if (tray->medium) {
        start_loading(tray, tray->loading);
    } else {
        tray->state = TRAY_EMPTY;
    }
    return true;
}

void tray_eject_request(Tray *tray)
{
    add_event(tray, TRAY_EVENT_EJECT_REQUEST);
}

bool tray_check_ready(Tray *tray, MmcSense *ret_sense)
{
    switch (tray->state) {
    case TRAY_OPEN:
        *ret_sense = SENSE_TRAY_OPEN;
        return false;
    case TRAY_EMPTY:
        *ret_sense = tray->spinning ? SENSE_BECOMING_READY : SENSE_NO_MEDIUM;
        return false;
    case TRAY_LOADING:
        *ret_sense = tray->loading;
        tray->state = TRAY_LOADED;
        tray->medium_pending = true;
        return false;
    default:
        return true;
    }
}

bool tray_take_attention(Tray *tray, MmcSense *ret_sense)
{
    if (tray->power_on_pending) {
        tray->power_on_pending = false;
        *ret_sense = SENSE_POWER_ON;
        return true;
    }
    if (tray->medium_pending) {
        tray->medium_pending = false;
        *ret_sense = SENSE_MEDIUM_CHANGED;
        return true;
    }
    return false;
}

TrayEvent tray_take_event(Tray *tray)
{
    if (tray->n_events == 0) {
        return TRAY_EVENT_NONE;
    }
    const TrayEvent event = tray->events[0];
    tray->n_events--;
    memmove(&tray->events[0], &tray->events[1], tray->n_events * sizeof tray->events[0]);
    return event;
}

bool tray_has_event(const Tray *tray)
{
    return tray->n_events > 0;
}

bool tray_locked(const Tray *tray)
{
    return tray->prevent || tray->persistent;
}
