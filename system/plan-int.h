/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the steps of plan.h share. The draft owns everything; items belong to its command line.
 */
#ifndef SPINDLE_SYSTEM_PLAN_INT_H
#define SPINDLE_SYSTEM_PLAN_INT_H

#include "system/plan.h"
#include "system/qemu-options.h"

#define PLAN_PORTS 6 /* of one AHCI controller, as ICH9 has */

typedef enum { MACHINE_OTHER, MACHINE_PC, MACHINE_Q35 } MachineFamily;
typedef enum { ACCEL_TCG, ACCEL_KVM, ACCEL_UNSURE } Accel;

/* A drive that Spindle takes over. */
typedef struct PlanDrive {
    CmdItem *source;    /* the -drive or -cdrom that it comes from, or NULL */
    CmdItem *device;    /* the -device, or NULL for if=ide drives */
    Options *props;     /* properties for --device, without driver, bus, unit and bootindex */
    char *node;         /* node name, NULL: empty */
    char *bus;          /* QEMU's bus as the user wrote it ("ide.1", "sata1.0"), or NULL: wherever */
    int unit;           /* -1: not given */
    int bootindex;      /* -1: none */
    int index;          /* of if=ide drives: QEMU's own numbering, else -1 */
    const char *origin; /* an item's */
} PlanDrive;

typedef struct PlanController {
    char *id;          /* of the vfio-user-pci device, and of the drive process's controller */
    char *user_id;     /* QEMU's controller that it stands for: "ide" (built in) or an ahci device's id */
    CmdItem *replaces; /* the user's -device ahci, if all its drives are ours */
    PlanDrive *ports[PLAN_PORTS];
    int bootindex; /* -1: none */
} PlanController;

typedef struct PlanDraft {
    CmdLine *line;
    const PlanHooks *hooks;
    const char *socket_dir;
    MachineFamily machine;
    Accel accel;
    bool uefi;
    bool nodefaults;
    GPtrArray *drives;      /* PlanDrive */
    GPtrArray *controllers; /* PlanController */
    GPtrArray *nodes;       /* PlanArg: --object and --blockdev, in order */
    GPtrArray *notes;       /* char * */
    GPtrArray *sockets;     /* char * */
    unsigned names;         /* counter for generated names */
} PlanDraft;

/* plan-machine.c: what kind of machine this is. False: nothing to serve here. */
bool plan_read_machine(PlanDraft *draft);

/* plan-drives.c: fills drives and nodes, drops the items. */
bool plan_take_drives(PlanDraft *draft, GError **error);

/* plan-nodes.c */

/* The -blockdev with this node name, or NULL. */
CmdItem *plan_find_node(PlanDraft *draft, const char *node_name);
/* The node and all below it are of drivers that Spindle has. */
bool plan_node_is_served(PlanDraft *draft, CmdItem *blockdev);
/* Adds the node, what is below it and the objects that they need to `nodes`, drops the items. */
void plan_take_node(PlanDraft *draft, CmdItem *blockdev);
/* Keeps those of the dropped nodes that something left in QEMU's line names. */
void plan_keep_shared_nodes(PlanDraft *draft);

/* What a -drive or -cdrom holds. PLAN_SOURCE_OTHER: not for Spindle. */
typedef enum { PLAN_SOURCE_OTHER, PLAN_SOURCE_EMPTY, PLAN_SOURCE_NODE } PlanSource;
/* *ret_node: its block node without node name. */
PlanSource plan_drive_source(PlanDraft *draft, CmdItem *item, Options **ret_node);
void plan_add_node(PlanDraft *draft, Options *node, const char *node_name, const char *origin);

/* plan-place.c */
bool plan_place_drives(PlanDraft *draft, GError **error);
void plan_attach_controllers(PlanDraft *draft);

/* plan-memory.c */
void plan_share_memory(PlanDraft *draft);

/* plan-boot.c: before the controllers are attached. */
void plan_order_boot(PlanDraft *draft);

PlanArg *plan_arg_new(const char *name, char *arg, const char *origin);
void plan_note(PlanDraft *draft, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The bus name of an IDE or AHCI controller: its id ("ide" for the built-in one) and the number behind the
 * dot. False for any other bus. */
bool plan_parse_bus(PlanDraft *draft, const char *bus, char **ret_controller, int *ret_number);
/* The user's -device ahci with this id, or NULL. */
CmdItem *plan_find_ahci(PlanDraft *draft, const char *id);
/* How many buses the built-in controller has, and drives on each. */
int plan_ide_buses(const PlanDraft *draft);
int plan_ide_units(const PlanDraft *draft);

/* Whether any item has this id= (objects, devices, drives). */
bool plan_id_taken(PlanDraft *draft, const char *id);

/* Options as JSON text with every value a string but booleans. */
char *plan_options_to_json(const Options *options);

#endif
