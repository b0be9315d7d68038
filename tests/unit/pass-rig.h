/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive of the host that records the commands that were passed to it and answers as it is told, with a disc
 * of 600 sectors, and a guest on it. Needs root.
 */
#ifndef SPINDLE_TESTS_UNIT_PASS_RIG_H
#define SPINDLE_TESTS_UNIT_PASS_RIG_H

#include "tests/lib/fake-sg.h"
#include "tests/lib/loop-device.h"
#include "tests/lib/mmc-guest.h"
#include <pthread.h>

#define PASS_LIMIT   16384 /* bytes that the host passes at once */
#define PASS_SECTORS 600
#define PASS_PARTS   64

/* A command as the drive got it. */
typedef struct Part {
    uint8_t cdb[16];
    uint8_t cdb_bytes;
    int direction;
    unsigned bytes, timeout;
    int flags; /* of the descriptor */
} Part;

/* The lock guards it. */
typedef struct PassDrive {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    Part part[PASS_PARTS];
    unsigned parts;
    uint8_t type;      /* of the device by INQUIRY, and 1; 0: a CD/DVD drive */
    unsigned most;     /* bytes that it answers with, at most */
    uint8_t status;    /* all commands end so, … */
    uint8_t sense[32]; /* … with that */
    unsigned sense_bytes;
    int host_status, error; /* or do not get there */
    bool hang;
    GByteArray *written;
} PassDrive;

extern PassDrive drive;

/* Byte `i` of the data that it gives. */
uint8_t drive_byte(const uint8_t *cdb, unsigned i);

/* How many commands came since drive_reset(), which also makes it answer GOOD. */
unsigned drive_count(void);
void drive_reset(void);

/* From now on CHECK CONDITION with this sense. */
void drive_says(const void *sense, unsigned bytes);
/* … does not answer at all; and it does. */
void drive_hangs(bool hang);

#define assert_part(number, ...)                                                                             \
    do {                                                                                                     \
        const uint8_t cdb_[] = {__VA_ARGS__};                                                                \
        g_assert_cmpmem(drive.part[number].cdb, drive.part[number].cdb_bytes, cdb_, sizeof cdb_);            \
    } while (0)

typedef struct Rig {
    LoopDevice *loop;
    MmcGuest guest;
    char *medium;
} Rig;

/* False: skipped. `more`: options of the node. */
bool rig_new(Rig *rig, MmcPassthrough policy, const char *more);
void rig_free(Rig *rig);

/* Runs the loop for a while. */
void rig_rest(unsigned ms);

/* The last command's data is what the drive gave in so many parts. */
void assert_answers(const MmcGuest *guest, unsigned parts);

#endif
