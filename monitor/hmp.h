/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The human monitor: lines of words that become commands. Its commands are rows of tables, most of them QMP's
 * by another name; their text is the result. Loop thread.
 */
#ifndef SPINDLE_MONITOR_HMP_H
#define SPINDLE_MONITOR_HMP_H

#include "monitor/backend.h"
#include "monitor/qmp.h"

/* A command under way. */
typedef struct HmpCall {
    Monitor *monitor;
    const struct HmpCommand *command;
    JsonObject *args; /* by name, as the command's `spec` says: strings, integers, true */
    GString *output;
    bool deferred; /* hmp_finish() is called by the command, at once or later */
    bool running, finished;
    void (*done)(const char *text, void *opaque);
    void *opaque;
} HmpCall;

typedef struct HmpCommand {
    const char *name; /* with others it goes by: "quit|q" */
    /* Arguments as NAME:TYPE with commas between, `?` behind those that may be left out: B block device, F
     * file, N block node, s string, l integer, o size (MiB without a suffix), S the rest of the line, -x a
     * flag, which may stand anywhere. "" : none. */
    const char *spec;
    const char *usage, *help; /* as `help` prints them */
    void (*run)(HmpCall *call);
    const char *qmp;                            /* what it is called there, for hmp_run_qmp */
    bool (*has)(const MonitorMachine *machine); /* NULL: every machine that has the other has it */
} HmpCommand;

/* Each ends with a NULL name. */
extern const HmpCommand hmp_commands[], hmp_infos[];

/* The row whose name, or one of whose names, this is; NULL: none. */
const HmpCommand *hmp_find(const HmpCommand *table, const char *name);
/* Whether the monitor's machine has it. */
bool hmp_available(const HmpCommand *command, const Monitor *monitor);

/* Runs a line; `done` gets its text, which stays the call's, inside or later. */
void hmp_run_line(Monitor *monitor, const char *line, void (*done)(const char *text, void *opaque),
                  void *opaque);

void hmp_print(HmpCall *call, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* "Error: …"; takes the error over, which may be NULL. */
void hmp_error(HmpCall *call, GError *error);

/* Sends the output and frees the call. */
void hmp_finish(HmpCall *call);

/* NULL: not given. */
const char *hmp_arg(const HmpCall *call, const char *name);
bool hmp_flag(const HmpCall *call, const char *name);

/* The command by its name in QMP, with the same arguments; what is called `device` here may there be an `id`
 * or a `node-name`. */
void hmp_run_qmp(HmpCall *call);
/* The same with other arguments (taken over). `shown` prints the value, NULL: it is not shown. */
void hmp_run_qmp_with(HmpCall *call, JsonObject *args, void (*shown)(HmpCall *call, JsonNode *value));

/* hmp-parse.c: the words of a line as the spec has them, into `args`. False and what to tell the user (with
 * "\n" only), for the name that the command was called by. */
bool hmp_parse(const HmpCommand *command, const char *called, const char *text, JsonObject *args,
               char **ret_message);
/* The next word at *text, moved behind it; NULL: none left, or no end of a quotation (*ret_bad). */
char *hmp_next_word(const char **text, bool *ret_bad);

/* hmp-block.c, hmp-drive.c, hmp-io.c */
void hmp_info_block(HmpCall *call);
void hmp_info_blockstats(HmpCall *call);
void hmp_info_remote(HmpCall *call);
bool hmp_has_drive_add(const MonitorMachine *machine);
void hmp_drive_add(HmpCall *call);
void hmp_drive_del(HmpCall *call);
void hmp_qemu_io(HmpCall *call);

#endif
