/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of the machine share: machine.c (its making and its monitors) and machine-drives.c (drives,
 * at the start and by hot-plug). Loop thread.
 */
#ifndef SPINDLE_SYSTEM_MACHINE_INT_H
#define SPINDLE_SYSTEM_MACHINE_INT_H

#include "monitor/backend.h"
#include "system/controller.h"
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
    void (*quit)(void *opaque);
    void *opaque;
};

Controller *machine_find_controller(const Machine *machine, const char *id); /* NULL: none */

/* A Slot: drives go before the controllers that they are attached to, see machine_free(). */
void machine_slot_free(gpointer data);

/* device_add and device_del, as MonitorMachine has them. */
bool machine_plug(void *opaque, Options *options, GError **error);
bool machine_unplug(void *opaque, const char *id, GError **error);

#endif
