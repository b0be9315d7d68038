/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A drive with a medium, and a transport that plays the guest: it sends a CDB and collects what comes. Checks
 * of every command are built in: it ends once, gives at most what it announced, and clears nothing it should
 * not. Loop thread.
 */
#ifndef SPINDLE_TESTS_LIB_MMC_GUEST_H
#define SPINDLE_TESTS_LIB_MMC_GUEST_H

#include "block/block.h"
#include "hw/block/mmc.h"

typedef struct MmcGuest {
    MmcDrive *drive;
    BlockNode *node;  /* reference */
    GByteArray *data; /* of the last command */
    MmcSense sense;   /* of the last command */
    unsigned chunks, ends;
    MmcCommand *command; /* under way */
    const uint8_t *out;  /* data to give */
    size_t out_len, wanted, given;
    bool hold;       /* data is taken and more not asked for, until mmc_guest_resume() */
    bool mapped;     /* its memory may be written to directly, in pieces… */
    size_t piece;    /* … of so many bytes */
    uint8_t *memory; /* BUFFER_MAX bytes */
    unsigned direct; /* chunks that were */
    bool later;      /* answers come from the loop, not from inside the callbacks */
    unsigned moves;
    bool moved_open;
    unsigned failures[ON_ERROR_ENOSPC]; /* reads of the drive that failed, by what became of them */
} MmcGuest;

/* Options of block_open(), or NULL for an empty drive. Attentions are taken already. */
void mmc_guest_setup(MmcGuest *guest, const char *node_options);
/* Also says if the drive reads ahead, and leaves the power-on attention. */
void mmc_guest_setup_raw(MmcGuest *guest, const char *node_options, bool read_ahead);
/* Attentions are taken already; commands may go to the drive of the host. */
void mmc_guest_setup_pass(MmcGuest *guest, const char *node_options, MmcPassthrough passthrough);
/* Attentions are taken already; `rerror` is the drive's, what it made of failed reads is in failures[]. */
void mmc_guest_setup_rerror(MmcGuest *guest, const char *node_options, OnError rerror);
void mmc_guest_teardown(MmcGuest *guest);

/* Opens a node; must succeed. */
BlockNode *mmc_guest_open(const char *node_options);

/* Starts a command; the CDB is padded with zeroes. */
void mmc_guest_start(MmcGuest *guest, const uint8_t *cdb, size_t len);
/* Waits for its end, at most ten seconds. */
void mmc_guest_wait(MmcGuest *guest);
/* Both; returns the sense as 0xKKAACC, 0 for GOOD. */
uint32_t mmc_guest_run(MmcGuest *guest, const uint8_t *cdb, size_t len);
/* With parameter data. */
uint32_t mmc_guest_send(MmcGuest *guest, const uint8_t *cdb, size_t len, const void *data, size_t data_len);
void mmc_guest_resume(MmcGuest *guest);
void mmc_guest_abandon(MmcGuest *guest);

/* REQUEST SENSE, 18 bytes, as 0xKKAACC. */
uint32_t mmc_guest_request_sense(MmcGuest *guest);

/* Runs the loop until the condition holds; fails after ten seconds. */
#define mmc_guest_until(condition)                                                                           \
    do {                                                                                                     \
        gint64 end_ = g_get_monotonic_time() + 10 * G_TIME_SPAN_SECOND;                                      \
        while (!(condition)) {                                                                               \
            g_assert_cmpint(g_get_monotonic_time(), <, end_);                                                \
            if (!g_main_context_iteration(NULL, FALSE)) {                                                    \
                g_usleep(100);                                                                               \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

#define CDB(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* The last data, byte for byte. */
#define assert_data(guest, ...)                                                                              \
    do {                                                                                                     \
        const uint8_t expect_[] = {__VA_ARGS__};                                                             \
        g_assert_cmpmem((guest)->data->data, (guest)->data->len, expect_, sizeof expect_);                   \
    } while (0)

/* The command ends with this sense. */
#define assert_sense(guest, expect, ...) g_assert_cmphex(mmc_guest_run(guest, CDB(__VA_ARGS__)), ==, expect)
#define assert_good(guest, ...)          assert_sense(guest, 0, __VA_ARGS__)

#endif
