/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tray, the lock, and what the guest has not been told yet. One state machine, no I/O; loop thread.
 *
 *                 open                         open
 *      +---------------------->  OPEN  <--------------------------+
 *      |        +---------------  |  ^                            |
 *      |        | close           |  | open                       |
 *      |        | (nothing in it) |  |                            |
 *      |        v                 |  +---------------+            |
 *    EMPTY <----------------------|--- remove -------|--+---------|--+
 *      |  insert                  | close            |            |
 *      |  (shows 3A)              | (shows 04/01, or |            |
 *      |                          |  3A: other disc) |            |
 *      +----------------------> LOADING -------------+            |
 *                                 |  ^       the guest asked if it is ready and was told: not yet
 *                                 |  |  insert (a change; shows 3A)
 *                                 v  |                            |
 *                               LOADED ---------------------------+
 *
 * OPEN:    not ready, 02/3A/02. A disc may lie in the tray (`medium`).
 * EMPTY:   closed with nothing in it: not ready, 02/3A/01; 02/04/01 while a drive of the host spins up.
 * LOADING: a disc is in, and the guest has not yet seen that the drive was not ready. The first command that
 *          needs a medium gets the `loading` sense, which leads to LOADED with the attention 06/28 pending.
 *          Guests that only see 06/28 keep what they cached of the old disc; hence both steps, always, each
 *          exactly once.
 * LOADED:  ready, as soon as the pending attentions have been reported.
 *
 * `medium` is true in LOADING and LOADED, false in EMPTY. Power-on attention comes before medium attention
 * (SAM-5 5.14). A medium attention is pending only in LOADED.
 */
#ifndef SPINDLE_HW_BLOCK_TRAY_H
#define SPINDLE_HW_BLOCK_TRAY_H

#include <stdbool.h>
#include <stdint.h>
#include "hw/block/mmc.h"

typedef enum { TRAY_OPEN, TRAY_EMPTY, TRAY_LOADING, TRAY_LOADED } TrayState;

/* Media class event codes of GET EVENT STATUS NOTIFICATION (MMC-6 6.6.2.7). */
typedef enum {
    TRAY_EVENT_NONE = 0,
    TRAY_EVENT_EJECT_REQUEST = 1,
    TRAY_EVENT_NEW_MEDIA = 2,
    TRAY_EVENT_REMOVAL = 3,
} TrayEvent;

#define TRAY_EVENTS 4 /* most events kept; more add nothing that these do not say */

typedef struct Tray {
    TrayState state;
    bool medium;
    bool prevent, persistent;              /* PREVENT ALLOW MEDIUM REMOVAL's two bits */
    bool power_on_pending, medium_pending; /* unit attentions */
    bool features_changed;                 /* operational change event pending */
    bool spinning;                         /* EMPTY: the drive is making a disc ready */
    MmcSense loading;                      /* what LOADING shows; while OPEN: what it will show */
    TrayEvent events[TRAY_EVENTS];
    unsigned n_events;
} Tray;

/* Empty, closed, the power-on attention pending. */
void tray_init(Tray *tray);

/* Power-on or hard reset: pending things give way to the power-on attention, the lock goes. */
void tray_power_on(Tray *tray);

/* The weaker reset: only the lock goes. */
void tray_device_reset(Tray *tray);

/* A disc is put in (or replaces the one that is there). An open tray stays open with it, unless `announce` is
 * false: then the tray is closed and LOADED, with nothing to report. */
void tray_insert(Tray *tray, bool announce);

/* A drive of the host, in whose open or empty tray a disc was put: it shows 02/04/01 before the attention, as
 * drives do (MMC-6 annex F), for the guest has been told or could ask that there was none. Behind
 * tray_insert(). */
void tray_load_slowly(Tray *tray);

/* The disc is taken out; an open tray stays open unless `announce` is false. */
void tray_remove(Tray *tray, bool announce);

/* True when the tray moved. Neither asks for the lock. */
bool tray_open(Tray *tray);
bool tray_close(Tray *tray);

/* Both locks go, as by force. */
void tray_unlock(Tray *tray);

/* The button, or the operator, of a locked drive. */
void tray_eject_request(Tray *tray);

/* A command that needs a medium: true to go on, else *ret_sense. Moves LOADING to LOADED. */
bool tray_check_ready(Tray *tray, MmcSense *ret_sense);

/* The most important pending attention, which is reported and gone by this. False: none. */
bool tray_take_attention(Tray *tray, MmcSense *ret_sense);

/* The oldest media event, taken off; TRAY_EVENT_NONE when there is none. */
TrayEvent tray_take_event(Tray *tray);
bool tray_has_event(const Tray *tray);

/* True when the guest's lock forbids the operator to open it. */
bool tray_locked(const Tray *tray);

#endif
