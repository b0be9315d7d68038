/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The machine behind `-accel qtest`: the PC, its monitor, and the drives of the command line. Loop thread.
 */
#ifndef SPINDLE_SYSTEM_QTEST_MACHINE_H
#define SPINDLE_SYSTEM_QTEST_MACHINE_H

#include "hw/block/hard-disk.h"
#include "hw/ide/ahci.h"
#include "hw/ide/ide-device.h"
#include "monitor/backend.h"
#include "monitor/monitor.h"
#include "system/qtest/pc.h"

#define QTEST_AHCI_BUSES 6

/* A controller and the name of its buses: "ide" for the machine's own. One of the two. */
typedef struct QtestController {
    char *id;
    PciIde *ide;
    AhciController *ahci;
    bool own; /* freed with the machine, not with the PC */
} QtestController;

typedef struct QtestDrive {
    struct QtestMachine *machine; /* it was added to */
    Backend *backend;             /* the monitor's */
    MmcDrive *mmc;
    HardDisk *disk;
    IdeDevice *device;
    QtestController *controller;
    unsigned bus, unit;
} QtestDrive;

typedef struct Migration Migration;

typedef struct QtestMachine {
    Pc *pc;
    Monitor *monitor;
    GPtrArray *controllers; /* QtestController */
    GPtrArray *drives;      /* QtestDrive */
    GMainLoop *loop;
    const char *status; /* as query-status */
    Migration *migration;
    bool failed;        /* the program ends with an error */
    unsigned anonymous; /* devices without an id, so far */
    unsigned built_in;  /* drives of if=ide, so far */
    unsigned unnamed;   /* drives of if=none without an id, so far */
} QtestMachine;

QtestMachine *qtest_machine_new(PcModel model, uint64_t ram_size, GError **error);
void qtest_machine_free(QtestMachine *machine); /* NULL is allowed */

/* Units on each bus of a controller. */
unsigned qtest_controller_buses(const QtestController *controller);
unsigned qtest_controller_units(const QtestController *controller);

/* Takes over the controller's parts. */
QtestController *qtest_machine_add_controller(QtestMachine *machine, const char *id, PciIde *ide,
                                              AhciController *ahci);
QtestController *qtest_machine_find_controller(QtestMachine *machine, const char *id);

/* The drive at a place, or NULL. */
QtestDrive *qtest_machine_drive_at(QtestMachine *machine, const QtestController *controller, unsigned bus,
                                   unsigned unit);

/* Connects the drive, which becomes the machine's. */
void qtest_machine_add_drive(QtestMachine *machine, QtestDrive *drive);
void qtest_drive_free(QtestDrive *drive);

void qtest_machine_stop(QtestMachine *machine, const char *status);
bool qtest_machine_cont(QtestMachine *machine, GError **error);

#endif
