/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How a QMP command is written: a row of a table with its arguments' names and types, which are decoded and
 * checked before its function runs. The function answers at once, or keeps the call and answers later; until
 * then its session takes no other command. Loop thread.
 */
#ifndef SPINDLE_MONITOR_QMP_H
#define SPINDLE_MONITOR_QMP_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "monitor/monitor.h"

/* QMP_UINT: an integer that is not negative. */
typedef enum {
    QMP_STRING = 1,
    QMP_BOOL,
    QMP_INT,
    QMP_UINT,
    QMP_NUMBER,
    QMP_OBJECT,
    QMP_ARRAY,
    QMP_ANY
} QmpType;

/* Whether the value is of the type, and what the type is called in messages. */
bool qmp_type_fits(JsonNode *node, QmpType type);
const char *qmp_type_name(QmpType type);

typedef struct QmpArg {
    const char *name;
    QmpType type;
    bool optional;
} QmpArg;

#define QMP_ARGS_MAX 32

/* For QmpCommand.needs. */
#define QMP_NEEDS(member) offsetof(MonitorMachine, member)

typedef struct QmpCall QmpCall;

typedef struct QmpCommand {
    const char *name;
    /* A value to answer with (taken over); NULL without an error for `{}`; NULL with an error; or NULL after
     * qmp_call_defer(). */
    JsonNode *(*run)(QmpCall *call, GError **error);
    size_t needs;          /* the machine's function without which there is no such command; 0: none */
    bool any_args;         /* what is not in `args` is let through: blockdev-add, object-add */
    QmpType returns;       /* kind of the value; 0: `{}` */
    char **(*cases)(void); /* what the first argument may be, where that is a list; free with g_strfreev() */
    QmpArg args[QMP_ARGS_MAX];
} QmpCommand;

/* The tables of the commands' files; each ends with a NULL name. */
extern const QmpCommand qmp_commands_block[], qmp_commands_device[], qmp_commands_export[], qmp_commands_fd[],
    qmp_commands_hmp[], qmp_commands_machine[], qmp_commands_migrate[], qmp_commands_qom[],
    qmp_commands_query[], qmp_commands_schema[], qmp_commands_state[], qmp_commands_tray[];

const QmpCommand *qmp_command_find(const char *name);
/* Whether this monitor's machine has it. */
bool qmp_command_available(const QmpCommand *command, const Monitor *monitor);
/* The nth of all tables, or NULL. */
const QmpCommand *qmp_command_nth(unsigned n);

Monitor *qmp_call_monitor(const QmpCall *call);

/* Arguments by name; absent ones are NULL, `fallback`, false. Stay the call's. */
JsonObject *qmp_args(const QmpCall *call);
const char *qmp_arg_string(const QmpCall *call, const char *name);
bool qmp_arg_bool(const QmpCall *call, const char *name, bool fallback);
int64_t qmp_arg_int(const QmpCall *call, const char *name, int64_t fallback);
bool qmp_arg_given(const QmpCall *call, const char *name);

/* The answer comes later by qmp_call_finish(), exactly once, whether or not the session still lives. */
void qmp_call_defer(QmpCall *call);
/* value: as of `run`; error: taken over, or NULL. */
void qmp_call_finish(QmpCall *call, JsonNode *value, GError *error);

/* The next descriptor that came with the client's commands, the caller's; -1: there is none. */
int qmp_call_take_fd(QmpCall *call);

/* Who runs a command, as far as commands can tell. */
typedef struct QmpClient {
    int (*take_fd)(void *opaque);
    void *opaque;
} QmpClient;

/* Checks and runs one command: for sessions and tests. `client` is copied; NULL: nobody. `done` gets the
 * result as of qmp_call_finish(), inside the call or later. */
typedef void (*QmpDone)(JsonNode *value, GError *error, void *opaque);
void qmp_call_run(Monitor *monitor, const QmpClient *client, const char *name, JsonObject *args, QmpDone done,
                  void *opaque);

/* Values. */
JsonNode *qmp_object(JsonObject *object); /* takes it over */
JsonNode *qmp_array(JsonArray *array);
JsonNode *qmp_string(const char *text);

#endif
