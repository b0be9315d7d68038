/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A machine that can be moved: a hard disk and a CD drive on a PIIX3's first channel (units 0 and 1) or on an
 * AHCI controller's first two ports. Its guest is plain code whose every access counts; at the one that the
 * test chose, the state is saved and loaded into another machine made alike, and the guest goes on there
 * without knowing. What it sees is written down, to be compared with a guest that was not moved.
 */
#ifndef SPINDLE_TESTS_STATE_RIG_H
#define SPINDLE_TESTS_STATE_RIG_H

#include "hw/ide/atapi.h"
#include "tests/qtest/disk-rig.h"

#define STATE_DISC_SECTORS 64

typedef struct StateMachine {
    bool ahci;
    Disk disk; /* with the rig */
    BlockNode *disc;
    MmcDrive *mmc;
    IdeDevice *cd;
} StateMachine;

typedef struct StateGuest {
    StateMachine *m;
    unsigned ops;     /* accesses so far */
    unsigned move_at; /* before this one; UINT_MAX: never */
    unsigned moved;   /* times */
    GBytes *saved;    /* if `save_only`: the state at that point; the guest is not moved then */
    bool save_only;
    GByteArray *seen;
} StateGuest;

/* `slow`: media answer late, so that commands wait for them. */
StateMachine *state_machine_new(bool ahci, bool slow);
void state_machine_free(StateMachine *m);
PciDevice *state_machine_pci(const StateMachine *m);
FakeHost *state_machine_host(const StateMachine *m);
GBytes *state_machine_save(StateMachine *m);
bool state_machine_load(StateMachine *m, GBytes *bytes, GError **error);
/* Lets the loaded commands go on. */
void state_machine_unpark(StateMachine *m);

/* Before each access. */
void state_guest_step(StateGuest *g);
void state_guest_saw(StateGuest *g, const void *data, size_t len);

/* The state before one of the accesses of `script`, chosen by the seed. */
GBytes *state_in_the_middle(bool ahci, void (*script)(StateGuest *g));

/* Runs `script` unmoved, then moved before each of its accesses, and compares. */
void state_run_everywhere(bool ahci, bool slow, void (*script)(StateGuest *g));

#endif
