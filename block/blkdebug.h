/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rules of the `blkdebug` driver: blkdebug-rules.c reads them, blkdebug.c obeys them. Whoever holds a rule
 * owns it.
 */
#ifndef SPINDLE_BLOCK_BLKDEBUG_H
#define SPINDLE_BLOCK_BLKDEBUG_H

#include "block/block-int.h"
#include "util/buffer.h"

typedef enum { BLKDEBUG_INJECT, BLKDEBUG_SET_STATE, BLKDEBUG_SUSPEND } BlkdebugAction;

/* QEMU's BlkdebugIOType. */
typedef enum {
    BLKDEBUG_READ,
    BLKDEBUG_WRITE,
    BLKDEBUG_WRITE_ZEROES,
    BLKDEBUG_DISCARD,
    BLKDEBUG_FLUSH,
    BLKDEBUG_BLOCK_STATUS,
} BlkdebugIotype;

typedef struct BlkdebugRule {
    BlkdebugAction action;
    int event; /* a BlockDebugEvent, or -1: one that cannot happen here */
    int state; /* 0: any */
    /* inject */
    unsigned iotypes; /* bit per BlkdebugIotype */
    int error;        /* errno; 0: none */
    uint64_t offset;  /* bytes, or UINT64_MAX: anywhere */
    uint64_t delay_ns;
    bool once;
    int new_state; /* set state */
    char *tag;     /* suspend */
} BlkdebugRule;

void blkdebug_rule_free(BlkdebugRule *rule);

/* True for a name of QEMU's BlkdebugEvent. */
bool blkdebug_find_event(const char *name, int *ret_event);

/* Prepends the rules of `inject-error.N.…` and `set-state.N.…`. What was prepended stays on failure. Any
 * thread. */
bool blkdebug_read_options(GList **rules, Options *options, GError **error);

/* The same of a configuration file: sections [inject-error] and [set-state] of lines `key = "value"`. */
bool blkdebug_read_config(GList **rules, const char *path, GError **error);

#endif
