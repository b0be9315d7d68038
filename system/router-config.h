/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the router is told at its start, as one JSON argument. Any thread.
 */
#ifndef SPINDLE_SYSTEM_ROUTER_CONFIG_H
#define SPINDLE_SYSTEM_ROUTER_CONFIG_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include "system/plan.h"

/* A user's monitor. */
typedef struct RouterConfigPort {
    char *label;   /* of QEMU's chardev */
    char *socket;  /* QEMU's, to connect to */
    char *address; /* the user's, as query-chardev tells it */
    char *remove;  /* the user's file to remove at the end, or NULL */
    int in, out;   /* the user's: listening (`server`) or connected; -1: nobody */
    int drives;    /* session with the drive process */
    bool server, pretty;
    bool human; /* a prompt, with QMP behind it */
    bool wait;  /* QEMU waits for the first user */
    int serial; /* a serial line of QEMU's that shares the terminal; -1: none */
} RouterConfigPort;

/* A descriptor of QEMU's that the router has, too. */
typedef struct RouterConfigFd {
    int number; /* QEMU's */
    int fd;     /* the router's */
} RouterConfigFd;

typedef struct RouterConfig {
    char *folder;       /* to remove at the end */
    int engine, drives; /* the router's own sessions with QEMU and the drive process */
    bool timestamp;     /* -msg timestamp=on */
    char *user;         /* "NAME" or "UID:GID": who to be from the start on; NULL: as it is */
    bool sandbox;       /* starts no programs */
    bool no_shutdown;   /* SHUTDOWN is not QEMU's end */
    char *incoming;     /* -incoming, or NULL */
    bool autostart;     /* the machine runs when it has its state */
    GArray *inherited;  /* RouterConfigFd: while a state is awaited */
    GPtrArray *ports;   /* RouterConfigPort */
    JsonArray *devices; /* objects with `id` (else `path`), `name`, `driver` of each drive, `controller` */
    JsonArray *nodes;   /* arguments of blockdev-add for the nodes that the drive process has */
    JsonArray *controllers; /* objects with `device`, `user-id`, `hidden`, see PlanPort */
} RouterConfig;

RouterConfig *router_config_new(void);
void router_config_free(RouterConfig *config); /* NULL is allowed */

/* A new last one; stays the config's. */
RouterConfigPort *router_config_add_port(RouterConfig *config);

/* Drives, nodes and controllers. */
void router_config_add_plan(RouterConfig *config, const Plan *plan);

char *router_config_to_text(const RouterConfig *config);
RouterConfig *router_config_from_text(const char *text, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(RouterConfig, router_config_free)

#endif
