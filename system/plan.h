/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From QEMU's command line to a plan: which drives Spindle serves and how, and the command line that QEMU is
 * left with. Pure but for the hooks, which the caller gives (files are looked at through them only). Any
 * thread.
 *
 * The steps, each in its file: plan-drives.c finds the drives and their nodes and drops them from QEMU's
 * line; plan-place.c gives each a port of a controller and adds the vfio-user-pci devices; plan-memory.c
 * makes the guest's memory shareable; plan-boot.c keeps the boot order.
 */
#ifndef SPINDLE_SYSTEM_PLAN_H
#define SPINDLE_SYSTEM_PLAN_H

#include <glib.h>
#include <stdbool.h>
#include "util/options.h"

typedef struct PlanHooks {
    /* Whether the block layer has this driver. */
    bool (*has_driver)(const char *driver);
    /* block_options_from_filename(). */
    Options *(*options_from_filename)(const char *filename, GError **error);
    /* What QEMU's format probing would find in the file, as a driver's name; "raw" when it is no disk image
     * format or cannot be opened. */
    const char *(*probe_format)(const char *filename);
    /* Whether the file given to -bios is UEFI rather than SeaBIOS. */
    bool (*firmware_is_uefi)(const char *filename);
    bool (*is_directory)(const char *path);
    /* Whether somebody sits at standard input and output. */
    bool (*on_terminal)(void);
    /* chardev_options_from_text(). */
    Options *(*chardev_options)(const char *text, GError **error);
} PlanHooks;

/* One option for the drive process, and the words of the user's that it comes from (for messages). */
typedef struct PlanArg {
    char *name;   /* "--blockdev" */
    char *arg;    /* JSON, or NULL */
    char *origin; /* "-cdrom x.iso", or NULL */
} PlanArg;

/* A monitor whose connection is the router's. */
typedef struct PlanMonitor {
    char *label;   /* the chardev's id */
    char *chardev; /* argument of --chardev, without id: where the client is */
    char *engine;  /* the same for QEMU's -chardev, a server; `fd` is to be added */
    char *origin;  /* an item's */
    bool pretty;
    bool human; /* the human monitor: QEMU has a QMP one in its place */
    bool wait;  /* QEMU is to start when there is a user */
    bool mux;   /* the first serial line is at the same terminal: QEMU's chardev PLAN_SERIAL */
} PlanMonitor;

#define PLAN_SERIAL "spindle-serial"

/* A controller of the drive process. */
typedef struct PlanPort {
    char *device;  /* id of QEMU's vfio-user-pci device */
    char *user_id; /* the controller that it stands for */
    bool hidden;   /* the user's command line has no such device */
} PlanPort;

typedef struct Plan {
    bool serves;          /* false: nothing for Spindle here, QEMU gets its arguments as they came */
    bool daemonize;       /* -daemonize */
    bool timestamp;       /* -msg timestamp=on */
    struct RunAs *run_as; /* for whoever launches: NULL, or who the drive process is to be; not the plan's */
    bool no_spawn;        /* -sandbox on,spawn=deny */
    bool no_shutdown;     /* QEMU stays when the guest has powered off */
    bool paused;          /* -S */
    char
        *incoming; /* -incoming's argument, which QEMU does not get: it waits for migrate-incoming; or NULL */
    char **qemu_argv;    /* without argv[0] */
    GPtrArray *drive;    /* PlanArg: the drive process's options in order */
    GPtrArray *monitors; /* PlanMonitor */
    GPtrArray *ports;    /* PlanPort */
    GPtrArray *sockets;  /* char *: paths in `socket_dir`, one a controller */
    GPtrArray *notes;    /* char *: what else was changed, to be told to the user */
} Plan;

/* argv without argv[0]; `socket_dir` is a folder that need not exist yet. NULL and an error that begins with
 * the option ("-cdrom b: drive with bus=2, unit=0 (index=2) exists"). */
Plan *plan_new(const char *const *argv, const char *socket_dir, const PlanHooks *hooks, GError **error);
/* The QOM path of the drive that plan->drive[index] makes, the caller's; NULL: it has an id, or is none.
 * Paths of drives without an id are numbered behind QEMU's devices without one. */
char *plan_device_path(const Plan *plan, guint index);
void plan_free(Plan *plan); /* NULL is allowed */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

#endif
