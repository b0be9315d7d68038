/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of the machine share: machine.c (its making and its monitors) and machine-drives.c (drives,
 * at the start and by hot-plug). Loop thread.
 */
#ifndef SPINDLE_SYSTEM_MACHINE_INT_H
#define SPINDLE_SYSTEM_MACHINE_INT_H

#include "monitor/backend.h"
#include "system/controller.h"
#include "system/device-set.h"
#include "system/drive.h"
#include "system/machine.h"

/* A drive and its place. */
typedef struct Slot {
    Drive *drive;
    Controller *controller;
    unsigned bus, unit;
    Backend *backend; /* the monitor's */
} Slot;

struct Machine {
    Monitor *monitor; /* has the nodes and throttle groups */
    GPtrArray *chardevs;
    GPtrArray *controllers;
    GPtrArray *slots;   /* those in use */
    unsigned anonymous; /* devices without an id, so far */
    bool stopped;       /* by a monitor's `stop` */
    bool parked;        /* see machine-state.c; also `stopped` */
    DeviceSet *saving;  /* NULL: no save is under way; else `saved` is due */
    MonitorStateSaved saved;
    void *saved_opaque;
    GHashTable *vanished; /* nodes that could not be opened while a state is expected: name to the reason */
    void (*quit)(void *opaque);
    void *opaque;
};

/* Stands still, or runs: tells drives and monitors. */
void machine_set_stopped(Machine *machine, bool stopped);

/* machine-state.c: MonitorMachine's functions, and the end of it all. */
void machine_save_state(void *opaque, MonitorStateSaved saved, void *saved_opaque);
JsonNode *machine_load_state(void *opaque, GBytes *bytes, GError **error);
/* Before the machine runs: parked devices go on, with their images. */
bool machine_unpark(Machine *machine, GError **error);
void machine_abandon_save(Machine *machine);

Controller *machine_find_controller(const Machine *machine, const char *id); /* NULL: none */

/* A Slot: drives go before the controllers that they are attached to, see machine_free(). */
void machine_slot_free(gpointer data);

/* device_add and device_del, as MonitorMachine has them. */
bool machine_plug(void *opaque, Options *options, GError **error);
bool machine_unplug(void *opaque, const char *id, GError **error);

#endif
