/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the human monitor's commands share. Loop thread.
 */
#ifndef SPINDLE_MONITOR_HMP_H
#define SPINDLE_MONITOR_HMP_H

#include "monitor/backend.h"
#include "monitor/qmp.h"

typedef struct HmpCall {
    QmpCall *qmp;
    Monitor *monitor;
    char **words; /* the command's name and arguments */
    GString *output;
    bool deferred; /* hmp_finish() is called by the command, at once or later */
    bool running, finished;
} HmpCall;

void hmp_print(HmpCall *call, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* "Error: …"; takes the error over, which may be NULL. */
void hmp_error(HmpCall *call, GError *error);

/* Sends the output and frees the call. */
void hmp_finish(HmpCall *call);

/* hmp-block.c */
void hmp_info_block(HmpCall *call);
void hmp_info_blockstats(HmpCall *call);
void hmp_qemu_io(HmpCall *call);

#endif
