/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The monitor of a machine: its drives as users name them (monitor/backend.h), its clients (sessions), and
 * what it may ask the machine to do. Owns sessions, backends, and the nodes and throttle groups that users
 * made. Loop thread.
 */
#ifndef SPINDLE_MONITOR_MONITOR_H
#define SPINDLE_MONITOR_MONITOR_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include "block/block.h"
#include "block/throttle.h"
#include "monitor/chardev.h"

typedef struct Monitor Monitor;

/* What migrate-set-capabilities and -parameters chose. */
typedef struct MonitorMigrateSettings {
    bool events;            /* the capability: MIGRATION tells of each state */
    GHashTable *on;         /* names of the capabilities that are on */
    JsonObject *parameters; /* those that were set */
} MonitorMigrateSettings;
void monitor_migrate_settings_init(MonitorMigrateSettings *settings);
void monitor_migrate_settings_clear(MonitorMigrateSettings *settings);

typedef void (*MonitorStateSaved)(GBytes *state, GError *error, void *opaque);

/* What a monitor asks of its machine; a NULL entry is a command that the machine has not. */
typedef struct MonitorMachine {
    /* As query-status: "running", "paused", "io-error", "inmigrate", "postmigrate"… */
    const char *(*status)(void *opaque);
    bool (*is_running)(void *opaque);
    void (*stop)(void *opaque);
    bool (*cont)(void *opaque, GError **error);
    void (*reset)(void *opaque);
    void (*quit)(void *opaque);
    /* Hot-plug; the options are device_add's. The event DEVICE_DELETED tells that a drive is gone. */
    bool (*device_add)(void *opaque, Options *options, GError **error);
    bool (*device_del)(void *opaque, const char *id, GError **error);
    /* migrate, migrate-incoming: to or from `uri`; how it goes is MigrationInfo (the caller's), empty if none
     * ever began. */
    bool (*migrate)(void *opaque, const char *uri, GError **error);
    bool (*incoming)(void *opaque, const char *uri, bool exit_on_error, GError **error);
    void (*migrate_cancel)(void *opaque);
    JsonObject *(*query_migrate)(void *opaque);
    MonitorMigrateSettings *(*migrate_settings)(void *opaque); /* the machine's */
    /* A -drive that no device uses yet. */
    bool (*drive_add)(void *opaque, Options *options, GError **error);
    /* The state of the devices as bytes, when they have come to rest; from then on they are parked. `done`
     * runs once, later: the bytes (a reference) or an error (its to free). */
    void (*save_state)(void *opaque, MonitorStateSaved done, void *done_opaque);
    /* Back from bytes: all or nothing. They are parked then; `cont` ends that. A value for the caller, or
     * NULL with an error. */
    JsonNode *(*load_state)(void *opaque, GBytes *state, GError **error);
    /* query-machines: names, the default one first; ends with NULL. */
    const char *const *(*machines)(void *opaque);
} MonitorMachine;

/* `name`: -name, or NULL. `machine` stays the caller's. */
Monitor *monitor_new(const MonitorMachine *machine, void *opaque);

/* Ends all sessions and lets go of all drives, nodes and groups. NULL is allowed. */
void monitor_free(Monitor *monitor);

/* For commands that end later than the monitor may: it is then empty, and what is given to it is let go. */
Monitor *monitor_ref(Monitor *monitor);
void monitor_unref(Monitor *monitor);

/* Whether its owner has let go. */
bool monitor_is_closed(const Monitor *monitor);

void monitor_set_name(Monitor *monitor, const char *name);
const char *monitor_name(const Monitor *monitor);
void monitor_set_uuid(Monitor *monitor, const char *uuid);
const char *monitor_uuid(const Monitor *monitor);

/* NULL when the owner has let go. */
const MonitorMachine *monitor_machine(const Monitor *monitor, void **ret_opaque);

/* A server on a chardev, which becomes the monitor's: QMP, or the human monitor. */
typedef enum { MONITOR_QMP, MONITOR_QMP_PRETTY, MONITOR_HUMAN } MonitorMode;
void monitor_add_server(Monitor *monitor, Chardev *chardev, MonitorMode mode);

/* Connects all that were added. */
bool monitor_open(Monitor *monitor, GError **error);

/* A node that users made by itself (--blockdev, blockdev-add): the monitor takes the reference. */
void monitor_own_node(Monitor *monitor, BlockNode *node);
bool monitor_owns_node(const Monitor *monitor, BlockNode *node);
void monitor_drop_node(Monitor *monitor, BlockNode *node);

/* The same for throttle groups (--object, object-add). */
void monitor_own_group(Monitor *monitor, ThrottleGroup *group);
/* A new reference to one of them, or NULL; and all names in order, to be freed with g_strfreev(). */
ThrottleGroup *monitor_find_group(const Monitor *monitor, const char *name);
char **monitor_group_names(const Monitor *monitor);
/* False without an error: there is none of that name. */
bool monitor_drop_group(Monitor *monitor, const char *name, GError **error);

/* The qemu-io shells of asynchronous commands: GPtrArray of IoShell, the monitor's. */
GPtrArray *monitor_shells(const Monitor *monitor);

/* Descriptors by name (getfd): the monitor's. One of the same name is replaced. */
void monitor_set_fd(Monitor *monitor, const char *name, int fd);
/* False: there is none. */
bool monitor_close_fd(Monitor *monitor, const char *name);
/* Hands it over; -1: there is none. */
int monitor_take_fd(Monitor *monitor, const char *name);

/* To every session that has finished negotiation; `data` is taken over, NULL: none. */
void monitor_event(Monitor *monitor, const char *name, JsonObject *data);

/* The same for what may come in masses: of those with the same name and `key`, one a second. Of what comes in
 * between, the last one comes then. */
void monitor_event_limited(Monitor *monitor, const char *name, JsonObject *data, const char *key);

/* The next of this name and key comes at once, and one that waits does not come any more. */
void monitor_event_forget(Monitor *monitor, const char *name, const char *key);

#endif
